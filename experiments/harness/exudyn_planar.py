"""Exudyn: planar rigid bodies with hinges, for comparison."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .exudyn_peer import import_exudyn
from .moordyn_peer import quiet


class PlanarBody(NamedTuple):
    """A rigid body: mass, inertia, and its centre's place, angle and speeds."""

    mass: float
    inertia: float
    place: tuple[float, float]
    angle: float
    velocity: tuple[float, float]
    rate: float


class PlanarJoint(NamedTuple):
    """A hinge between points of two bodies; -1 is the ground."""

    a: int
    at_a: tuple[float, float]
    b: int
    at_b: tuple[float, float]


def run_planar(
    bodies: Sequence[PlanarBody],
    joints: Sequence[PlanarJoint],
    span: float,
    steps: int,
    gravity: float,
) -> tuple[np.ndarray, float]:
    """Return the end of the first body's axis at twice its half length, and the time.

    Generalised alpha with a spectral radius of 0.9. The time is that of the solver.
    """
    exu = import_exudyn()
    from exudyn import itemInterface as items

    mbs = exu.SystemContainer().AddSystem()
    ground = mbs.AddObject(items.ObjectGround())
    nodes, numbers = [], []
    for body in bodies:
        node = mbs.AddNode(
            items.NodeRigidBody2D(
                referenceCoordinates=[*body.place, body.angle],
                initialVelocities=[*body.velocity, body.rate],
            )
        )
        number = mbs.AddObject(
            items.RigidBody2D(
                physicsMass=body.mass, physicsInertia=body.inertia, nodeNumber=node
            )
        )
        centre = mbs.AddMarker(items.MarkerBodyMass(bodyNumber=number))
        mbs.AddLoad(
            items.LoadMassProportional(markerNumber=centre, loadVector=[0, gravity, 0])
        )
        nodes.append(node)
        numbers.append(number)
    for joint in joints:
        ends = []
        for at, place in ((joint.a, joint.at_a), (joint.b, joint.at_b)):
            number = ground if at < 0 else numbers[at]
            marker = items.MarkerBodyPosition(
                bodyNumber=number, localPosition=[*place, 0]
            )
            ends.append(mbs.AddMarker(marker))
        mbs.AddObject(items.RevoluteJoint2D(markerNumbers=ends))
    how = exu.SimulationSettings()
    integration = how.timeIntegration
    integration.endTime, integration.numberOfSteps = span, steps
    integration.generalizedAlpha.spectralRadius = 0.9
    integration.newton.useModifiedNewton = True
    how.solution.file = how.solution.file
    how.solutionSettings.writeSolutionToFile = False
    how.linearSolverType = exu.LinearSolverType.EigenSparse
    with quiet():
        mbs.Assemble()
        began = time.perf_counter()
        done = exu.SolveDynamic(mbs, how)
        taken = time.perf_counter() - began
    if not done:
        raise RuntimeError("Exudyn did not reach the end of the planar mechanism")
    kind = exu.OutputVariableType
    centre = np.array(mbs.GetNodeOutput(nodes[0], kind.Position))[:2]
    return 2 * centre - np.array(joints[0].at_a), taken
