"""Exponentials and hyperbolic functions."""

import math

from ._ir import (
    LN2,
    Value,
    absolute,
    at_least,
    at_most,
    copysign,
    fma,
    nearest,
    polynomial,
    power_of_two,
    product,
    quick_sum,
    quotient,
    split,
    sum_of,
    where,
)


# exp(h) = 1 + h + h h EXPONENTIAL(h), |h| < ln(2)/2
EXPONENTIAL = {
    "double": (
        *(0.5, 0.16666666666666677, 0.0416666666666667, 0.008333333333321436),
        *(0.0013888888888866355, 0.00019841269886672303, 2.4801587361463407e-05),
        *(2.755724360964765e-06, 2.755724200430914e-07, 2.5109261832557343e-08),
        2.0924673329316896e-09,
    ),
    "float": (
        *(0.5, 0.166666672, 0.0416663513, 0.00833327323, 0.00139411935),
        0.00019914213,
    ),
}
LOG_MAX = {"double": 1024 * math.log(2), "float": 128 * math.log(2)}
LOG_MIN = {"double": -1076 * math.log(2), "float": -151 * math.log(2)}


def exponential(x: Value, x_low: Value | None = None) -> tuple[Value, Value, Value]:
    """Return `n`, `p` and its rounding error: exp(x + x_low) = 2**n (1 + p)."""
    n, power = nearest(x, 1 / math.log(2))
    l1, l2 = split(LN2, 2, x.scalar)
    r = fma(-n, l1, x)  # exact: as in the reduction of angles
    h, low = quick_sum(r, n * -l2 if x_low is None else fma(-n, l2, x_low))
    return power, *quick_sum(h, excess(h, low))


def excess(h: Value, low: Value) -> Value:
    """Return `exp(h + low) - 1 - h`."""
    return fma(h * h, polynomial(h, EXPONENTIAL[h.scalar]), low)


def scaled(x: Value, power: Value) -> Value:
    """Return `x * 2**power` in two steps, so that neither factor leaves the range."""
    both = power + 2 * x.bias
    half = both >> 1
    return (x * power_of_two(half, x.scalar)) * power_of_two(both - half, x.scalar)


def within(x: Value, scale: float = 1.0) -> Value:
    """Return `x` clipped to where `exp(scale * x)` is neither infinite nor zero."""
    x = at_most(x, (LOG_MAX[x.scalar] + 1) / scale)
    return at_least(x, (LOG_MIN[x.scalar] - 1) / scale)


def exp(x: Value) -> Value:
    """Return the exponential."""
    power, p, _ = exponential(within(x))
    return scaled(1.0 + p, power)


def exp2(x: Value) -> Value:
    """Return 2 to the power of `x`."""
    x = within(x, math.log(2))
    n, power = nearest(x, 1.0)
    l1, l2 = split(LN2, 2, x.scalar)
    h, low = product(x - n, l1)
    return scaled(1.0 + (h + excess(h, fma(x - n, l2, low))), power)


def grown(x: Value, shift: int) -> tuple[Value, Value]:
    """Return `(exp(x) - 1) / 2**shift`, as a sum, for `exp(x) < 2**(1023 + shift)`."""
    power, p, low = exponential(x)
    s = power_of_two(power + (x.bias - shift), x.scalar)
    offset = s - 2.0**-shift
    total = fma(s, p, offset)
    return total, fma(s, low, fma(s, p, offset - total))


def expm1(x: Value) -> Value:
    """Return `exp(x) - 1`."""
    bounded = at_most(x, LOG_MAX[x.scalar] + 0.02)
    total, low = grown(at_least(bounded, -(x.digits + 2) * math.log(2)), 1)
    return where(absolute(x) < 2.0**-x.digits, x, 2.0 * (total + low))


def tanh(x: Value) -> Value:
    """Return the hyperbolic tangent."""
    a = at_most(absolute(x), (x.digits + 3) / 2 * math.log(2))
    total, low = grown(2.0 * a, 0)
    below, below_low = sum_of(total, 2.0)
    ratio, rest = quotient((total, low), (below, below_low + low))
    return copysign(ratio + rest, x)


def sinh(x: Value) -> Value:
    """Return the hyperbolic sine."""
    a = at_most(absolute(x), LOG_MAX[x.scalar] + 0.71)
    half, low = grown(a, 2)
    half, low = 2.0 * half, 2.0 * low  # of exp(a) - 1, with room for the largest
    bounded = at_most(half, 2.0**x.digits)
    other = 0.5 * bounded / (bounded + 0.5)  # of 1 - exp(-a)
    slope = 1.0 - 2.0 * other
    total = half + (other + fma(slope * slope, low, low))
    return where(a < 2.0**-x.digits, x, copysign(total, x))


def cosh(x: Value) -> Value:
    """Return the hyperbolic cosine."""
    power, p, _ = exponential(at_most(absolute(x), LOG_MAX[x.scalar] + 0.71))
    half = power_of_two(power + (x.bias - 2), x.scalar)
    up = half * (1.0 + p) * 2.0
    return up + 0.25 / up
