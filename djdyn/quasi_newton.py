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
LONGER = 3.0  # than a step that still falls
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
    and promises little, $g^T H g/2$, or where the bracket is empty.
    """

    rtol: Any
    atol: Any
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
    size = jnp.where(
        fits & (state.updates == 0), safe / jnp.maximum(d @ d, 1e-300), 1.0
    )
    V = jnp.eye(len(s), dtype=s.dtype) - jnp.outer(s, d) / safe
    new = V @ (size * state.H) @ V.T + jnp.outer(s, s) / safe
    return jnp.where(fits, new, state.H), state.updates + fits


def _narrowed(line: Search, fallen: Array, f: Array, slope: Array) -> Search:
    """The bracket after a look, and where to look next."""
    t, wide = line.t, line.t - line.low
    # Too long: least of the parabola through the near end, if it is not too close by.
    rise = 2 * (f - line.f_low - line.slope_low * wide)
    least = -line.slope_low * wide**2 / jnp.where(rise > 0, rise, 1.0)
    share = jnp.where(rise > 0, least / jnp.where(wide > 0, wide, 1.0), 0.5)
    back = line.low + jnp.clip(share, 0.1, 0.5) * wide
    onward = jnp.where(jnp.isinf(line.high), LONGER * t, (t + line.high) / 2)
    pick = lambda a, b: jnp.where(fallen, a, b)
    return Search(
        pick(onward, back),
        pick(t, line.low),
        pick(line.high, t),
        pick(f, line.f_low),
        pick(slope, line.slope_low),
    )
