"""Mechanisms with closed loops, worked and random."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

import djdyn
from djdyn.multibody.closures import AbstractClosure
from djdyn.multibody.kinematics import forward_kinematics
from djdyn.multibody.loop_rows import loop_rows
from tests.multibody.trees import random_q, random_topology, random_tree


def four_bar(closure: AbstractClosure, ground: float = 3.0) -> djdyn.Mechanism:
    """Rods of 1, 3 and 2.5 m, 1 kg/m, in the xz plane, cut at the rocker's pivot."""

    def rod(name: str, parent: str, length: float, at: float) -> djdyn.Body:
        I = jnp.diag(jnp.array([0.0, 1.0, 1.0])) * length**3 / 12
        return djdyn.Body(
            name,
            parent,
            djdyn.Revolute((0, -1, 0)),
            mass=length,
            p_BC=(length / 2, 0, 0),
            I_BC=I,
            X_PJ=djdyn.translation((at, 0, 0)),
        )

    bodies = (
        rod("crank", "world", 1.0, 0.0),
        rod("coupler", "crank", 3.0, 1.0),
        rod("rocker", "coupler", 2.5, 3.0),
    )
    frames = (
        djdyn.Frame("end", "rocker", djdyn.translation((2.5, 0, 0))),
        djdyn.Frame("pivot", "world", djdyn.translation((ground, 0, 0))),
    )
    pin = djdyn.Loop("pin", "pivot", "end", djdyn.Revolute((0, 1, 0)))
    return djdyn.Mechanism(bodies, frames, loops=(pin,), closure=closure)


TREE = (djdyn.Revolute, djdyn.Prismatic, djdyn.Cylindrical, djdyn.Spherical)


def random_loops(
    seed: int, kinds: Sequence
) -> tuple[djdyn.Mechanism, jnp.ndarray, jnp.ndarray]:
    """A random tree with two closed random loops, and speeds that keep them closed."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, random_topology(seed, 6, TREE))
    q = jnp.asarray(random_q(rng, tree))
    world = forward_kinematics(tree, q)
    frames, loops = [], []
    for k in range(2):
        joint = kinds[(2 * seed + k) % len(kinds)]
        a, b = rng.choice(len(tree.bodies) + 1, 2, replace=False)
        X_aA, X_bB = random_pose(rng), random_pose(rng)
        at = djdyn.Pose(world.X_WB.R[b], world.X_WB.p[b]) @ X_bB
        base = djdyn.Pose(world.X_WB.R[a], world.X_WB.p[a])
        X_WA = at @ displaced(rng, joint).inverse
        X_aA = base.inverse @ X_WA
        names = ["world", *(body.name for body in tree.bodies)]
        frames += [
            djdyn.Frame(f"A{k}", names[a], X_aA),
            djdyn.Frame(f"B{k}", names[b], X_bB),
        ]
        loops.append(djdyn.Loop(f"loop{k}", f"A{k}", f"B{k}", joint))
    mechanism = djdyn.Mechanism(tree.bodies, tuple(frames), loops=tuple(loops))
    v = rng.standard_normal(mechanism.nv)
    J = np.asarray(loop_rows(forward_kinematics(mechanism, q)).jacobian)
    v = v - np.linalg.pinv(J, 1e-9) @ (J @ v)
    return mechanism, q, jnp.asarray(v)


def random_pose(rng: np.random.Generator) -> djdyn.Pose:
    return djdyn.pose_rpy(rng.uniform(-0.5, 0.5, 3), rng.uniform(-1, 1, 3))


def displaced(rng: np.random.Generator, joint) -> djdyn.Pose:
    """A pose of B seen from A that the joint allows."""
    turned = random_pose(rng).R
    match type(joint).__name__:
        case "PointOnLine":
            return djdyn.Pose(turned, joint.axis * rng.uniform(-1, 1))
        case "PointOnPlane":
            p = rng.uniform(-1, 1, 3)
            n = np.asarray(joint.normal)
            return djdyn.Pose(turned, jnp.asarray(p - (n @ p) * n))
        case "Distance":
            p = rng.standard_normal(3)
            p = p / np.linalg.norm(p) * float(joint.length)
            return djdyn.Pose(turned, jnp.asarray(p))
    q = rng.uniform(-0.7, 0.7, joint.nq)
    if isinstance(joint, djdyn.Spherical):
        q = q / np.linalg.norm(q)
    return joint.pose(jnp.asarray(q), jnp.zeros(()))
