"""From a graph to chunks of straight-line code around a frame of slots in memory.

Compilers take longer than linear time over long straight-line code, so it is cut into
chunks; what one chunk leaves to another goes through a slot of the frame. A loop's
carries have slots of their own.
"""

import dataclasses
from collections.abc import Iterator, Sequence

from .graph import Graph, Loop, Value, operands
from .slots import assign, lifetimes


CHUNK = 120  # operations; measured, see docs/speed.md


@dataclasses.dataclass
class Chunk:
    """Straight-line code: `items` in order, then `exports` into slots."""

    items: list[Value] = dataclasses.field(default_factory=list)
    exports: list[tuple[Value, Value]] = dataclasses.field(default_factory=list)
    imports: list[Value] = dataclasses.field(default_factory=list)
    at: int = 0


@dataclasses.dataclass
class LoopRegion:
    """A loop around chunks; `head` works out whether to take another turn."""

    number: int
    loop: Loop
    head: list["Step"]
    body: list["Step"]
    first: int = 0
    last: int = 0


Step = Chunk | LoopRegion


@dataclasses.dataclass
class Schedule:
    """What to do in order, and where values live in between."""

    steps: list[Step]
    slots: dict[Value, int]  # of lanes; of single numbers for uniform values
    slot_count: int
    single_count: int
    scratch: dict[int, int]  # buffer: its first slot
    uniform: set[Value]
    operations: int

    def frame(self, lanes: int) -> int:
        """Numbers in a frame: slots of lanes, then those of single numbers, aligned."""
        return self.slot_count * lanes + -(-self.single_count // 16) * 16


def live(graph: Graph) -> set[Value]:
    """Operations that a result depends on."""
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
    graph: Graph, batched: Sequence[bool] = (), chunk: int = CHUNK
) -> Schedule:
    """Chunks, loops and slots of a finished graph.

    What depends on no argument that is batched is uniform: one number for all lanes.
    """
    alive = live(graph)
    uniform = _uniform(graph, batched) if any(batched) else set()
    steps = _steps(graph, graph.open[0].items, alive, chunk)
    _number(steps, 0)
    lives = lifetimes(graph, steps)
    slots, count, singles = assign(lives, uniform)
    for step in chunks(steps):
        step.exports += [(x, x) for x in step.items if x in slots]
    scratch = {}
    for number, buffer in enumerate(graph.buffers):
        if buffer.role == "scratch":
            scratch[number], count = count, count + buffer.size
    total = sum(len(c.items) for c in chunks(steps))
    return Schedule(steps, slots, count, singles, scratch, uniform, total)


def _uniform(graph: Graph, batched: Sequence[bool]) -> set[Value]:
    """Values that are the same in all lanes; carries until something says otherwise."""
    varying: set[tuple[int, int]] = set()  # carries: loop and place
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


def chunks(steps: list[Step]) -> Iterator[Chunk]:
    for step in steps:
        if isinstance(step, Chunk):
            yield step
        else:
            yield from chunks(step.head)
            yield from chunks(step.body)


def _steps(
    graph: Graph, items: list[Value], alive: set[Value], size: int
) -> list[Step]:
    out: list[Step] = []
    items = [i for i in items if i in alive]
    skip = ("carry", "result")
    straight: list[Value] = []

    def close() -> None:
        straight[:] = _by_demand(graph, straight)
        parts = max(1, -(-len(straight) // size))
        length = -(-len(straight) // parts) or 1
        for first in range(0, len(straight), length):
            out.append(Chunk(straight[first : first + length]))
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
                _last(out).exports += [(loop.starts[j], loop.carries[j]) for j in moved]
                _last(body).exports += [(loop.nexts[j], loop.carries[j]) for j in moved]
            out.append(LoopRegion(number, loop, head, body))
        elif op[0] not in skip:
            straight.append(item)
    close()
    return out


def _by_demand(graph: Graph, items: list[Value]) -> list[Value]:
    """The same operations, each just before it is first wanted: short lives of values
    keep them in registers.
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


def _last(steps: list[Step]) -> Chunk:
    if not steps or not isinstance(steps[-1], Chunk):
        steps.append(Chunk())
    return steps[-1]  # pyright: ignore


def _number(steps: list[Step], position: int) -> int:
    for step in steps:
        position += 1
        if isinstance(step, Chunk):
            step.at = position
        else:
            step.first = position
            position = _number(step.body, _number(step.head, position))
            position += 1
            step.last = position
    return position
