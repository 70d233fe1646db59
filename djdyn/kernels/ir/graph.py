"""Scalar operations, each written down once: folded, shared, hoisted.

A value is an integer, its place in `Graph.ops`. Operations on constants are carried
out, multiplications by zero and one vanish, equal operations are one, and what does not
depend on a loop stands outside of it.
"""

import dataclasses
import math
import struct
from collections.abc import Callable
from typing import Literal

import numpy as np


Kind = Literal["f", "i", "b"]
Value = int


@dataclasses.dataclass
class Buffer:
    """Numbers in memory: an argument, a result, a constant table or scratch."""

    role: Literal["argument", "result", "table", "scratch"]
    number: int  # of the argument or result
    size: int
    dtype: np.dtype
    level: int = 0  # of the loop in which it is filled
    values: np.ndarray | None = None

    @property
    def kind(self) -> Kind:
        return kind_of(self.dtype)


@dataclasses.dataclass
class Block:
    """Operations in order; a loop stands among them as one."""

    items: list[Value] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Loop:
    """Repeats `body`, `length` times or while `test` holds in any lane."""

    depth: int
    length: int | None
    reverse: bool = False
    starts: list[Value] = dataclasses.field(default_factory=list)
    carries: list[Value] = dataclasses.field(default_factory=list)
    nexts: list[Value] = dataclasses.field(default_factory=list)
    results: list[Value] = dataclasses.field(default_factory=list)
    test: Value | None = None
    head: Block = dataclasses.field(default_factory=Block)
    body: Block = dataclasses.field(default_factory=Block)


class UnsupportedError(NotImplementedError):
    """Something in a function that the kernels cannot express."""


def kind_of(dtype: np.dtype) -> Kind:
    if dtype.kind == "b":
        return "b"
    if dtype.kind in "iu" and dtype.itemsize < 4:  # they are expected to overflow
        raise UnsupportedError(f"kernels do not know integers of type {dtype}")
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
    """Towards zero, as machines divide."""
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
COMMUTE = {"eq", "ne", "iadd", "imul", "imin", "imax", "and", "or", "xor"}


class Graph:
    """The operations of a program, built in order, with the loops still open."""

    def __init__(self) -> None:
        self.ops: list[tuple] = []
        self.kinds: list[Kind] = []
        self.levels: list[int] = []
        self.constants: dict[Value, float | int | bool] = {}
        self.buffers: list[Buffer] = []
        self.known: dict[int, list[int]] = {}  # entries of buffers; 2 is any number
        self.loops: list[Loop] = []
        self.open: list[Block] = [Block()]
        self._shared: dict[tuple, Value] = {}

    # Bookkeeping ---------------------------------------------------------------------

    def append(self, op: tuple, kind: Kind, level: int) -> Value:
        """A new operation in the open block of a level, whether or not it exists."""
        value = len(self.ops)
        self.ops.append(op)
        self.kinds.append(kind)
        self.levels.append(level)
        self.open[level].items.append(value)
        return value

    def share(self, op: tuple, kind: Kind, *operands: Value) -> Value:
        """The operation, where it was written before or as far out as it can stand."""
        found = self._shared.get(op)
        if found is None:
            level = 0
            for x in operands:
                if self.levels[x] > level:
                    level = self.levels[x]
            found = self._shared[op] = self.append(op, kind, level)
        return found

    def constant(self, x: float | int | bool, kind: Kind = "f") -> Value:
        # The bits tell 0.0 from -0.0 and find NaN again.
        key = ("constant", kind, struct.pack("d", x) if kind == "f" else x)
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = len(self.ops)
            self.ops.append(("constant", x))
            self.kinds.append(kind)
            self.levels.append(0)
            self.constants[found] = x
        return found

    def buffer(self, *described) -> int:
        self.buffers.append(Buffer(*described))
        return len(self.buffers) - 1

    # Arithmetic ----------------------------------------------------------------------

    def neg(self, a: Value) -> Value:
        if a in self.constants:
            return self.constant(-self.constants[a])
        op = self.ops[a]
        if op[0] == "neg":
            return op[1]
        if op[0] == "sub":
            return self.sub(op[2], op[1])
        return self.share(("neg", a), "f", a)

    def add(self, a: Value, b: Value) -> Value:
        x, y = self.constants.get(a), self.constants.get(b)
        if x is not None and y is not None:
            return self.constant(x + y)
        if x == 0.0 and x is not None:
            return b
        if y == 0.0 and y is not None:
            return a
        if self.ops[b][0] == "neg":
            return self.sub(a, self.ops[b][1])
        if self.ops[a][0] == "neg":
            return self.sub(b, self.ops[a][1])
        if a > b:
            a, b = b, a
        return self.share(("add", a, b), "f", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        x, y = self.constants.get(a), self.constants.get(b)
        if x is not None and y is not None:
            return self.constant(x - y)
        if x == 0.0 and x is not None:
            return self.neg(b)
        if y == 0.0 and y is not None:
            return a
        if self.ops[b][0] == "neg":
            return self.add(a, self.ops[b][1])
        if self.ops[a][0] == "neg":
            return self.neg(self.add(self.ops[a][1], b))
        return self.share(("sub", a, b), "f", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        x, y = self.constants.get(a), self.constants.get(b)
        if x is not None and y is not None:
            return self.constant(x * y)
        for c, other in ((x, b), (y, a)):
            if c is not None:
                if c == 0.0:
                    return self.constant(0.0)
                if c == 1.0:
                    return other
                if c == -1.0:
                    return self.neg(other)
        left, right = self.ops[a], self.ops[b]
        if left[0] == "neg":
            return self.neg(self.mul(left[1], b))
        if right[0] == "neg":
            return self.neg(self.mul(a, right[1]))
        if a > b:
            a, b = b, a
        return self.share(("mul", a, b), "f", a, b)

    def div(self, a: Value, b: Value) -> Value:
        x, y = self.constants.get(a), self.constants.get(b)
        if x is not None and y:
            return self.constant(x / y)
        if x == 0.0 and x is not None and y is None:
            return self.constant(0.0)
        if y == 1.0:
            return a
        if y == -1.0:
            return self.neg(a)
        if self.ops[a][0] == "neg":
            return self.neg(self.div(self.ops[a][1], b))
        return self.share(("div", a, b), "f", a, b)

    def unary(self, name: str, a: Value) -> Value:
        if a in self.constants:
            try:
                return self.constant(float(UNARY[name](self.constants[a])))
            except (ValueError, OverflowError):
                pass  # left to the machine, which knows NaN and infinity
        return self.share((name, a), "f", a)

    def binary(self, name: str, a: Value, b: Value) -> Value:
        if a in self.constants and b in self.constants:
            try:
                x, y = self.constants[a], self.constants[b]
                return self.constant(float(BINARY[name](x, y)))
            except (ValueError, OverflowError, ZeroDivisionError):
                pass
        return self.share((name, a, b), "f", a, b)

    # Integers, comparisons, choices --------------------------------------------------

    def integer(self, name: str, a: Value, b: Value) -> Value:
        x, y = self.constants.get(a), self.constants.get(b)
        if x is not None and y is not None:
            return self.constant(INTEGER[name](int(x), int(y)), "i")
        if name in ("iadd", "isub") and y == 0:
            return a
        if name in COMMUTE and a > b:
            a, b = b, a
        return self.share((name, a, b), "i", a, b)

    def compare(self, name: str, a: Value, b: Value) -> Value:
        if name in ("gt", "ge"):
            return self.compare({"gt": "lt", "ge": "le"}[name], b, a)
        if a in self.constants and b in self.constants:
            holds = COMPARE[name](self.constants[a], self.constants[b])
            return self.constant(bool(holds), "b")
        if name in COMMUTE and a > b:
            a, b = b, a
        return self.share((name, a, b), "b", a, b)

    def logic(self, name: str, a: Value, b: Value) -> Value:
        if a in self.constants and b in self.constants:
            x, y = bool(self.constants[a]), bool(self.constants[b])
            return self.constant(LOGIC[name](x, y), "b")
        for x, other in ((a, b), (b, a)):
            known = self.constants.get(x)
            if known is not None:
                if name == "xor":
                    return self.logical_not(other) if known else other
                return other if bool(known) == (name == "and") else x
        if a == b and name != "xor":
            return a
        if a > b:
            a, b = b, a
        return self.share((name, a, b), "b", a, b)

    def logical_not(self, a: Value) -> Value:
        if a in self.constants:
            return self.constant(not self.constants[a], "b")
        if self.ops[a][0] == "not":
            return self.ops[a][1]
        return self.share(("not", a), "b", a)

    def select(self, which: Value, yes: Value, no: Value) -> Value:
        if which in self.constants:
            return yes if self.constants[which] else no
        if yes == no:
            return yes
        if self.ops[which][0] == "not":
            which, yes, no = self.ops[which][1], no, yes
        return self.share(("select", which, yes, no), self.kinds[yes], which, yes, no)

    def convert(self, a: Value, kind: Kind) -> Value:
        was = self.kinds[a]
        if was == kind:
            return a
        if a in self.constants and (kind != "i" or abs(self.constants[a]) < 2**63):
            as_kind = {"f": float, "i": int, "b": bool}[kind]
            return self.constant(as_kind(self.constants[a]), kind)
        if kind == "b":
            zero = self.constant(0, was) if was == "i" else self.constant(0.0)
            return self.compare("ne", a, zero)
        return self.share((f"{was}_to_{kind}", a), kind, a)

    # Memory --------------------------------------------------------------------------

    def load(
        self, buffer: int, at: int, loop: int | None = None, stride: int = 0
    ) -> Value:
        """A number from memory; in a loop, `stride` further at each turn."""
        if loop is None and buffer in self.known and self.known[buffer][at] != 2:
            return self.constant(float(self.known[buffer][at]))
        level = self.buffers[buffer].level if loop is None else self.loops[loop].depth
        op = ("load", buffer, at, loop, stride)
        return self._read(op, buffer, level)

    def lookup(self, buffer: int, at: int, index: Value, stride: int) -> Value:
        """The number at `at + stride * index`, an index of each lane's own."""
        level = max(self.buffers[buffer].level, self.levels[index])
        return self._read(("lookup", buffer, at, index, stride), buffer, level)

    def _read(self, op: tuple, buffer: int, level: int) -> Value:
        found = self._shared.get(op)
        if found is None:
            kind = self.buffers[buffer].kind
            found = self._shared[op] = self.append(op, kind, level)
        return found

    def store(
        self,
        buffer: int,
        at: int,
        x: Value,
        loop: int | None = None,
        stride: int = 0,
    ) -> None:
        op = ("store", buffer, at, loop, stride, x)
        self.append(op, self.kinds[x], len(self.open) - 1)


def operands(graph: Graph, value: Value) -> tuple[Value, ...]:
    """The values that an operation reads."""
    op = graph.ops[value]
    match op[0]:
        case "constant" | "load" | "carry" | "result" | "loop":
            return ()
        case "store":
            return (op[5],)
        case "lookup":
            return (op[3],)
    return op[1:]
