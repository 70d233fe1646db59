r"""Volume, centroid and areas of the intersection of convex polyhedra.

A polyhedron is the set of half-spaces $n_i\cdot x\le d_i$, and so is the intersection
of two. The line where two of its planes meet, cut by all the others, is an edge or
nothing; the tetrahedra between a common point, its foot on a plane and that plane's
edges add up to the volume (Lasserre, *An analytical expression and an algorithm for
the volume of a convex polyhedron*, 1983). No list changes its length, so the sum is
compiled once, and its derivatives are exact.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..multibody.spatial import cross
from ..typing import Scalar, Vec3


class Overlap(eqx.Module):
    """The intersection of two bodies.

    `area` is the area vector of the first body's faces inside the second one.
    """

    volume: Scalar
    centroid: Vec3
    area: Vec3


def overlap(
    n: Float[Array, "planes 3"],
    d: Float[Array, " planes"],
    first: int,
    near: Vec3,
) -> Overlap:
    r"""Return volume, centroid and area of the polyhedron $n_i\cdot x\le d_i$.

    **Arguments:**

    - `n`: unit normals, outwards.
    - `first`: how many of the planes, in front, are the first body's.
    - `near`: any point near the intersection; the centroid where that is empty.
    """
    d = d - n @ near  # lengths from there keep small volumes exact
    count = len(d)
    c = n @ n.T
    u = cross(n[:, None], n[None])  # along the edge of planes i and j
    square = jnp.sum(u * u, -1)
    meets = square > 1e-16
    inverse = jnp.where(meets, 1 / jnp.where(meets, square, 1.0), 0.0)
    # The point of both planes that is nearest: a n_i + b n_j.
    a = (d[:, None] - c * d[None]) * inverse
    x = a[..., None] * n[:, None] + a.T[..., None] * n[None]

    # Room along the line up to every plane k.
    slope, room = u @ n.T, d[None, None] - x @ n.T  # i j k
    k = jnp.arange(count)
    own = k[:, None, None] == k[None, None]
    own = own | (k[None, :, None] == k[None, None])
    up, down = slope > 1e-9, slope < -1e-9
    t = room / jnp.where(up | down, slope, 1.0)
    high = jnp.min(jnp.where(up & ~own, t, jnp.inf), -1)
    low = jnp.max(jnp.where(down & ~own, t, -jnp.inf), -1)
    # A plane along the line leaves all of it or nothing; of equal planes one counts.
    again = (c > 1 - 1e-12) & (k[None] < k[:, None])
    again = (again[:, None] | again[None]) & (room <= 1e-12)
    none = jnp.any(~(up | down | own) & (again | (room < -1e-12)), -1)
    is_edge = meets & ~none & (high > low) & jnp.isfinite(high - low)
    low, high = (jnp.where(is_edge, y, 0.0)[..., None] for y in (low, high))

    p, q = x + low * u, x + high * u
    foot = d[:, None] * n
    twice = cross(p - foot[:, None], q - foot[:, None])  # of the triangle's area
    areas = jnp.sum(jnp.where(is_edge, jnp.sum(twice * n[:, None], -1), 0.0), 1) / 2
    volumes = jnp.where(is_edge, d[:, None] * jnp.sum(twice * n[:, None], -1) / 6, 0.0)
    volume = jnp.sum(volumes)
    middles = (foot[:, None] + p + q) / 4
    some = volume > 0
    middle = jnp.sum(volumes[..., None] * middles, (0, 1))
    centroid = jnp.where(some, middle / jnp.where(some, volume, 1.0), 0.0)
    return Overlap(volume, near + centroid, areas[:first] @ n[:first])
