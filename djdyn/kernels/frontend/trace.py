"""A JAX function on small arrays, traced into scalar operations.

Arrays become NumPy arrays of SSA values of a `Graph`; primitives that only move
elements cost nothing. Long arrays (arguments, stacked results of loops) stay in memory
until an element is read.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from ..ir.graph import Graph, operands
from ..ir.operations import UnsupportedError as UnsupportedError, kind_of


@dataclasses.dataclass(frozen=True)
class Memory:
    """An array in a buffer, in row-major order from the index `at`."""

    buffer: int
    at: int
    shape: tuple[int, ...]


Values = np.ndarray
Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
MAX_UNROLLED = 20_000  # elements; longer arrays are left to XLA


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of a primitive: `(trace, equation, *inputs) -> results`."""

    def register(fn: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, fn))
        return fn

    return register


class Trace:
    """An evaluation of jaxprs on arrays of SSA values, which fills a graph."""

    def __init__(self) -> None:
        self.graph = Graph()

    def run(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """Evaluate a jaxpr."""
        env: dict[Any, Any] = {}
        read = lambda v: self.known(v.val) if isinstance(v, Literal) else env[v]
        for var, value in zip(jaxpr.constvars, consts, strict=True):
            env[var] = self.known(value)
        env.update(zip(jaxpr.invars, args, strict=True))
        for eqn in jaxpr.eqns:
            name = eqn.primitive.name
            if name not in RULES:
                raise UnsupportedError(f"kernels do not support the primitive {name!r}")
            found = RULES[name](self, eqn, *map(read, eqn.invars))
            found = found if eqn.primitive.multiple_results else [found]
            env.update(zip(eqn.outvars, found, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def inline(self, closed: ClosedJaxpr, *args: Any) -> list[Any]:
        """Evaluate a closed jaxpr."""
        return self.run(closed.jaxpr, closed.consts, args)

    def known(self, x: Any) -> Any:
        """Return the values of a constant array."""
        x = np.asarray(x)
        if x.dtype == jax.dtypes.float0:  # tangents of integers, which nothing reads
            x = np.zeros(x.shape, bool)
        kind = kind_of(x.dtype)
        constant, items = self.graph.constant, x.ravel().tolist()
        values = np.array([constant(i, kind) for i in items], np.int64)
        return values.reshape(x.shape)

    def values(self, x: Any) -> Values:
        """Return the elements of an array, loaded if it lies in memory."""
        if not isinstance(x, Memory):
            return x
        size = math.prod(x.shape)
        if size > MAX_UNROLLED:
            raise UnsupportedError(f"an array of {size} elements is too long to unroll")
        load = self.graph.load
        loaded = [load(x.buffer, x.at + i) for i in range(size)]
        return np.array(loaded, np.int64).reshape(x.shape)

    def memory(self, x: Any, dtype: np.dtype) -> Memory:
        """Return an array stored in memory, as a table if it is constant."""
        if isinstance(x, Memory):
            return x
        graph, items = self.graph, x.ravel().tolist()
        if all(i in graph.constants for i in items):
            numbers = np.array([graph.constants[i] for i in items], dtype)
            buffer = graph.buffer("table", 0, x.size, dtype, 0, numbers)
        else:
            level = len(graph.open) - 1
            buffer = graph.buffer("scratch", 0, x.size, dtype, level)
            for at, i in enumerate(items):
                graph.store(buffer, at, i)
        return Memory(buffer, 0, x.shape)


@dataclasses.dataclass
class Program:
    """A traced function: scalar operations from arguments to results."""

    graph: Graph
    arguments: list[jax.ShapeDtypeStruct]
    results: list[jax.ShapeDtypeStruct]
    dtype: np.dtype


def _run(
    closed: ClosedJaxpr, patterns: Sequence[bytes | None]
) -> tuple[Trace, list[Any]]:
    from . import (  # noqa: F401  fill RULES
        control,
        elementwise,
        indexing,
        linear,
        reductions,
        reshaping,
    )

    tracing, inputs = Trace(), []
    graph = tracing.graph
    for number, v in enumerate(closed.jaxpr.invars):
        size, dtype = math.prod(v.aval.shape), np.dtype(v.aval.dtype)
        if dtype.kind == "u":
            raise UnsupportedError(
                "kernels do not support unsigned integers as arguments"
            )
        buffer = graph.buffer("argument", number, size, dtype)
        pattern = patterns[number] if patterns else None
        if pattern:
            graph.known[buffer] = np.frombuffer(pattern, np.int8).tolist()
        inputs.append(Memory(buffer, 0, v.aval.shape))
    return tracing, tracing.run(closed.jaxpr, closed.consts, inputs)


def distinct(
    closed: ClosedJaxpr, patterns: Sequence[bytes | None]
) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """Return which entries of a function's results are distinct values.

    For each result: an array with the number of each entry's value, across all results,
    and an array of signs. A negative number is a constant, whose value stands in the
    second array. None if the function cannot be traced.
    """
    try:
        tracing, outputs = _run(closed, patterns)
        arrays = [tracing.values(x) for x in outputs]
    except UnsupportedError:
        return None
    graph = tracing.graph
    numbers: dict[int, int] = {}
    found = []
    for x in arrays:
        which, factor = np.empty(x.shape, int), np.empty(x.shape)
        for at in np.ndindex(*x.shape):
            value, sign = int(x[at]), 1.0
            if value in graph.constants:
                which[at], factor[at] = -1, graph.constants[value]
                continue
            if graph.ops[value][0] == "neg":
                value, sign = graph.ops[value][1], -1.0
            which[at], factor[at] = numbers.setdefault(value, len(numbers)), sign
        found.append((which, factor))
    return found


def depends(closed: ClosedJaxpr) -> np.ndarray | None:
    """Return the sparsity pattern `[i, j]` of a function's Jacobian.

    It is False where entry i of the result certainly does not depend on entry j of the
    last argument. None if unknown.
    """
    try:
        tracing, (result,) = _run(closed, ())
        values = tracing.values(result).ravel().tolist()
    except UnsupportedError:
        return None
    graph, last = tracing.graph, len(closed.jaxpr.invars) - 1
    n = math.prod(closed.jaxpr.invars[last].aval.shape)
    rows = np.zeros((len(graph.ops), n), bool)
    for value, (name, *rest) in enumerate(graph.ops):
        if name in ("carry", "loop", "lookup", "result", "store"):
            return None
        if name == "load":
            buffer = graph.buffers[rest[0]]
            if (buffer.role, buffer.number) == ("argument", last):
                rows[value, rest[1]] = True
        for x in operands(graph, value):
            rows[value] |= rows[x]
    return rows[values]


def trace(closed: ClosedJaxpr, patterns: Sequence[bytes | None] = ()) -> Program:
    """Trace a closed jaxpr into scalar operations.

    `patterns` holds the constant entries of the arguments: 0, 1 or -1; 2 is any number.
    """
    described = lambda v: jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype)
    arguments = [described(v) for v in closed.jaxpr.invars]
    results = [described(v) for v in closed.jaxpr.outvars]
    floats = {np.dtype(a.dtype) for a in (*arguments, *results) if a.dtype.kind == "f"}
    if len(floats) > 1 or not floats <= {np.dtype("f4"), np.dtype("f8")}:
        names = ", ".join(sorted(map(str, floats)))
        raise UnsupportedError(
            f"a kernel has one precision, 32 or 64 bits, not {names}"
        )
    dtype = floats.pop() if floats else np.dtype("f8")

    tracing, outputs = _run(closed, patterns)
    graph = tracing.graph
    taken = set()
    for number, (x, a) in enumerate(zip(outputs, results, strict=True)):
        size = math.prod(a.shape)
        if isinstance(x, Memory) and x.buffer not in taken:
            buffer = graph.buffers[x.buffer]
            whole = buffer.role == "scratch" and buffer.level == 0
            if whole and x.at == 0 and buffer.size == size:
                buffer.role, buffer.number = "result", number
                taken.add(x.buffer)
                continue
        buffer = graph.buffer("result", number, size, np.dtype(a.dtype))
        for at, value in enumerate(tracing.values(x).ravel().tolist()):
            graph.store(buffer, at, value)
    return Program(graph, arguments, results, dtype)
