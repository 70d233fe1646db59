"""Rules for calls, branches and loops."""

from typing import Any

import numpy as np

from ..ir.graph import Loop
from .indexing import choose
from .trace import Memory, Trace, rule


MAX_UNROLLED_OPERATIONS = 600  # of a loop; longer ones stay loops


@rule("jit", "pjit", "core_call", "custom_lin")
def _call(trace: Trace, eqn: Any, *args: Any) -> list[Any]:
    return trace.inline(eqn.params["jaxpr"], *args)


@rule("remat", "remat2", "checkpoint")
def _remat(trace: Trace, eqn: Any, *args: Any) -> list[Any]:
    return trace.run(eqn.params["jaxpr"], (), args)


@rule("closed_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")
def _custom(trace: Trace, eqn: Any, *args: Any) -> list[Any]:
    params = eqn.params
    closed = params.get("call_jaxpr") or params.get("fun_jaxpr")
    return trace.inline(closed, *args)


@rule("custom_linear_solve")
def _linear_solve(trace: Trace, eqn: Any, *args: Any) -> list[Any]:
    sizes, jaxprs = eqn.params["const_lengths"], eqn.params["jaxprs"]
    before = sizes.matvec + sizes.vecmat
    consts = args[before : before + sizes.solve]
    rest = args[before + sizes.solve + sizes.transpose_solve :]
    return trace.inline(jaxprs.solve, *consts, *rest)


@rule("optimization_barrier")
def _barrier(trace: Trace, eqn: Any, *args: Any) -> list[Any]:
    del trace, eqn
    return list(args)


@rule("cond")
def _cond(trace: Trace, eqn: Any, index: Any, *args: Any) -> list[Any]:
    """Evaluate all branches; each lane selects its own."""
    graph, which = trace.graph, int(trace.values(index))
    branches = eqn.params["branches"]
    if which in graph.constants:
        chosen = min(max(int(graph.constants[which]), 0), len(branches) - 1)
        return trace.inline(branches[chosen], *args)
    which = graph.convert(which, "i")
    found = [[trace.values(x) for x in trace.inline(b, *args)] for b in branches]
    out = []
    for cases in zip(*found, strict=True):
        columns = zip(*(c.ravel().tolist() for c in cases), strict=True)
        picked = [choose(graph, which, list(column)) for column in columns]
        out.append(np.array(picked, np.int64).reshape(cases[0].shape))
    return out


def _length(jaxpr: Any) -> int:
    """Return about how many scalar operations a jaxpr becomes."""
    total = 0
    for eqn in jaxpr.eqns:
        inner = [getattr(p, "jaxpr", p) for p in eqn.params.values()]
        inner = [p for p in inner if hasattr(p, "eqns")]
        total += sum(map(_length, inner)) * eqn.params.get("length", 1)
        if not inner:
            total += sum(v.aval.size for v in eqn.outvars)
    return total


def _begin(trace: Trace, length: int | None, reverse: bool, starts: list[Any]) -> int:
    """Open a loop, append its carries and return its number."""
    graph = trace.graph
    loop = Loop(len(graph.open), length, reverse)
    graph.loops.append(loop)
    number = len(graph.loops) - 1
    graph.open.append(loop.body if length is not None else loop.head)
    loop.starts = [i for x in starts for i in x.ravel().tolist()]
    loop.carries = [
        graph.append(("carry", number, j), graph.kinds[start], loop.depth)
        for j, start in enumerate(loop.starts)
    ]
    return number


def _split(values: list[int], like: list[np.ndarray]) -> list[np.ndarray]:
    flat, ends = np.array(values, np.int64), np.cumsum([x.size for x in like])
    parts = np.split(flat, ends[:-1]) if like else []
    return [p.reshape(x.shape) for p, x in zip(parts, like, strict=True)]


def _finish(trace: Trace, number: int, like: list[np.ndarray]) -> list[np.ndarray]:
    """Close the loop and return the final values of its carries."""
    graph, loop = trace.graph, trace.graph.loops[number]
    graph.open.pop()
    level = len(graph.open) - 1
    graph.append(("loop", number), "f", level)
    loop.results = [
        graph.append(("result", number, j), graph.kinds[start], level)
        for j, start in enumerate(loop.starts)
    ]
    return _split(loop.results, like)


@rule("scan")
def _scan(trace: Trace, eqn: Any, *args: Any) -> list[Any]:
    params, graph = eqn.params, trace.graph
    closed, length = params["jaxpr"], params["length"]
    consts, rest = args[: params["num_consts"]], args[params["num_consts"] :]
    carries, xs = rest[: params["num_carry"]], rest[params["num_carry"] :]
    outs = eqn.outvars[params["num_carry"] :]
    if length * _length(closed.jaxpr) <= MAX_UNROLLED_OPERATIONS or length == 1:
        return _unrolled(
            trace, closed, length, params["reverse"], consts, carries, xs, outs
        )
    starts = [trace.values(c) for c in carries]
    x_vars = eqn.invars[len(args) - len(xs) :]
    memories = [
        trace.memory(x, np.dtype(v.aval.dtype)) for x, v in zip(xs, x_vars, strict=True)
    ]
    level = len(graph.open) - 1
    stacks = [
        graph.buffer("scratch", 0, v.aval.size, np.dtype(v.aval.dtype), level)
        for v in outs
    ]
    number = _begin(trace, length, params["reverse"], starts)
    loop = graph.loops[number]
    rows = []
    for m in memories:
        size = int(np.prod(m.shape[1:], dtype=int))
        row = [graph.load(m.buffer, m.at + i, number, size) for i in range(size)]
        rows.append(np.array(row, np.int64).reshape(m.shape[1:]))
    found = trace.inline(closed, *consts, *_split(loop.carries, starts), *rows)
    nexts = [trace.values(x) for x in found[: len(starts)]]
    loop.nexts = [i for x in nexts for i in x.ravel().tolist()]
    for stack, y in zip(stacks, found[len(starts) :], strict=True):
        y = trace.values(y)
        for i, value in enumerate(y.ravel().tolist()):
            graph.store(stack, i, value, number, y.size)
    ends = _finish(trace, number, starts)
    stacked = [Memory(b, 0, v.aval.shape) for b, v in zip(stacks, outs, strict=True)]
    return [*ends, *stacked]


def _unrolled(trace, closed, length, reverse, consts, carries, xs, outs) -> list[Any]:
    xs, rows = [trace.values(x) for x in xs], [None] * length
    for i in range(length - 1, -1, -1) if reverse else range(length):
        found = trace.inline(closed, *consts, *carries, *(x[i, ...] for x in xs))
        carries, rows[i] = found[: len(carries)], found[len(carries) :]
    ys = [
        np.stack([trace.values(row[k]) for row in rows])
        if length
        else np.zeros(v.aval.shape, np.int64)
        for k, v in enumerate(outs)
    ]
    return [*carries, *ys]


@rule("while")
def _while(trace: Trace, eqn: Any, *args: Any) -> list[Any]:
    """Iterate until the test fails in all lanes; finished lanes keep their values."""
    params, graph = eqn.params, trace.graph
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    cond_consts, body_consts = args[:n_cond], args[n_cond : n_cond + n_body]
    starts = [trace.values(x) for x in args[n_cond + n_body :]]
    number = _begin(trace, None, False, starts)
    loop = graph.loops[number]
    now = _split(loop.carries, starts)
    (test,) = trace.inline(params["cond_jaxpr"], *cond_consts, *now)
    loop.test = int(trace.values(test))
    graph.open[-1] = loop.body
    found = trace.inline(params["body_jaxpr"], *body_consts, *now)
    for old, new in zip(now, found, strict=True):
        pairs = zip(
            old.ravel().tolist(), trace.values(new).ravel().tolist(), strict=True
        )
        loop.nexts += [graph.select(loop.test, b, a) for a, b in pairs]
    return _finish(trace, number, starts)
