"""Which detection serves which pair of shapes."""

import jax.numpy as jnp
from jaxtyping import Array

from ..spatial import Pose
from .convex import Solid, deepest, witness
from .shapes import (
    AbstractPolyhedron,
    AbstractShape,
    AbstractSolid,
    Bowl,
    HalfSpace,
    HeightField,
)
from .touch import Touch, in_bowl, on_plane, on_terrain


def touches(A: AbstractSolid, X_WA: Pose, B: AbstractShape, X_WB: Pose) -> Touch:
    """All points at which two shapes may touch; their number never changes."""
    if isinstance(B, HalfSpace):
        return on_plane(A, X_WA, X_WB)
    if isinstance(B, HeightField):
        return on_terrain(A, X_WA, B, X_WB)
    if isinstance(B, Bowl):
        return in_bowl(A, X_WA, B, X_WB)
    if isinstance(A, AbstractPolyhedron) and isinstance(B, AbstractPolyhedron):
        return corners(A, X_WA, B, X_WB)
    if isinstance(B, AbstractSolid):
        return witness(A, X_WA, B, X_WB)
    raise TypeError(f"{type(A).__name__} and {type(B).__name__} cannot touch")


def corners(A: AbstractSolid, X_WA: Pose, B: AbstractSolid, X_WB: Pose) -> Touch:
    """Corners of each in the other; and where an edge crosses an edge.

    A face that lies on a face has several of them, so that boxes stand. Where an edge
    ends its crossing gives way to a corner.
    """
    a, b = Solid.of(A, X_WA), Solid.of(B, X_WB)
    n, depth = _in_faces(a, b)
    m, low = _in_faces(b, a)
    first = Touch(a.points + depth[:, None] / 2 * n, n, depth)
    second = Touch(b.points + low[:, None] / 2 * m, -m, low)
    deep, normal, middle, room = deepest(a, b)
    third = Touch(middle[None], normal[None], jnp.minimum(deep, room)[None])
    join = lambda *x: jnp.concatenate(x)
    return Touch(
        join(first.p, second.p, third.p),
        join(first.n, second.n, third.n),
        join(first.depth, second.depth, third.depth),
    )


def _in_faces(a: Solid, b: Solid) -> tuple[Array, Array]:
    """Normal and depth of corners of the first under the nearest face of the second."""
    room = b.offsets[None] - a.points @ b.normals.T
    face = jnp.argmin(room, 1)
    return b.normals[face], jnp.take_along_axis(room, face[:, None], 1)[:, 0]
