"""Where values wait between chunks: slots, shared by those that never meet."""

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

from .graph import Graph, Value, operands


Loops = tuple[tuple[int, int], ...]  # first and last place of those around


class Lifetimes:
    """From which chunk to which a value is wanted outside of its own.

    A loop's result lives in the slot of its carry, which begins before the loop.
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self.spans: dict[Value, list[int]] = {}
        self.carries: dict[Value, Value] = {}  # by results
        self._home: dict[Value, tuple[int, Loops]] = {}

    def born(self, value: Value, at: int, around: Loops) -> None:
        self._home.setdefault(value, (at, around))

    def use(self, value: Value, at: int, around: Loops) -> None:
        value = self.carries.get(value, value)
        born, outside = self._home[value]
        # A use in a loop that the value stands outside of lasts to the loop's end.
        for depth, loop in enumerate(around):
            if depth >= len(outside) or outside[depth] != loop:
                at = max(at, loop[1])
                break
        span = self.spans.setdefault(value, [born, born])
        span[1] = max(span[1], at)

    def chunk(self, chunk: Any, around: Loops) -> None:
        """Notes what a chunk makes and what it wants from others."""
        graph, local = self.graph, set(chunk.items)
        for item in chunk.items:
            self.born(item, chunk.at, around)
        for _, carry in chunk.exports:
            self.born(carry, chunk.at, around)
            number, j = graph.ops[carry][1:]
            self.carries[graph.loops[number].results[j]] = carry
            self.use(carry, chunk.at, around)
        read = [x for item in chunk.items for x in operands(graph, item)]
        read += [x for x, _ in chunk.exports]
        wanted = dict.fromkeys(read)
        chunk.imports = [
            x for x in wanted if x not in local and x not in graph.constants
        ]
        for x in chunk.imports:
            self.use(x, chunk.at, around)

    def steps(self, steps: Sequence[Any], around: Loops = ()) -> None:
        for step in steps:
            if hasattr(step, "items"):
                self.chunk(step, around)
                continue
            inside = (*around, (step.first, step.last))
            self.steps(step.head, inside)
            test = step.loop.test
            if test is not None and test not in self.graph.constants:
                self.use(test, step.last, inside)
            self.steps(step.body, inside)


def lifetimes(graph: Graph, steps: Sequence[Any]) -> Lifetimes:
    lives = Lifetimes(graph)
    lives.steps(steps)
    return lives


def assign(lives: Lifetimes, uniform: set[Value]) -> tuple[dict[Value, int], int, int]:
    """Slots of lanes and of single numbers, and how many there are of each."""
    spans = lives.spans
    wide, count = _colour({v: x for v, x in spans.items() if v not in uniform})
    single, singles = _colour({v: x for v, x in spans.items() if v in uniform})
    slots = wide | single
    slots |= {r: slots[c] for r, c in lives.carries.items() if c in slots}
    return slots, count, singles


def _colour(spans: Mapping[Value, list[int]]) -> tuple[dict[Value, int], int]:
    """Slots for spans; one that ends where another begins may not share."""
    free: list[int] = []
    ends: list[tuple[int, int]] = []
    slots: dict[Value, int] = {}
    count = 0
    for value in sorted(spans, key=lambda v: spans[v][0]):
        first, last = spans[value]
        while ends and ends[0][0] < first:
            free.append(heapq.heappop(ends)[1])
        if free:
            slot = free.pop()
        else:
            slot, count = count, count + 1
        slots[value] = slot
        heapq.heappush(ends, (last, slot))
    return slots, count
