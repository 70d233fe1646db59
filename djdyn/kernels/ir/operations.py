"""The scalar operations of the intermediate representation, and how constants fold."""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np


Kind = Literal["f", "i", "b"]  # floating point, integer, boolean


class UnsupportedError(NotImplementedError):
    """An operation that kernels cannot express; XLA runs the function instead."""


def kind_of(dtype: np.dtype) -> Kind:
    """Return the kind of values that numbers of a type become."""
    if dtype.kind == "b":
        return "b"
    if dtype.kind in "iu" and dtype.itemsize < 4:  # they are expected to overflow
        raise UnsupportedError(f"kernels do not support integers of type {dtype}")
    return "i" if dtype.kind in "iu" else "f"


UNARY: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "exp": math.exp,
    "exp2": math.exp2,
    "expm1": math.expm1,
    "log": math.log,
    "log1p": math.log1p,
    "tanh": math.tanh,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "asinh": math.asinh,
    "acosh": math.acosh,
    "atanh": math.atanh,
    "cbrt": math.cbrt,
    "erf": math.erf,
    "erfc": math.erfc,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,  # to even
    "trunc": math.trunc,
    "abs": abs,
}
BINARY: dict[str, Callable[[float, float], float]] = {
    "atan2": math.atan2,
    "pow": math.pow,
    "rem": math.fmod,
    "copysign": math.copysign,
}
COMPARE: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


def quotient(a: int, b: int) -> int:
    """Return the quotient rounded towards zero, as machines divide."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGER: dict[str, Callable[[int, int], int]] = {
    "iadd": lambda a, b: a + b,
    "isub": lambda a, b: a - b,
    "imul": lambda a, b: a * b,
    "idiv": quotient,
    "irem": lambda a, b: a - b * quotient(a, b),
    "imin": min,
    "imax": max,
}
LOGIC: dict[str, Callable[[bool, bool], bool]] = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": lambda a, b: a != b,
}
COMMUTATIVE = {"eq", "ne", "iadd", "imul", "imin", "imax", "and", "or", "xor"}
