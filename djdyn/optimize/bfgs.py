"""Broyden, Fletcher, Goldfarb and Shanno's method, with a search that weighs slopes."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Bool, Float, PyTree

from ..typing import Scalar


ENOUGH, FLATTER = 1e-4, 0.9  # of the first slope: decrease, and slope at the end
NEARER, LONGER = 1.5, 3.0  # times a step that still falls
FARTHER = 3.0  # times the step before: no further is looked at first
NARROW = 1e-3  # of how far it is: a bracket with no flatter slope in it
NOWHERE = 1e-9  # a step that is none


class LineSearch(eqx.Module):
    """Where a line is looked at, and what is known of it."""

    t: Scalar
    low: Scalar  # too short
    high: Scalar  # too long, or infinite
    f_low: Scalar
    slope_low: Scalar


class BFGSState(eqx.Module):
    """The last point that was taken, and the line from it."""

    first: Bool[Array, ""]
    f: Scalar
    g: Float[Array, " k"]
    B: Float[Array, "k k"]
    along: Float[Array, " k"]
    search: LineSearch
    updates: Scalar
    aux: Any
    ended: Bool[Array, ""]


def _opened(f: Array, slope: Array, t: Array) -> LineSearch:
    zero = jnp.zeros_like(f)
    return LineSearch(t, zero, zero + jnp.inf, f, slope)


class BFGS(optx.AbstractMinimiser):
    r"""Steps $-B^{-1}g$, where $B$ learns from every pair of points; one gradient each.

    A step $t$ along it is taken where the cost has fallen and the slope is flatter,
    $f(t) \le f + c_1 t f'$ and $f'(t) \ge c_2 f'$; else the bracket is narrowed. With
    these two conditions $B$ stays positive definite, and the method finds least values
    at kinks too, such as peaks over time have (Lewis and Overton, *Nonsmooth
    optimization via quasi-Newton methods*, 2013). Before a jump no slope is flatter: a
    step goes as far as that. No line is looked at first beyond three times the step
    before: walls are no farther away than they were. The method ends where a whole step
    is short and promises little, $-g^T p/2$, or where no step falls. The first step
    goes down the gradient by `reach`.

    Penalties $p$ in the cost are stiff, and all that is soft would have to be learned
    in steps that they bear. If they and their gradient are known at the start, in
    `options` as `penalties`, their curvature is taken to be $\nabla p \nabla p^T/2p$,
    as if their root were linear, and `reach` is for the rest.

    Bounds, in `options` as `lower` and `upper`, are kept at every look: the step $p$ is
    the least of $g^T p + p^T B p/2$ within them (Nocedal and Wright, *Numerical
    Optimization*, 2006, 16.5 and 18).
    """

    rtol: Any
    atol: Any
    reach: Any = 1.0
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
    ) -> BFGSState:
        del fn, args, options, tags
        f, no = jnp.zeros((), f_struct.dtype), jnp.array(False)
        aux = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), aux_struct)
        B = jnp.eye(len(y), dtype=y.dtype)
        still = jnp.zeros_like(y)
        return BFGSState(~no, f, still, B, still, _opened(f, f, f + 1), f, aux, no)

    def step(
        self,
        fn: Callable,
        y: Array,
        args: Any,
        options: dict[str, Any],
        state: BFGSState,
        tags: frozenset[object],
    ) -> tuple[Array, BFGSState, Any]:
        """Looks at one more point; `y` moves where it is taken."""
        del tags
        everywhere = jnp.full_like(y, jnp.inf)
        lower = options.get("lower", -everywhere)
        upper = options.get("upper", everywhere)
        line = state.search
        at = jnp.clip(y + line.t * state.along, lower, upper)
        look = jax.value_and_grad(lambda y: fn(y, args), has_aux=True)
        (f, aux), g = look(at)
        slope, slope_at = state.g @ state.along, g @ state.along
        fallen = f <= state.f + ENOUGH * line.t * slope
        longest = jnp.min(_until(state.along, lower - y, upper - y), initial=jnp.inf)
        flatter = (slope_at >= FLATTER * slope) | (line.t >= longest)
        taken = state.first | (fallen & (flatter | (line.t == line.low)))
        B, updates = _learned(state, at - y, g - state.g)
        p, push = options.get("penalties", (jnp.zeros_like(f), jnp.zeros_like(g)))
        soft = jnp.where(jnp.any(g != push), g - push, jnp.where(jnp.any(g != 0), g, 1))
        begin = jnp.linalg.norm(soft) / self.reach * jnp.eye(len(y), dtype=g.dtype)
        begin = begin + jnp.outer(push, push) / jnp.where(p > 0, 2 * p, jnp.inf)
        B = jnp.where(state.first, begin, B)
        updates = jnp.where(state.first & (p > 0), 1.0, updates)
        ahead = within(B, g, lower - at, upper - at)
        promised, size = -g @ ahead / 2, self.atol + self.rtol * self.norm(at)
        ended = (promised <= self.rtol * jnp.abs(f)) & (self.norm(ahead) <= size)
        far, whole = FARTHER * jnp.linalg.norm(at - y), jnp.linalg.norm(ahead)
        short = ~state.first & (whole > far)
        t = jnp.where(short, far / jnp.where(short, whole, 1.0), 1.0)
        no, line_ahead = jnp.array(False), _opened(f, g @ ahead, t)
        moved = BFGSState(no, f, g, B, ahead, line_ahead, updates, aux, ended)
        line = _narrowed(line, fallen, f, slope_at, longest)
        back = line.high - line.low < NARROW * line.low
        line = eqx.tree_at(lambda s: s.t, line, jnp.where(back, line.low, line.t))
        at_fields = lambda s: (s.search, s.ended)
        stayed = eqx.tree_at(at_fields, state, (line, line.high < NOWHERE))
        new = jax.tree.map(lambda a, b: jnp.where(taken, a, b), moved, stayed)
        return jnp.where(taken, at, y), new, new.aux

    def terminate(
        self,
        fn: Callable,
        y: Array,
        args: Any,
        options: dict[str, Any],
        state: BFGSState,
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
        state: BFGSState,
        tags: frozenset[object],
        result: optx.RESULTS,
    ) -> tuple[Array, Any, dict[str, Any]]:
        del fn, args, options, state, tags, result
        return y, aux, {}


def _learned(state: BFGSState, s: Array, d: Array) -> tuple[Array, Array]:
    """The Hessian with one more pair; the first gives its size, if none is known."""
    sd = s @ d
    fits = ~state.first & (sd > 0)
    safe = jnp.where(fits, sd, 1.0)
    size = (d @ d) / safe * jnp.eye(len(s), dtype=s.dtype)
    B = jnp.where(fits & (state.updates == 0), size, state.B)
    Bs = B @ s
    bent = jnp.where(fits, s @ Bs, 1.0)
    new = B - jnp.outer(Bs, Bs) / bent + jnp.outer(d, d) / safe
    return jnp.where(fits, new, state.B), state.updates + fits


def _until(p: Array, low: Array, high: Array) -> Float[Array, " k"]:
    """How far one may go along `p` before each entry leaves its bounds."""
    room = jnp.where(p > 0, high, low)
    return jnp.where(p != 0, room / jnp.where(p != 0, p, 1.0), jnp.inf)


def within(B: Array, g: Array, low: Array, high: Array) -> Float[Array, " k"]:
    r"""The least of $g^T p + p^T B p/2$ between bounds, which hold zero.

    By an active set: entries are added where they meet a bound, and the one that pulls
    most from its bound is let go, until none does.
    """
    k = len(g)

    def go(carry: tuple) -> tuple:
        p, on, _, count = carry
        free = ~on
        both = free[:, None] & free[None, :]
        r = jnp.where(free, g + B @ p, 0.0)
        step = -jnp.linalg.solve(jnp.where(both, B, jnp.eye(k)), r)
        until = jnp.where(free, _until(step, low - p, high - p), jnp.inf)
        meets = jnp.argmin(until)
        share = jnp.clip(until[meets], 0.0, 1.0)
        p = jnp.clip(p + share * step, low, high)
        met = share < 1
        pull = g + B @ p
        pulled = jnp.where(on, jnp.where(p <= low, -pull, pull), -jnp.inf)
        worst = jnp.argmax(pulled)
        leaves = ~met & (pulled[worst] > 0)
        each = jnp.arange(k)
        on = jnp.where(met, on | (each == meets), on & ~(leaves & (each == worst)))
        return p, on, ~met & ~leaves, count + 1

    out = ((low >= 0) & (g > 0)) | ((high <= 0) & (g < 0))
    begin = (jnp.zeros_like(g), out, jnp.array(False), 0)
    some = lambda carry: ~carry[2] & (carry[3] < 10 * k)
    return jax.lax.while_loop(some, go, begin)[0]


def _narrowed(
    line: LineSearch, fallen: Array, f: Array, slope: Array, longest: Array
) -> LineSearch:
    """The bracket after a look, and where to look next.

    That is the least of the cubic through values and slopes of the look and of the
    bracket's near end (Nocedal and Wright, 2006, 3.59).
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
    far = jnp.minimum(line.low + jnp.clip(further, NEARER, LONGER) * wide, longest)
    onward = jnp.where(jnp.isinf(line.high), far, (t + line.high) / 2)
    pick = lambda a, b: jnp.where(fallen, a, b)
    return LineSearch(
        pick(onward, back),
        pick(t, line.low),
        pick(line.high, t),
        pick(f, line.f_low),
        pick(slope, line.slope_low),
    )
