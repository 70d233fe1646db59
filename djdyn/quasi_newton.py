"""Broyden, Fletcher, Goldfarb and Shanno's method, with a search that weighs slopes."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Bool, Float, PyTree

from ._types import Scalar


ENOUGH, FLATTER = 1e-4, 0.9  # of the first slope: decrease, and slope at the end
NEARER, LONGER = 1.5, 3.0  # times a step that still falls
NARROW = 1e-9  # a bracket that holds nothing


class Search(eqx.Module):
    """Where a line is looked at, and what is known of it."""

    t: Scalar
    low: Scalar  # too short
    high: Scalar  # too long, or infinite
    f_low: Scalar
    slope_low: Scalar


class Memory(eqx.Module):
    """The last point that was taken, and the line from it."""

    first: Bool[Array, ""]
    f: Scalar
    g: Float[Array, " k"]
    H: Float[Array, "k k"]
    along: Float[Array, " k"]
    search: Search
    updates: Scalar
    aux: Any
    ended: Bool[Array, ""]


def _opened(f: Array, slope: Array) -> Search:
    one = jnp.ones_like(f)
    return Search(one, 0 * one, jnp.inf * one, f, slope)


class BFGS(optx.AbstractMinimiser):
    r"""Steps $-Hg$, where $H$ learns from every pair of points; one gradient a step.

    A step $t$ along it is taken where the cost has fallen and the slope is flatter,
    $f(t) \le f + c_1 t f'$ and $f'(t) \ge c_2 f'$; else the bracket is narrowed. With
    these two conditions $H$ stays positive definite, and the method finds least values
    at kinks too, such as peaks over time have (Lewis and Overton, *Nonsmooth
    optimization via quasi-Newton methods*, 2013). It ends where a whole step is short
    and promises little, $g^T H g/2$, or where the bracket is empty. The first step goes
    down the gradient by `reach`.
    """

    rtol: Any
    atol: Any
    reach: Any = 0.3
    norm: Callable[[PyTree], Scalar] = eqx.field(static=True, default=optx.max_norm)

    def init(
        self,
        fn: Callable,
        y: Array,
        args: Any,
        options: dict[str, Any],
        f_struct: Any,
        aux_struct: Any,
        tags: frozenset[object],
    ) -> Memory:
        del fn, args, options, tags
        f, no = jnp.zeros((), f_struct.dtype), jnp.array(False)
        aux = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), aux_struct)
        H = jnp.eye(len(y), dtype=y.dtype)
        still = jnp.zeros_like(y)
        return Memory(~no, f, still, H, still, _opened(f, f), f, aux, no)

    def step(
        self,
        fn: Callable,
        y: Array,
        args: Any,
        options: dict[str, Any],
        state: Memory,
        tags: frozenset[object],
    ) -> tuple[Array, Memory, Any]:
        """Looks at one more point; `y` moves where it is taken."""
        del options, tags
        at, line = y + state.search.t * state.along, state.search
        look = jax.value_and_grad(lambda y: fn(y, args), has_aux=True)
        (f, aux), g = look(at)
        slope, slope_at = state.g @ state.along, g @ state.along
        fallen = f <= state.f + ENOUGH * line.t * slope
        taken = state.first | (fallen & (slope_at >= FLATTER * slope))
        H, updates = _learned(state, at - y, g - state.g)
        steep = jnp.linalg.norm(jnp.where(jnp.any(g != 0), g, 1.0))
        H = jnp.where(state.first, self.reach / steep * jnp.eye(len(y)), H)
        ahead = -H @ g
        promised, size = -g @ ahead / 2, self.atol + self.rtol * self.norm(at)
        ended = (promised <= self.rtol * jnp.abs(f)) & (self.norm(ahead) <= size)
        no, line_ahead = jnp.array(False), _opened(f, g @ ahead)
        moved = Memory(no, f, g, H, ahead, line_ahead, updates, aux, ended)
        narrower = _narrowed(line, fallen, f, slope_at)
        empty = narrower.high - narrower.low < NARROW
        at_fields = lambda s: (s.search, s.ended)
        stayed = eqx.tree_at(at_fields, state, (narrower, empty))
        new = jax.tree.map(lambda a, b: jnp.where(taken, a, b), moved, stayed)
        return jnp.where(taken, at, y), new, new.aux

    def terminate(
        self,
        fn: Callable,
        y: Array,
        args: Any,
        options: dict[str, Any],
        state: Memory,
        tags: frozenset[object],
    ) -> tuple[Bool[Array, ""], optx.RESULTS]:
        del fn, y, args, options, tags
        return state.ended, optx.RESULTS.successful

    def postprocess(
        self,
        fn: Callable,
        y: Array,
        aux: Any,
        args: Any,
        options: dict[str, Any],
        state: Memory,
        tags: frozenset[object],
        result: optx.RESULTS,
    ) -> tuple[Array, Any, dict[str, Any]]:
        del fn, args, options, state, tags, result
        return y, aux, {}


def _learned(state: Memory, s: Array, d: Array) -> tuple[Array, Array]:
    """The inverse Hessian with one more pair; the first pair gives its size too."""
    sd = s @ d
    fits = ~state.first & (sd > 0)
    safe = jnp.where(fits, sd, 1.0)
    one = jnp.eye(len(s), dtype=s.dtype)
    size = safe / jnp.maximum(d @ d, 1e-300)
    V = one - jnp.outer(s, d) / safe
    H = jnp.where(state.updates == 0, size * one, state.H)
    new = V @ H @ V.T + jnp.outer(s, s) / safe
    return jnp.where(fits, new, state.H), state.updates + fits


def _narrowed(line: Search, fallen: Array, f: Array, slope: Array) -> Search:
    """The bracket after a look, and where to look next.

    That is the least of the cubic through values and slopes of the look and of the
    bracket's near end (Nocedal and Wright, *Numerical Optimization*, 2006, 3.59).
    """
    t, wide = line.t, line.t - line.low
    d1 = line.slope_low + slope - 3 * (f - line.f_low) / wide
    square = d1**2 - line.slope_low * slope
    d2 = jnp.sqrt(jnp.maximum(square, 0.0))
    bottom = slope - line.slope_low + 2 * d2
    known = (square >= 0) & (bottom != 0)
    share = 1 - (slope + d2 - d1) / jnp.where(known, bottom, 1.0)  # of the way from low
    back = line.low + jnp.where(known, jnp.clip(share, 0.1, 0.9), 0.5) * wide
    further = jnp.where(known & (share > 1), share, LONGER)
    far = line.low + jnp.clip(further, NEARER, LONGER) * wide
    onward = jnp.where(jnp.isinf(line.high), far, (t + line.high) / 2)
    pick = lambda a, b: jnp.where(fallen, a, b)
    return Search(
        pick(onward, back),
        pick(t, line.low),
        pick(line.high, t),
        pick(f, line.f_low),
        pick(slope, line.slope_low),
    )
