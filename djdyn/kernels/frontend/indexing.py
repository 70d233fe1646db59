"""Rules for what moves elements about: slices, reshapes, gathers, reductions."""

import itertools
import math
from functools import partial, reduce
from typing import Any

import numpy as np

from ..ir.graph import Graph, Value, kind_of
from .elementwise import extreme
from .trace import Memory, Trace, UnsupportedError, rule


CHOICES = 64  # entries a computed index may choose from, element by element


@rule("reshape", "squeeze", "expand_dims")
def _reshape(trace: Trace, eqn: Any, x: Any, *_: Any) -> Any:
    shape = eqn.outvars[0].aval.shape
    if isinstance(x, Memory):
        return Memory(x.buffer, x.at, shape)
    return x.reshape(shape)


@rule("broadcast_in_dim")
def _broadcast(trace: Trace, eqn: Any, x: Any, *_: Any) -> np.ndarray:
    shape, where = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    x = trace.values(x)
    inner = [1] * len(shape)
    for axis, size in zip(where, x.shape, strict=True):
        inner[axis] = size
    return np.broadcast_to(x.reshape(inner), shape)


@rule("transpose")
def _transpose(trace: Trace, eqn: Any, x: Any) -> np.ndarray:
    return trace.values(x).transpose(eqn.params["permutation"])


@rule("rev")
def _reverse(trace: Trace, eqn: Any, x: Any) -> np.ndarray:
    return np.flip(trace.values(x), eqn.params["dimensions"])


@rule("slice")
def _slice(trace: Trace, eqn: Any, x: Any) -> Any:
    starts, limits = eqn.params["start_indices"], eqn.params["limit_indices"]
    strides = eqn.params["strides"] or (1,) * len(starts)
    if isinstance(x, Memory) and all(s == 1 for s in strides):
        inner = tuple(zip(starts[1:], limits[1:], strict=True))
        if all(a == 0 and b == n for (a, b), n in zip(inner, x.shape[1:], strict=True)):
            row = math.prod(x.shape[1:])  # whole rows lie side by side
            return Memory(x.buffer, x.at + starts[0] * row, eqn.outvars[0].aval.shape)
    return trace.values(x)[*map(slice, starts, limits, strides), ...]


@rule("concatenate")
def _concatenate(trace: Trace, eqn: Any, *parts: Any) -> np.ndarray:
    return np.concatenate([trace.values(p) for p in parts], eqn.params["dimension"])


@rule("stack")
def _stack(trace: Trace, eqn: Any, *parts: Any) -> np.ndarray:
    axis = eqn.params.get("axis", eqn.params.get("dimension", 0))
    return np.stack([trace.values(p) for p in parts], axis)


@rule("unstack")
def _unstack(trace: Trace, eqn: Any, x: Any) -> list[np.ndarray]:
    axis = eqn.params.get("axis", eqn.params.get("dimension", 0))
    return list(map(np.asarray, np.moveaxis(trace.values(x), axis, 0)))


@rule("split")
def _split(trace: Trace, eqn: Any, x: Any) -> list[np.ndarray]:
    ends = np.cumsum(eqn.params["sizes"])[:-1]
    return np.split(trace.values(x), ends, eqn.params["axis"])


@rule("pad")
def _pad(trace: Trace, eqn: Any, x: Any, filler: Any) -> np.ndarray:
    x, filler = trace.values(x), trace.values(filler)
    config = eqn.params["padding_config"]
    spread = [
        max(0, n + gap * (n - 1))
        for n, (_, _, gap) in zip(x.shape, config, strict=True)
    ]
    full = [n + low + high for n, (low, high, _) in zip(spread, config, strict=True)]
    wide = [
        n + max(low, 0) + max(high, 0)
        for n, (low, high, _) in zip(spread, config, strict=True)
    ]
    out = np.full(wide, filler, np.int64)
    out[
        tuple(
            slice(max(low, 0), max(low, 0) + n, gap + 1)
            for n, (low, _, gap) in zip(spread, config, strict=True)
        )
    ] = x
    cut = (
        slice(max(-low, 0), max(-low, 0) + n)
        for n, (low, _, _) in zip(full, config, strict=True)
    )
    return out[tuple(cut)]


@rule("iota")
def _iota(trace: Trace, eqn: Any, *_: Any) -> np.ndarray:
    shape, axis = eqn.params["shape"], eqn.params["dimension"]
    dtype = np.dtype(eqn.params["dtype"])
    line = np.arange(shape[axis], dtype=dtype)
    where = [1] * len(shape)
    where[axis] = shape[axis]
    return trace.known(np.broadcast_to(line.reshape(where), shape))


# Computed indices ------------------------------------------------------------------


def choose(graph: Graph, index: Value, entries: list[Value]) -> Value:
    """The entry that an index names; indices outside take the nearest."""
    found = entries[-1]
    for i in range(len(entries) - 2, -1, -1):
        here = graph.compare("le", index, graph.constant(i, "i"))
        found = graph.select(here, entries[i], found)
    return found


def _starts(trace: Trace, indices: np.ndarray, most: list[int]) -> list[Any]:
    """Start indices clamped into range: integers where they are constant."""
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
    """The part of `x` that begins at `starts`."""
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
    large = math.prod(x.shape) > CHOICES and len(moving) == 1
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
    if here.top >= CHOICES:
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
    """`x` with a window combined with `new`."""
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
    if x.size * (here.top + 1) > CHOICES * CHOICES:
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
        raise UnsupportedError("kernels do not know batched gathers")
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
    """Whether a window lies within its array."""
    inside, zero = graph.constant(True, "b"), graph.constant(0, "i")
    for i, top in zip(starts, most, strict=True):
        for pair in ((zero, i), (i, graph.constant(top, "i"))):
            inside = graph.logic("and", inside, graph.compare("le", *pair))
    return inside


def _fill(graph: Graph, dtype: np.dtype, value: Any) -> Value:
    """What stands for entries outside of an array."""
    kind = kind_of(dtype)
    if value is None:
        value = {"f": math.nan, "b": True}.get(kind)
        value = np.iinfo(dtype).min if value is None else value
    return graph.constant({"f": float, "i": int, "b": bool}[kind](value), kind)


@rule("scatter-add", "scatter", "scatter_add")
def _scatter(trace: Trace, eqn: Any, x: Any, indices: Any, new: Any) -> np.ndarray:
    dims = eqn.params["dimension_numbers"]
    if dims.operand_batching_dims:
        raise UnsupportedError("kernels do not know batched scatters")
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


# Reductions --------------------------------------------------------------------------


def _lines(x: np.ndarray, axes: Any) -> tuple[list[list[Value]], tuple]:
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
            f"kernels do not know {eqn.primitive.name!r} on integers"
        )
    lines = np.moveaxis(x, axis, -1)
    shape, out = lines.shape, []
    for line in lines.reshape(math.prod(shape[:-1]), shape[-1]).tolist():
        line = line[::-1] if eqn.params["reverse"] else line
        for i in range(1, len(line)):
            line[i] = combine(line[i - 1], line[i])
        out.append(line[::-1] if eqn.params["reverse"] else line)
    return np.moveaxis(np.array(out, np.int64).reshape(shape), -1, axis)
