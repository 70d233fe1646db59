"""Coordinates and speeds that close all loops, and the freedoms that are left."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ..typing import known
from .closures import least, repeated_solve
from .kinematics import forward_kinematics
from .loop_rows import loop_rows
from .loops import row_counts
from .mechanism import Mechanism


MAX_STEPS = 60
LONGEST_STEP = 0.5  # rad or m, of the fastest coordinate
NUDGES = (0.1, 0.3, 0.6, 1.0)  # rad or m, about a guess from which loops do not close
CLOSED = 0.6  # a gap of this power of the rounding error counts as closed
RANK_TOLERANCE = 1e-8  # of the largest singular value
RANK_ROUNDING = 1e3  # and at least so many rounding errors


class AssemblyError(ValueError):
    """Loops that cannot be closed from a guess."""


class Freedoms(NamedTuple):
    """Degrees of freedom: speeds, less the rank of the loops' rows."""

    speeds: int
    rows: int
    rank: int

    @property
    def degrees(self) -> int:
        """Degrees of freedom."""
        return self.speeds - self.rank


def degrees_of_freedom(
    mechanism: Mechanism, q: Float[Array, " nq"] | None = None, t: ArrayLike = 0.0
) -> Freedoms:
    """Return how many speeds there are, and how many loops take away at `q`.

    Without `q`, where the loops close from the undisplaced mechanism. In a singular
    position there are more freedoms than nearby.
    """
    if not mechanism.loops:
        return Freedoms(mechanism.nv, 0, 0)
    q = assemble(mechanism, t=t) if q is None else q
    J = np.asarray(loop_rows(forward_kinematics(mechanism, q, t=t)).jacobian)
    size = np.linalg.norm(J, axis=1, keepdims=True)
    values = np.linalg.svd(J / np.where(size > 0, size, 1.0), compute_uv=False)
    least = max(RANK_TOLERANCE, RANK_ROUNDING * float(np.finfo(J.dtype).eps))
    rank = int(np.sum(values > least * values.max(initial=0.0)))
    return Freedoms(mechanism.nv, len(J), rank)


def assemble(
    mechanism: Mechanism,
    q: Float[Array, " nq"] | None = None,
    *,
    hold: Sequence[str] = (),
    t: ArrayLike = 0.0,
) -> Float[Array, " nq"]:
    """Return the coordinates near `q` that close all loops.

    **Arguments:**

    - `q`: a guess; by default the undisplaced mechanism.
    - `hold`: joints that keep their coordinates.
    - `t`: time, for what is prescribed.

    Differentiable in both modes. Raises `AssemblyError`, which names the loop that
    stays open, unless inside `jit` or `grad`.

    !!! example

        ```python
        q = djdyn.assemble(mechanism, q_guess, hold=["crank"])
        ```
    """
    q = mechanism.q0() if q is None else jnp.asarray(q, dtype=float)
    free, t = _free(mechanism, hold), jnp.asarray(t, q.dtype)
    found, gap = _close(mechanism, q, free, t)
    is_open = lambda gap: not np.max(np.abs(gap), initial=0.0) <= _tolerance(gap)
    if not known(gap) or not is_open(gap):
        return found
    nudge = np.random.default_rng(0).standard_normal((len(NUDGES), mechanism.nv))
    for size, step in zip(NUDGES, nudge, strict=True):  # the guess may be singular
        start = q + mechanism.q_dot(q, free * jnp.asarray(size * step, q.dtype))
        again, left = _close(mechanism, start, free, t)
        if not is_open(left):
            return again
    raise AssemblyError(_widest(mechanism, gap, hold, "close", "gap", "m or rad"))


@eqx.filter_jit
def _close(
    mechanism: Mechanism, q: Array, free: Array, t: Array
) -> tuple[Array, Array]:
    """Return closed coordinates and the gaps before the last of Newton's steps."""

    def gap_and_step(mechanism: Mechanism, q: Array) -> tuple[Array, Array]:
        rows = loop_rows(forward_kinematics(mechanism, q, t=t))
        return rows.gap, _least_motion(rows.jacobian, free, rows.gap)

    guess = jax.lax.stop_gradient(q)
    arrays, static = eqx.partition(mechanism, eqx.is_array)
    fixed = eqx.combine(jax.lax.stop_gradient(arrays), static)

    def newton(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        i, q, _ = carry
        gap, step = gap_and_step(fixed, q)
        far = jnp.max(jnp.abs(step), initial=0.0)
        step = step / jnp.maximum(1.0, far / LONGEST_STEP)
        return i + 1, q + fixed.q_dot(q, step), jnp.max(jnp.abs(gap), initial=0.0)

    small = 4 * float(jnp.finfo(q.dtype).eps)
    going = lambda carry: (carry[0] < MAX_STEPS) & (carry[2] > small)
    start = (jnp.array(0), guess, jnp.array(jnp.inf, q.dtype))
    _, found, _ = jax.lax.while_loop(going, newton, start)
    # One more, of the mechanism itself: its derivative is the implicit function's.
    found = found + (q - guess)
    gap, step = gap_and_step(mechanism, found)
    return found + mechanism.q_dot(found, step), gap


def close_start(
    mechanism: Mechanism,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    held_q: Sequence[str] = (),
    held_v: Sequence[str] = (),
    t: ArrayLike = 0.0,
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """Return coordinates and speeds that the loops allow, near those given.

    **Arguments:**

    - `held_q`, `held_v`: joints whose coordinates and speeds are to stay.
    """
    q = assemble(mechanism, q, hold=held_q, t=t)
    v, rate = _close_speeds(mechanism, q, v, _free(mechanism, held_v), jnp.asarray(t))
    if known(rate) and not np.max(np.abs(rate), initial=0.0) <= _tolerance(rate):
        said = _widest(mechanism, rate, held_v, "stay closed", "rate", "m/s or rad/s")
        raise AssemblyError(f"initial speeds: {said}")
    return q, v


@eqx.filter_jit
def _close_speeds(
    mechanism: Mechanism, q: Array, v: Array, free: Array, t: Array
) -> tuple[Array, Array]:
    rows = loop_rows(forward_kinematics(mechanism, q, v, t))
    step = _least_motion(rows.jacobian, free, rows.rate)
    return v + step, rows.rate + rows.jacobian @ step


def open_loop(
    mechanism: Mechanism, q: Array, v: Array, t: ArrayLike = 0.0
) -> str | None:
    """Return what is wrong with a state whose loops are open, in a sentence."""
    found = gaps(mechanism, q, v, jnp.asarray(t, q.dtype))
    return why_open(mechanism, *map(np.asarray, found))


def why_open(mechanism: Mechanism, gap: np.ndarray, rate: np.ndarray) -> str | None:
    """Return which loop is open, in a sentence, or None if all are closed."""
    if not np.max(np.abs(gap), initial=0.0) <= _tolerance(gap):
        return _widest(mechanism, gap, (), "close", "gap", "m or rad")
    if not np.max(np.abs(rate), initial=0.0) <= _tolerance(rate):
        return _widest(mechanism, rate, (), "stay closed", "rate", "m/s or rad/s")
    return None


@eqx.filter_jit
def gaps(mechanism: Mechanism, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
    """Return the gaps of all loops, and their rates."""
    rows = loop_rows(forward_kinematics(mechanism, q, v, t))
    return rows.gap, rows.rate


def _tolerance(gap: Array | np.ndarray) -> float:
    return float(jnp.finfo(gap.dtype).eps) ** CLOSED


def _widest(
    mechanism: Mechanism,
    gap: Array | np.ndarray,
    hold: Sequence[str],
    verb: str,
    what: str,
    in_: str,
) -> str:
    """Return a sentence that names the loop with the largest entry of `gap`."""
    counts = [sum(row_counts(loop)) for loop in mechanism.loops]
    worst = int(np.nanargmax(np.abs(np.asarray(gap))))
    loop = mechanism.loops[int(np.searchsorted(np.cumsum(counts), worst, "right"))]
    held = f" with {', '.join(hold)} held" if hold else ""
    size = float(np.abs(gap[worst]))
    return f"loop {loop.name!r} does not {verb}{held}: a {what} of {size:.3g} {in_}"


def _least_motion(J: Array, free: Array, gap: Array) -> Array:
    """Return the smallest change of the free coordinates that closes gaps."""
    K = free[:, None] * J.T
    S = J @ K
    return -K @ repeated_solve(S, gap, least(S))


def _free(mechanism: Mechanism, hold: Sequence[str]) -> Array:
    """One for each speed that may change, zero for those that are held."""
    free = np.ones(mechanism.nv)
    for name in hold:
        free[mechanism.v_slice(name)] = 0.0
    return jnp.asarray(free, mechanism.gravity_W.dtype)
