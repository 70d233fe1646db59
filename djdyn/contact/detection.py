"""Contact detection: the function that serves each pair of shapes."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..multibody.spatial import Pose
from .contact_points import ContactPoints, in_bowl, on_plane, on_terrain
from .convex import Solid, deepest, witness
from .shapes import (
    AbstractPolyhedron,
    AbstractShape,
    AbstractSolid,
    Bowl,
    Capsule,
    HalfSpace,
    HeightField,
    Sphere,
)


def find_contacts(
    A: AbstractSolid, X_WA: Pose, B: AbstractShape, X_WB: Pose
) -> ContactPoints:
    """Return all points at which two shapes may touch; their number never changes."""
    if isinstance(B, HalfSpace):
        return on_plane(A, X_WA, X_WB)
    if isinstance(B, HeightField):
        return on_terrain(A, X_WA, B, X_WB)
    if isinstance(B, Bowl):
        return in_bowl(A, X_WA, B, X_WB)
    if isinstance(A, AbstractPolyhedron) and isinstance(B, AbstractPolyhedron):
        return polyhedron_contacts(A, X_WA, B, X_WB)
    if isinstance(A, Capsule) and isinstance(B, AbstractSolid):
        return capsule_contacts(A, X_WA, B, X_WB)
    if isinstance(B, Capsule):
        found = capsule_contacts(B, X_WB, A, X_WA)
        return ContactPoints(found.p, -found.n, found.depth)
    if isinstance(B, AbstractSolid):
        return witness(A, X_WA, B, X_WB)
    raise TypeError(
        f"no contact detection for {type(A).__name__} and {type(B).__name__}"
    )


def polyhedron_contacts(
    A: AbstractSolid, X_WA: Pose, B: AbstractSolid, X_WB: Pose
) -> ContactPoints:
    """Return corners of each solid in the other, and where an edge crosses an edge.

    A face that lies on a face has several of them, so that boxes stand. Where an edge
    ends its crossing gives way to a corner.
    """
    a, b = Solid.of(A, X_WA), Solid.of(B, X_WB)
    n, depth = _in_faces(a, b)
    m, low = _in_faces(b, a)
    first = ContactPoints(a.points + depth[:, None] / 2 * n, n, depth)
    second = ContactPoints(b.points + low[:, None] / 2 * m, -m, low)
    deep, normal, middle, room = deepest(a, b)
    third = ContactPoints(middle[None], normal[None], jnp.minimum(deep, room)[None])
    join = lambda *x: jnp.concatenate(x)
    return ContactPoints(
        join(first.p, second.p, third.p),
        join(first.n, second.n, third.n),
        join(first.depth, second.depth, third.depth),
    )


def _in_faces(a: Solid, b: Solid) -> tuple[Array, Array]:
    """Return normals and depths of corners of `a` under the nearest face of `b`."""
    room = b.offsets[None] - a.points @ b.normals.T
    face = jnp.argmin(room, 1)
    return b.normals[face], jnp.take_along_axis(room, face[:, None], 1)[:, 0]


def capsule_contacts(
    A: Capsule, X_WA: Pose, B: AbstractSolid, X_WB: Pose
) -> ContactPoints:
    """Return the contacts of a capsule that lies on a solid.

    These are both ends of the part of the capsule that is over the solid, so that it
    lies still, and its deepest point, which fades out where an end is half as deep.
    That part ends at the solid's walls, moved out by as much as they face the capsule.
    """
    middle = witness(A, X_WA, B, X_WB)
    walls, far = _walls(B)
    walls = walls @ X_WB.R.T
    axis, half = X_WA.R[:, 2], A.length / 2
    out = (A.radius + B.rounding()) * jnp.maximum(walls @ middle.n[0], 0.0)
    room, slope = far + out - walls @ (X_WA.p - X_WB.p), walls @ axis
    crossed = jnp.abs(slope) > 1e-9
    s = room / jnp.where(crossed, slope, 1.0)
    low = jnp.max(jnp.where(crossed & (slope < 0), s, -half), initial=-jnp.inf)
    high = jnp.min(jnp.where(crossed & (slope > 0), s, half), initial=jnp.inf)
    s = jnp.clip(jnp.stack([low, high]), -half, half)
    ball, level = Sphere(A.radius), jnp.eye(3, dtype=s.dtype)
    at = X_WA.p[None] + s[:, None] * axis[None]
    ends = jax.vmap(lambda p: witness(ball, Pose(level, p), B, X_WB))(at)
    depth = middle.depth - 2 * jnp.maximum(jnp.max(ends.depth), 0.0)
    join = lambda x, y: jnp.concatenate([x[:, 0], y])
    return ContactPoints(
        join(ends.p, middle.p), join(ends.n, middle.n), join(ends.depth, depth)
    )


def _walls(B: AbstractSolid) -> tuple[Array, Array]:
    """Return normals and offsets of planes around a solid (of a capsule its ends)."""
    if isinstance(B, Capsule):
        up = jnp.array([[0.0, 0.0, 1.0]])
        return jnp.concatenate([up, -up]), jnp.stack([B.length, B.length]) / 2
    return B.planes()
