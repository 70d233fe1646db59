"""Random trees of bodies, with inertias that some distribution of mass has."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from djdyn.multibody.joints import (
    AbstractJoint,
    Cartesian,
    Cylindrical,
    Fixed,
    Free,
    Planar,
    Prismatic,
    Revolute,
    RollPitchYaw,
    Spherical,
    Universal,
)
from djdyn.multibody.mechanism import Body, Mechanism
from djdyn.multibody.point_contact_joints import (
    HollowCircle,
    HollowSphere,
    PlanarPointContact,
    PointContact,
)
from djdyn.multibody.spatial import Pose


class Topology(NamedTuple):
    """Row of each body's parent (the world is 0), and the type of each joint."""

    parents: tuple[int, ...]
    joints: tuple[type[AbstractJoint], ...]


def random_topology(
    seed: int, bodies: int, joints: Sequence[type[AbstractJoint]]
) -> Topology:
    """A tree in which every body hangs on any earlier one, or on the world.

    The types are dealt so that each comes up; a free body hangs on the world, and the
    last of a branch is not fixed.
    """
    rng = np.random.default_rng(seed)
    parents = [0, *(int(rng.integers(max(0, i - 4), i + 1)) for i in range(1, bodies))]
    kinds = [joints[i % len(joints)] for i in rng.permutation(bodies)]
    for i, kind in enumerate(kinds):
        if kind is Free:
            parents[i] = 0
        if kind is Fixed and i + 1 not in parents:
            kinds[i] = Revolute
    return Topology(tuple(parents), tuple(kinds))


def random_tree(
    rng: np.random.Generator, topology: Topology, geared: bool = False
) -> Mechanism:
    """A tree of random numbers; `geared` gives each joint the inertia of a rotor."""
    bodies = []
    for i, (parent, kind) in enumerate(zip(*topology, strict=True)):
        name = "world" if parent == 0 else f"b{parent}"
        mass, p_BC, I_BC = random_inertia(rng)
        X_PJ = Pose(np.eye(3), np.zeros(3)) if kind is Free else random_pose(rng)
        joint = random_joint(rng, kind)
        armature = np.full(joint.nv, rng.uniform(0.1, 2.0)) if geared else None
        bodies.append(
            Body(f"b{i + 1}", name, joint, mass, p_BC, I_BC, X_PJ, armature=armature)
        )
    return Mechanism(tuple(bodies), gravity_W=rng.uniform(-10, 10, 3))


def random_joint(rng: np.random.Generator, kind: type[AbstractJoint]) -> AbstractJoint:
    if kind in (Revolute, Prismatic, Cylindrical):
        return kind(rng.normal(size=3))
    if kind is Universal:
        first = rng.normal(size=3)
        return Universal(first, np.cross(first, rng.normal(size=3)))
    if kind is PointContact:
        return PointContact(HollowSphere(rng.uniform(0.5, 1.0)), 0.2)
    if kind is PlanarPointContact:
        return PlanarPointContact(HollowCircle(rng.uniform(0.5, 1.0)), 0.2)
    return kind()


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return R * np.sign(np.linalg.det(R))


def random_pose(rng: np.random.Generator) -> Pose:
    return Pose(random_rotation(rng), rng.uniform(-0.5, 0.5, 3))


def random_inertia(rng: np.random.Generator) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre and inertia about it of eight point masses."""
    m, p = rng.uniform(0.1, 1.0, 8), rng.uniform(-0.3, 0.3, (8, 3))
    centre = m @ p / m.sum()
    r = p - centre
    second = np.einsum("n,ni,nj->ij", m, r, r)
    return m.sum(), centre, np.trace(second) * np.eye(3) - second


def random_q(rng: np.random.Generator, mechanism: Mechanism) -> np.ndarray:
    """Coordinates with unit quaternions, away from the gimbal's singular pitch."""
    parts = [np.zeros(0)]
    for body in mechanism.bodies:
        q = rng.uniform(-1.2, 1.2, body.joint.nq)
        if isinstance(body.joint, Free | Spherical):
            q[-4:] = rng.normal(size=4)
            q[-4:] /= np.linalg.norm(q[-4:])
        parts.append(q)
    return np.concatenate(parts)


def stack(trees: Sequence) -> Mechanism:
    """One pytree with a leading axis, for `vmap`."""
    return jax.tree.map(lambda *x: jnp.stack(x), *trees)


__all__ = [
    "AbstractJoint",
    "Cartesian",
    "Cylindrical",
    "Fixed",
    "Free",
    "Planar",
    "PlanarPointContact",
    "PointContact",
    "Prismatic",
    "Revolute",
    "RollPitchYaw",
    "Spherical",
    "Topology",
    "Universal",
    "random_inertia",
    "random_joint",
    "random_pose",
    "random_q",
    "random_rotation",
    "random_topology",
    "random_tree",
    "stack",
]
