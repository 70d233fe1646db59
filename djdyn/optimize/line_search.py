"""A line search for the Armijo and the weak Wolfe condition, one trial step at a time.

Bracketing with cubic interpolation (Nocedal and Wright, *Numerical Optimization*, 2006,
section 3.5).
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from ..typing import Scalar


ARMIJO, WOLFE = 1e-4, 0.9  # $c_1$ and $c_2$: fractions of the first slope
MIN_EXPANSION, MAX_EXPANSION = 1.5, 3.0  # of a step that is too short
MIN_CONTRACTION, MAX_CONTRACTION = 0.1, 0.9  # of a step that is too long
MIN_BRACKET = 1e-3  # relative width below which the slope must jump within the bracket


class LineSearch(eqx.Module):
    """The next trial step length `t`, and the bracket around the ones accepted.

    `low` is known to be too short and `high` too long, or infinite. `f_low` and
    `slope_low` are cost and slope at `low`.
    """

    t: Scalar
    low: Scalar
    high: Scalar
    f_low: Scalar
    slope_low: Scalar


def start_line_search(f: Array, slope: Array, t: Array) -> LineSearch:
    """Return a search whose first trial step is `t`, without a bracket."""
    zero = jnp.zeros_like(f)
    return LineSearch(t, zero, zero + jnp.inf, f, slope)


def next_trial(
    line: LineSearch, armijo: Array, f: Array, slope: Array, longest: Array
) -> LineSearch:
    """Return the bracket after a trial step that was not accepted, and the next one.

    The next trial step minimises the cubic through costs and slopes at the trial step
    and at `low` (Nocedal and Wright, equation 3.59).

    **Arguments:**

    - `armijo`: whether the trial step fulfils the Armijo condition, so is too short.
    - `f`, `slope`: cost and slope there.
    - `longest`: step at which a bound is met.
    """
    t, width = line.t, line.t - line.low
    d1 = line.slope_low + slope - 3 * (f - line.f_low) / width
    square = d1**2 - line.slope_low * slope
    d2 = jnp.sqrt(jnp.maximum(square, 0.0))
    divisor = slope - line.slope_low + 2 * d2
    exists = (square >= 0) & (divisor != 0)
    # The minimiser, as a fraction of the way from `low` to the trial step.
    fraction = 1 - (slope + d2 - d1) / jnp.where(exists, divisor, 1.0)
    inside = jnp.clip(fraction, MIN_CONTRACTION, MAX_CONTRACTION)
    contracted = line.low + jnp.where(exists, inside, 0.5) * width
    factor = jnp.where(exists & (fraction > 1), fraction, MAX_EXPANSION)
    factor = jnp.clip(factor, MIN_EXPANSION, MAX_EXPANSION)
    expanded = jnp.minimum(line.low + factor * width, longest)
    bisected = (t + line.high) / 2
    longer = jnp.where(jnp.isinf(line.high), expanded, bisected)
    pick = lambda a, b: jnp.where(armijo, a, b)
    line = LineSearch(
        pick(longer, contracted),
        pick(t, line.low),
        pick(line.high, t),
        pick(f, line.f_low),
        pick(slope, line.slope_low),
    )
    # No step in a bracket as narrow fulfils the Wolfe condition: accept its lower end.
    narrow = line.high - line.low < MIN_BRACKET * line.low
    return eqx.tree_at(lambda s: s.t, line, jnp.where(narrow, line.low, line.t))
