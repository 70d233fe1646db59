"""Sampled controllers: their states one period on, and runs with a zero-order hold."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jaxtyping import Array, Float
from scipy.sparse.csgraph import connected_components

from ...kernels import depends, eliminate_dead_code, lift_constants
from .registry import Integrator
from .solution import advance


def needed(fn: Callable[[Array], Array], x: Array) -> Callable[[Array], Array]:
    """The same function without what its result does not depend on.

    Outputs of controllers are much dearer than their rates, and their derivatives more
    so; a compiler would drop them only after they were traced.
    """
    only = jaxpr_as_fun(eliminate_dead_code(jax.make_jaxpr(fn)(x)))
    return lambda x: only(x)[0]


SQUARINGS, TERMS = 24, 13


def sampled_step(rates: Callable[[Array], Array], s: Array, period: float) -> Array:
    r"""States of controllers one period on, their inputs held.

    $s + \int_0^T e^{A\tau}d\tau\,\dot s$ with $A = \partial\dot s/\partial s$: exact
    for linear controllers, and stable for filters faster than the samples. States that
    have nothing to do with each other, such as those of different joints, are separate.
    """
    if not s.size:
        return s
    rate, A = rates(s), jax.jacfwd(rates)(s)
    for block in _apart(jax.make_jaxpr(rates)(s), s.size):
        X = jnp.concatenate([A[block][:, block], rate[block, None]], 1)
        s = s.at[block].add(_grown(X * (period / 2**SQUARINGS)))
    return s


def _grown(X: Float[Array, "n m"]) -> Float[Array, " n"]:
    """The last column of $e^X - 1$, doubled `SQUARINGS` times.

    By Taylor's series and doublings that keep small steps exact.
    """
    X = jnp.pad(X, ((0, 1), (0, 0)))
    total = term = X
    for k in range(2, TERMS + 1):
        term = term @ X / k
        total = total + term
    for _ in range(SQUARINGS):
        total = 2 * total + total @ total
    return total[:-1, -1]


def _apart(rates: ClosedJaxpr, n: int) -> list[np.ndarray]:
    """Sets of states whose rates depend on none of another set; all, if unknown."""
    tied = depends(lift_constants(rates)[0])
    if tied is None:
        return [np.arange(n)]
    count, label = connected_components(tied, directed=False)
    return [np.flatnonzero(label == k) for k in range(count)]


def solve_sampled(
    field: Any,
    y0: Array,
    times: Array,
    period: float,
    control_delay: bool,
    integrator: Integrator,
    jumps: Array | None,
) -> tuple[Array, Array, Array, Array, Array, dict]:
    """Solve with a zero-order hold: controllers step at samples, the rest in between.

    Returns states at the samples, steps, success, the last time and state reached, and
    what controllers sent.
    """

    def interval(carry: tuple, span: Array) -> tuple[tuple, tuple]:
        flat, ok, sent = carry
        stepped, sampled = field.sample(span[0], flat, period)
        acting = field.hold(sent if control_delay else sampled)
        end, done, count = advance(
            integrator, acting, stepped, span[0], span[1], period, jumps
        )
        good = ok & done
        end = jnp.where(good, end, flat)  # a failed lane stands still at its last state
        return (end, good, sampled), (flat, sampled, count, good)

    spans = jnp.stack([times[:-1], times[1:]], 1)
    start = (y0, jnp.array(True), field.outputs(times[0], y0))
    (last, _, _), (flats, sampled, steps, good) = jax.lax.scan(interval, start, spans)
    flats = jnp.concatenate([flats, last[None]])
    sampled = jax.tree.map(lambda x: jnp.concatenate([x, x[-1:]]), sampled)
    reached = jnp.concatenate([jnp.array([True]), good])
    flats = jnp.where(reached[:, None], flats, jnp.inf)
    done = jnp.all(good)
    t_end = jnp.where(done, times[-1], times[jnp.argmin(good)])
    return flats, jnp.sum(steps), done, t_end, last, sampled
