"""Fixed steps of any kind, as one kernel, with an exact reverse sweep.

The sweep stores or recomputes states by a stated rule: `"all"` keeps the state before
each of the $n$ steps, `"sqrt"` keeps one in $\\sqrt n$ and walks from it again.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import jaxpr_as_fun

from .primitive import Kernel, as_kernel, bind, open_up


Remember = Literal["all", "sqrt"]
StepFn = Callable[..., Any]  # (i, y, *theta) -> y of the next step


def march(
    step: StepFn,
    saves: Sequence[int],
    y0: Any,
    *theta: Any,
    remember: Remember = "all",
    patterns: Sequence[bytes | None] | None = None,
) -> Any:
    """States after `saves` steps, stacked.

    **Arguments:**

    - `step`: `(i, y, *theta) -> y`, with `i` the number of steps behind, `y` one array.
    - `saves`: increasing counts of steps, from one.
    - `remember`: what the reverse sweep finds again without recomputing.
    - `patterns`: of each of `theta`, which entries are zero or one for good
      (`pattern`), or None.
    """
    counts = np.asarray(saves, int)
    if remember not in ("all", "sqrt"):
        raise ValueError(f"remember is 'all' or 'sqrt', not {remember!r}")
    if not counts.size or counts[0] < 1 or np.any(np.diff(counts) < 1):
        raise ValueError("saves must be counts of steps that increase from one")
    shape = lambda x: jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x))
    i = jax.ShapeDtypeStruct((), jnp.int32)
    one = jax.make_jaxpr(step)(i, *map(shape, (y0, *theta)))
    closed, free = open_up(one)
    flat = jaxpr_as_fun(closed)
    n_free = len(free)

    def walk(i: Any, y: Any, *theta: Any) -> Any:
        return flat(*theta[:n_free], i, y, *theta[n_free:])[0]

    known = (None,) * (1 + n_free) + tuple(patterns or (None,) * len(theta))
    steps = _March(walk, counts, remember, known)
    args = (y0, *free, *theta)
    primal = jax.make_jaxpr(steps.primal)(*map(shape, args))
    rules = (steps.forward, steps.tangent, steps.cotangent)
    return bind(Kernel(primal, *rules, patterns=known), *args)[0]


class _March:
    """The walk and its derivatives, on flat arguments `(y0, *theta)`."""

    def __init__(
        self, walk: StepFn, counts: np.ndarray, remember: Remember, patterns: tuple
    ):
        self.walk, self.counts, self.patterns = walk, counts, patterns
        self.steps = int(counts[-1])
        self.stride = self.steps if remember == "all" else math.isqrt(self.steps - 1) + 1
        self.keep_all = remember == "all"

    def _segments(self, counts: np.ndarray, y0: Any, theta: Sequence[Any]) -> Any:
        """States at some counts: a loop over them around a loop over the steps."""
        gaps = np.diff(counts, prepend=0)
        stride = int(gaps[0])
        even = bool(np.all(gaps == stride))

        def one(y: Any, i: Any) -> tuple[Any, None]:
            return self.walk(i, y, *theta), None

        def segment(y: Any, x: tuple[Any, Any]) -> tuple[Any, Any]:
            first, count = x
            if even and stride == 1:
                y, _ = one(y, first)
            elif even:
                y, _ = lax.scan(one, y, first + jnp.arange(stride, dtype=jnp.int32))
            else:
                body = lambda k, y: one(y, first + k)[0]
                y = lax.fori_loop(jnp.int32(0), count, body, y)
            return y, y

        firsts = jnp.asarray(counts - gaps, jnp.int32)
        if len(counts) == 1:
            return segment(y0, (firsts[0], None))[0][None]
        return lax.scan(segment, y0, (firsts, jnp.asarray(gaps, jnp.int32)))[1]

    def primal(self, y0: Any, *theta: Any) -> list[Any]:
        return [self._segments(self.counts, y0, theta)]

    def forward(self, y0: Any, *theta: Any) -> tuple[list[Any], list[Any]]:
        if self.keep_all:

            def fn(y0: Any, *theta: Any) -> list[Any]:
                step = lambda y, i: (self.walk(i, y, *theta), y)
                last, before = lax.scan(step, y0, jnp.arange(self.steps, dtype=jnp.int32))
                return [last, before]

            last, before = as_kernel(fn, y0, *theta, patterns=self.patterns)
            inner = before[self.counts[:-1]]
            return [jnp.concatenate([inner, last[None]])], [before]
        marks = np.arange(self.stride, self.steps, self.stride)
        union = np.union1d(self.counts, marks)
        fn = lambda y0, *theta: [self._segments(union, y0, theta)]
        (found,) = as_kernel(fn, y0, *theta, patterns=self.patterns)
        outs = found[np.searchsorted(union, self.counts)]
        return [outs], [jnp.concatenate([y0[None], found[np.searchsorted(union, marks)]])]

    def tangent(self, args: Any, residuals: Any, tangents: Any) -> list[Any]:
        del residuals
        active = [k for k, t in enumerate(tangents) if t is not None]

        def pushed(i: Any, pair: Any, *inputs: Any) -> Any:
            theta, moved = list(inputs[: len(args) - 1]), inputs[len(args) - 1 :]
            rates = [jnp.zeros_like(x) for x in theta]
            for k, t in zip([k for k in active if k], moved, strict=True):
                rates[k - 1] = t
            fn = lambda y, *theta: self.walk(i, y, *theta)
            y, y_dot = jax.jvp(fn, (pair[0], *theta), (pair[1], *rates))
            return jnp.stack([y, y_dot])

        start = tangents[0] if tangents[0] is not None else jnp.zeros_like(args[0])
        pairs = jnp.stack([args[0], start])
        moved = [tangents[k] for k in active if k]
        both = _March(pushed, self.counts, "all", ()).primal(pairs, *args[1:], *moved)[0]
        return [both[:, 1]]

    def cotangent(self, args: Any, residuals: Any, cotangents: Any) -> list[Any]:
        y0, theta = args[0], args[1:]
        real = [k for k, x in enumerate(theta) if jnp.issubdtype(x.dtype, jnp.floating)]
        (ct,) = cotangents
        K, n = self.stride, self.steps
        segments = -(-n // K)
        last_only = len(self.counts) == 1
        pushes = []
        if not last_only:  # what each saved state is pushed by, after which step
            pushes = [jnp.zeros((segments * K, *y0.shape), y0.dtype).at[self.counts[:-1] - 1].set(ct[:-1])]

        def back(carry: Any, x: Any, theta: Any) -> Any:
            ct_y, ct_theta = carry
            i, y, push = x
            if push is not None:
                ct_y = ct_y + push

            def part(y: Any, *moving: Any) -> Any:
                full = list(theta)
                for k, value in zip(real, moving, strict=True):
                    full[k] = value
                return self.walk(i, y, *full)

            _, pull = jax.vjp(part, y, *(theta[k] for k in real))
            ct_y, *more = pull(ct_y)
            return (ct_y, [a + b for a, b in zip(ct_theta, more, strict=True)]), None

        def sweep_all(before: Any, ct_last: Any, *rest: Any) -> list[Any]:
            push, theta = rest[: len(pushes)], rest[len(pushes) :]
            start = (ct_last, [jnp.zeros_like(theta[k]) for k in real])
            xs = (jnp.arange(n, dtype=jnp.int32), before, push[0] if push else None)
            end, _ = lax.scan(lambda c, x: back(c, x, theta), start, xs, reverse=True)
            return [end[0], *end[1]]

        def sweep_marks(marks: Any, ct_last: Any, *rest: Any) -> list[Any]:
            push, theta = rest[: len(pushes)], rest[len(pushes) :]
            start = (ct_last, [jnp.zeros_like(theta[k]) for k in real])
            turns = jnp.arange(K, dtype=jnp.int32)

            def segment(carry: Any, x: Any) -> Any:
                first, y, push = x
                live = lambda k: first + k < n

                def ahead(y: Any, k: Any) -> Any:
                    return jnp.where(live(k), self.walk(first + k, y, *theta), y), y

                _, before = lax.scan(ahead, y, turns)

                def behind(carry: Any, x: Any) -> Any:
                    k, y, push = x
                    new, _ = back(carry, (first + k, y, push), theta)
                    return jax.tree.map(lambda a, b: jnp.where(live(k), a, b), new, carry), None

                return lax.scan(behind, carry, (turns, before, push), reverse=True)

            firsts = K * jnp.arange(segments, dtype=jnp.int32)
            rows = push[0].reshape(segments, K, *y0.shape) if push else None
            end, _ = lax.scan(segment, start, (firsts, marks, rows), reverse=True)
            return [end[0], *end[1]]

        sweep = sweep_all if self.keep_all else sweep_marks
        patterns = (None,) * (2 + len(pushes)) + self.patterns[1:]
        inputs = (residuals[0], ct[-1], *pushes, *theta)
        found = as_kernel(sweep, *inputs, patterns=patterns)
        out: list[Any] = [found[0], *([None] * len(theta))]
        for k, value in zip(real, found[1:], strict=True):
            out[k + 1] = value
        return out
