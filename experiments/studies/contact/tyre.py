"""Separating axes of boxes, bristle friction, and a vehicle on one wheel.

After the contact and tyre models of Baharudin 2016.
"""

from typing import Any

import numpy as np

import djdyn
from djdyn.contact import Contact, Cuboid, HalfSpace, KelvinVoigt, LuGre, Sphere
from djdyn.contact.convex import Solid, axes, margins
from djdyn.multibody.time_functions import SteadyMotion
from djdyn.parts import JointForce

from ...harness.study import Study
from .model import G, ledger


TYRE = LuGre(0.5, 0.9, 40.0, 4.9487, 0.0018, 12.5, 0.5, width=1e-9)
MASS, INERTIA, RADIUS = 2500.0, 60.0, 0.6  # kg, kg m^2, m
STIFF = 1e9  # N/m


def gaps(A: Cuboid, B: Cuboid, p: Any, turn_A: Any, turn_B: Any) -> np.ndarray:
    """Return distances of two boxes along all axes: six of each box, then edges."""
    a = Solid.of(A, djdyn.pose_rpy((0.0, 0.0, 0.0), turn_A))
    b = Solid.of(B, djdyn.pose_rpy(p, turn_B))
    return -np.asarray(margins(a, b, axes(a, b)))


def run_boxes(study: Study) -> None:
    """Compare the distances of two boxes along their separating axes."""
    A, B = Cuboid([4.0, 2.0, 2.0]), Cuboid([2.0, 1.0, 2.0])
    turn = (0.0, 0.0, np.pi / 6)
    note = "boxes: separated by an axis of the rotated box"
    found = gaps(A, B, (3.0, 1.5, 0.0), (0.0, 0.0, 0.0), turn)
    study.metric(
        "contact.boxes.turned", found[6:12].max(), 0.116025, 1e-6, unit="m", note=note
    )
    found = gaps(A, B, (3.2, 1.0, 0.0), (0.0, 0.0, 0.0), turn)
    for name, value, known in (
        ("first", found[:6].max(), 0.083975),
        ("second", found[6:12].max(), 0.039230),
    ):
        note = "boxes: separated by an axis of either box"
        study.metric(f"contact.boxes.{name}", value, known, 1e-6, unit="m", note=note)
    cube, q = Cuboid([2.0, 2.0, 2.0]), np.pi / 4
    for T, name, rows, known, note in (
        (2.8, "overlap", slice(None), -0.028427, "no axis separates them"),
        (3.0, "edges", slice(12, None), 0.171573, "separated by an axis of two edges"),
        (3.0, "faces", slice(12), np.sqrt(2) - 2, "not separated by a face"),
        (3.9, "far", slice(12), 0.050610, "separated by a face"),
    ):
        found = gaps(cube, cube, (T, 0.0, 0.0), (0.0, 0.0, q), (0.0, q, 0.0))
        study.metric(
            f"contact.boxes.{name}",
            found[rows].max(),
            known,
            1e-6,
            unit="m",
            note=f"boxes: {note}",
        )


def run_bristles(study: Study) -> None:
    """Compare bristle friction of a block held on a belt that starts at 1 m/s."""
    belt = djdyn.Body("belt", "world", djdyn.Prescribed(SteadyMotion((1.0, 0, 0))), 0.0)
    block = djdyn.Body("b", "world", djdyn.Prismatic((0, 0, 1)), 1.0)
    law = KelvinVoigt(1e5, width=1e-7)
    part = Contact("b", Sphere(0.1), "belt", HalfSpace(), law, TYRE)
    system = djdyn.System(djdyn.Mechanism((belt, block)), {"touch": part})
    y = system.initial_state(q={"b": [0.1 - G / 1e5]})
    times = [0.0, 0.01, 0.05, 0.2, 2.0]
    run = djdyn.simulate(
        system, 2.0, y, saveat=times, ledger=True, rtol=1e-10, atol=1e-12
    )
    bent = np.abs(np.asarray(run.y.parts["touch"]["bristles"])[:, 0, 0])
    known = [0.0, 0.00787266, 0.01838421, 0.02003546, 0.02003638]
    study.metric(
        "contact.bristles.step_error",
        np.abs(bent - known).max(),
        at_most=1e-8,
        unit="m",
        note="largest error of the bristle deflection at 0.01, 0.05, 0.2 and 2 s",
    )
    pull = np.asarray(run.signal("touch.force"))[:, 0] / G
    for name, value, known, within in (
        ("spike", pull[0], 4.9505, 1e-4),
        ("later", pull[3], 0.803447, 1e-6),
    ):
        note = "friction over normal force, at the start and after 0.2 s"
        study.metric(f"contact.bristles.{name}", value, known, within, note=note)
    ledger(study, "bristles", run, 1e-6)


def vehicle(driven: bool) -> djdyn.System:
    """Return a vehicle of 2500 kg on one wheel, driven or locked."""
    turning = 100.0 if driven else 0.0  # kg of the whole mass
    hub = djdyn.Body("b", "car", djdyn.Prismatic((0, 0, 1)), MASS - turning)
    bodies = (djdyn.Body("car", "world", djdyn.Prismatic((1, 0, 0)), 0.0), hub)
    parts: dict[str, djdyn.AbstractPart] = {}
    if driven:
        axis, I_BC = djdyn.Revolute((0, 1, 0)), INERTIA * np.eye(3)
        bodies = (*bodies, djdyn.Body("wheel", "b", axis, turning, I_BC=I_BC))
        parts["motor"] = JointForce("wheel", 3000.0)
    law, on = KelvinVoigt(STIFF, width=1e-8), "wheel" if driven else "b"
    parts["touch"] = Contact(on, Sphere(RADIUS), "world", HalfSpace(), law, TYRE)
    return djdyn.System(djdyn.Mechanism(bodies), parts)


def roll(system: djdyn.System, span: float, v: float, n: int) -> djdyn.Trajectory:
    """Simulate the vehicle from an initial speed."""
    q = {"b": [RADIUS - MASS * G / STIFF]}
    y = system.initial_state(q=q, v={"car": [v]})
    how = {"rtol": 1e-8, "atol": 1e-10, "max_steps": 1 << 16}
    return djdyn.simulate(system, span, y, saveat=n, ledger=True, **how)


def run_vehicle(study: Study) -> None:
    """Compare a vehicle that is accelerated, and stopped with a locked wheel."""
    run = roll(vehicle(True), 5.0, 0.0, 501)
    v = np.asarray(run.v("car"))[:, 0]
    bent = np.asarray(run.y.parts["touch"]["bristles"])[-1, 0, 0]
    note = "vehicle: 3000 N m on the wheel"
    for name, value, known, within, unit in (
        ("speed_1s", v[100], 1.874999, 2e-4, "m/s"),
        ("speed_5s", v[-1], 9.375, 1e-3, "m/s"),
        ("bristles", abs(bent), 0.00477829, 1e-6, "m"),
    ):
        study.metric(
            f"contact.vehicle.{name}", value, known, within, unit=unit, note=note
        )
    ledger(study, "vehicle", run, 1e-6)
    shown = {}
    for v0, time, way in ((5.0, 0.531306, 1.134007), (10.0, 1.251125, 5.958117)):
        run = roll(vehicle(False), 1.4 * time, v0, 4001)
        v, x = (np.asarray(k("car"))[:, 0] for k in (run.v, run.q))
        k = np.argmax(v <= 0)
        part = v[k - 1] / (v[k - 1] - v[k])
        stop = run.t[k - 1] + part * (run.t[k] - run.t[k - 1])
        gone = x[k - 1] + part * (x[k] - x[k - 1])
        note, name = (
            f"vehicle: wheel locked at {v0:g} m/s",
            f"contact.vehicle.stop_{v0:g}",
        )
        study.metric(f"{name}_time", stop, time, 2e-6, unit="s", note=note)
        study.metric(f"{name}_way", gone, way, 2e-6, unit="m", note=note)
        shown[f"from {v0:g} m/s"] = (run.t, v)
    study.report.plot(
        "Vehicle with a locked wheel: speed",
        ("time", "s", run.t),
        ("speed", "m/s"),
        shown,
    )
