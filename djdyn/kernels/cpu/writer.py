"""The writer of one basic block as LLVM assembly: types, SSA names and operands.

Uniform values are single numbers, broadcast over the lanes where one meets a vector: a
load with broadcast costs nothing, a register of equal numbers does.
"""

import struct

import numpy as np

from ..ir.graph import Buffer, Graph, Value
from ..ir.operations import Kind
from ..ir.schedule import Schedule


FRAME_SPAN = 256  # vectors of the frame that one pointer reaches with short offsets
FRAME_POINTERS = 5


def number(x: float) -> str:
    """Return a floating-point constant of LLVM assembly, exact to the bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


class KernelContext:
    """Types and names shared by the basic blocks of a kernel."""

    def __init__(
        self,
        graph: Graph,
        plan: Schedule,
        dtype: np.dtype,
        batched: tuple[bool, ...],
        lanes: int,
    ):
        self.graph, self.plan = graph, plan
        self.batched, self.lanes = batched, lanes
        self.bits = 8 * dtype.itemsize
        self.real, self.whole = (
            f"{'double' if self.bits == 64 else 'float'}",
            f"i{self.bits}",
        )
        self.functions: set[str] = set()  # elementary functions that are called
        self.declared: set[str] = set()

    def wide(self, inner: str, lanes: int) -> str:
        """Return the vector type of some lanes."""
        return inner if lanes == 1 else f"<{lanes} x {inner}>"

    def type(self, kind: Kind, lanes: int) -> str:
        """Return the type of arithmetic on a kind of values."""
        return self.wide({"f": self.real, "i": self.whole, "b": "i1"}[kind], lanes)

    def stored(self, kind: Kind, lanes: int) -> str:
        """Return the type in the frame, where all numbers have the same size."""
        return self.type("f" if kind == "f" else "i", lanes)

    def memory(self, dtype: np.dtype) -> str:
        """Return the type of an element of an argument, a result or a table."""
        return self.real if dtype.kind == "f" else f"i{8 * dtype.itemsize}"

    def constant(self, kind: Kind, x: float | int | bool, lanes: int) -> str:
        """Return a constant operand."""
        if kind == "f":
            text = number(float(x) if self.bits == 64 else float(np.float32(x)))
        else:
            text = str(int(x)) if kind == "i" else str(bool(x)).lower()
        return text if lanes == 1 else f"splat ({self.type(kind, 1)} {text})"

    def overload(self, name: str, kind: Kind, lanes: int, arity: int) -> str:
        """Declare an intrinsic function for a type and return its name."""
        T, letter = self.type(kind, lanes), "f" if kind == "f" else "i"
        short = f"{letter}{self.bits}" if lanes == 1 else f"v{lanes}{letter}{self.bits}"
        full = f"@llvm.{name}.{short}"
        self.declared.add(f"declare {T} {full}({', '.join([T] * arity)})")
        return full

    def per_lane(self, buffer: Buffer) -> bool:
        """Return whether a buffer has a batch axis, one row for each lane."""
        if buffer.role == "argument":
            return self.batched[buffer.number]
        return buffer.role == "result" and any(self.batched)


class BlockWriter:
    """The LLVM assembly of one basic block, while it is written.

    `%frame0`, `%frame1`, ..., `%single`, `%outside` and `%lanes` are set before it.
    """

    def __init__(self, context: KernelContext):
        self.context = context
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        self.paired: set[Value] = set()  # angles of which sine and cosine are wanted
        # Registers that hold what was computed before, to be reused in the block:
        self.broadcasts: dict[Value, str] = {}
        self.buffers: dict[int, str] = {}
        self.offsets: dict[tuple, str] = {}
        self.sincos: dict[Value, str] = {}
        self.lane_pointers: dict[int, list[str]] = {}
        self.arrays: dict[int, str] = {}
        self._count = 0

    def new(self, text: str) -> str:
        """Append an instruction and return the name of its SSA value."""
        self._count += 1
        self.lines.append(f"  %t{self._count} = {text}")
        return f"%t{self._count}"

    def width(self, value: Value) -> int:
        """Return the number of lanes of a value: one if it is uniform."""
        context = self.context
        return 1 if value in context.plan.uniform else context.lanes

    def operand(self, value: Value, lanes: int) -> str:
        """Return the name of a value, as wide as it is wanted."""
        graph, ctx = self.context.graph, self.context
        if value in graph.constants:
            return ctx.constant(graph.kinds[value], graph.constants[value], lanes)
        if self.width(value) == lanes:
            return self.names[value]
        if value not in self.broadcasts:
            inner = ctx.type(graph.kinds[value], 1)
            self.broadcasts[value] = self.broadcast(self.names[value], inner)
        return self.broadcasts[value]

    def broadcast(self, x: str, inner: str) -> str:
        """Return a vector with a number of type `inner` in all lanes."""
        lanes = self.context.lanes
        if lanes == 1:
            return x
        T = self.context.wide(inner, lanes)
        one = self.new(f"insertelement {T} poison, {inner} {x}, i64 0")
        zero = f"<{lanes} x i32> zeroinitializer"
        return self.new(f"shufflevector {T} {one}, {T} poison, {zero}")
