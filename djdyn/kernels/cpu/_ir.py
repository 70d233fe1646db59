"""SSA values whose Python arithmetic writes LLVM IR, so that formulas stay readable."""

import dataclasses
import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import Union


Number = Union["Value", float, int]

ATTRIBUTES = "nounwind willreturn memory(none)"
DIGITS = {"double": 53, "float": 24}  # significant bits
BIAS = {"double": 1023, "float": 127}
BITS = {"double": 64, "float": 32, "i64": 64, "i32": 32}
LN2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680009")
HALF_PI = Fraction("1.570796326794896619231321691639751442098584699687552910487472")


def floating(bits: int) -> str:
    """Return the floating-point type of some bits."""
    return "double" if bits == 64 else "float"


def vector(scalar: str, lanes: int) -> str:
    """Return the vector type of some lanes."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def rounded(x: float | Fraction, scalar: str) -> float:
    """Return `x` rounded to the format."""
    x = float(x)
    return struct.unpack("f", struct.pack("f", x))[0] if scalar == "float" else x


def split(x: Fraction, count: int, scalar: str) -> list[float]:
    """Return numbers of the format that add up to `x`, each the rest of the last."""
    parts = []
    for _ in range(count):
        parts.append(rounded(x, scalar))
        x -= Fraction(parts[-1])
    return parts


def pattern(x: float, scalar: str) -> int:
    """Return the bits of `x` as an integer."""
    float_, integer = "dq" if scalar == "double" else "fi"
    return struct.unpack(integer, struct.pack(float_, x))[0]


class Function:
    """The body of one function on `lanes`-wide vectors, while it is written."""

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.lines: list[str] = []
        self.declarations: dict[str, None] = {}
        self._known: dict[str, Value] = {}

    def emit(self, scalar: str, text: str) -> "Value":
        """Return the SSA value of an instruction; equal instructions are one value."""
        if text not in self._known:
            value = Value(self, scalar, f"%v{len(self._known)}")
            self.lines.append(f"  {value.ref} = {text}")
            self._known[text] = value
        return self._known[text]

    def constant(self, scalar: str, x: float | int) -> "Value":
        """Return a constant in all lanes."""
        if scalar in DIGITS:
            number = struct.pack(">d", rounded(x, scalar)).hex()  # floats too, in LLVM
            text = f"0x{number.upper()}"
        else:
            text = str(x).lower()  # of `True` too
        if self.lanes > 1:
            text = f"splat ({scalar} {text})"
        return Value(self, scalar, text)

    def call(self, scalar: str, name: str, *args: "Value") -> "Value":
        """Declare and call a function from vectors to a vector."""
        types = ", ".join(arg.type for arg in args)
        given = ", ".join(f"{arg.type} {arg.ref}" for arg in args)
        result = vector(scalar, self.lanes)
        self.declarations[f"declare {result} @{name}({types})\n"] = None
        return self.emit(scalar, f"call {result} @{name}({given})")


@dataclasses.dataclass(frozen=True, eq=False)
class Value:
    """An SSA value or a constant; comparisons with NaN are false."""

    fn: Function
    scalar: str
    ref: str

    @property
    def type(self) -> str:
        """The LLVM type."""
        return vector(self.scalar, self.fn.lanes)

    @property
    def digits(self) -> int:
        """The significant bits of the format."""
        return DIGITS[self.scalar]

    @property
    def bias(self) -> int:
        """The exponent bias of the format."""
        return BIAS[self.scalar]

    def like(self, x: Number) -> "Value":
        """Return a number as a value of the same type."""
        return x if isinstance(x, Value) else self.fn.constant(self.scalar, x)

    def _binary(self, op: str, a: Number, b: Number, scalar: str = "") -> "Value":
        a, b = self.like(a), self.like(b)
        return self.fn.emit(scalar or self.scalar, f"{op} {self.type} {a.ref}, {b.ref}")

    def _arithmetic(self, op: str, a: Number, b: Number) -> "Value":
        return self._binary("f" * (self.scalar in DIGITS) + op, a, b)

    def __add__(self, other: Number) -> "Value":
        return self._arithmetic("add", self, other)

    def __radd__(self, other: Number) -> "Value":
        return self._arithmetic("add", other, self)

    def __sub__(self, other: Number) -> "Value":
        return self._arithmetic("sub", self, other)

    def __rsub__(self, other: Number) -> "Value":
        return self._arithmetic("sub", other, self)

    def __mul__(self, other: Number) -> "Value":
        return self._arithmetic("mul", self, other)

    def __rmul__(self, other: Number) -> "Value":
        return self._arithmetic("mul", other, self)

    def __truediv__(self, other: Number) -> "Value":
        return self._binary("fdiv", self, other)

    def __rtruediv__(self, other: Number) -> "Value":
        return self._binary("fdiv", other, self)

    def __neg__(self) -> "Value":
        return self.fn.emit(self.scalar, f"fneg {self.type} {self.ref}")

    def __and__(self, other: Number) -> "Value":
        return self._binary("and", self, other)

    def __or__(self, other: Number) -> "Value":
        return self._binary("or", self, other)

    def __xor__(self, other: Number) -> "Value":
        return self._binary("xor", self, other)

    def __lshift__(self, other: int) -> "Value":
        return self._binary("shl", self, other)

    def __rshift__(self, other: int) -> "Value":
        return self._binary("lshr", self, other)

    def _compare(self, test: str, other: Number) -> "Value":
        if self.scalar in DIGITS:
            return self._binary(f"fcmp o{test}", self, other, "i1")
        return self._binary("icmp " + "s" * (test != "eq") + test, self, other, "i1")

    def __lt__(self, other: Number) -> "Value":
        return self._compare("lt", other)

    def __le__(self, other: Number) -> "Value":
        return self._compare("le", other)

    def __gt__(self, other: Number) -> "Value":
        return self._compare("gt", other)

    def __ge__(self, other: Number) -> "Value":
        return self._compare("ge", other)

    def equals(self, other: Number) -> "Value":
        """Return the comparison for equality."""
        return self._compare("eq", other)

    def unordered(self, other: Number) -> "Value":
        """Return whether either is NaN."""
        return self._binary("fcmp uno", self, other, "i1")

    def cast(self, op: str, scalar: str) -> "Value":
        """Return the value converted by an LLVM cast instruction."""
        to = vector(scalar, self.fn.lanes)
        return self.fn.emit(scalar, f"{op} {self.type} {self.ref} to {to}")

    @property
    def bits(self) -> "Value":
        """The bits of a floating-point value, as integers."""
        return self.cast("bitcast", f"i{BITS[self.scalar]}")

    @property
    def number(self) -> "Value":
        """The floating-point value of integer bits."""
        return self.cast("bitcast", floating(BITS[self.scalar]))

    def intrinsic(self, name: str, *others: Number) -> "Value":
        """Return an LLVM intrinsic function of this and other values."""
        suffix = f"f{BITS[self.scalar]}"
        if self.fn.lanes > 1:
            suffix = f"v{self.fn.lanes}{suffix}"
        args = [self, *map(self.like, others)]
        return self.fn.call(self.scalar, f"llvm.{name}.{suffix}", *args)


def fma(a: Number, b: Number, c: Number) -> Value:
    """Return `a * b + c`, rounded once."""
    one = next(x for x in (a, b, c) if isinstance(x, Value))
    return one.like(a).intrinsic("fma", b, c)


def absolute(x: Value) -> Value:
    """Return the absolute value."""
    return x.intrinsic("fabs")


def sqrt(x: Value) -> Value:
    """Return the square root."""
    return x.intrinsic("sqrt")


def copysign(x: Value, sign: Value) -> Value:
    """Return `x` with the sign of another value."""
    return x.intrinsic("copysign", sign)


def where(test: Value, a: Number, b: Number) -> Value:
    """Return `a` where the test holds, else `b`."""
    one = a if isinstance(a, Value) else b
    assert isinstance(one, Value)
    a, b = one.like(a), one.like(b)
    operands = f"{test.type} {test.ref}, {a.type} {a.ref}, {b.type} {b.ref}"
    return one.fn.emit(one.scalar, f"select {operands}")


def at_most(x: Value, bound: float) -> Value:
    """Return the smaller of `x` and a bound, and NaN where `x` is."""
    return where(x > bound, bound, x)


def at_least(x: Value, bound: float) -> Value:
    """Return the larger of `x` and a bound, and NaN where `x` is."""
    return where(x < bound, bound, x)


def polynomial(x: Value, coefficients: Sequence[Number]) -> Value:
    """Return a polynomial by Estrin's scheme, lowest power first."""
    terms = list(coefficients)
    while len(terms) > 2:
        pairs = [fma(x, b, a) for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[len(terms) & ~1 :]
        x = x * x
    return fma(x, terms[1], terms[0])


def sum_of(a: Value, b: Number) -> tuple[Value, Value]:
    """Return `a + b` and its rounding error (Knuth's TwoSum)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def quick_sum(a: Value, b: Number) -> tuple[Value, Value]:
    """Return `a + b` and its rounding error, if `a` is the larger or zero (Dekker)."""
    total = a + b
    return total, b - (total - a)


def product(a: Value, b: Number) -> tuple[Value, Value]:
    """Return `a * b` and its rounding error."""
    total = a * b
    return total, fma(a, b, -total)


def quotient(a: tuple[Value, Value], b: tuple[Value, Value]) -> tuple[Value, Value]:
    """Return `a / b` of two unevaluated sums as such a sum, with one division."""
    inverse = 1.0 / b[0]
    ratio = a[0] * inverse
    rest = fma(-ratio, b[0], a[0]) + fma(-ratio, b[1], a[1])
    return ratio, rest * inverse


def power_of_two(exponent: Value, scalar: str) -> Value:
    """Return `2 ** (exponent - bias)`; zero at a biased exponent of zero."""
    return (exponent << (DIGITS[scalar] - 1)).number


def nearest(x: Value, scale: float) -> tuple[Value, Value]:
    """Return the integer nearest to `x * scale`, as number and as bits.

    The sum with 1.5 * 2**(digits - 1) has that integer in its lowest bits: no
    conversion, which AVX2 lacks for 64 bits.
    """
    shift = 1.5 * 2.0 ** (x.digits - 1)
    shifted = fma(x, scale, shift)
    return shifted - shift, shifted.bits - pattern(shift, x.scalar)
