r"""Every kink of the library, each with a named width.

`width` has the unit of `x`. The functions are smooth, and agree with the kinked ones to
within a stated multiple of `width`.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float


Field = Float[Array, "..."]


def norm(x: Float[Array, "... n"]) -> Field:
    """Euclidean length over the last axis, with a zero, not NaN, gradient at zero."""
    squared = jnp.sum(x * x, axis=-1)
    positive = squared > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squared, 1.0)), 0.0)


def sign(x: Field, width: Field) -> Field:
    r"""Smooth sign, $\tanh(x/w)$: slope $1/w$ at zero, within 1e-4 of one at $5w$."""
    return jnp.tanh(x / width)


def step(x: Field, width: Field) -> Field:
    r"""Smooth unit step rising from zero at $x=0$ to one at $x=w$: $3s^2-2s^3$."""
    s = jnp.clip(x / width, 0.0, 1.0)
    return s * s * (3 - 2 * s)


def magnitude(x: Field, width: Field) -> Field:
    r"""Smooth $|x|$: $\sqrt{x^2+w^2}$."""
    return jnp.sqrt(x * x + width * width)
