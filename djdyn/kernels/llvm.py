"""Machine code for a program: LLVM assembly on vectors of lanes.

Lanes are the outermost loop and whole programs run inside of it, so that nothing but
arguments and results leaves the cache. `run` works on groups of lanes `[first, last)`;
lanes past the end of the batch repeat its last one.
"""

import struct
from collections.abc import Iterator

import numpy as np

from . import elementary
from .graph import COMPARE, Graph, Kind, Value
from .schedule import Chunk, Schedule, Step, Turns, chunks
from .trace import Program


INTRINSICS = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "round": "rint",
    "trunc": "trunc",
    "abs": "fabs",
    "copysign": "copysign",
}
ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "rem": "frem"}
WHOLE = {"iadd": "add", "isub": "sub", "imul": "mul", "imin": "smin", "imax": "smax"}
PREDICATE = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole"}
SIGNED = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle"}


class Writer:
    """Writes one program for one width."""

    def __init__(
        self, program: Program, plan: Schedule, batched: tuple[bool, ...], lanes: int
    ):
        self.graph, self.plan = program.graph, plan
        self.batched, self.lanes = batched, lanes
        self.bits = 8 * program.dtype.itemsize
        self.real = "double" if self.bits == 64 else "float"
        wide = lambda t: t if lanes == 1 else f"<{lanes} x {t}>"
        self.wide = wide
        self.types: dict[Kind, str] = {
            "f": wide(self.real),
            "i": wide(f"i{self.bits}"),
            "b": wide("i1"),
        }
        self.suffix = f"f{self.bits}" if lanes == 1 else f"v{lanes}f{self.bits}"
        self.needed: set[str] = set()  # elementary functions
        self.declared: set[str] = set()
        self.lines: list[str] = []
        self.fresh = 0

    # Names and constants ---------------------------------------------------------------

    def new(self, text: str) -> str:
        self.fresh += 1
        name = f"%t{self.fresh}"
        self.lines.append(f"  {name} = {text}")
        return name

    def splat(self, kind: Kind, x: float | int | bool) -> str:
        if kind == "f":
            x = float(x) if self.bits == 64 else float(np.float32(x))
            scalar = f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"
        else:
            scalar = str(int(x)) if kind == "i" else ("true" if x else "false")
        if self.lanes == 1:
            return scalar
        inner = {"f": self.real, "i": f"i{self.bits}", "b": "i1"}[kind]
        return f"splat ({inner} {scalar})"

    def declare(self, text: str) -> None:
        self.declared.add(text)

    def intrinsic(self, name: str, arity: int) -> str:
        T = self.types["f"]
        full = f"@llvm.{name}.{self.suffix}"
        self.declare(f"declare {T} {full}({', '.join([T] * arity)})")
        return full

    # Memory ----------------------------------------------------------------------------

    def element_type(self, dtype: np.dtype) -> str:
        if dtype.kind == "f":
            return self.real
        return f"i{8 * dtype.itemsize}"

    def spread(self, scalar: str, inner: str) -> str:
        if self.lanes == 1:
            return scalar
        T = f"<{self.lanes} x {inner}>"
        one = self.new(f"insertelement {T} poison, {inner} {scalar}, i64 0")
        zero = f"<{self.lanes} x i32> zeroinitializer"
        return self.new(f"shufflevector {T} {one}, {T} poison, {zero}")

    def widen(self, x: str, dtype: np.dtype) -> str:
        """From its type in memory to the one it is worked with."""
        inner = self.element_type(dtype)
        if dtype.kind == "f":
            return x
        if dtype.kind == "b":
            return self.new(f"icmp ne {self.wide(inner)} {x}, {self.zeros()}")
        if 8 * dtype.itemsize == self.bits:
            return x
        way = "trunc" if 8 * dtype.itemsize > self.bits else "sext"
        return self.new(f"{way} {self.wide(inner)} {x} to {self.types['i']}")

    def zeros(self) -> str:
        return "0" if self.lanes == 1 else "zeroinitializer"

    def narrow(self, x: str, dtype: np.dtype) -> str:
        inner = self.wide(self.element_type(dtype))
        if dtype.kind == "f":
            return x
        if dtype.kind == "b":
            return self.new(f"zext {self.types['b']} {x} to {inner}")
        if 8 * dtype.itemsize == self.bits:
            return x
        way = "sext" if 8 * dtype.itemsize > self.bits else "trunc"
        return self.new(f"{way} {self.types['i']} {x} to {inner}")

    def base(self, buffer: int) -> str:
        """Pointers to where a buffer's numbers begin, one per lane if it is batched."""
        if buffer in self.bases:
            return self.bases[buffer]
        described = self.graph.buffers[buffer]
        inner = self.element_type(described.dtype)
        match described.role:
            case "scratch":
                first = self.plan.scratch[buffer] * self.lanes
                name = self.new(f"getelementptr {self.real}, ptr %frame, i64 {first}")
            case "table":
                name = f"@table{buffer}"
            case _:
                array = "%args" if described.role == "argument" else "%rets"
                at = self.new(f"getelementptr ptr, ptr {array}, i64 {described.number}")
                name = self.new(f"load ptr, ptr {at}")
                if self.per_lane(buffer):
                    wide = self.wide("i64")
                    size = described.size
                    size = f"splat (i64 {size})" if self.lanes > 1 else str(size)
                    step = self.new(f"mul {wide} %lanes, {size}")
                    name = self.new(f"getelementptr {inner}, ptr {name}, {wide} {step}")
        self.bases[buffer] = name
        return name

    def per_lane(self, buffer: int) -> bool:
        described = self.graph.buffers[buffer]
        if described.role == "argument":
            return self.batched[described.number]
        return described.role == "result" and self.any_batch

    @property
    def any_batch(self) -> bool:
        return any(self.batched)

    def offset(self, at: int, loop: int | None, stride: int) -> str:
        if loop is None or stride == 0:
            return str(at)
        key = (at, loop, stride)
        if key not in self.offsets:
            turn = self.turn(loop)
            times = self.new(f"mul i64 {turn}, {stride}")
            self.offsets[key] = self.new(f"add i64 {times}, {at}")
        return self.offsets[key]

    def turn(self, loop: int) -> str:
        if loop not in self.turns:
            depth = self.graph.loops[loop].depth - 1
            at = self.new(f"getelementptr i64, ptr %turns, i64 {depth}")
            self.turns[loop] = self.new(f"load i64, ptr {at}")
        return self.turns[loop]

    def gather(self, inner: str, pointers: str) -> str:
        T, P = f"<{self.lanes} x {inner}>", f"<{self.lanes} x ptr>"
        short = inner.replace("double", "f64").replace("float", "f32")
        name = f"@llvm.masked.gather.v{self.lanes}{short}.v{self.lanes}p0"
        mask = f"<{self.lanes} x i1>"
        self.declare(f"declare {T} {name}({P}, {mask}, {T})")
        size = {"double": 8, "float": 4}.get(inner) or int(inner[1:]) // 8
        on = f"{mask} splat (i1 true)"
        return self.new(f"call {T} {name}({P} align {size} {pointers}, {on}, {T} poison)")

    def read(self, op: tuple) -> str:
        _, buffer, at, loop, stride = op
        described = self.graph.buffers[buffer]
        inner = self.element_type(described.dtype)
        base, offset = self.base(buffer), self.offset(at, loop, stride)
        if described.role == "scratch":
            return self.slot(base, offset, described.kind)
        if self.per_lane(buffer) and self.lanes > 1:
            P = f"<{self.lanes} x ptr>"
            pointers = self.new(f"getelementptr {inner}, {P} {base}, i64 {offset}")
            return self.widen(self.gather(inner, pointers), described.dtype)
        pointer = self.new(f"getelementptr {inner}, ptr {base}, i64 {offset}")
        one = self.new(f"load {inner}, ptr {pointer}")
        return self.widen(self.spread(one, inner), described.dtype)

    def slot(self, base: str, offset: str, kind: Kind) -> str:
        """A vector from the frame."""
        T = self.types["f" if kind == "f" else "i"]
        pointer = self.new(f"getelementptr {self.types['f']}, ptr {base}, i64 {offset}")
        x = self.new(f"load {T}, ptr {pointer}")
        return x if kind != "b" else self.new(f"trunc {T} {x} to {self.types['b']}")

    def put_slot(self, base: str, offset: str, x: str, kind: Kind) -> None:
        T = self.types["f" if kind == "f" else "i"]
        if kind == "b":
            x = self.new(f"zext {self.types['b']} {x} to {T}")
        pointer = self.new(f"getelementptr {self.types['f']}, ptr {base}, i64 {offset}")
        self.lines.append(f"  store {T} {x}, ptr {pointer}")

    def write(self, op: tuple, x: str) -> None:
        _, buffer, at, loop, stride, _ = op
        described = self.graph.buffers[buffer]
        inner = self.element_type(described.dtype)
        base, offset = self.base(buffer), self.offset(at, loop, stride)
        if described.role == "scratch":
            self.put_slot(base, offset, x, described.kind)
            return
        x = self.narrow(x, described.dtype)
        if self.lanes == 1:
            pointer = self.new(f"getelementptr {inner}, ptr {base}, i64 {offset}")
            self.lines.append(f"  store {inner} {x}, ptr {pointer}")
            return
        T, P = f"<{self.lanes} x {inner}>", f"<{self.lanes} x ptr>"
        short = inner.replace("double", "f64").replace("float", "f32")
        name = f"@llvm.masked.scatter.v{self.lanes}{short}.v{self.lanes}p0"
        mask = f"<{self.lanes} x i1>"
        self.declare(f"declare void {name}({T}, {P}, {mask})")
        pointers = self.new(f"getelementptr {inner}, {P} {base}, i64 {offset}")
        size = {"double": 8, "float": 4}.get(inner) or int(inner[1:]) // 8
        on = f"{mask} splat (i1 true)"
        self.lines.append(f"  call void {name}({T} {x}, {P} align {size} {pointers}, {on})")

    def look_up(self, op: tuple, index: str) -> str:
        _, buffer, at, _, stride = op
        described = self.graph.buffers[buffer]
        inner, I = self.element_type(described.dtype), self.types["i"]
        many = lambda n: str(n) if self.lanes == 1 else f"splat (i{self.bits} {n})"
        base = self.base(buffer)
        steps = self.new(f"mul {I} {index}, {many(stride)}")
        steps = self.new(f"add {I} {steps}, {many(at)}")
        if described.role == "scratch":
            inner = self.real if described.kind == "f" else f"i{self.bits}"
            if self.lanes > 1:
                steps = self.new(f"mul {I} {steps}, {many(self.lanes)}")
                count = ", ".join(f"i{self.bits} {k}" for k in range(self.lanes))
                steps = self.new(f"add {I} {steps}, <{count}>")
        P = self.wide("ptr") if self.per_lane(buffer) else "ptr"
        pointers = self.new(f"getelementptr {inner}, {P} {base}, {I} {steps}")
        if self.lanes == 1:
            x = self.new(f"load {inner}, ptr {pointers}")
        else:
            x = self.gather(inner, pointers)
        if described.role == "scratch":
            return x if described.kind != "b" else self.new(f"trunc {I} {x} to {self.types['b']}")
        return self.widen(x, described.dtype)

    # Operations ------------------------------------------------------------------------

    def operation(self, value: Value, name: dict[Value, str], pairs: dict) -> str | None:
        op, kind = self.graph.ops[value], self.graph.kinds[value]
        what, T = op[0], self.types[kind]
        F, I, B = self.types["f"], self.types["i"], self.types["b"]
        if what == "load":
            return self.read(op)
        if what == "store":
            self.write(op, self.of(op[5], name))
            return None
        if what == "lookup":
            return self.look_up(op, self.of(op[3], name))
        x = [self.of(i, name) for i in op[1:]]
        if what in ("add", "sub", "mul"):
            return self.new(f"{ARITHMETIC[what]} contract {T} {x[0]}, {x[1]}")
        if what in ARITHMETIC:
            return self.new(f"{ARITHMETIC[what]} {T} {x[0]}, {x[1]}")
        if what == "neg":
            return self.new(f"fneg {T} {x[0]}")
        if what == "select":
            return self.new(f"select {B} {x[0]}, {T} {x[1]}, {T} {x[2]}")
        if what in COMPARE:
            of = self.graph.kinds[op[1]]
            test = f"fcmp {PREDICATE[what]} {F}" if of == "f" else f"icmp {SIGNED[what]} {I}"
            return self.new(f"{test} {x[0]}, {x[1]}")
        if what in ("and", "or", "xor"):
            return self.new(f"{what} {B} {x[0]}, {x[1]}")
        if what == "not":
            return self.new(f"xor {B} {x[0]}, {self.splat('b', True)}")
        if what in ("iadd", "isub", "imul"):
            return self.new(f"{WHOLE[what]} {I} {x[0]}, {x[1]}")
        if what in ("imin", "imax"):
            suffix = self.suffix.replace("f", "i")
            full = f"@llvm.{WHOLE[what]}.{suffix}"
            self.declare(f"declare {I} {full}({I}, {I})")
            return self.new(f"call {I} {full}({I} {x[0]}, {I} {x[1]})")
        conversions = {
            "i_to_f": f"sitofp {I} {x[0]} to {F}",
            "f_to_i": f"fptosi {F} {x[0]} to {I}",
            "b_to_f": f"uitofp {B} {x[0]} to {F}",
            "b_to_i": f"zext {B} {x[0]} to {I}",
        }
        if what in conversions:
            return self.new(conversions[what])
        given = ", ".join(f"{F} {i}" for i in x)
        if what in INTRINSICS:
            return self.new(f"call {F} {self.intrinsic(INTRINSICS[what], len(x))}({given})")
        if what in ("sin", "cos") and op[1] in pairs:
            if isinstance(pairs[op[1]], bool):
                self.needed.add("sincos")
                both = f"{{{F}, {F}}}"
                pairs[op[1]] = self.new(
                    f"call {both} @djdyn.sincos.f{self.bits}({given})"
                )
            place = ("sin", "cos").index(what)
            return self.new(f"extractvalue {{{F}, {F}}} {pairs[op[1]]}, {place}")
        self.needed.add(what)
        return self.new(f"call {F} @djdyn.{what}.f{self.bits}({given})")

    def of(self, value: Value, name: dict[Value, str]) -> str:
        if value in self.graph.constants:
            return self.splat(self.graph.kinds[value], self.graph.constants[value])
        return name[value]

    # Functions -------------------------------------------------------------------------

    SIGNATURE = "ptr noalias %frame, ptr %args, ptr %rets, ptr %turns, {lanes} %lanes"

    def chunk(self, number: int, chunk: Chunk) -> str:
        graph, slots = self.graph, self.plan.slots
        self.lines, self.fresh = [], 0
        self.bases: dict[int, str] = {}
        self.offsets: dict[tuple, str] = {}
        self.turns: dict[int, str] = {}
        name: dict[Value, str] = {}
        for x in chunk.imports:
            name[x] = self.slot("%frame", str(slots[x]), graph.kinds[x])
        sines = {graph.ops[i][1] for i in chunk.items if graph.ops[i][0] == "sin"}
        both = {graph.ops[i][1] for i in chunk.items if graph.ops[i][0] == "cos"} & sines
        pairs = dict.fromkeys(both, True)
        for item in chunk.items:
            found = self.operation(item, name, pairs)
            if found is not None:
                name[item] = found
        for x, target in chunk.exports:
            self.put_slot("%frame", str(slots[target]), self.of(x, name), graph.kinds[x])
        signature = self.SIGNATURE.format(lanes=self.wide("i64"))
        body = "\n".join(self.lines)
        return f"define internal void @chunk{number}({signature}) #0 {{\n{body}\n  ret void\n}}\n"

    def driver(self, numbers: dict[int, int]) -> str:
        """`run`: all groups of lanes, and for each the steps of the schedule."""
        wide, depth = self.wide("i64"), max((l.depth for l in self.graph.loops), default=0)
        self.lines, self.fresh, self.labels = [], 0, 0
        call = f"(ptr %frame, ptr %args, ptr %rets, ptr %turns, {wide} %lanes)"
        self._walk(self.plan.steps, numbers, call)
        body = "\n".join(self.lines)
        if self.lanes == 1:
            lanes = "  %lanes = add i64 %group, 0"
        else:
            L = self.lanes
            self.declare(f"declare <{L} x i64> @llvm.smin.v{L}i64(<{L} x i64>, <{L} x i64>)")
            count = ", ".join(f"i64 {k}" for k in range(L))
            lanes = f"""  %first.lane = mul i64 %group, {L}
  %l0 = insertelement {wide} poison, i64 %first.lane, i64 0
  %l1 = shufflevector {wide} %l0, {wide} poison, <{L} x i32> zeroinitializer
  %l2 = add {wide} %l1, <{count}>
  %e0 = insertelement {wide} poison, i64 %end, i64 0
  %e1 = shufflevector {wide} %e0, {wide} poison, <{L} x i32> zeroinitializer
  %lanes = call {wide} @llvm.smin.v{L}i64({wide} %l2, {wide} %e1)"""
        return f"""
define void @run(ptr %args, ptr %rets, i64 %first, i64 %last, i64 %end, ptr %frame) #0 {{
entry:
  %turns = alloca [{max(depth, 1)} x i64]
  br label %next
next:
  %group = phi i64 [ %first, %entry ], [ %group.next, %done ]
  %more = icmp slt i64 %group, %last
  br i1 %more, label %work, label %finish
work:
{lanes}
{body}
  br label %done
done:
  %group.next = add i64 %group, 1
  br label %next
finish:
  ret void
}}
"""

    def _walk(self, steps: list[Step], numbers: dict[int, int], call: str) -> None:
        for step in steps:
            if isinstance(step, Chunk):
                self.lines.append(f"  call void @chunk{numbers[id(step)]}{call}")
                continue
            self.labels += 1
            L, at = f"loop{self.labels}", step.loop.depth - 1
            turn = self.new(f"getelementptr i64, ptr %turns, i64 {at}")
            length = step.loop.length
            first = length - 1 if length is not None and step.loop.reverse else 0
            self.lines += [f"  store i64 {first}, ptr {turn}", f"  br label %{L}.head", f"{L}.head:"]
            self._walk(step.head, numbers, call)
            if length is not None:
                i = self.new(f"load i64, ptr {turn}")
                limit = f"sge i64 {i}, 0" if step.loop.reverse else f"slt i64 {i}, {length}"
                go = self.new(f"icmp {limit}")
            else:
                go = self._any(step.loop.test)
            self.lines += [f"  br i1 {go}, label %{L}.body, label %{L}.end", f"{L}.body:"]
            self._walk(step.body, numbers, call)
            i = self.new(f"load i64, ptr {turn}")
            i = self.new(f"add i64 {i}, {-1 if step.loop.reverse else 1}")
            self.lines += [f"  store i64 {i}, ptr {turn}", f"  br label %{L}.head", f"{L}.end:"]

    def _any(self, test: Value | None) -> str:
        assert test is not None
        if test in self.graph.constants:
            return "true" if self.graph.constants[test] else "false"
        x = self.slot("%frame", str(self.plan.slots[test]), "b")
        if self.lanes == 1:
            return x
        name = f"@llvm.vector.reduce.or.v{self.lanes}i1"
        self.declare(f"declare i1 {name}({self.types['b']})")
        return self.new(f"call i1 {name}({self.types['b']} {x})")

    def tables(self) -> Iterator[str]:
        for number, buffer in enumerate(self.graph.buffers):
            if buffer.role == "table":
                inner = self.element_type(buffer.dtype)
                assert buffer.values is not None
                if buffer.dtype.kind == "f":
                    real = [struct.pack("<d", float(x)) for x in buffer.values]
                    items = [f"{inner} 0x{struct.unpack('<Q', x)[0]:016X}" for x in real]
                else:
                    items = [f"{inner} {int(x)}" for x in buffer.values]
                size = len(items)
                yield f"@table{number} = internal constant [{size} x {inner}] [{', '.join(items)}]\n"

    def module(self) -> str:
        numbers, texts = {}, []
        for number, chunk in enumerate(chunks(self.plan.steps)):
            numbers[id(chunk)] = number
            texts.append(self.chunk(number, chunk))
        driver = self.driver(numbers)
        names = sorted(self.needed)
        known = elementary.declarations(names, self.lanes, self.bits)
        name = lambda line: line[line.index("@") : line.index("(") + 1]
        ours = sorted(d for d in self.declared if name(d) not in known)
        declared = "\n".join([known, *ours])
        functions = "".join(elementary.definition(n, self.lanes, self.bits) for n in names)
        width = self.lanes * self.bits
        attributes = (
            f'attributes #0 = {{ nounwind "prefer-vector-width"="{width}" '
            f'"min-legal-vector-width"="{width}" }}\n'
        )
        return "".join(
            [*self.tables(), declared, "\n", functions, *texts, driver, attributes]
        )
