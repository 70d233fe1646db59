"""Logarithms, inverse hyperbolic functions, powers and the cube root."""

import math
from fractions import Fraction

from ._exponential import exponential, scaled, within
from ._ir import (
    LN2,
    Value,
    absolute,
    at_least,
    at_most,
    copysign,
    fma,
    nearest,
    pattern,
    polynomial,
    power_of_two,
    product,
    quick_sum,
    quotient,
    rounded,
    split,
    sqrt,
    sum_of,
    where,
)


# log m = 2 s + s z LOGARITHM(z), s = (m-1)/(m+1), z = s s, m within sqrt(2) of one
LOGARITHM = {
    "double": (
        *(0.6666666666666734, 0.39999999999415875, 0.28571428742337174),
        *(0.22222198561392395, 0.18183565661040027, 0.15314000589687493),
        0.14796589211266675,
    ),
    "float": (0.666667759, 0.399775743, 0.298711985),
}
# log m = 2 s (1 + z/3 + z z TAIL(z)), to ten bits beyond the format
TAIL = (
    *(0.1999999999999999, 0.14285714285722595, 0.11111111108758326),
    *(0.09090909436446962, 0.07692278343303188, 0.06668162389828515),
    *(0.058373323303472814, 0.05995162346724509),
)
# m ** (-1/3) to 14 bits
CUBE_ROOT = (
    *(1.8745352224513998, -1.861859895823917, 1.5612958085673725),
    *(-0.7023479852922354, 0.12835318477335184),
)


def parts(x: Value) -> tuple[Value, Value, Value]:
    """Return `k`, `2**(1 - k)` and `m` with x = 2**k m, m within sqrt(2) of one."""
    width, scalar = x.digits - 1, x.scalar
    subnormal = x < 2.0 ** (1 - x.bias)
    x = where(subnormal, x * 2.0**x.digits, x)
    root = pattern(rounded(math.sqrt(0.5), scalar), scalar)
    shifted = x.bits + (pattern(1.0, scalar) - root)
    exponent = shifted >> width
    k = (exponent | pattern(2.0**width, scalar)).number - (2.0**width + x.bias)
    k = where(subnormal, k - float(x.digits), k)
    m = ((shifted & ((1 << width) - 1)) + root).number
    return k, power_of_two(2 * x.bias + 1 - exponent, scalar), m


def logarithm(x: Value, low: Value | None = None, k0: Value | None = None) -> Value:
    """Return `log(x + low) + k0 log(2)`; `low` needs a normal `x`."""
    k, down, m = parts(x)
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    half = 0.5 * f * f
    l1, l2 = split(LN2, 2, x.scalar)
    k = k if k0 is None else k + k0
    rest = k * l2
    if low is not None:
        # low / x, to 3 %: a fraction of the last bit, but all there is where f = 0
        rest = fma(low * down * 0.5, fma(-f, 1.06 - f, 1.0), rest)
    rest = fma(s, fma(z, polynomial(z, LOGARITHM[x.scalar]), half), rest)
    finite = fma(k, l1, f - (half - rest))
    ends = where(x.equals(0.0), x.like(-math.inf), math.nan)
    return where(x > 0.0, where(x < math.inf, finite, x), ends)


def log(x: Value) -> Value:
    """Return the natural logarithm."""
    return logarithm(x)


def log1p(x: Value) -> Value:
    """Return `log(1 + x)`."""
    return where(x.equals(0.0), x, logarithm(*sum_of(x, 1.0)))


def log1p_of(x: Value, low: Value) -> Value:
    """Return `log(1 + x + low)`."""
    total, rest = sum_of(x, 1.0)
    return logarithm(total, rest + low)


def atanh(x: Value) -> Value:
    """Return the inverse hyperbolic tangent."""
    a = absolute(x)
    ratio = quotient((2.0 * a, x.like(0.0)), quick_sum(x.like(1.0), -a))
    return copysign(0.5 * log1p_of(*ratio), x)


def root_of(x: Value, low: Value) -> tuple[Value, Value]:
    """Return the square root of an unevaluated sum, as such a sum."""
    root = sqrt(x)
    rest = fma(-root, root, x) + low
    return root, 0.5 * rest / where(root.equals(0.0), 1.0, root)


def from_root(a: Value, square: float) -> Value:
    """Return `log(a + sqrt(a a + square))`, to the last bit also where it is small."""
    far = a > 2.0 ** (a.digits // 2 + 2)  # where the root is `a`
    b = where(far, 1.0, a)
    high, low = product(b, b)
    total, rest = sum_of(high, square)
    root, root_low = root_of(*quick_sum(total, rest + low))
    # take one from the term that holds it, which is exact: log(1 + small) is left
    y, y_low = sum_of(b, root - 1.0) if square > 0.0 else sum_of(root, b - 1.0)
    u, u_low = sum_of(y, 1.0)
    u_low = u_low + (y_low + root_low)
    u, u_low = where(far, a, u), where(far, 0.0, u_low)
    return logarithm(u, u_low, where(far, a.like(1.0), 0.0))


def asinh(x: Value) -> Value:
    """Return the inverse hyperbolic sine."""
    return copysign(from_root(absolute(x), 1.0), x)


def acosh(x: Value) -> Value:
    """Return the inverse hyperbolic cosine."""
    return where(x < 1.0, math.nan, from_root(x, -1.0))


def precise_logarithm(x: Value) -> tuple[Value, Value]:
    """Return `log(x)`, x > 0, as a sum exact to ten bits beyond the format."""
    k, _, m = parts(x)
    f = m - 1.0
    s, s_low = quotient((f, x.like(0.0)), quick_sum(x.like(2.0), f))
    s, s_low = quick_sum(s, s_low)
    z, z_low = product(s, s)
    z_low = fma(2.0 * s, s_low, z_low)
    t1, t2 = split(Fraction(1, 3), 2, x.scalar)
    third, low = product(z, t1)
    low = fma(z, t2, fma(z_low, t1, low))
    c, c_low = quick_sum(third, fma(z * z, polynomial(z, TAIL), low))
    p, p_low = product(s, c)
    p_low = fma(s, c_low, fma(s_low, c, p_low))
    h, h_low = quick_sum(s, p)
    h_low = h_low + (p_low + s_low)
    l1, l2 = split(LN2, 2, x.scalar)
    whole, whole_low = product(k, l1)
    total, rest = quick_sum(whole, 2.0 * h)
    return total, rest + fma(2.0, h_low, fma(k, l2, whole_low))


def pow(x: Value, y: Value, precise: bool = True) -> Value:
    """Return `x ** y`; unless `precise`, the error grows with its logarithm."""
    a = absolute(x)
    high, low = precise_logarithm(a) if precise else (logarithm(a), x.like(0.0))
    bounded = at_least(at_most(y, 2.0**70), -(2.0**70))  # no further: no NaN below
    e, e_low = product(bounded, high)
    e_low = where(absolute(e) < 2.0**10, fma(bounded, low, e_low), 0.0)
    power, p, p_low = exponential(within(e), e_low)
    result = scaled(1.0 + (p + p_low), power)

    zero, infinite = a.equals(0.0), a.equals(math.inf)
    ends = where(zero ^ (y < 0.0), x.like(0.0), math.inf)
    result = where(zero | infinite, ends, result)
    half = y * 0.5
    whole = y.equals(y.intrinsic("trunc"))
    odd = whole & (half.equals(half.intrinsic("trunc")) ^ True)
    result = where(odd, copysign(result, x), result)
    result = where(whole | (x >= 0.0) | zero | infinite, result, math.nan)
    result = where(x.unordered(y), x + y, result)
    return where(x.equals(1.0) | y.equals(0.0), 1.0, result)


def cbrt(x: Value) -> Value:
    """Return the cube root."""
    a = absolute(x)
    k, _, m = parts(a)
    n, power = nearest(k, 1 / 3)
    rest = fma(n, -3.0, k)  # -1, 0 or 1
    above, below = rest > 0.0, rest < 0.0
    v = m * where(above, x.like(2.0), where(below, x.like(0.5), 1.0))
    w = where(above, x.like(0.5 ** (1 / 3)), where(below, x.like(2 ** (1 / 3)), 1.0))
    w = w * polynomial(m, CUBE_ROOT)
    for _ in range(2):  # Newton for v ** (-1/3)
        w = fma(w * (1 / 3), fma(-v * w, w * w, 1.0), w)
    y = v * w * w
    square, square_low = product(y, y)
    error = fma(square, y, -v) + square_low * y
    y = fma(error, w * w * (-1 / 3), y) * power_of_two(power + x.bias, x.scalar)
    return where((a > 0.0) & (a < math.inf), copysign(y, x), x + x)
