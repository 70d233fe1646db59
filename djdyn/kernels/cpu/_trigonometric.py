"""Sine, cosine, tangent and their inverses.

The coefficients here and in the sibling modules are minimax fits (Remez, 50 digits) of
the relative error of the whole function, rounded to the format.
"""

import math

from ._ir import (
    BITS,
    HALF_PI,
    Value,
    absolute,
    at_most,
    copysign,
    fma,
    nearest,
    polynomial,
    product,
    quick_sum,
    quotient,
    split,
    sqrt,
    where,
)


# below, the multiple of pi/2 and the bits it leaves are exact: see `reduced`
REDUCIBLE = {"double": 2.0**40, "float": 2.0**17}

# sin r = r + r z SINE(z), cos r = 1 - z/2 + z z COSINE(z), |r| < pi/4, z = r r
SINE = {
    "double": (
        *(-0.16666666666666627, 0.008333333333321069, -0.00019841269828698428),
        *(2.755731329865788e-06, -2.505069547573781e-08, 1.589311213084412e-10),
    ),
    "float": (-0.166666538, 0.00833210535, -0.000195076616),
}
COSINE = {
    "double": (
        *(0.04166666666666658, -0.001388888888887097, 2.480158728752825e-05),
        *(-2.7557313791740156e-07, 2.0875647524413314e-09, -1.1355751596980542e-11),
    ),
    "float": (0.0416666456, -0.00138872978, 2.44300882e-05),
}
# atan t = t + t z ARCTANGENT(z), |t| < tan(pi/8)
ARCTANGENT = {
    "double": (
        *(-0.3333333333333319, 0.1999999999995282, -0.14285714280121414),
        *(0.11111110779802373, -0.09090897655156936, 0.07692058431341679),
        *(-0.06663084177468005, 0.05847747206951643, -0.050386740403363404),
        *(0.03804874846006007, -0.017890094716064904),
    ),
    "float": (-0.333333164, 0.199985266, -0.142443478, 0.105987698, -0.0608887821),
}
# asin t = t + t z ARCSINE(z), |t| < 1/2
ARCSINE = {
    "double": (
        *(0.1666666666666676, 0.07499999999970798, 0.04464285717461334),
        *(0.030381942707730657, 0.022372214988775656, 0.017351611998484808),
        *(0.013980820681913616, 0.01139891139791861, 0.01078025645090667),
        *(0.0037063970859936347, 0.02170747228107809, -0.02099909546941656),
        0.0326286433558418,
    ),
    "float": (0.166667521, 0.0749530867, 0.0454694554, 0.0241823476, 0.0421637036),
}


def reduced(a: Value) -> tuple[Value, Value, Value]:
    """Return the quarter turn nearest to `a >= 0`, and the angle from it as a sum.

    `a - n * p1` has no more than `digits` bits, since both are multiples of the last
    bit of `p1`: the first step is exact, and so is what the others are told of
    rounding. Three parts of pi/2 leave an error of `n * 2**(-3 * digits)`.
    """
    p1, p2, p3 = split(HALF_PI, 3, a.scalar)
    n, quarter = nearest(a, 2 / math.pi)
    turn, turn_low = product(n, p2)
    r, low = quick_sum(fma(-n, p1, a), -turn)
    return quarter, r, fma(-n, p3, low - turn_low)


def sine(r: Value, low: Value) -> tuple[Value, Value]:
    """Return the sine of an angle, both as unevaluated sums."""
    z = r * r
    return quick_sum(r, fma(r * z, polynomial(z, SINE[r.scalar]), low))


def cosine(r: Value, low: Value) -> tuple[Value, Value]:
    """Return the cosine of an angle, both as unevaluated sums."""
    z, half = r * r, r * -0.5
    one = fma(half, r, 1.0)
    one_low = fma(half, r, 1.0 - one)
    rest = fma(z * z, polynomial(z, COSINE[r.scalar]), fma(-r, low, one_low))
    return quick_sum(one, rest)


def signed(x: Value, sign: Value) -> Value:
    """Return `x`, negated where the highest bit of `sign` is set."""
    top = -(1 << (BITS[x.scalar] - 1))
    return (x.bits ^ (sign & top)).number


def top_bit(quarter: Value, bit: int) -> Value:
    """Return a bit of an integer, moved to the place of the sign."""
    return quarter << (BITS[quarter.scalar] - 1 - bit)


def sincos(x: Value) -> tuple[Value, Value]:
    """Return sine and cosine."""
    quarter, r, low = reduced(absolute(x))
    s, c = sine(r, low)[0], cosine(r, low)[0]
    odd = (quarter & 1).equals(1)
    sin = signed(where(odd, c, s), top_bit(quarter, 1) ^ x.bits)
    return sin, signed(where(odd, s, c), top_bit(quarter + 1, 1))


def sin(x: Value) -> Value:
    """Return the sine."""
    return sincos(x)[0]


def cos(x: Value) -> Value:
    """Return the cosine."""
    return sincos(x)[1]


def tan(x: Value) -> Value:
    """Return the tangent."""
    quarter, r, low = reduced(absolute(x))
    s, c = sine(r, low), cosine(r, low)
    odd = (quarter & 1).equals(1)
    ratio, rest = quotient(
        (where(odd, c[0], s[0]), where(odd, c[1], s[1])),
        (where(odd, s[0], c[0]), where(odd, s[1], c[1])),
    )
    return signed(ratio + rest, top_bit(quarter, 0) ^ x.bits)


def arctangent(
    above: Value, below: Value, flip: Value, back: Value | None = None
) -> Value:
    """Return the angle in [0, pi] of `above / below`, with `0 <= above <= below`.

    It is taken from pi/2 where `flip`, and then from pi where `back`.
    """
    far = above > below * (math.sqrt(2) - 1)
    shift, shift_low = quick_sum(below, -above)
    total, total_low = quick_sum(below, above)
    zero = below.like(0.0)
    t, low = quotient(
        (where(far, -shift, above), where(far, -shift_low, zero)),
        (where(far, total, below), where(far, total_low, zero)),
    )
    z = t * t
    low = fma(t * z, polynomial(z, ARCTANGENT[t.scalar]), fma(-z, low, low))
    eighths, sign = where(far, 1.0, zero), t.like(1.0)
    for turn, test in ((2.0, flip), (4.0, back)):
        if test is not None:
            eighths = where(test, turn - eighths, eighths)
            sign = where(test, -sign, sign)
    p1, p2 = split(HALF_PI / 2, 2, t.scalar)
    base, base_low = product(eighths, p1)
    high, rest = quick_sum(base, sign * t)
    return high + (rest + fma(sign, low, fma(eighths, p2, base_low)))


def atan(x: Value) -> Value:
    """Return the inverse tangent."""
    a = at_most(absolute(x), 2.0 ** (x.digits + 7))  # further out it is pi/2
    flip = a > 1.0
    one = x.like(1.0)
    return copysign(arctangent(where(flip, one, a), where(flip, a, one), flip), x)


def atan2(y: Value, x: Value) -> Value:
    """Return the angle of the point `(x, y)`."""
    a, b = absolute(y), absolute(x)
    flip = a > b
    low, high = where(flip, b, a), where(flip, a, b)
    # keep the reciprocal of `high` in range; what `low` loses does not show
    tiny, huge = (2.0**-500, 2.0**1000) if x.digits == 53 else (2.0**-60, 2.0**120)
    up, down = (2.0**500, 2.0**-100) if x.digits == 53 else (2.0**90, 2.0**-12)
    scale = where(high < tiny, up, where(high > huge, x.like(down), 1.0))
    low, high = low * scale, high * scale
    infinite = high.equals(math.inf)
    low = where(infinite, where(low.equals(math.inf), x.like(1.0), 0.0), low)
    high = where(infinite, 1.0, where(high.equals(0.0), 1.0, high))
    back = x.bits < 0
    angle = copysign(arctangent(low, high, flip, back), y)
    return where(x.unordered(y), x + y, angle)


def asin(x: Value) -> Value:
    """Return the inverse sine."""
    far, t, more = arcsine(absolute(x))
    high, low = split(HALF_PI, 2, x.scalar)
    base, rest = quick_sum(x.like(high), -2.0 * t)
    angle = base + (rest - fma(2.0, more, -low))
    return copysign(where(far, angle, t + more), x)


def acos(x: Value) -> Value:
    """Return the inverse cosine."""
    far, t, more = arcsine(absolute(x))
    high, low = split(HALF_PI, 2, x.scalar)
    near = (high - copysign(t, x)) - (copysign(more, x) - low)
    turned = (2.0 * high - 2.0 * t) - 2.0 * (more - low)
    return where(far, where(x < 0.0, turned, 2.0 * (t + more)), near)


def arcsine(a: Value) -> tuple[Value, Value, Value]:
    """Return a flag and a sum: `asin(a)`, or `acos(a) / 2` where the flag is set."""
    far = a > 0.5
    z = where(far, fma(a, -0.5, 0.5), a * a)
    t = where(far, sqrt(z), a)
    return far, t, t * z * polynomial(z, ARCSINE[a.scalar])
