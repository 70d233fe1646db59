"""Rules for computed indices: dynamic slices, gathers and scatters.

An index known only when the kernel runs reads from memory, or selects among few
entries.
"""

import itertools
import math
from functools import partial, reduce
from typing import Any

import numpy as np

from ..ir.graph import Graph, Value
from ..ir.operations import kind_of
from .trace import Memory, Trace, UnsupportedError, rule


MAX_SELECTED = 64  # entries among which a computed index may select
MAX_SELECTED_WRITES = MAX_SELECTED**2


def choose(graph: Graph, index: Value, entries: list[Value]) -> Value:
    """Return the entry at an index by selections; indices outside take the nearest."""
    found = entries[-1]
    for i in range(len(entries) - 2, -1, -1):
        here = graph.compare("le", index, graph.constant(i, "i"))
        found = graph.select(here, entries[i], found)
    return found


def _starts(trace: Trace, indices: np.ndarray, most: list[int]) -> list[Any]:
    """Return start indices clamped into range: integers where they are constant."""
    graph, found = trace.graph, []
    for i, top in zip(indices.tolist(), most, strict=True):
        if i in graph.constants:
            found.append(min(max(int(graph.constants[i]), 0), top))
        elif top == 0:
            found.append(0)
        else:
            found.append(i if isinstance(i, Dynamic) else Dynamic(i, top))
    return found


class Dynamic:
    """An index known only when the kernel runs, between 0 and `top`."""

    def __init__(self, value: Value, top: int):
        self.value, self.top = value, top


def _window(
    trace: Trace, x: Any, starts: list[Any], sizes: list[int], dtype
) -> np.ndarray:
    """Return the part of `x` that begins at `starts`."""
    graph = trace.graph
    moving = [a for a, s in enumerate(starts) if isinstance(s, Dynamic)]
    strides = np.cumprod([1, *x.shape[:0:-1]])[::-1]
    if not moving:
        spans = [np.arange(s, s + n) for s, n in zip(starts, sizes, strict=True)]
        if not isinstance(x, Memory):
            return x[np.ix_(*spans)]
        steps = [a * span for a, span in zip(strides.tolist(), spans, strict=True)]
        offsets = reduce(np.add.outer, steps, np.zeros((), int))  # no more is loaded
        found = [graph.load(x.buffer, x.at + i) for i in offsets.ravel().tolist()]
        return np.array(found, np.int64).reshape(sizes)
    axis = moving[0]
    here = starts[axis]
    large = math.prod(x.shape) > MAX_SELECTED and len(moving) == 1
    if isinstance(x, Memory) or large:
        memory = trace.memory(x, dtype)
        if len(moving) == 1:
            index = graph.integer("imax", here.value, graph.constant(0, "i"))
            index = graph.integer("imin", index, graph.constant(here.top, "i"))
            fixed = [0 if a == axis else s for a, s in enumerate(starts)]
            out = [
                graph.lookup(
                    memory.buffer,
                    memory.at + int(np.dot(strides, np.add(fixed, offset))),
                    index,
                    int(strides[axis]),
                )
                for offset in itertools.product(*map(range, sizes))
            ]
            return np.array(out, np.int64).reshape(sizes)
    x = trace.values(x)
    if here.top >= MAX_SELECTED:
        raise UnsupportedError(f"a computed index chooses from {here.top + 1} entries")
    parts = []
    for s in range(here.top + 1):
        part = _window(trace, x, [*starts[:axis], s, *starts[axis + 1 :]], sizes, dtype)
        parts.append(part.ravel().tolist())
    out = [
        choose(graph, here.value, list(column)) for column in zip(*parts, strict=True)
    ]
    return np.array(out, np.int64).reshape(sizes)


@rule("dynamic_slice")
def _dynamic_slice(trace: Trace, eqn: Any, x: Any, *starts: Any) -> np.ndarray:
    sizes = list(eqn.params["slice_sizes"])
    most = [n - s for n, s in zip(x.shape, sizes, strict=True)]
    indices = np.array([int(trace.values(s)) for s in starts], np.int64)
    dtype = np.dtype(eqn.outvars[0].aval.dtype)
    return _window(trace, x, _starts(trace, indices, most), sizes, dtype)


@rule("dynamic_update_slice")
def _dynamic_update(
    trace: Trace, eqn: Any, x: Any, new: Any, *starts: Any
) -> np.ndarray:
    x, new = trace.values(x), trace.values(new)
    most = [n - s for n, s in zip(x.shape, new.shape, strict=True)]
    indices = np.array([int(trace.values(s)) for s in starts], np.int64)
    keep = lambda old, new: new
    return _put(trace, x, new, _starts(trace, indices, most), keep)


def _put(
    trace: Trace, x: np.ndarray, new: np.ndarray, starts: list, combine
) -> np.ndarray:
    """Return `x` with a window combined with `new`."""
    graph = trace.graph
    moving = [a for a, s in enumerate(starts) if isinstance(s, Dynamic)]
    if not moving:
        out = x.copy()
        cut = tuple(slice(s, s + n) for s, n in zip(starts, new.shape, strict=True))
        pairs = zip(out[cut].ravel().tolist(), new.ravel().tolist(), strict=True)
        out[cut] = np.array([combine(a, b) for a, b in pairs], np.int64).reshape(
            new.shape
        )
        return out
    axis, here = moving[0], starts[moving[0]]
    if x.size * (here.top + 1) > MAX_SELECTED_WRITES:
        raise UnsupportedError(
            f"a computed index writes to one of {here.top + 1} places"
        )
    low = graph.integer("imax", here.value, graph.constant(0, "i"))
    index = graph.integer("imin", low, graph.constant(here.top, "i"))
    out = x
    for s in range(here.top + 1):
        part = _put(trace, x, new, [*starts[:axis], s, *starts[axis + 1 :]], combine)
        hit = graph.compare("eq", index, graph.constant(s, "i"))
        pairs = zip(
            part.ravel().tolist(), x.ravel().tolist(), out.ravel().tolist(), strict=True
        )
        out = np.array(
            [o if p == a else graph.select(hit, p, o) for p, a, o in pairs], np.int64
        ).reshape(x.shape)
    return out


@rule("gather")
def _gather(trace: Trace, eqn: Any, x: Any, indices: Any) -> np.ndarray:
    dims, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    if dims.operand_batching_dims:
        raise UnsupportedError("kernels do not support batched gathers")
    indices, rank = trace.values(indices), len(x.shape)
    dtype = np.dtype(eqn.outvars[0].aval.dtype)
    shape = eqn.outvars[0].aval.shape
    batch_axes = [a for a in range(len(shape)) if a not in dims.offset_dims]
    kept = [a for a in range(rank) if a not in dims.collapsed_slice_dims]
    out = np.empty(shape, np.int64)
    graph = trace.graph
    zero, fill = graph.constant(0, "i"), _fill(graph, dtype, eqn.params["fill_value"])
    for at in np.ndindex(*indices.shape[:-1]):
        full = [zero] * rank
        for axis, i in zip(dims.start_index_map, indices[at].tolist(), strict=True):
            full[axis] = i
        most = [n - s for n, s in zip(x.shape, sizes, strict=True)]
        starts = _starts(trace, np.array(full, np.int64), most)
        part = _window(trace, x, starts, list(sizes), dtype)
        if "FILL" in str(eqn.params["mode"]):
            inside = _inside(graph, full, most)
            pick = lambda i, inside=inside: graph.select(inside, i, fill)
            part = np.array([pick(i) for i in part.ravel().tolist()], np.int64)
        part = part.reshape([sizes[a] for a in kept])
        place: list[Any] = [slice(None)] * len(shape)
        for axis, i in zip(batch_axes, at, strict=True):
            place[axis] = i
        out[tuple(place)] = part
    return out


def _inside(graph: Graph, starts: list[Value], most: list[int]) -> Value:
    """Return whether a window lies within its array, a boolean value."""
    inside, zero = graph.constant(True, "b"), graph.constant(0, "i")
    for i, top in zip(starts, most, strict=True):
        for pair in ((zero, i), (i, graph.constant(top, "i"))):
            inside = graph.logic("and", inside, graph.compare("le", *pair))
    return inside


def _fill(graph: Graph, dtype: np.dtype, value: Any) -> Value:
    """Return the value that stands for entries outside of an array."""
    kind = kind_of(dtype)
    if value is None:
        value = {"f": math.nan, "b": True}.get(kind)
        value = np.iinfo(dtype).min if value is None else value
    return graph.constant({"f": float, "i": int, "b": bool}[kind](value), kind)


@rule("scatter-add", "scatter", "scatter_add")
def _scatter(trace: Trace, eqn: Any, x: Any, indices: Any, new: Any) -> np.ndarray:
    dims = eqn.params["dimension_numbers"]
    if dims.operand_batching_dims:
        raise UnsupportedError("kernels do not support batched scatters")
    graph = trace.graph
    add = (
        graph.add
        if kind_of(np.dtype(eqn.invars[0].aval.dtype)) == "f"
        else partial(graph.integer, "iadd")
    )
    combine = add if "add" in eqn.primitive.name else lambda old, new: new
    x, indices, new = map(trace.values, (x, indices, new))
    rank = x.ndim
    kept = [a for a in range(rank) if a not in dims.inserted_window_dims]
    batch_axes = [a for a in range(new.ndim) if a not in dims.update_window_dims]
    window = dict(
        zip(kept, (new.shape[a] for a in dims.update_window_dims), strict=True)
    )
    sizes = [window.get(a, 1) for a in range(rank)]
    zero = graph.constant(0, "i")
    for at in np.ndindex(*indices.shape[:-1]):
        full = [zero] * rank
        for axis, i in zip(
            dims.scatter_dims_to_operand_dims, indices[at].tolist(), strict=True
        ):
            full[axis] = i
        most = [n - s for n, s in zip(x.shape, sizes, strict=True)]
        starts = _starts(trace, np.array(full, np.int64), most)
        merge = combine
        if "FILL" in str(eqn.params["mode"]):  # what falls outside is dropped
            inside = _inside(graph, full, most)
            merge = lambda a, b, ok=inside: graph.select(ok, combine(a, b), a)
        place: list[Any] = [slice(None)] * new.ndim
        for axis, i in zip(batch_axes, at, strict=True):
            place[axis] = i
        x = _put(trace, x, new[*place, ...].reshape(sizes), starts, merge)
    return x
