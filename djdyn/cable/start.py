"""A rough shape of a line between its ends, from which statics starts."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..marine.sea_bed import SeaBed
from ..smooth import norm
from ..typing import Scalar, Vec3


POINTS = 200  # along the curve


def sagging(
    tail: Vec3,
    head: Vec3,
    length: Scalar,
    down: Vec3,
    x: Float[Array, " nodes"],
    ground: SeaBed | None,
) -> Float[Array, "nodes 3"]:
    """Return nodes at fractions `x` of a curve between two points.

    It is straight, or a parabola of about the line's length if that is longer, and does
    not go below the ground.
    """
    chord = norm(head - tail)
    surplus = length - chord
    square = jnp.where(surplus > 0, 0.375 * surplus * (length + chord / 3), 1.0)
    sag = jnp.where(surplus > 0, jnp.sqrt(square), 0.0)
    s = jnp.linspace(0.0, 1.0, POINTS, dtype=x.dtype)[:, None]
    curve = tail[None] + s * (head - tail)[None] + 4 * sag * s * (1 - s) * down[None]
    if ground is not None:
        level = jax.vmap(ground.level)(curve)
        inside = jnp.where((s[:, 0] > 0) & (s[:, 0] < 1), level, -jnp.inf)
        curve = curve.at[:, 2].max(inside)
    along = jnp.cumsum(norm(curve[1:] - curve[:-1]))
    along = jnp.concatenate([jnp.zeros_like(along[:1]), along])
    whole = jnp.where(along[-1] > 0, along[-1], 1.0)
    share = jnp.where(along[-1] > 0, along / whole, s[:, 0])
    return jax.vmap(lambda y: jnp.interp(x, share, y), 1, 1)(curve)
