r"""Every kink of the library, each with a named width.

`width` has the unit of `x`. The functions are smooth, and agree with the kinked ones to
within a stated multiple of `width`.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .typing import Number


Field = Float[Array, "..."]


def norm(x: Float[Array, "... n"]) -> Field:
    """Euclidean length over the last axis, with a zero, not NaN, gradient at zero."""
    squared = jnp.sum(x * x, axis=-1)
    positive = squared > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squared, 1.0)), 0.0)


def even_power(x: Field, n: Number) -> Field:
    r"""$|x|^n$ for $n \ge 0$, with a zero, not NaN, slope at zero where it has one."""
    if n % 2 == 0:
        return x ** int(n)
    away = jnp.where(x == 0, 1.0, jnp.abs(x))
    return jnp.where(x == 0, 0.0, away**n)


def odd_power(x: Field, n: Number) -> Field:
    r"""$\operatorname{sign}(x)|x|^n$ for $n \ge 1$; its slope at zero is right."""
    return x ** int(n) if n % 2 == 1 else x * even_power(x, n - 1)


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


def step_area(x: Field, width: Field) -> Field:
    """The integral of `step` from zero to `x`."""
    near = jnp.clip(x / width, 0.0, 1.0)
    return width * near**3 * (1 - near / 2) + jnp.maximum(x - width, 0.0)


def ramp(x: Field, width: Field) -> Field:
    r"""Smooth $\max(0, x)$: a parabola within $w$ of zero, exact beyond; off by $w/4$.

    Its slope is continuous.
    """
    s = jnp.clip(x / width, -1.0, 1.0)
    return width * (s + 1) ** 2 / 4 + jnp.maximum(x - width, 0.0)


def clip(x: Field, low: Field, high: Field, width: Field) -> Field:
    """Smooth clip: corners within `width` of either bound, exact beyond them."""
    return x + ramp(low - x, width) - ramp(x - high, width)


def ramp_area(x: Field, width: Field) -> Field:
    """The integral of `ramp` up to `x`."""
    s, beyond = jnp.clip(x / width, -1.0, 1.0), jnp.maximum(x - width, 0.0)
    return width**2 * (s + 1) ** 3 / 12 + beyond * (width + beyond / 2)


def eased_ramp(x: Field, width: Field) -> Field:
    r"""Smooth $\max(x, 0)$: zero below zero, $x$ itself beyond `width`."""
    return x * step(x, width)


def eased_square(x: Field, width: Field) -> Field:
    r"""$\int_0^x s\,\mathrm{step}(s)\,ds$ for $x \ge 0$: half of $x^2$, eased in."""
    near = jnp.minimum(x, width)
    soft = near**4 * (0.75 - 0.4 * near / width) / width**2
    return soft + (x**2 - near**2) / 2


def signed_sqrt(x: Field, width: Field) -> Field:
    r"""$\operatorname{sign}(x)\sqrt{|x|}$, exact beyond `width`.

    Within it $x\,(3 - |x|/w)/(2\sqrt w)$, which joins in value and slope.
    """
    far = jnp.abs(x) > width
    root = jnp.sqrt(jnp.where(far, jnp.abs(x), width))
    near = x * (3 - jnp.abs(x) / width) / (2 * jnp.sqrt(width))
    return jnp.where(far, jnp.sign(x) * root, near)


def hat_weights(
    x: Float[Array, ""], lines: Float[Array, " n"], width: Field
) -> Float[Array, " n"]:
    """Weights of values at increasing `lines` in their linear interpolation at `x`.

    Slopes change within `width` of a line; beyond the first and last they are zero.
    """
    eye = jnp.eye(len(lines), dtype=lines.dtype)
    if len(lines) == 1:
        return eye[0]
    flat = jnp.zeros_like(eye[:1])
    slopes = (eye[1:] - eye[:-1]) / (lines[1:] - lines[:-1])[:, None]
    bends = jnp.concatenate([slopes, flat]) - jnp.concatenate([flat, slopes])
    return eye[0] + ramp(x - lines, width) @ bends
