"""A program as C99: the same basic blocks and loops, one number instead of lanes.

Real numbers that outlive a basic block stand in an array `f`, integers and booleans in
`w`. Nothing is allocated and nothing is kept between calls.
"""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr

from ..frontend.trace import Program, UnsupportedError, trace
from ..ir.graph import Buffer, Value
from ..ir.operations import Kind
from ..ir.schedule import BasicBlock, Schedule, Step, basic_blocks, schedule


MAX_BLOCK_OPERATIONS = 4000  # measured: longer blocks compile slowly, run no faster
SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
SYMBOLS |= {"eq": "==", "ne": "!=", "lt": "<", "le": "<="}
SYMBOLS |= {"and": "&&", "or": "||", "xor": "!=", "idiv": "/", "irem": "%"}
WRAPPING = {"iadd": "+", "isub": "-", "imul": "*"}
EXTREME = {"imin": "<", "imax": ">"}
# Saturates as XLA does; a plain cast of a number out of range is undefined.
TO_INTEGER = (
    "{0} >= 0x1p63{s} ? INT64_MAX : {0} > -0x1p63{s} ? (int64_t){0} : "
    "{0} != {0} ? 0 : INT64_MIN"
)
CASTS = {"b_to_i": "{0}", "f_to_i": TO_INTEGER}
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

    `bounded` is false where a loop iterates until some test fails.
    """

    text: str
    stack: int  # bytes, about: its arrays and the numbers of its longest basic block
    bounded: bool


def c_function(name: str, closed: ClosedJaxpr, dtype: Any = None) -> CFunction:
    """Return a traced function as C; `dtype` replaces its own precision.

    Needs `<math.h>` and `<stdint.h>`. Arguments and results must not overlap.
    """
    program = trace(closed)
    plan = schedule(program.graph, block_size=MAX_BLOCK_OPERATIONS)
    return _Writer(name, program, plan, dtype or program.dtype).function()


def c_number(x: float, dtype: np.dtype) -> str:
    """Return a floating-point constant of C, exact to the bit."""
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
    """Return the C type of an element of an array."""
    if dtype.kind == "f":
        return {4: "float", 8: "double"}[dtype.itemsize]
    sign = "" if dtype.kind == "i" else "u"
    return f"{sign}int{8 * dtype.itemsize}_t"


def c_array(kind: str, name: str, items: list[str]) -> str:
    """Return the definition of a constant array."""
    rows = [", ".join(items[i : i + 4]) for i in range(0, len(items), 4)]
    body = ",\n    ".join(rows)
    return f"{kind} {name}[{len(items)}] = {{\n    {body}\n}};\n"


class _Writer:
    """Names and types shared by the basic blocks of a function."""

    def __init__(self, name: str, program: Program, plan: Schedule, dtype: np.dtype):
        self.name, self.plan, self.dtype = name, plan, dtype
        self.graph, self.program = program.graph, program
        self.real, self.suffix = c_type(dtype), "f" if dtype.itemsize == 4 else ""
        self.arrays = self._arrays()

    def type(self, kind: Kind) -> str:
        """Return the C type of a kind of values."""
        return {"f": self.real, "i": "int64_t", "b": "int"}[kind]

    def element(self, buffer: Buffer) -> str:
        """Return the C type of a buffer's elements."""
        if buffer.kind == "f":
            return self.real
        return "int64_t" if buffer.role == "scratch" else c_type(buffer.dtype)

    def buffer(self, number: int) -> str:
        """Return the name of a buffer."""
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
        """Return the slot of a value, an element of `f` or `w`."""
        array = "f" if self.graph.kinds[value] == "f" else "w"
        return f"{array}[{self.plan.slots[value]}]"

    def _arrays(self) -> dict[str, tuple[str, int]]:
        """Return the arrays on the stack: element type and size, by name."""
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
        """Return the declarations of all parameters that a block may need, by name."""
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
        """Return the function, after the functions of its basic blocks."""
        known, calls, texts, taken = self.parameters(), {}, [], set()
        for number, block in enumerate(basic_blocks(self.plan.steps)):
            code = _BlockWriter(self)
            lines = code.write(block)
            used = [x for x in known if x in code.used]
            taken |= code.used
            signature = ", ".join(known[x] for x in used) or "void"
            title = f"{self.name}_{number}"
            texts.append(f"static void {title}({signature})\n{{\n{lines}}}\n")
            calls[id(block)] = f"{title}({', '.join(used)});"
        arrays = {x: a for x, a in self.arrays.items() if x in taken}
        lines = [f"{inner} {x}[{size}];" for x, (inner, size) in arrays.items()]
        outside = [x for x in known if x[0] in "ar"]
        lines += [f"(void){x};" for x in outside if x not in taken]
        lines += self.walk(self.plan.steps, calls)
        signature = ", ".join(known[x] for x in outside)
        body = "".join(f"    {line}\n" for line in lines)
        texts.append(f"static void {self.name}({signature})\n{{\n{body}}}\n")
        size = lambda inner: self.dtype.itemsize if inner == self.real else 8
        blocks = basic_blocks(self.plan.steps)
        longest = max(len(block.items) + len(block.imports) for block in blocks)
        return CFunction(
            "\n".join([*self.tables(taken), *texts]),
            sum(size(inner) * n for inner, n in arrays.values()) + 8 * longest,
            all(loop.length is not None for loop in self.graph.loops),
        )

    def tables(self, taken: set[str]) -> Iterator[str]:
        """Yield the definitions of the constant tables that are used."""
        for number, buffer in enumerate(self.graph.buffers):
            if buffer.role == "table" and self.buffer(number) in taken:
                assert buffer.values is not None
                items = [self.constant(buffer.kind, x) for x in buffer.values.tolist()]
                kind = f"static const {self.element(buffer)}"
                yield c_array(kind, self.buffer(number), items)

    def constant(self, kind: Kind, x: float | int | bool) -> str:
        """Return a constant operand."""
        if kind == "f":
            return c_number(x, self.dtype)
        if kind == "i":
            return "INT64_MIN" if x == -(2**63) else f"INT64_C({int(x)})"
        return str(int(x))

    def walk(self, steps: list[Step], calls: dict[int, str]) -> Iterator[str]:
        """Yield the calls of basic blocks and the loops around them, in order."""
        for step in steps:
            if isinstance(step, BasicBlock):
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


class _BlockWriter:
    """The body of one basic block, and in `used` the parameters that it needs."""

    def __init__(self, at: _Writer):
        self.at, self.graph, self.used = at, at.graph, set[str]()

    def write(self, block: BasicBlock) -> str:
        """Return the lines: imports from slots, operations, exports to slots."""
        lines = []
        for x in block.imports:
            lines.append(f"const {self.declared(x)} = {self.read(x, self.slot(x))};")
        for item in block.items:
            op = self.graph.ops[item]
            if op[0] == "store":
                place = self.place(op[1], *op[2:5])
                lines.append(f"{place} = {self.cast(op[1], op[5])};")
            else:
                lines.append(f"const {self.declared(item)} = {self.operation(item)};")
        for x, target in block.exports:
            lines.append(f"{self.slot(target)} = {self.operand(x)};")
        return "".join(f"    {line}\n" for line in lines)

    def declared(self, value: Value) -> str:
        """Return the declaration of a value's variable."""
        return f"{self.at.type(self.graph.kinds[value])} t{value}"

    def operand(self, value: Value) -> str:
        """Return a value's variable or constant."""
        constant = self.graph.constants.get(value)
        if constant is None:
            return f"t{value}"
        return self.at.constant(self.graph.kinds[value], constant)

    def slot(self, value: Value) -> str:
        """Return the slot of a value, and note its array."""
        text = self.at.slot(value)
        self.used.add(text[0])
        return text

    def read(self, value: Value, place: str) -> str:
        """Return the expression that reads a value from memory."""
        return f"{place} != 0" if self.graph.kinds[value] == "b" else place

    def name(self, number: int) -> str:
        """Return the name of a buffer, and note it."""
        name = self.at.buffer(number)
        self.used.add(name)
        return name

    def place(self, number: int, at: int, loop: int | None, stride: int) -> str:
        """Return the element `at + stride * i`, with the counter `i` of a loop."""
        if loop is None or stride == 0:
            return f"{self.name(number)}[{at}]"
        counter = f"i{self.graph.loops[loop].depth}"
        self.used.add(counter)
        return f"{self.name(number)}[{stride} * {counter} + {at}]"

    def cast(self, number: int, value: Value) -> str:
        """Return a value cast to the type of a buffer's elements."""
        buffer = self.graph.buffers[number]
        exact = buffer.kind == "f" or self.at.element(buffer) == "int64_t"
        return (
            self.operand(value)
            if exact
            else f"({self.at.element(buffer)}){self.operand(value)}"
        )

    def operation(self, value: Value) -> str:
        """Return the expression of an operation."""
        what, *rest = self.graph.ops[value]
        if what == "load":
            return self.read(value, self.place(*rest))
        if what == "lookup":
            number, at, index, stride = rest
            place = f"{self.name(number)}[{stride} * {self.operand(index)} + {at}]"
            return self.read(value, place)
        x = [self.operand(i) for i in rest]
        if what in SYMBOLS:
            return f"{x[0]} {SYMBOLS[what]} {x[1]}"
        if what in ("neg", "not"):
            return f"{'-' if what == 'neg' else '!'}{x[0]}"
        if what == "select":
            return f"{x[0]} ? {x[1]} : {x[2]}"
        if what in WRAPPING:  # unsigned numbers wrap, signed ones must not
            return f"(int64_t)((uint64_t){x[0]} {WRAPPING[what]} (uint64_t){x[1]})"
        if what in EXTREME:
            return f"{x[0]} {EXTREME[what]} {x[1]} ? {x[0]} : {x[1]}"
        if what in CASTS:
            return CASTS[what].format(*x, T=self.at.real, s=self.at.suffix)
        if what not in FUNCTIONS:
            raise UnsupportedError(f"C source has no operation {what!r}")
        return f"{FUNCTIONS[what]}{self.at.suffix}({', '.join(x)})"
