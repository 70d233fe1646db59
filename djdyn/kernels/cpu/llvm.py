"""A program as an LLVM module: the basic blocks, and `run`, which calls them in order.

The loop over groups of lanes is the outermost one and whole programs run inside of it,
so that nothing but arguments and results leaves the cache. `run` works on the groups
`[first, last)`; lanes past the end of the batch repeat its last one.
"""

from collections.abc import Iterator

from ..frontend.trace import Program
from ..ir.graph import Value
from ..ir.schedule import BasicBlock, Schedule, Step, basic_blocks
from . import elementary
from .memory import load_slot, slot_pointer
from .simd import write_block
from .writer import FRAME_POINTERS, FRAME_SPAN, BlockWriter, KernelContext, number


FRAMES = ", ".join(f"ptr %frame{k}" for k in range(FRAME_POINTERS))
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
    """Return the LLVM assembly of a program, with a function `run`."""
    ctx = KernelContext(program.graph, plan, program.dtype, batched, lanes)
    signature = SIGNATURE.format(lanes=ctx.wide("i64", lanes))
    calls, texts = {}, []
    for i, block in enumerate(basic_blocks(plan.steps)):
        calls[id(block)] = f"@block{i}{signature}"
        body = "\n".join(write_block(ctx, block))
        head = f"define internal void {calls[id(block)]} #0"
        texts.append(f"{head} {{\n{body}\n  ret void\n}}\n")
    run = _Driver(ctx, calls).text()
    names = sorted(ctx.functions)
    known = elementary.declarations(names, lanes, ctx.bits)
    name = lambda line: line[line.index("@") : line.index("(") + 1]
    ours = sorted(d for d in ctx.declared if name(d) not in known)
    functions = [elementary.definition(n, lanes, ctx.bits) for n in names]
    width = lanes * ctx.bits
    attributes = (
        f'attributes #0 = {{ nounwind "prefer-vector-width"="{width}" '
        f'"min-legal-vector-width"="{width}" }}\n'
    )
    parts = [*_tables(ctx), known, *ours, *functions, *texts, run, attributes]
    return "\n".join(parts)


def _tables(ctx: KernelContext) -> Iterator[str]:
    for i, buffer in enumerate(ctx.graph.buffers):
        if buffer.role == "table":
            assert buffer.values is not None
            inner = ctx.memory(buffer.dtype)
            real = buffer.dtype.kind == "f"
            text = [number(float(x)) if real else str(int(x)) for x in buffer.values]
            items = ", ".join(f"{inner} {x}" for x in text)
            kind = f"internal constant [{len(text)} x {inner}]"
            yield f"@table{i} = {kind} [{items}]\n"


class _Driver:
    """The function `run`: for each group of lanes, blocks and loops of a schedule."""

    def __init__(self, ctx: KernelContext, calls: dict[int, str]):
        self.context, self.calls = ctx, calls
        self.code, self.labels = BlockWriter(ctx), 0

    def text(self) -> str:
        """Return the assembly of the function."""
        ctx, n = self.context, self.context.lanes
        self.walk(ctx.plan.steps)
        lanes = "  %lanes = add i64 %group, 0"
        if n > 1:
            I, order = ctx.wide("i64", n), ", ".join(f"i64 {k}" for k in range(n))
            ctx.declared.add(f"declare {I} @llvm.smin.v{n}i64({I}, {I})")
            lanes = LANES.format(n=n, I=I, order=order)
        depth = max((loop.depth for loop in ctx.graph.loops), default=1)
        middles = [(2 * k + 1) * FRAME_SPAN * n // 2 for k in range(FRAME_POINTERS)]
        frames = "\n".join(
            f"  %frame{k} = getelementptr {ctx.real}, ptr %frame, i64 {middle}"
            for k, middle in enumerate(middles)
        )
        singles = ctx.plan.slot_count * n + FRAME_SPAN // 2
        frames += f"\n  %single = getelementptr {ctx.real}, ptr %frame, i64 {singles}"
        body = "\n".join(self.code.lines)
        return RUN.format(depth=depth, frames=frames, lanes=lanes, body=body)

    def walk(self, steps: list[Step]) -> None:
        """Write the calls of basic blocks and the loops around them, in order."""
        code, lines = self.code, self.code.lines
        for step in steps:
            if isinstance(step, BasicBlock):
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
        """Write the test whether a condition holds in any lane."""
        ctx, code = self.context, self.code
        assert test is not None
        if test in ctx.graph.constants:
            return str(bool(ctx.graph.constants[test])).lower()
        lanes = code.width(test)
        x = load_slot(code, slot_pointer(code, test), "b", lanes)
        if lanes == 1:
            return x
        name, B = f"@llvm.vector.reduce.or.v{lanes}i1", ctx.type("b", lanes)
        ctx.declared.add(f"declare i1 {name}({B})")
        return code.new(f"call i1 {name}({B} {x})")
