"""Slots for values between basic blocks, by live ranges and linear scan.

Two values whose live ranges do not overlap may share a slot (Poletto and Sarkar,
*Linear scan register allocation*, 1999).
"""

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

from .graph import Graph, Value, operands


Loops = tuple[tuple[int, int], ...]  # first and last positions of enclosing loops


class LiveRanges:
    """The first and last positions at which values are live between basic blocks.

    A loop's result shares the range of its carry, which begins before the loop.
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self.ranges: dict[Value, list[int]] = {}
        self.carries: dict[Value, Value] = {}  # of results of loops
        self._definitions: dict[Value, tuple[int, Loops]] = {}

    def define(self, value: Value, at: int, around: Loops) -> None:
        """Note where a value is defined."""
        self._definitions.setdefault(value, (at, around))

    def use(self, value: Value, at: int, around: Loops) -> None:
        """Extend the live range of a value to a use."""
        value = self.carries.get(value, value)
        first, outside = self._definitions[value]
        # A value from outside of a loop is live to the end of the loop.
        for depth, loop in enumerate(around):
            if depth >= len(outside) or outside[depth] != loop:
                at = max(at, loop[1])
                break
        live = self.ranges.setdefault(value, [first, first])
        live[1] = max(live[1], at)

    def block(self, block: Any, around: Loops) -> None:
        """Note what a basic block defines and uses, and set its imports."""
        graph, local = self.graph, set(block.items)
        for item in block.items:
            self.define(item, block.at, around)
        for _, carry in block.exports:
            self.define(carry, block.at, around)
            number, j = graph.ops[carry][1:]
            self.carries[graph.loops[number].results[j]] = carry
            self.use(carry, block.at, around)
        read = [x for item in block.items for x in operands(graph, item)]
        read += [x for x, _ in block.exports]
        wanted = dict.fromkeys(read)
        block.imports = [
            x for x in wanted if x not in local and x not in graph.constants
        ]
        for x in block.imports:
            self.use(x, block.at, around)

    def steps(self, steps: Sequence[Any], around: Loops = ()) -> None:
        """Note the definitions and uses of all steps."""
        for step in steps:
            if hasattr(step, "items"):
                self.block(step, around)
                continue
            inside = (*around, (step.first, step.last))
            self.steps(step.head, inside)
            test = step.loop.test
            if test is not None and test not in self.graph.constants:
                self.use(test, step.last, inside)
            self.steps(step.body, inside)


def live_ranges(graph: Graph, steps: Sequence[Any]) -> LiveRanges:
    """Return the live ranges of a schedule's values."""
    ranges = LiveRanges(graph)
    ranges.steps(steps)
    return ranges


def assign(live: LiveRanges, uniform: set[Value]) -> tuple[dict[Value, int], int, int]:
    """Return slots of vectors and of single numbers, and how many there are of each."""
    ranges = live.ranges
    wide, count = _linear_scan({v: x for v, x in ranges.items() if v not in uniform})
    single, singles = _linear_scan({v: x for v, x in ranges.items() if v in uniform})
    slots = wide | single
    slots |= {r: slots[c] for r, c in live.carries.items() if c in slots}
    return slots, count, singles


def _linear_scan(ranges: Mapping[Value, list[int]]) -> tuple[dict[Value, int], int]:
    """Return slots for live ranges; ranges that touch do not share one."""
    free: list[int] = []
    ends: list[tuple[int, int]] = []
    slots: dict[Value, int] = {}
    count = 0
    for value in sorted(ranges, key=lambda v: ranges[v][0]):
        first, last = ranges[value]
        while ends and ends[0][0] < first:
            free.append(heapq.heappop(ends)[1])
        if free:
            slot = free.pop()
        else:
            slot, count = count, count + 1
        slots[value] = slot
        heapq.heappush(ends, (last, slot))
    return slots, count
