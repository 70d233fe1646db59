r"""Every kink of the library, each with a named width.

`width` has the unit of `x`. The functions are smooth, and agree with the kinked ones to
within a stated multiple of `width`.
"""

import jax
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


def ramp(x: Field, width: Field) -> Field:
    r"""Smooth $\max(x, 0)$, equal to it outside $\pm w$: $(x+w)^2/4w$ between.

    It is zero, not merely small, below $-w$, so that what is apart feels nothing. Its
    slope is continuous; it is above the kinked ramp by at most $w/4$, at zero.
    """
    inside = jnp.clip(x, -width, width) + width
    return inside**2 / (4 * width) + jnp.maximum(x - width, 0.0)


def step(x: Field, width: Field) -> Field:
    r"""Smooth unit step rising from zero at $x=0$ to one at $x=w$: $3s^2-2s^3$."""
    s = jnp.clip(x / width, 0.0, 1.0)
    return s * s * (3 - 2 * s)


def clip(x: Field, limit: Field) -> Field:
    r"""Smooth saturation at $\pm$ `limit`: $L\tanh(x/L)$."""
    return limit * jnp.tanh(x / limit)


def magnitude(x: Field, width: Field) -> Field:
    r"""Smooth $|x|$: $\sqrt{x^2+w^2}$."""
    return jnp.sqrt(x * x + width * width)


def softplus(x: Field, width: Field) -> Field:
    r"""Infinitely smooth $\max(x, 0)$: equal to it to within $w\log 2$, never zero."""
    return width * jax.nn.softplus(x / width)
