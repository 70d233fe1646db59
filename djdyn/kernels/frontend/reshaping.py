"""Rules for primitives that move elements about: slices, reshapes, joins.

They cost nothing when a kernel runs: only the NumPy arrays of SSA values change.
"""

import math
from typing import Any

import numpy as np

from .trace import Memory, Trace, rule


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
