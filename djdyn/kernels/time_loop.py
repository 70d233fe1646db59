"""Fixed time steps of any kind, as one kernel, with an exact reverse sweep.

Loop-invariant values are computed before the loop. The reverse sweep stores or
recomputes by a stated rule: `"all"` keeps the state before each of the $n$ steps, and
the values that the step has named (`jax.ad_checkpoint.checkpoint_name`); `"sqrt"` keeps
one state in $\\sqrt n$ and recomputes the steps from there.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr

from .frontend import passes
from .frontend.trace import distinct
from .primitive import Kernel, Patterns, as_kernel, bind


Checkpoints = Literal["all", "sqrt"]
StepFn = Callable[..., Any]  # (i, y, *theta) -> y of the next step


def time_loop(
    step: StepFn,
    saves: Sequence[int] | np.ndarray,
    y0: Any,
    *theta: Any,
    checkpoints: Checkpoints = "all",
    patterns: Sequence[bytes | None] | None = None,
    compiled: bool = True,
) -> Any:
    """Return the states after `saves` steps, stacked.

    **Arguments:**

    - `step`: `(i, y, *theta) -> y`, with `i` the number of steps before, `y` one array.
    - `saves`: increasing counts of steps, from one.
    - `checkpoints`: what the reverse sweep stores, `"all"` or `"sqrt"`.
    - `patterns`: constant entries of each of `theta` (`pattern`), or None.
    - `compiled`: False runs all of it in XLA.
    """
    if checkpoints not in ("all", "sqrt"):
        raise ValueError(f"checkpoints is 'all' or 'sqrt', not {checkpoints!r}")
    counts = np.asarray(saves, int)
    if not counts.size or counts[0] < 1 or np.any(np.diff(counts) < 1):
        raise ValueError("saves must be counts of steps that increase from one")
    i = jax.ShapeDtypeStruct((), jnp.int32)
    traced = jax.make_jaxpr(step)(i, *map(_shape, (y0, *theta)))
    closed, free = passes.lift_constants(passes.eliminate_dead_code(traced))
    still = (*free, *theta)
    given = (None,) * len(free) + tuple(patterns or (None,) * len(theta))
    moving = [*(False for _ in free), True, True, *(False for _ in theta)]
    before, after = passes.hoist_invariants(closed, moving)
    expand = lambda *arrays: arrays
    if compiled:
        before, expand = _packed(before, still, given)
    invariants = before(*still)
    inner = lambda i, y, *theta: after(expand(*theta), i, y)[0]
    known = (None,) * (1 + len(invariants))
    steps = _TimeLoop(inner, counts, checkpoints, known, compiled)
    args = (y0, *invariants)
    primal = jax.make_jaxpr(steps.primal)(*map(_shape, args))
    rules = (steps.forward, steps.tangent, steps.cotangent)
    return bind(Kernel(primal, *rules, known, compiled), *args)[0]


def _shape(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x))


def _packed(
    fn: Callable, args: Sequence[Any], patterns: Patterns
) -> tuple[Callable, Callable]:
    """Return a function whose result is one array of the distinct entries of `fn`'s
    results, and a function that expands it to these results.
    """
    fn = jax.jit(fn)  # traced once for both
    closed = _closed(fn, *args)
    found = distinct(closed, patterns)
    kinds = {v.aval.dtype for v in closed.jaxpr.outvars}
    if found is None or len(kinds) != 1 or not _floating(*kinds):
        return lambda *args: bind(Kernel(closed), *args), lambda *arrays: arrays
    which = np.concatenate([w.ravel() for w, _ in found])
    factor = np.concatenate([f.ravel() for _, f in found])
    _, first = np.unique(which, return_index=True)
    first = first[which[first] >= 0]
    sign = factor[first]

    def gather(*args: Any) -> list[Any]:
        flat = jnp.concatenate([x.ravel() for x in fn(*args)])
        return [flat[first] * jnp.asarray(sign, flat.dtype)]

    shapes = [w.shape for w, _ in found]
    ends = np.cumsum([w.size for w, _ in found])

    def expand(entries: Any) -> list[Any]:
        factors = jnp.asarray(factor, entries.dtype)
        some = entries[np.maximum(which, 0)] * factors
        flat = jnp.where(which >= 0, some, factors)
        return [
            lax.slice(flat, (end - math.prod(shape),), (end,)).reshape(shape)
            for shape, end in zip(shapes, ends, strict=True)
        ]

    return lambda *args: as_kernel(gather, *args, patterns=patterns), expand


def _floating(dtype: Any) -> bool:
    return jnp.issubdtype(dtype, jnp.floating)


def _closed(fn: Callable, *args: Any) -> ClosedJaxpr:
    return jax.make_jaxpr(fn)(*map(_shape, args))


class _TimeLoop:
    """The steps and their derivatives, on flat arguments `(y0, *theta)`."""

    def __init__(
        self,
        step: StepFn,
        counts: np.ndarray,
        checkpoints: Checkpoints,
        patterns: Patterns,
        compiled: bool,
    ):
        self.step, self.counts = step, counts
        self.patterns, self.compiled = patterns, compiled
        self.steps, self.keep_all = int(counts[-1]), checkpoints == "all"

    def primal(self, y0: Any, *theta: Any) -> list[Any]:
        """Return the saved states."""
        return [_segments(self.step, self.counts, y0, theta)]

    def _kernel(self, fn: Callable, args: Sequence[Any], patterns: Patterns) -> Any:
        return as_kernel(fn, *args, patterns=patterns, compiled=self.compiled)

    # Checkpoints --------------------------------------------------------------------

    @property
    def stride(self) -> int:
        """Number of steps between two checkpoints."""
        return math.isqrt(self.steps - 1) + 1

    def forward(self, y0: Any, *theta: Any) -> tuple[list[Any], list[Any]]:
        """Return the saved states, and the checkpoints for the reverse sweep."""
        if self.keep_all:
            last, *kept = self._kernel(self._keeping, (y0, *theta), self.patterns)
            inner = kept[0][self.counts[:-1]]
            return [jnp.concatenate([inner, last[None]])], kept
        marks = np.arange(self.stride, self.steps, self.stride)
        union = np.union1d(self.counts, marks)
        fn = lambda y0, *theta: [_segments(self.step, union, y0, theta)]
        (found,) = self._kernel(fn, (y0, *theta), self.patterns)
        at = lambda counts: found[np.searchsorted(union, counts)]
        return [at(self.counts)], [jnp.concatenate([y0[None], at(marks)])]

    def _named(self, y0: Any, theta: Sequence[Any]) -> tuple[ClosedJaxpr, list[str]]:
        one = _closed(self.step, jnp.int32(0), y0, *theta)
        return one, passes.checkpoint_names(one)

    def _keeping(self, y0: Any, *theta: Any) -> list[Any]:
        """Return the last state, those before each step, and named values."""
        one, names = self._named(y0, theta)

        def step(y: Any, i: Any) -> tuple[Any, list[Any]]:
            seen: dict[str, Any] = {}

            def visit(name: str, x: Any) -> Any:
                seen[name] = x
                return x

            (after,) = passes.evaluate(one, visit, i, y, *theta)
            return after, [y, *(seen[name] for name in names)]

        last, kept = lax.scan(step, y0, jnp.arange(self.steps, dtype=jnp.int32))
        return [last, *kept]

    # Forward mode --------------------------------------------------------------------

    def tangent(self, args: Any, residuals: Any, tangents: Any) -> list[Any]:
        """Return the tangents of the saved states, with the states computed again."""
        del residuals
        n = len(args) - 1
        moving = [k for k in range(n) if tangents[k + 1] is not None]

        def pushed(i: Any, pair: Any, *inputs: Any) -> Any:
            theta, given = inputs[:n], dict(zip(moving, inputs[n:], strict=True))
            rates = [given.get(k, _zero_tangent(x)) for k, x in enumerate(theta)]
            fn = lambda y, *theta: self.step(i, y, *theta)
            return jnp.stack(jax.jvp(fn, (pair[0], *theta), (pair[1], *rates)))

        start = jnp.zeros_like(args[0]) if tangents[0] is None else tangents[0]
        pairs = jnp.stack([args[0], start])
        given = [tangents[k + 1] for k in moving]
        second = lambda pair: pair[1]
        inputs = (*args[1:], *given)
        return [_segments(pushed, self.counts, pairs, inputs, second)]

    # Reverse mode --------------------------------------------------------------------

    def cotangent(
        self, args: Any, residuals: Any, cotangents: Any, active: Sequence[int]
    ) -> list[Any]:
        """Return the cotangents of the active arguments by a reverse sweep."""
        (ct,), theta = cotangents, args[1:]
        wanted = [k - 1 for k in active if k]
        n, K = self.steps, self.steps if self.keep_all else self.stride
        pushes = []
        if len(self.counts) > 1:  # saved states are pushed too, after their steps
            rows = jnp.zeros((-(-n // K) * K, *ct.shape[1:]), ct.dtype)
            pushes = [rows.at[self.counts[:-1] - 1].set(ct[:-1])]
        sweep = self._sweep_all if self.keep_all else self._sweep_segments
        inputs = (*residuals, ct[-1], *pushes, *theta)
        n_residuals = len(residuals)
        patterns = (None,) * (len(inputs) - len(theta)) + self.patterns[1:]

        def fn(*inputs: Any) -> list[Any]:
            before, (ct, *rest) = inputs[:n_residuals], inputs[n_residuals:]
            push, theta = (rest[0], rest[1:]) if pushes else (None, rest)
            return sweep(before, ct, push, theta, wanted)

        found = self._kernel(fn, inputs, patterns)
        return found if 0 in active else found[1:]

    def _back(self, y: Any, theta: Sequence[Any], wanted: Sequence[int]) -> Callable:
        """Return one reverse step: `(carry, i, y, push, named) -> carry`."""

        def pull(i: Any, y: Any, ct: Any, *theta: Any) -> list[Any]:
            def part(y: Any, *moving: Any) -> Any:
                full = list(theta)
                for k, value in zip(wanted, moving, strict=True):
                    full[k] = value
                return self.step(i, y, *full)

            return list(jax.vjp(part, y, *(theta[k] for k in wanted))[1](ct))

        pulled = _closed(pull, jnp.int32(0), y, y, *theta)

        def back(carry: Any, i: Any, y: Any, push: Any, named: dict[str, Any]) -> Any:
            ct_y, *ct_theta = carry
            ct_y = ct_y if push is None else ct_y + push
            visit = lambda name, x: named.get(name, x)
            # Nothing depends on a state without cotangents, though its numbers may not
            # be finite and zero times them would be NaN: those after a divergence.
            live = jnp.any(ct_y != 0)
            found = passes.evaluate(pulled, visit, i, y, ct_y, *theta)
            ct_y, *more = (jnp.where(live, x, jnp.zeros_like(x)) for x in found)
            return [ct_y, *(a + b for a, b in zip(ct_theta, more, strict=True))]

        return back

    def _sweep_all(
        self, residuals: Any, ct: Any, push: Any, theta: Any, wanted: Sequence[int]
    ) -> list[Any]:
        before, *kept = residuals
        back, names = self._back(ct, theta, wanted), self._named(ct, theta)[1]

        def step(carry: Any, x: Any) -> Any:
            i, y, push, *kept = x
            named = dict(zip(names, kept, strict=True))
            return back(carry, i, y, push, named), None

        start = [ct, *(jnp.zeros_like(theta[k]) for k in wanted)]
        xs = (jnp.arange(self.steps, dtype=jnp.int32), before, push, *kept)
        return lax.scan(step, start, xs, reverse=True)[0]

    def _sweep_segments(
        self, residuals: Any, ct: Any, push: Any, theta: Any, wanted: Sequence[int]
    ) -> list[Any]:
        (marks,), K, n = residuals, self.stride, self.steps
        back, iterations = self._back(ct, theta, wanted), jnp.arange(K, dtype=jnp.int32)

        def segment(carry: Any, x: Any) -> Any:
            first, y, push = x
            live = lambda k: first + k < n

            def ahead(y: Any, k: Any) -> Any:
                return jnp.where(live(k), self.step(first + k, y, *theta), y), y

            def behind(carry: Any, x: Any) -> Any:
                k, y, push = x
                new = back(carry, first + k, y, push, {})
                keep = lambda a, b: jnp.where(live(k), a, b)
                return jax.tree.map(keep, new, carry), None

            _, before = lax.scan(ahead, y, iterations)
            return lax.scan(behind, carry, (iterations, before, push), reverse=True)

        start = [ct, *(jnp.zeros_like(theta[k]) for k in wanted)]
        firsts = K * jnp.arange(len(marks), dtype=jnp.int32)
        rows = None if push is None else push.reshape(len(marks), K, *ct.shape)
        return lax.scan(segment, start, (firsts, marks, rows), reverse=True)[0]


def _segments(
    step: StepFn,
    counts: np.ndarray,
    y0: Any,
    theta: Sequence[Any],
    keep: Callable[[Any], Any] = lambda y: y,
) -> Any:
    """Return `keep(y)` after some counts of steps, by a loop over a loop of steps."""
    gaps = np.diff(counts, prepend=0)
    stride = int(gaps[0])
    even = bool(np.all(gaps == stride))

    def one(y: Any, i: Any) -> tuple[Any, None]:
        return step(i, y, *theta), None

    def segment(y: Any, x: tuple[Any, Any]) -> tuple[Any, Any]:
        first, count = x
        if even and stride == 1:
            y, _ = one(y, first)
        elif even:
            y, _ = lax.scan(one, y, first + jnp.arange(stride, dtype=jnp.int32))
        else:
            body = lambda k, y: one(y, first + k)[0]
            y = lax.fori_loop(jnp.int32(0), count, body, y)
        return y, keep(y)

    firsts = jnp.asarray(counts - gaps, jnp.int32)
    if len(counts) == 1:
        return segment(y0, (firsts[0], None))[1][None]
    return lax.scan(segment, y0, (firsts, jnp.asarray(gaps, jnp.int32)))[1]


def _zero_tangent(x: Any) -> Any:
    if jnp.issubdtype(x.dtype, jnp.floating):
        return jnp.zeros_like(x)
    return np.zeros(x.shape, jax.dtypes.float0)
