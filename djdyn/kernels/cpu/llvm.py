"""Machine code for a program: LLVM assembly around chunks on lanes.

Lanes are the outermost loop and whole programs run inside of it, so that nothing but
arguments and results leaves the cache. `run` works on groups of lanes `[first, last)`;
lanes past the end of the batch repeat its last one.
"""

from collections.abc import Iterator

from ..frontend.trace import Program
from ..ir.graph import Value
from ..ir.schedule import Chunk, Schedule, Step, chunks
from . import elementary
from .simd import BASES, SPAN, ChunkWriter, Lanes, number


FRAMES = ", ".join(f"ptr %frame{k}" for k in range(BASES))
SIGNATURE = f"({FRAMES}, ptr %single, ptr %outside, {{lanes}} %lanes)"
RUN = """
define void @run(
    ptr %args, ptr %rets, i64 %first, i64 %last, i64 %end, ptr %frame) #0 {{
entry:
  %turns = alloca [{depth} x i64]
  %outside = alloca [3 x ptr]
  store ptr %args, ptr %outside
  %outside1 = getelementptr ptr, ptr %outside, i64 1
  store ptr %rets, ptr %outside1
  %outside2 = getelementptr ptr, ptr %outside, i64 2
  store ptr %turns, ptr %outside2
{frames}
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
LANES = """  %lane = mul i64 %group, {n}
  %l0 = insertelement {I} poison, i64 %lane, i64 0
  %l1 = shufflevector {I} %l0, {I} poison, <{n} x i32> zeroinitializer
  %l2 = add {I} %l1, <{order}>
  %e0 = insertelement {I} poison, i64 %end, i64 0
  %e1 = shufflevector {I} %e0, {I} poison, <{n} x i32> zeroinitializer
  %lanes = call {I} @llvm.smin.v{n}i64({I} %l2, {I} %e1)"""


def module(
    program: Program, plan: Schedule, batched: tuple[bool, ...], lanes: int
) -> str:
    """The assembly of a program with a function `run`."""
    at = Lanes(program.graph, plan, program.dtype, batched, lanes)
    signature = SIGNATURE.format(lanes=at.wide("i64", lanes))
    numbers, texts = {}, []
    for i, chunk in enumerate(chunks(plan.steps)):
        numbers[id(chunk)] = f"@chunk{i}{signature}"
        body = "\n".join(ChunkWriter(at).write(chunk))
        head = f"define internal void {numbers[id(chunk)]} #0"
        texts.append(f"{head} {{\n{body}\n  ret void\n}}\n")
    run = _Driver(at, numbers).text()
    names = sorted(at.functions)
    known = elementary.declarations(names, lanes, at.bits)
    name = lambda line: line[line.index("@") : line.index("(") + 1]
    ours = sorted(d for d in at.declared if name(d) not in known)
    functions = [elementary.definition(n, lanes, at.bits) for n in names]
    width = lanes * at.bits
    attributes = (
        f'attributes #0 = {{ nounwind "prefer-vector-width"="{width}" '
        f'"min-legal-vector-width"="{width}" }}\n'
    )
    parts = [*_tables(at), known, *ours, *functions, *texts, run, attributes]
    return "\n".join(parts)


def _tables(at: Lanes) -> Iterator[str]:
    for i, buffer in enumerate(at.graph.buffers):
        if buffer.role == "table":
            assert buffer.values is not None
            inner = at.memory(buffer.dtype)
            real = buffer.dtype.kind == "f"
            text = [number(float(x)) if real else str(int(x)) for x in buffer.values]
            items = ", ".join(f"{inner} {x}" for x in text)
            kind = f"internal constant [{len(text)} x {inner}]"
            yield f"@table{i} = {kind} [{items}]\n"


class _Driver:
    """`run`: for each group of lanes, the chunks and loops of the schedule."""

    def __init__(self, at: Lanes, calls: dict[int, str]):
        self.at, self.calls = at, calls
        self.code, self.labels = ChunkWriter(at), 0

    def text(self) -> str:
        at, n = self.at, self.at.lanes
        self.walk(at.plan.steps)
        lanes = "  %lanes = add i64 %group, 0"
        if n > 1:
            I, order = at.wide("i64", n), ", ".join(f"i64 {k}" for k in range(n))
            at.declared.add(f"declare {I} @llvm.smin.v{n}i64({I}, {I})")
            lanes = LANES.format(n=n, I=I, order=order)
        depth = max((loop.depth for loop in at.graph.loops), default=1)
        middles = [(2 * k + 1) * SPAN * n // 2 for k in range(BASES)]
        frames = "\n".join(
            f"  %frame{k} = getelementptr {at.real}, ptr %frame, i64 {middle}"
            for k, middle in enumerate(middles)
        )
        singles = at.plan.slot_count * n + SPAN // 2
        frames += f"\n  %single = getelementptr {at.real}, ptr %frame, i64 {singles}"
        body = "\n".join(self.code.lines)
        return RUN.format(depth=depth, frames=frames, lanes=lanes, body=body)

    def walk(self, steps: list[Step]) -> None:
        code, lines = self.code, self.code.lines
        for step in steps:
            if isinstance(step, Chunk):
                lines.append(f"  call void {self.calls[id(step)]}")
                continue
            self.labels += 1
            label, loop = f"loop{self.labels}", step.loop
            turn = code.new(f"getelementptr i64, ptr %turns, i64 {loop.depth - 1}")
            first = (loop.length or 1) - 1 if loop.reverse else 0
            lines += [f"  store i64 {first}, ptr {turn}", f"  br label %{label}"]
            lines.append(f"{label}:")
            self.walk(step.head)
            if loop.length is None:
                go = self.any(loop.test)
            else:
                i = code.new(f"load i64, ptr {turn}")
                limit = (
                    f"sge i64 {i}, 0" if loop.reverse else f"slt i64 {i}, {loop.length}"
                )
                go = code.new(f"icmp {limit}")
            lines += [f"  br i1 {go}, label %{label}.body, label %{label}.end"]
            lines.append(f"{label}.body:")
            self.walk(step.body)
            i = code.new(f"load i64, ptr {turn}")
            i = code.new(f"add i64 {i}, {-1 if loop.reverse else 1}")
            lines += [f"  store i64 {i}, ptr {turn}", f"  br label %{label}"]
            lines.append(f"{label}.end:")

    def any(self, test: Value | None) -> str:
        """Whether a test holds in any lane."""
        at, code = self.at, self.code
        assert test is not None
        if test in at.graph.constants:
            return str(bool(at.graph.constants[test])).lower()
        lanes = code.width(test)
        x = code.fetch(code.slot(test), "b", lanes)
        if lanes == 1:
            return x
        name, B = f"@llvm.vector.reduce.or.v{lanes}i1", at.type("b", lanes)
        at.declared.add(f"declare i1 {name}({B})")
        return code.new(f"call i1 {name}({B} {x})")
