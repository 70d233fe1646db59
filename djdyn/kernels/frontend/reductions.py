"""Rules for sums, extrema and cumulated arrays."""

import math
from functools import partial
from typing import Any

import numpy as np

from ..ir.graph import Value
from ..ir.operations import kind_of
from .elementwise import extreme
from .trace import Trace, UnsupportedError, rule


def _lines(x: np.ndarray, axes: Any) -> tuple[list[list[Value]], tuple]:
    """Return the elements along the reduced axes, and the shape of the result."""
    kept = [a for a in range(x.ndim) if a not in axes]
    shape, length = (tuple(x.shape[a] for a in side) for side in (kept, axes))
    moved = x.transpose([*kept, *axes])
    return moved.reshape(math.prod(shape), math.prod(length)).tolist(), shape


@rule(
    "reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or"
)
def _reduce(trace: Trace, eqn: Any, x: Any) -> np.ndarray:
    graph, what = trace.graph, eqn.primitive.name.removeprefix("reduce_")
    kind = kind_of(np.dtype(eqn.invars[0].aval.dtype))
    whole = {"sum": "iadd", "prod": "imul", "max": "imax", "min": "imin"}
    real = {
        "sum": graph.add,
        "prod": graph.mul,
        "max": partial(extreme, graph, "max"),
        "min": partial(extreme, graph, "min"),
    }
    if what in ("and", "or"):
        combine = partial(graph.logic, what)
        empty = graph.constant(what == "and", "b")
    elif kind == "b":
        combine = partial(graph.logic, {"max": "or", "min": "and"}[what])
        empty = graph.constant(what == "min", "b")
    else:
        combine = real[what] if kind == "f" else partial(graph.integer, whole[what])
        start = {"sum": 0, "prod": 1, "max": -math.inf, "min": math.inf}[what]
        empty = graph.constant(float(start) if kind == "f" else start, kind)
    lines, shape = _lines(trace.values(x), eqn.params["axes"])
    out = []
    for line in lines:
        total = line[0] if line else empty
        for item in line[1:]:
            total = combine(total, item)
        out.append(total)
    return np.array(out, np.int64).reshape(shape)


@rule("argmax", "argmin")
def _argument(trace: Trace, eqn: Any, x: Any) -> np.ndarray:
    graph = trace.graph
    lines, shape = _lines(trace.values(x), eqn.params["axes"])
    kind, out = kind_of(np.dtype(eqn.invars[0].aval.dtype)), []
    for line in lines:
        if kind == "b":
            line = [graph.convert(i, "i") for i in line]
        best, at = line[0], graph.constant(0, "i")
        for i, item in enumerate(line[1:], start=1):
            pair = (best, item) if eqn.primitive.name == "argmax" else (item, best)
            wins = graph.compare("lt", *pair)
            if kind == "f":  # the first NaN wins
                new, old = (
                    graph.compare("ne", item, item),
                    graph.compare("eq", best, best),
                )
                wins = graph.logic("or", wins, graph.logic("and", new, old))
            best = graph.select(wins, item, best)
            at = graph.select(wins, graph.constant(i, "i"), at)
        out.append(at)
    return np.array(out, np.int64).reshape(shape)


@rule("cumsum", "cumprod", "cummax", "cummin")
def _cumulate(trace: Trace, eqn: Any, x: Any) -> np.ndarray:
    graph, axis = trace.graph, eqn.params["axis"]
    x = trace.values(x)
    combine = {
        "cumsum": graph.add,
        "cumprod": graph.mul,
        "cummax": partial(extreme, graph, "max"),
        "cummin": partial(extreme, graph, "min"),
    }[eqn.primitive.name]
    if kind_of(np.dtype(eqn.invars[0].aval.dtype)) != "f":
        raise UnsupportedError(
            f"kernels do not support {eqn.primitive.name!r} on integers"
        )
    lines = np.moveaxis(x, axis, -1)
    shape, out = lines.shape, []
    for line in lines.reshape(math.prod(shape[:-1]), shape[-1]).tolist():
        line = line[::-1] if eqn.params["reverse"] else line
        for i in range(1, len(line)):
            line[i] = combine(line[i - 1], line[i])
        out.append(line[::-1] if eqn.params["reverse"] else line)
    return np.moveaxis(np.array(out, np.int64).reshape(shape), -1, axis)
