"""C99 for a program: the same chunks and loops, one number instead of lanes.

Real numbers that outlive a chunk stand in an array `f`, integers and booleans in `w`.
Nothing is allocated and nothing is kept between calls.
"""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr

from ..frontend.trace import Program, UnsupportedError, trace
from ..ir.graph import Buffer, Kind, Value
from ..ir.schedule import Chunk, Schedule, Step, chunks, schedule


CHUNK = 4000  # operations; measured: longer chunks compile slowly and run no faster
SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
SYMBOLS |= {"eq": "==", "ne": "!=", "lt": "<", "le": "<="}
SYMBOLS |= {"and": "&&", "or": "||", "xor": "!=", "idiv": "/", "irem": "%"}
WHOLE = {"iadd": "+", "isub": "-", "imul": "*"}
EXTREME = {"imin": "<", "imax": ">"}
# Saturates as XLA does; a plain cast of a number out of range is undefined.
TO_WHOLE = (
    "{0} >= 0x1p63{s} ? INT64_MAX : {0} > -0x1p63{s} ? (int64_t){0} : "
    "{0} != {0} ? 0 : INT64_MIN"
)
CASTS = {"b_to_i": "{0}", "f_to_i": TO_WHOLE}
CASTS |= dict.fromkeys(("i_to_f", "b_to_f"), "({T}){0}")
LIBRARY = (
    "sqrt cbrt exp exp2 expm1 log log1p pow sin cos tan asin acos atan atan2 sinh cosh "
    "tanh asinh acosh atanh erf erfc floor ceil trunc copysign"
).split()
FUNCTIONS = dict(zip(LIBRARY, LIBRARY, strict=True))
FUNCTIONS |= {"abs": "fabs", "round": "rint", "rem": "fmod"}


@dataclasses.dataclass(frozen=True)
class CFunction:
    """The text of `static void name(const real *a0, ..., real *r0, ...)`.

    `bounded` is false where a loop turns until some test fails.
    """

    text: str
    stack: int  # bytes, about: its arrays and the numbers of its longest chunk
    bounded: bool


def c_function(name: str, closed: ClosedJaxpr, dtype: Any = None) -> CFunction:
    """A traced program as C; `dtype` replaces its own precision.

    Needs `<math.h>` and `<stdint.h>`. Arguments and results must not overlap.
    """
    program = trace(closed)
    plan = schedule(program.graph, chunk=CHUNK)
    return _Writer(name, program, plan, dtype or program.dtype).function()


def c_number(x: float, dtype: np.dtype) -> str:
    """A floating-point constant, to the bit."""
    single = dtype.itemsize == 4
    with np.errstate(over="ignore"):
        x = float(np.float32(x)) if single else float(x)
    if math.isnan(x):
        return "NAN"
    if math.isinf(x):
        return "INFINITY" if x > 0 else "(-INFINITY)"
    mantissa, _, exponent = x.hex().partition("p")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    text = f"{mantissa}p{exponent}" + ("f" if single else "")
    return f"({text})" if text[0] == "-" else text


def c_type(dtype: np.dtype) -> str:
    """The type of an element of an array."""
    if dtype.kind == "f":
        return {4: "float", 8: "double"}[dtype.itemsize]
    sign = "" if dtype.kind == "i" else "u"
    return f"{sign}int{8 * dtype.itemsize}_t"


def c_array(kind: str, name: str, items: list[str]) -> str:
    """The definition of a constant array."""
    rows = [", ".join(items[i : i + 4]) for i in range(0, len(items), 4)]
    body = ",\n    ".join(rows)
    return f"{kind} {name}[{len(items)}] = {{\n    {body}\n}};\n"


class _Writer:
    """Names and types shared by the chunks of a function."""

    def __init__(self, name: str, program: Program, plan: Schedule, dtype: np.dtype):
        self.name, self.plan, self.dtype = name, plan, dtype
        self.graph, self.program = program.graph, program
        self.real, self.suffix = c_type(dtype), "f" if dtype.itemsize == 4 else ""
        self.arrays = self._arrays()

    def type(self, kind: Kind) -> str:
        return {"f": self.real, "i": "int64_t", "b": "int"}[kind]

    def element(self, buffer: Buffer) -> str:
        if buffer.kind == "f":
            return self.real
        return "int64_t" if buffer.role == "scratch" else c_type(buffer.dtype)

    def buffer(self, number: int) -> str:
        buffer = self.graph.buffers[number]
        match buffer.role:
            case "argument":
                return f"a{buffer.number}"
            case "result":
                return f"r{buffer.number}"
            case "table":
                return f"{self.name}_table{number}"
        return f"s{number}"

    def slot(self, value: Value) -> str:
        array = "f" if self.graph.kinds[value] == "f" else "w"
        return f"{array}[{self.plan.slots[value]}]"

    def _arrays(self) -> dict[str, tuple[str, int]]:
        """What stands on the stack: element type and size, by name."""
        sizes = {"f": 0, "w": 0}
        for value, place in self.plan.slots.items():
            array = "f" if self.graph.kinds[value] == "f" else "w"
            sizes[array] = max(sizes[array], place + 1)
        found = {"f": (self.real, sizes["f"]), "w": ("int64_t", sizes["w"])}
        for number in self.plan.scratch:
            buffer = self.graph.buffers[number]
            found[self.buffer(number)] = (self.element(buffer), buffer.size)
        return {name: array for name, array in found.items() if array[1]}

    def parameters(self) -> dict[str, str]:
        """Declarations of all that a chunk may be given, by name."""
        given: dict[str, str] = {}
        for letter, shapes, const in (
            ("a", self.program.arguments, "const "),
            ("r", self.program.results, ""),
        ):
            for i, x in enumerate(shapes):
                dtype = np.dtype(x.dtype)
                inner = self.real if dtype.kind == "f" else c_type(dtype)
                given[f"{letter}{i}"] = f"{const}{inner} *restrict {letter}{i}"
        for name, (inner, _) in self.arrays.items():
            given[name] = f"{inner} *restrict {name}"
        for loop in self.graph.loops:
            given[f"i{loop.depth}"] = f"int64_t i{loop.depth}"
        return given

    def function(self) -> CFunction:
        known, calls, texts, taken = self.parameters(), {}, [], set()
        for number, chunk in enumerate(chunks(self.plan.steps)):
            code = _ChunkWriter(self)
            lines = code.write(chunk)
            used = [x for x in known if x in code.used]
            taken |= code.used
            signature = ", ".join(known[x] for x in used) or "void"
            title = f"{self.name}_{number}"
            texts.append(f"static void {title}({signature})\n{{\n{lines}}}\n")
            calls[id(chunk)] = f"{title}({', '.join(used)});"
        arrays = {x: a for x, a in self.arrays.items() if x in taken}
        lines = [f"{inner} {x}[{size}];" for x, (inner, size) in arrays.items()]
        outside = [x for x in known if x[0] in "ar"]
        lines += [f"(void){x};" for x in outside if x not in taken]
        lines += self.walk(self.plan.steps, calls)
        signature = ", ".join(known[x] for x in outside)
        body = "".join(f"    {line}\n" for line in lines)
        texts.append(f"static void {self.name}({signature})\n{{\n{body}}}\n")
        size = lambda inner: self.dtype.itemsize if inner == self.real else 8
        longest = max(len(c.items) + len(c.imports) for c in chunks(self.plan.steps))
        return CFunction(
            "\n".join([*self.tables(taken), *texts]),
            sum(size(inner) * n for inner, n in arrays.values()) + 8 * longest,
            all(loop.length is not None for loop in self.graph.loops),
        )

    def tables(self, taken: set[str]) -> Iterator[str]:
        for number, buffer in enumerate(self.graph.buffers):
            if buffer.role == "table" and self.buffer(number) in taken:
                assert buffer.values is not None
                items = [self.constant(buffer.kind, x) for x in buffer.values.tolist()]
                kind = f"static const {self.element(buffer)}"
                yield c_array(kind, self.buffer(number), items)

    def constant(self, kind: Kind, x: float | int | bool) -> str:
        if kind == "f":
            return c_number(x, self.dtype)
        if kind == "i":
            return "INT64_MIN" if x == -(2**63) else f"INT64_C({int(x)})"
        return str(int(x))

    def walk(self, steps: list[Step], calls: dict[int, str]) -> Iterator[str]:
        """The chunks and loops in order."""
        for step in steps:
            if isinstance(step, Chunk):
                yield calls[id(step)]
                continue
            loop, i = step.loop, f"i{step.loop.depth}"
            inner = [*self.walk(step.head, calls)]
            if loop.length is None:
                assert loop.test is not None
                head = "for (;;)"
                known = self.graph.constants.get(loop.test)
                test = self.slot(loop.test) if known is None else str(int(known))
                inner.append(f"if (!{test}) break;")
            elif loop.reverse:
                head = f"for (int64_t {i} = {loop.length - 1}; {i} >= 0; {i}--)"
            else:
                head = f"for (int64_t {i} = 0; {i} < {loop.length}; {i}++)"
            inner += self.walk(step.body, calls)
            yield f"{head} {{"
            yield from (f"    {line}" for line in inner)
            yield "}"


class _ChunkWriter:
    """Writes the body of one chunk, and notes what it is to be given."""

    def __init__(self, at: _Writer):
        self.at, self.graph, self.used = at, at.graph, set[str]()

    def write(self, chunk: Chunk) -> str:
        lines = []
        for x in chunk.imports:
            lines.append(f"const {self.declared(x)} = {self.read(x, self.slot(x))};")
        for item in chunk.items:
            op = self.graph.ops[item]
            if op[0] == "store":
                place = self.place(op[1], *op[2:5])
                lines.append(f"{place} = {self.cast(op[1], op[5])};")
            else:
                lines.append(f"const {self.declared(item)} = {self.operation(item)};")
        for x, target in chunk.exports:
            lines.append(f"{self.slot(target)} = {self.of(x)};")
        return "".join(f"    {line}\n" for line in lines)

    def declared(self, value: Value) -> str:
        return f"{self.at.type(self.graph.kinds[value])} t{value}"

    def of(self, value: Value) -> str:
        constant = self.graph.constants.get(value)
        if constant is None:
            return f"t{value}"
        return self.at.constant(self.graph.kinds[value], constant)

    def slot(self, value: Value) -> str:
        text = self.at.slot(value)
        self.used.add(text[0])
        return text

    def read(self, value: Value, place: str) -> str:
        return f"{place} != 0" if self.graph.kinds[value] == "b" else place

    def name(self, number: int) -> str:
        name = self.at.buffer(number)
        self.used.add(name)
        return name

    def place(self, number: int, at: int, loop: int | None, stride: int) -> str:
        """An element that moves with the turns of a loop."""
        if loop is None or stride == 0:
            return f"{self.name(number)}[{at}]"
        turn = f"i{self.graph.loops[loop].depth}"
        self.used.add(turn)
        return f"{self.name(number)}[{stride} * {turn} + {at}]"

    def cast(self, number: int, value: Value) -> str:
        """A value as the type of a buffer's elements."""
        buffer = self.graph.buffers[number]
        exact = buffer.kind == "f" or self.at.element(buffer) == "int64_t"
        return (
            self.of(value) if exact else f"({self.at.element(buffer)}){self.of(value)}"
        )

    def operation(self, value: Value) -> str:
        what, *rest = self.graph.ops[value]
        if what == "load":
            return self.read(value, self.place(*rest))
        if what == "lookup":
            number, at, index, stride = rest
            place = f"{self.name(number)}[{stride} * {self.of(index)} + {at}]"
            return self.read(value, place)
        x = [self.of(i) for i in rest]
        if what in SYMBOLS:
            return f"{x[0]} {SYMBOLS[what]} {x[1]}"
        if what in ("neg", "not"):
            return f"{'-' if what == 'neg' else '!'}{x[0]}"
        if what == "select":
            return f"{x[0]} ? {x[1]} : {x[2]}"
        if what in WHOLE:  # unsigned numbers wrap, signed ones must not
            return f"(int64_t)((uint64_t){x[0]} {WHOLE[what]} (uint64_t){x[1]})"
        if what in EXTREME:
            return f"{x[0]} {EXTREME[what]} {x[1]} ? {x[0]} : {x[1]}"
        if what in CASTS:
            return CASTS[what].format(*x, T=self.at.real, s=self.at.suffix)
        if what not in FUNCTIONS:
            raise UnsupportedError(f"C knows no {what!r}")
        return f"{FUNCTIONS[what]}{self.at.suffix}({', '.join(x)})"
