"""One chunk as LLVM assembly: each operation on a vector of lanes.

Uniform values are single numbers, spread over the lanes where one meets a vector: a
load with broadcast costs nothing, a register of equal numbers does.
"""

import struct

import numpy as np

from ..ir.graph import COMPARE, Buffer, Graph, Kind, Value
from ..ir.schedule import Chunk, Schedule
from .elementary import NAMES


INTRINSICS = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "round": "rint",
    "trunc": "trunc",
    "abs": "fabs",
    "copysign": "copysign",
}
ARITHMETIC = {
    "add": "fadd contract",  # may fuse into a multiply-add
    "sub": "fsub contract",
    "mul": "fmul contract",
    "div": "fdiv",
    "rem": "frem",
}
WHOLE = {"iadd": "add", "isub": "sub", "imul": "mul", "idiv": "sdiv", "irem": "srem"}
EXTREME = {"imin": "smin", "imax": "smax"}
SPAN, BASES = 256, 5  # vectors that one pointer into the frame reaches; pointers
ORDERED = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole"}
SIGNED = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle"}


def number(x: float) -> str:
    """A floating-point constant, to the bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


class Lanes:
    """Types and names shared by the chunks of a kernel."""

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
        self.functions: set[str] = set()  # elementary ones that are called
        self.declared: set[str] = set()

    def wide(self, inner: str, lanes: int) -> str:
        return inner if lanes == 1 else f"<{lanes} x {inner}>"

    def type(self, kind: Kind, lanes: int) -> str:
        return self.wide({"f": self.real, "i": self.whole, "b": "i1"}[kind], lanes)

    def stored(self, kind: Kind, lanes: int) -> str:
        """The type in the frame, where all numbers have the same size."""
        return self.type("f" if kind == "f" else "i", lanes)

    def memory(self, dtype: np.dtype) -> str:
        """The type in an argument or a result."""
        return self.real if dtype.kind == "f" else f"i{8 * dtype.itemsize}"

    def constant(self, kind: Kind, x: float | int | bool, lanes: int) -> str:
        if kind == "f":
            text = number(float(x) if self.bits == 64 else float(np.float32(x)))
        else:
            text = str(int(x)) if kind == "i" else str(bool(x)).lower()
        return text if lanes == 1 else f"splat ({self.type(kind, 1)} {text})"

    def overload(self, name: str, kind: Kind, lanes: int, arity: int) -> str:
        """An intrinsic function for a type."""
        T, letter = self.type(kind, lanes), "f" if kind == "f" else "i"
        short = f"{letter}{self.bits}" if lanes == 1 else f"v{lanes}{letter}{self.bits}"
        full = f"@llvm.{name}.{short}"
        self.declared.add(f"declare {T} {full}({', '.join([T] * arity)})")
        return full

    def per_lane(self, buffer: Buffer) -> bool:
        if buffer.role == "argument":
            return self.batched[buffer.number]
        return buffer.role == "result" and any(self.batched)


class ChunkWriter:
    """Writes the body of one chunk. `%frame` and `%lanes` are set before it."""

    def __init__(self, lanes: Lanes):
        self.at, self.lines, self.fresh = lanes, [], 0
        self.names: dict[Value, str] = {}
        self.spreads: dict[Value, str] = {}
        self.bases: dict[int, str] = {}
        self.offsets: dict[tuple, str] = {}
        self.pairs: dict[Value, str] = {}
        self.singles: dict[int, list[str]] = {}
        self.arrays: dict[int, str] = {}

    def new(self, text: str) -> str:
        self.fresh += 1
        self.lines.append(f"  %t{self.fresh} = {text}")
        return f"%t{self.fresh}"

    def width(self, value: Value) -> int:
        return 1 if value in self.at.plan.uniform else self.at.lanes

    def of(self, value: Value, lanes: int) -> str:
        """The name of a value, as wide as it is wanted."""
        graph, at = self.at.graph, self.at
        if value in graph.constants:
            return at.constant(graph.kinds[value], graph.constants[value], lanes)
        if self.width(value) == lanes:
            return self.names[value]
        if value not in self.spreads:
            kind = graph.kinds[value]
            self.spreads[value] = self.spread(self.names[value], at.type(kind, 1))
        return self.spreads[value]

    def spread(self, x: str, inner: str) -> str:
        if self.at.lanes == 1:
            return x
        T = self.at.wide(inner, self.at.lanes)
        one = self.new(f"insertelement {T} poison, {inner} {x}, i64 0")
        zero = f"<{self.at.lanes} x i32> zeroinitializer"
        return self.new(f"shufflevector {T} {one}, {T} poison, {zero}")

    def write(self, chunk: Chunk) -> list[str]:
        graph = self.at.graph
        for x in chunk.imports:
            kind, lanes = graph.kinds[x], self.width(x)
            self.names[x] = self.fetch(self.slot(x), kind, lanes)
        angles = {"sin": set(), "cos": set()}
        for item in chunk.items:
            op = graph.ops[item]
            if op[0] in angles:
                angles[op[0]].add(op[1])
        self.paired = angles["sin"] & angles["cos"]
        items = self.blocks(chunk.items)
        for item in items:
            if isinstance(item, list):
                self.load_block(item) if graph.ops[item[0]][
                    0
                ] == "load" else self.store_block(item)
                continue
            found = self.operation(item)
            if found is not None:
                self.names[item] = found
        for x, target in chunk.exports:
            kind, lanes = graph.kinds[x], self.width(target)
            self.keep(self.slot(target), self.of(x, lanes), kind, lanes)
        return self.lines

    # Memory --------------------------------------------------------------------------

    def slot(self, value: Value) -> str:
        """Where a value stands in the frame."""
        at, place = self.at, self.at.plan.slots[value]
        if self.width(value) == at.lanes:
            return self.place(place * at.lanes)
        return self.new(
            f"getelementptr {at.real}, ptr %single, i64 {place - SPAN // 2}"
        )

    def place(self, index: int) -> str:
        """A number of the frame, from the nearest of the pointers into it: short
        distances make short instructions.
        """
        k = min(index // (SPAN * self.at.lanes), BASES - 1)
        middle = (2 * k + 1) * SPAN * self.at.lanes // 2
        return self.new(
            f"getelementptr {self.at.real}, ptr %frame{k}, i64 {index - middle}"
        )

    def fetch(self, pointer: str, kind: Kind, lanes: int) -> str:
        T = self.at.stored(kind, lanes)
        x = self.new(f"load {T}, ptr {pointer}, align {self.align(lanes)}")
        if kind != "b":
            return x
        return self.new(f"trunc {T} {x} to {self.at.type('b', lanes)}")

    def keep(self, pointer: str, x: str, kind: Kind, lanes: int) -> None:
        T = self.at.stored(kind, lanes)
        if kind == "b":
            x = self.new(f"zext {self.at.type('b', lanes)} {x} to {T}")
        self.lines.append(f"  store {T} {x}, ptr {pointer}, align {self.align(lanes)}")

    def align(self, lanes: int) -> int:
        return lanes * self.at.bits // 8

    def outside(self, which: int) -> str:
        """The arrays of arguments, of results, and of the loops' turns."""
        if which not in self.arrays:
            at = self.new(f"getelementptr ptr, ptr %outside, i64 {which}")
            self.arrays[which] = self.new(f"load ptr, ptr {at}")
        return self.arrays[which]

    def base(self, number: int) -> str:
        """Where a buffer begins: a pointer, or one per lane if it is batched."""
        if number in self.bases:
            return self.bases[number]
        at, buffer = self.at, self.at.graph.buffers[number]
        if buffer.role == "scratch":
            found = self.place(at.plan.scratch[number] * at.lanes)
        elif buffer.role == "table":
            found = f"@table{number}"
        else:
            array = self.outside(0 if buffer.role == "argument" else 1)
            here = self.new(f"getelementptr ptr, ptr {array}, i64 {buffer.number}")
            found = self.new(f"load ptr, ptr {here}")
            if at.per_lane(buffer):
                I = at.wide("i64", at.lanes)
                size = (
                    str(buffer.size) if at.lanes == 1 else f"splat (i64 {buffer.size})"
                )
                step = self.new(f"mul {I} %lanes, {size}")
                inner = at.memory(buffer.dtype)
                found = self.new(f"getelementptr {inner}, ptr {found}, {I} {step}")
        self.bases[number] = found
        return found

    def offset(self, at: int, loop: int | None, stride: int) -> str:
        """A place that moves with the turns of a loop."""
        if loop is None or stride == 0:
            return str(at)
        key = (at, loop, stride)
        if key not in self.offsets:
            depth = self.at.graph.loops[loop].depth - 1
            where = self.new(f"getelementptr i64, ptr {self.outside(2)}, i64 {depth}")
            turn = self.new(f"load i64, ptr {where}")
            steps = self.new(f"mul i64 {turn}, {stride}")
            self.offsets[key] = self.new(f"add i64 {steps}, {at}")
        return self.offsets[key]

    def gather(self, inner: str, pointers: str) -> str:
        L = self.at.lanes
        T, P, B = f"<{L} x {inner}>", f"<{L} x ptr>", f"<{L} x i1>"
        short = inner.replace("double", "f64").replace("float", "f32")
        name = f"@llvm.masked.gather.v{L}{short}.v{L}p0"
        self.at.declared.add(f"declare {T} {name}({P}, {B}, {T})")
        size = int(short[1:]) // 8
        mask = f"{B} splat (i1 true)"
        return self.new(
            f"call {T} {name}({P} align {size} {pointers}, {mask}, {T} poison)"
        )

    def scatter(self, inner: str, x: str, pointers: str) -> None:
        L = self.at.lanes
        T, P, B = f"<{L} x {inner}>", f"<{L} x ptr>", f"<{L} x i1>"
        short = inner.replace("double", "f64").replace("float", "f32")
        name = f"@llvm.masked.scatter.v{L}{short}.v{L}p0"
        self.at.declared.add(f"declare void {name}({T}, {P}, {B})")
        size = int(short[1:]) // 8
        mask = f"{B} splat (i1 true)"
        call = f"{name}({T} {x}, {P} align {size} {pointers}, {mask})"
        self.lines.append(f"  call void {call}")

    def widen(self, x: str, dtype: np.dtype, lanes: int) -> str:
        """From the type in memory to the one worked with."""
        T, size = self.at.wide(self.at.memory(dtype), lanes), 8 * dtype.itemsize
        if dtype.kind == "b":
            zero = "0" if lanes == 1 else "zeroinitializer"
            return self.new(f"icmp ne {T} {x}, {zero}")
        if dtype.kind == "f" or size == self.at.bits:
            return x
        way = "trunc" if size > self.at.bits else "sext"
        return self.new(f"{way} {T} {x} to {self.at.type('i', lanes)}")

    def narrow(self, x: str, dtype: np.dtype, lanes: int) -> str:
        T, size = self.at.wide(self.at.memory(dtype), lanes), 8 * dtype.itemsize
        if dtype.kind == "b":
            return self.new(f"zext {self.at.type('b', lanes)} {x} to {T}")
        if dtype.kind == "f" or size == self.at.bits:
            return x
        way = "sext" if size > self.at.bits else "trunc"
        return self.new(f"{way} {self.at.type('i', lanes)} {x} to {T}")

    def load(self, value: Value) -> str:
        at, (_, number, place, loop, stride) = self.at, self.at.graph.ops[value]
        buffer, lanes = at.graph.buffers[number], self.width(value)
        base, offset = self.base(number), self.offset(place, loop, stride)
        if buffer.role == "scratch":
            T = at.stored(buffer.kind, at.lanes)
            pointer = self.new(f"getelementptr {T}, ptr {base}, i64 {offset}")
            return self.fetch(pointer, buffer.kind, at.lanes)
        inner = at.memory(buffer.dtype)
        if at.per_lane(buffer) and at.lanes > 1:
            P = f"<{at.lanes} x ptr>"
            pointers = self.new(f"getelementptr {inner}, {P} {base}, i64 {offset}")
            return self.widen(self.gather(inner, pointers), buffer.dtype, at.lanes)
        pointer = self.new(f"getelementptr {inner}, ptr {base}, i64 {offset}")
        one = self.new(f"load {inner}, ptr {pointer}")
        one = one if lanes == 1 else self.spread(one, inner)
        return self.widen(one, buffer.dtype, lanes)

    def store(self, op: tuple) -> None:
        at, (_, number, place, loop, stride, value) = self.at, op
        buffer, lanes = at.graph.buffers[number], self.at.lanes
        base, offset = self.base(number), self.offset(place, loop, stride)
        x = self.of(value, lanes)
        if buffer.role == "scratch":
            T = at.stored(buffer.kind, lanes)
            pointer = self.new(f"getelementptr {T}, ptr {base}, i64 {offset}")
            self.keep(pointer, x, buffer.kind, lanes)
            return
        inner, x = at.memory(buffer.dtype), self.narrow(x, buffer.dtype, lanes)
        P = at.wide("ptr", lanes)
        pointers = self.new(f"getelementptr {inner}, {P} {base}, i64 {offset}")
        if lanes > 1:
            self.scatter(inner, x, pointers)
        else:
            self.lines.append(f"  store {inner} {x}, ptr {pointers}")

    def lookup(self, value: Value) -> str:
        at, (_, number, place, index, stride) = self.at, self.at.graph.ops[value]
        buffer, lanes = at.graph.buffers[number], self.width(value)
        I, many = at.type("i", lanes), lambda n: at.constant("i", n, lanes)
        steps = self.new(f"mul {I} {self.of(index, lanes)}, {many(stride)}")
        steps = self.new(f"add {I} {steps}, {many(place)}")
        inner = at.memory(buffer.dtype)
        if buffer.role == "scratch":
            inner = at.stored(buffer.kind, 1)
            if lanes > 1:
                steps = self.new(f"mul {I} {steps}, {many(lanes)}")
                order = ", ".join(f"{at.whole} {k}" for k in range(lanes))
                steps = self.new(f"add {I} {steps}, <{order}>")
        base = self.base(number)
        P = at.wide("ptr", lanes) if at.per_lane(buffer) else "ptr"
        pointers = self.new(f"getelementptr {inner}, {P} {base}, {I} {steps}")
        one = lanes == 1
        x = (
            self.new(f"load {inner}, ptr {pointers}")
            if one
            else self.gather(inner, pointers)
        )
        if buffer.role != "scratch":
            return self.widen(x, buffer.dtype, lanes)
        if buffer.kind != "b":
            return x
        return self.new(f"trunc {I} {x} to {at.type('b', lanes)}")

    # Blocks of numbers side by side in batched memory: one row a lane, turned over.

    def blocks(self, items: list[Value]) -> list[Value | list[Value]]:
        """Loads and stores of a lane's neighbouring numbers drawn together."""
        at, L = self.at, self.at.lanes
        rows: dict[tuple, list[tuple[int, Value]]] = {}
        for item in items:
            op = at.graph.ops[item]
            if L > 1 and op[0] in ("load", "store"):
                buffer = at.graph.buffers[op[1]]
                if at.per_lane(buffer) and buffer.dtype.kind == "f":
                    key = (op[0], op[1], op[3], op[4])
                    rows.setdefault(key, []).append((op[2], item))
        joined: dict[Value, list[Value]] = {}
        for row in rows.values():
            row.sort()
            while row:
                first = row[0][0]
                part = [item for place, item in row if place < first + L]
                row = row[len(part) :]
                whole = [at.graph.ops[i][2] for i in part] == list(
                    range(first, first + len(part))
                )
                if whole and len(part) > 2:
                    joined |= dict.fromkeys(part, part)
        out: list[Value | list[Value]] = []
        seen: set[Value] = set()
        late: list[list[Value]] = []
        for item in items:
            part = joined.get(item)
            if part is None:
                out.append(item)
            elif part[0] not in seen:
                seen.add(part[0])
                (out if at.graph.ops[item][0] == "load" else late).append(part)
        return [*out, *late]  # stores when all of their values are there

    def rows(self, op: tuple, count: int) -> tuple[list[str], str, str]:
        """Pointers to a block, one a lane; and a mask if the block is not full."""
        at, (number, place, loop, stride) = self.at, op[1:5]
        base, offset = self.base(number), self.offset(place, loop, stride)
        P, inner = f"<{at.lanes} x ptr>", at.real
        if number not in self.singles:
            self.singles[number] = [
                self.new(f"extractelement {P} {base}, i64 {k}") for k in range(at.lanes)
            ]
        pointers = [
            self.new(f"getelementptr {inner}, ptr {p}, i64 {offset}")
            for p in self.singles[number]
        ]
        bits = ", ".join(
            f"i1 {'true' if k < count else 'false'}" for k in range(at.lanes)
        )
        return pointers, at.type("f", at.lanes), f"<{at.lanes} x i1> <{bits}>"

    def load_block(self, items: list[Value]) -> None:
        at, L, count = self.at, self.at.lanes, len(items)
        pointers, T, mask = self.rows(at.graph.ops[items[0]], count)
        size = at.bits // 8
        if count == L:
            rows = [self.new(f"load {T}, ptr {p}, align {size}") for p in pointers]
        else:
            name = f"@llvm.masked.load.v{L}f{at.bits}.p0"
            at.declared.add(f"declare {T} {name}(ptr, <{L} x i1>, {T})")
            call = (
                f"call {T} {name}(ptr align {size} {{}}, {mask}, {T} zeroinitializer)"
            )
            rows = [self.new(call.format(p)) for p in pointers]
        for item, x in zip(items, self.turn_over(rows), strict=False):
            self.names[item] = x

    def store_block(self, items: list[Value]) -> None:
        at, L, count = self.at, self.at.lanes, len(items)
        op, size = at.graph.ops[items[0]], at.bits // 8
        pointers, T, mask = self.rows(op, count)
        columns = [self.of(at.graph.ops[i][5], L) for i in items]
        rows = self.turn_over([*columns, *(columns[-1:] * (L - count))])
        for p, x in zip(pointers, rows, strict=True):
            if count == L:
                self.lines.append(f"  store {T} {x}, ptr {p}, align {size}")
            else:
                name = f"@llvm.masked.store.v{L}f{at.bits}.p0"
                at.declared.add(f"declare void {name}({T}, ptr, <{L} x i1>)")
                call = f"{name}({T} {x}, ptr align {size} {p}, {mask})"
                self.lines.append(f"  call void {call}")

    def turn_over(self, rows: list[str]) -> list[str]:
        """The transpose of a square of numbers, by halves of halves."""
        n, T = len(rows), self.at.type("f", len(rows))
        half = n // 2
        while half:
            low = [k + (k // half % 2) * (n - half) for k in range(n)]
            high = [x + half for x in low]
            mixed = list(rows)
            for i in range(n):
                if not i & half:
                    a, b = rows[i], rows[i + half]
                    for place, order in ((i, low), (i + half, high)):
                        picks = ", ".join(f"i32 {k}" for k in order)
                        mask = f"<{n} x i32> <{picks}>"
                        mixed[place] = self.new(
                            f"shufflevector {T} {a}, {T} {b}, {mask}"
                        )
            rows, half = mixed, half // 2
        return rows

    # Arithmetic ----------------------------------------------------------------------

    def operation(self, value: Value) -> str | None:
        at, op = self.at, self.at.graph.ops[value]
        what, lanes = op[0], self.width(value)
        match what:
            case "load":
                return self.load(value)
            case "store":
                return self.store(op)
            case "lookup":
                return self.lookup(value)
        if what in NAMES and lanes < at.lanes:
            # A function of uniform values is worked out on all lanes alike.
            wide = self.compute(value, at.lanes)
            return self.new(f"extractelement {at.type('f', at.lanes)} {wide}, i64 0")
        return self.compute(value, lanes)

    def compute(self, value: Value, lanes: int) -> str:
        at, op = self.at, self.at.graph.ops[value]
        what, kind = op[0], self.at.graph.kinds[value]
        T, F, I, B = (at.type(k, lanes) for k in (kind, "f", "i", "b"))
        x = [self.of(i, lanes) for i in op[1:]]
        if what in ARITHMETIC:
            return self.new(f"{ARITHMETIC[what]} {T} {x[0]}, {x[1]}")
        if what == "neg":
            return self.new(f"fneg {T} {x[0]}")
        if what == "select":
            return self.new(f"select {B} {x[0]}, {T} {x[1]}, {T} {x[2]}")
        if what in COMPARE:
            if at.graph.kinds[op[1]] == "f":
                return self.new(f"fcmp {ORDERED[what]} {F} {x[0]}, {x[1]}")
            return self.new(f"icmp {SIGNED[what]} {I} {x[0]}, {x[1]}")
        if what in ("and", "or", "xor"):
            return self.new(f"{what} {B} {x[0]}, {x[1]}")
        if what == "not":
            return self.new(f"xor {B} {x[0]}, {at.constant('b', True, lanes)}")
        if what in WHOLE:
            return self.new(f"{WHOLE[what]} {I} {x[0]}, {x[1]}")
        if what in EXTREME:
            name = at.overload(EXTREME[what], "i", lanes, 2)
            return self.new(f"call {I} {name}({I} {x[0]}, {I} {x[1]})")
        conversions = {
            "i_to_f": f"sitofp {I} {x[0]} to {F}",
            "b_to_f": f"uitofp {B} {x[0]} to {F}",
            "b_to_i": f"zext {B} {x[0]} to {I}",
        }
        if what in conversions:
            return self.new(conversions[what])
        if what == "f_to_i":  # as far as integers go; NaN is zero
            wide = f"v{lanes}" if lanes > 1 else ""
            name = f"@llvm.fptosi.sat.{wide}i{at.bits}.{wide}f{at.bits}"
            at.declared.add(f"declare {I} {name}({F})")
            return self.new(f"call {I} {name}({F} {x[0]})")
        given = ", ".join(f"{F} {i}" for i in x)
        if what in INTRINSICS:
            name = at.overload(INTRINSICS[what], "f", lanes, len(x))
            return self.new(f"call {F} {name}({given})")
        if what in ("sin", "cos") and op[1] in self.paired:
            both = f"{{{F}, {F}}}"
            if op[1] not in self.pairs:
                at.functions.add("sincos")
                call = f"@djdyn.sincos.f{at.bits}({given})"
                self.pairs[op[1]] = self.new(f"call {both} {call}")
            place = ("sin", "cos").index(what)
            return self.new(f"extractvalue {both} {self.pairs[op[1]]}, {place}")
        at.functions.add(what)
        return self.new(f"call {F} @djdyn.{what}.f{at.bits}({given})")
