"""A graph scheduled as basic blocks around a frame of slots in memory.

Compilers take longer than linear time over long straight-line code, so it is cut into
basic blocks of limited length; a value that another block reads goes through a slot of
the frame. A loop's carries have slots of their own.
"""

import dataclasses
from collections.abc import Iterator, Sequence

from .graph import Graph, Loop, Value, operands
from .slots import assign, live_ranges


MAX_BLOCK_OPERATIONS = 120  # measured, see docs/speed.md


@dataclasses.dataclass
class BasicBlock:
    """Straight-line code: `imports` from slots, `items` in order, `exports` to slots.

    An export is a pair: the value, and the value in whose slot it is stored. `at` is
    the block's position in the schedule.
    """

    items: list[Value] = dataclasses.field(default_factory=list)
    exports: list[tuple[Value, Value]] = dataclasses.field(default_factory=list)
    imports: list[Value] = dataclasses.field(default_factory=list)
    at: int = 0


@dataclasses.dataclass
class LoopRegion:
    """A loop around basic blocks; `head` computes whether to iterate again.

    `first` and `last` are its positions in the schedule.
    """

    number: int
    loop: Loop
    head: list["Step"]
    body: list["Step"]
    first: int = 0
    last: int = 0


Step = BasicBlock | LoopRegion


@dataclasses.dataclass
class Schedule:
    """Basic blocks and loops in order, and the slots of values between them."""

    steps: list[Step]
    slots: dict[Value, int]  # of vectors; of single numbers for uniform values
    slot_count: int
    single_count: int
    scratch: dict[int, int]  # first slots of scratch buffers
    uniform: set[Value]
    operations: int

    def frame(self, lanes: int) -> int:
        """Return the numbers in a frame: slots of vectors, then of single numbers."""
        return self.slot_count * lanes + -(-self.single_count // 16) * 16


def live_operations(graph: Graph) -> set[Value]:
    """Return the operations that a result depends on; the others are dead code."""
    stores: dict[int, list[Value]] = {}
    inside: dict[Value, int] = {}
    at: dict[int, Value] = {}
    for number, loop in enumerate(graph.loops):
        for item in (*loop.head.items, *loop.body.items):
            inside[item] = number
    for value, op in enumerate(graph.ops):
        if op[0] == "store":
            stores.setdefault(op[1], []).append(value)
        elif op[0] == "loop":
            at[op[1]] = value
    roots = [
        value
        for number, buffer in enumerate(graph.buffers)
        if buffer.role == "result"
        for value in stores.get(number, [])
    ]
    found: set[Value] = set()
    read: set[int] = set()
    work = list(roots)
    while work:
        value = work.pop()
        if value in found:
            continue
        found.add(value)
        work.extend(operands(graph, value))
        if value in inside:
            work.append(at[inside[value]])
        op = graph.ops[value]
        if op[0] in ("load", "lookup") and op[1] not in read:
            read.add(op[1])
            work.extend(stores.get(op[1], []))
        elif op[0] in ("carry", "result"):
            loop = graph.loops[op[1]]
            work += [loop.starts[op[2]], loop.nexts[op[2]], loop.carries[op[2]]]
            work += [at[op[1]], loop.results[op[2]]]
        elif op[0] == "loop" and graph.loops[op[1]].test is not None:
            work.append(graph.loops[op[1]].test)
    return found


def schedule(
    graph: Graph, batched: Sequence[bool] = (), block_size: int = MAX_BLOCK_OPERATIONS
) -> Schedule:
    """Return the basic blocks, loops and slots of a finished graph.

    A value that depends on no batched argument is uniform: one number for all lanes.
    """
    alive = live_operations(graph)
    uniform = _uniform(graph, batched) if any(batched) else set()
    steps = _steps(graph, graph.open[0].items, alive, block_size)
    _number(steps, 0)
    ranges = live_ranges(graph, steps)
    slots, count, singles = assign(ranges, uniform)
    for step in basic_blocks(steps):
        step.exports += [(x, x) for x in step.items if x in slots]
    scratch = {}
    for number, buffer in enumerate(graph.buffers):
        if buffer.role == "scratch":
            scratch[number], count = count, count + buffer.size
    total = sum(len(c.items) for c in basic_blocks(steps))
    return Schedule(steps, slots, count, singles, scratch, uniform, total)


def _uniform(graph: Graph, batched: Sequence[bool]) -> set[Value]:
    """Return the values that are equal in all lanes, as a greatest fixed point.

    Carries count as uniform until an iteration shows that they are not.
    """
    varying: set[tuple[int, int]] = set()  # carries: loop and position
    while True:
        found: set[Value] = set()
        for value, op in enumerate(graph.ops):
            if op[0] in ("load", "lookup"):
                buffer = graph.buffers[op[1]]
                same = buffer.role == "table" or (
                    buffer.role == "argument" and not batched[buffer.number]
                )
                same = same and (op[0] == "load" or op[3] in found)
            elif op[0] in ("carry", "result"):
                same = op[1:] not in varying
            else:
                same = all(x in found for x in operands(graph, value))
            if same:
                found.add(value)
        new = {
            (number, j)
            for number, loop in enumerate(graph.loops)
            for j, (a, b) in enumerate(zip(loop.starts, loop.nexts, strict=True))
            if a not in found or b not in found
        }
        if new <= varying:
            return found
        varying |= new


def basic_blocks(steps: list[Step]) -> Iterator[BasicBlock]:
    """Yield all basic blocks in order, those inside of loops too."""
    for step in steps:
        if isinstance(step, BasicBlock):
            yield step
        else:
            yield from basic_blocks(step.head)
            yield from basic_blocks(step.body)


def _steps(
    graph: Graph, items: list[Value], alive: set[Value], size: int
) -> list[Step]:
    """Return the basic blocks and loops of a region, without dead code."""
    out: list[Step] = []
    items = [i for i in items if i in alive]
    skip = ("carry", "result")
    straight: list[Value] = []

    def close() -> None:
        straight[:] = _depth_first(graph, straight)
        parts = max(1, -(-len(straight) // size))
        length = -(-len(straight) // parts) or 1
        for first in range(0, len(straight), length):
            out.append(BasicBlock(straight[first : first + length]))
        straight.clear()

    for item in items:
        op = graph.ops[item]
        if op[0] == "loop":
            close()
            number, loop = op[1], graph.loops[op[1]]
            head = _steps(graph, loop.head.items, alive, size)
            body = _steps(graph, loop.body.items, alive, size)
            moved = [j for j, c in enumerate(loop.carries) if c in alive]
            if moved:
                pairs = lambda values, loop=loop, moved=moved: [
                    (values[j], loop.carries[j]) for j in moved
                ]
                _last_block(out).exports += pairs(loop.starts)
                _last_block(body).exports += pairs(loop.nexts)
            out.append(LoopRegion(number, loop, head, body))
        elif op[0] not in skip:
            straight.append(item)
    close()
    return out


def _depth_first(graph: Graph, items: list[Value]) -> list[Value]:
    """Return the operations in depth-first order, each just before its first use.

    Short live ranges lower the register pressure.
    """
    here = set(items)
    used = {x for item in items for x in operands(graph, item)}
    done: set[Value] = set()
    out: list[Value] = []
    for sink in items:
        if sink in used:
            continue
        stack = [(sink, iter(operands(graph, sink)))]
        while stack:
            value, rest = stack[-1]
            for x in rest:
                if x in here and x not in done:
                    done.add(x)
                    stack.append((x, iter(operands(graph, x))))
                    break
            else:
                out.append(value)
                done.add(value)
                stack.pop()
    return out


def _last_block(steps: list[Step]) -> BasicBlock:
    if not steps or not isinstance(steps[-1], BasicBlock):
        steps.append(BasicBlock())
    return steps[-1]  # pyright: ignore


def _number(steps: list[Step], position: int) -> int:
    """Number all steps in order and return the last position."""
    for step in steps:
        position += 1
        if isinstance(step, BasicBlock):
            step.at = position
        else:
            step.first = position
            position = _number(step.body, _number(step.head, position))
            position += 1
            step.last = position
    return position
