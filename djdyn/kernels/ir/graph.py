"""Scalar operations in static single assignment form.

An SSA value is an integer, its place in `Graph.ops`. While the graph is built it is
simplified: constant folding, algebraic identities (products with zero and one),
common-subexpression elimination (equal operations are one value), and loop-invariant
code motion (an operation stands in the outermost loop that it depends on).
"""

import dataclasses
import struct
from typing import Literal

import numpy as np

from .operations import (
    BINARY,
    COMMUTATIVE,
    COMPARE,
    INTEGER,
    LOGIC,
    UNARY,
    Kind,
    kind_of,
)


Value = int


@dataclasses.dataclass
class Buffer:
    """An array in memory: an argument, a result, a constant table or scratch."""

    role: Literal["argument", "result", "table", "scratch"]
    number: int  # position among the arguments or results
    size: int
    dtype: np.dtype
    level: int = 0  # depth of the loop in which it is filled
    values: np.ndarray | None = None

    @property
    def kind(self) -> Kind:
        """The kind of values that its numbers become."""
        return kind_of(self.dtype)


@dataclasses.dataclass
class Region:
    """The operations of a loop's body, in order; an inner loop is one of them."""

    items: list[Value] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Loop:
    """A loop: `body`, `length` times or while `test` holds in any lane.

    `carries` are the values that change from iteration to iteration: they begin as
    `starts`, become `nexts`, and end as `results`. `head` computes `test`.
    """

    depth: int
    length: int | None
    reverse: bool = False
    starts: list[Value] = dataclasses.field(default_factory=list)
    carries: list[Value] = dataclasses.field(default_factory=list)
    nexts: list[Value] = dataclasses.field(default_factory=list)
    results: list[Value] = dataclasses.field(default_factory=list)
    test: Value | None = None
    head: Region = dataclasses.field(default_factory=Region)
    body: Region = dataclasses.field(default_factory=Region)


class Graph:
    """The operations of a program, appended in order to the innermost open loop."""

    def __init__(self) -> None:
        self.ops: list[tuple] = []
        self.kinds: list[Kind] = []
        self.levels: list[int] = []
        self.constants: dict[Value, float | int | bool] = {}
        self.buffers: list[Buffer] = []
        self.known: dict[
            int, list[int]
        ] = {}  # constant entries of buffers; 2 is any number
        self.loops: list[Loop] = []
        self.open: list[Region] = [Region()]
        self._shared: dict[tuple, Value] = {}

    # Bookkeeping ---------------------------------------------------------------------

    def append(self, op: tuple, kind: Kind, level: int) -> Value:
        """Append an operation to the open region of a level, even if it exists."""
        value = len(self.ops)
        self.ops.append(op)
        self.kinds.append(kind)
        self.levels.append(level)
        self.open[level].items.append(value)
        return value

    def share(self, op: tuple, kind: Kind, *operands: Value) -> Value:
        """Return an operation's value: an earlier equal one, or a new one, hoisted."""
        found = self._shared.get(op)
        if found is None:
            level = 0
            for x in operands:
                if self.levels[x] > level:
                    level = self.levels[x]
            found = self._shared[op] = self.append(op, kind, level)
        return found

    def constant(self, x: float | int | bool, kind: Kind = "f") -> Value:
        """Return the value of a constant."""
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
        """Add a `Buffer` and return its number."""
        self.buffers.append(Buffer(*described))
        return len(self.buffers) - 1

    # Arithmetic ----------------------------------------------------------------------

    def neg(self, a: Value) -> Value:
        """Return -a."""
        if a in self.constants:
            return self.constant(-self.constants[a])
        op = self.ops[a]
        if op[0] == "neg":
            return op[1]
        if op[0] == "sub":
            return self.sub(op[2], op[1])
        return self.share(("neg", a), "f", a)

    def add(self, a: Value, b: Value) -> Value:
        """Return a + b."""
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
        """Return a - b."""
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
        """Return a b; zero times anything is zero."""
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
        """Return a / b."""
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
        """Return an elementary function of a real number."""
        if a in self.constants:
            try:
                return self.constant(float(UNARY[name](self.constants[a])))
            except (ValueError, OverflowError):
                pass  # left to the machine, which knows NaN and infinity
        return self.share((name, a), "f", a)

    def binary(self, name: str, a: Value, b: Value) -> Value:
        """Return a function of two real numbers."""
        if a in self.constants and b in self.constants:
            try:
                x, y = self.constants[a], self.constants[b]
                return self.constant(float(BINARY[name](x, y)))
            except (ValueError, OverflowError, ZeroDivisionError):
                pass
        return self.share((name, a, b), "f", a, b)

    # Integers, comparisons, choices --------------------------------------------------

    def integer(self, name: str, a: Value, b: Value) -> Value:
        """Return an operation on two integers."""
        x, y = self.constants.get(a), self.constants.get(b)
        if x is not None and y is not None:
            return self.constant(INTEGER[name](int(x), int(y)), "i")
        if name in ("iadd", "isub") and y == 0:
            return a
        if name in COMMUTATIVE and a > b:
            a, b = b, a
        return self.share((name, a, b), "i", a, b)

    def compare(self, name: str, a: Value, b: Value) -> Value:
        """Return a comparison, a boolean."""
        if name in ("gt", "ge"):
            return self.compare({"gt": "lt", "ge": "le"}[name], b, a)
        if a in self.constants and b in self.constants:
            holds = COMPARE[name](self.constants[a], self.constants[b])
            return self.constant(bool(holds), "b")
        if name in COMMUTATIVE and a > b:
            a, b = b, a
        return self.share((name, a, b), "b", a, b)

    def logic(self, name: str, a: Value, b: Value) -> Value:
        """Return an operation on two booleans."""
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
        """Return the negation of a boolean."""
        if a in self.constants:
            return self.constant(not self.constants[a], "b")
        if self.ops[a][0] == "not":
            return self.ops[a][1]
        return self.share(("not", a), "b", a)

    def select(self, which: Value, yes: Value, no: Value) -> Value:
        """Return `yes` where `which` holds, else `no`."""
        if which in self.constants:
            return yes if self.constants[which] else no
        if yes == no:
            return yes
        if self.ops[which][0] == "not":
            which, yes, no = self.ops[which][1], no, yes
        return self.share(("select", which, yes, no), self.kinds[yes], which, yes, no)

    def convert(self, a: Value, kind: Kind) -> Value:
        """Return a value converted to another kind."""
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
        """Return a number from memory; in a loop, `stride` further each iteration."""
        if loop is None and buffer in self.known and self.known[buffer][at] != 2:
            return self.constant(float(self.known[buffer][at]))
        level = self.buffers[buffer].level if loop is None else self.loops[loop].depth
        op = ("load", buffer, at, loop, stride)
        return self._read(op, buffer, level)

    def lookup(self, buffer: int, at: int, index: Value, stride: int) -> Value:
        """Return the number at `at + stride * index`, an index of each lane's own."""
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
        """Append a store of a number; in a loop, `stride` further each iteration."""
        op = ("store", buffer, at, loop, stride, x)
        self.append(op, self.kinds[x], len(self.open) - 1)


def operands(graph: Graph, value: Value) -> tuple[Value, ...]:
    """Return the values that an operation reads."""
    op = graph.ops[value]
    match op[0]:
        case "constant" | "load" | "carry" | "result" | "loop":
            return ()
        case "store":
            return (op[5],)
        case "lookup":
            return (op[3],)
    return op[1:]
