"""Contact points of solids with planes, bowls and terrain, in closed form."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..multibody.spatial import Pose
from ..smooth import norm
from ..typing import Vec3
from .shapes import AbstractSolid, Bowl, Cylinder, HeightField


class ContactPoints(eqx.Module):
    """Points where two shapes touch or are close to each other.

    `n` is the unit normal from the second to the first; `depth` is negative where they
    are apart. `p` is halfway between the two surfaces.
    """

    p: Float[Array, "k 3"]
    n: Float[Array, "k 3"]
    depth: Float[Array, " k"]


def unit(x: Float[Array, "... 3"], otherwise: Vec3) -> Float[Array, "... 3"]:
    """Return `x` normalised, or `otherwise` where its length is zero."""
    long = norm(x)[..., None]
    some = long > 1e-12
    return jnp.where(some, x / jnp.where(some, long, 1.0), otherwise)


def rims(shape: Cylinder, down: Vec3) -> Float[Array, "6 3"]:
    """Return the lowest points of both rims, and two more on each to stand on."""
    flat = down * jnp.array([1.0, 1.0, 0.0])
    lowest = unit(flat, jnp.array([1.0, 0.0, 0.0]))
    aside = jnp.stack([-lowest[1], lowest[0], jnp.zeros(())])
    c, s = -0.5, jnp.sqrt(0.75)
    ring = jnp.stack([lowest, c * lowest + s * aside, c * lowest - s * aside])
    up = shape.length / 2 * jnp.array([[0.0, 0.0, 1.0]])
    return jnp.concatenate([shape.radius * ring - up, shape.radius * ring + up])


def on_plane(shape: AbstractSolid, X_WA: Pose, X_WB: Pose) -> ContactPoints:
    """Return the contacts of corners, ends or rims with the xy plane of a frame."""
    n = X_WB.R[:, 2]
    points = rims(shape, -n @ X_WA.R) if isinstance(shape, Cylinder) else shape.core()
    x = points @ X_WA.R.T + X_WA.p[None]
    r = shape.rounding()
    depth = r - (x - X_WB.p[None]) @ n
    p = x - (r - depth / 2)[:, None] * n[None]
    return ContactPoints(p, jnp.broadcast_to(n, p.shape), depth)


def in_bowl(shape: AbstractSolid, X_WA: Pose, bowl: Bowl, X_WB: Pose) -> ContactPoints:
    """Return the contacts of corners, ends or centre with a hollow sphere."""
    x = shape.core() @ X_WA.R.T + (X_WA.p - X_WB.p)[None]
    out, far = unit(x, -X_WB.R[:, 2]), norm(x) + shape.rounding()
    depth = far - bowl.radius
    p = X_WB.p[None] + (far - depth / 2)[:, None] * out
    return ContactPoints(p, -out, depth)


def on_terrain(
    shape: AbstractSolid, X_WA: Pose, field: HeightField, X_WB: Pose
) -> ContactPoints:
    """Return the contacts with a height field, by tangent planes under the points."""
    down = -X_WB.R[:, 2] @ X_WA.R
    points = rims(shape, down) if isinstance(shape, Cylinder) else shape.core()
    x = (points @ X_WA.R.T + (X_WA.p - X_WB.p)[None]) @ X_WB.R
    under = jax.vmap(lambda u: field.height(u[0], u[1]))(x)
    slope = jax.vmap(jax.grad(lambda u: field.height(u[0], u[1])))(x)
    n = jnp.concatenate([-slope[:, :2], jnp.ones_like(slope[:, :1])], 1)
    n = n / norm(n)[:, None]
    r = shape.rounding()
    depth = r - (x[:, 2] - under) * n[:, 2]
    p = x - (r - depth / 2)[:, None] * n
    return ContactPoints(p @ X_WB.R.T + X_WB.p[None], n @ X_WB.R.T, depth)
