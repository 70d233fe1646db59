"""The error function and its complement."""

from ._exponential import exponential, scaled
from ._ir import (
    Value,
    absolute,
    at_most,
    copysign,
    fma,
    polynomial,
    product,
    quick_sum,
    quotient,
    sum_of,
    where,
)


# erf x = x + x ERROR(x x), |x| < 1
ERROR = (
    *(0.1283791670955126, -0.3761263890318375, 0.11283791670954885),
    *(-0.026866170645077875, 0.005223977624828431, -0.0008548326981425542),
    *(0.0001205533113295582, -1.4925595772180904e-05, 1.6461008477802694e-06),
    *(-1.635039622286454e-07, 1.4660328722741778e-08, -1.1374955736068398e-09),
    5.960685338518165e-11,
)
# exp(x x) erfc x = (1.25 + COMPLEMENT(t)) / (1 + 2 x), t = (x-4)/(x+4), 0 < x < 27.5
COMPLEMENT = (
    *(-0.01700488137444749, -0.13962111684056253, 0.01537965210261965),
    *(0.06809705425469541, -0.10103906603629932, 0.0937328349982521),
    *(-0.06633036581232446, 0.03716751553906574, -0.016197734056598453),
    *(0.00503196996388116, -0.0007577732969237777, -0.00019925661882563774),
    *(0.00015062171606723706, -2.4399469609750783e-05, -1.1222173188843912e-05),
    *(5.710265443775198e-06, 2.9417166597420414e-07, -8.260677402407516e-07),
    *(7.405209498848007e-08, 1.1040883771954081e-07, -1.7400025239137708e-08),
    *(-1.4084532795939134e-08, 1.6451902177534138e-09, 1.188925540191585e-09),
)


def complement(a: Value) -> Value:
    """Return `erfc(a)` for `a >= 0`."""
    a = at_most(a, 27.5)
    square, square_low = product(a, a)
    power, p, p_low = exponential(-square, -square_low)
    e, e_low = quick_sum(a.like(1.0), p)
    c, c_low = quick_sum(a.like(1.25), polynomial((a - 4.0) / (a + 4.0), COMPLEMENT))
    top, top_low = product(e, c)
    top_low = fma(e, c_low, fma(c, e_low + p_low, top_low))
    ratio, rest = quotient((top, top_low), sum_of(2.0 * a, 1.0))
    return scaled(ratio + rest, power)


def near_zero(a: Value) -> Value:
    """Return `erf(a)` for `a < 1`."""
    return fma(a, polynomial(a * a, ERROR), a)


def erfc(x: Value) -> Value:
    """Return the complementary error function."""
    a = absolute(x)
    near = where(a < 0.5, 1.0 - near_zero(a), complement(a))
    return where(x < 0.0, 2.0 - near, near)


def erf(x: Value) -> Value:
    """Return the error function."""
    a = absolute(x)
    return copysign(where(a < 1.0, near_zero(a), 1.0 - complement(a)), x)
