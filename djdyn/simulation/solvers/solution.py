"""Runs of a vector field by an integrator, with the derivatives that they should have.

A run that fails has a gradient of zero, and one through impacts takes steps that
resolve a tangent too.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from .registry import ADAPTIVE_ONLY, EXPLICIT, Integrator
from .tangent_control import stop_gradient


@eqx.filter_checkpoint  # less to trace, less to store
def _rate(t: Any, flat: Array, field: Callable[[Any, Array], Array]) -> Array:
    return field(t, flat)


@eqx.filter_custom_jvp
def _finite_rate(t: Any, flat: Array, field: Callable[[Any, Array], Array]) -> Array:
    """Return the rates; where they are not finite their derivatives are zero.

    A linear solve with what is not finite, in the derivative of Newton's method, would
    end all lanes of a batch.
    """
    return _rate(t, flat, field)


@_finite_rate.def_jvp
def _(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    good = jnp.all(jnp.isfinite(_rate(*primals)))
    gated = jax.tree.map(lambda dx: jnp.where(good, dx, 0), tangents)
    rate, slope = eqx.filter_jvp(_rate, primals, gated)
    return rate, jnp.where(good, slope, 0)


def _solution(integrator: Integrator, field: Any, *how: Any, ends: Any = None) -> tuple:
    """Return saved states, and end time, last state, success and count of steps."""
    given = (integrator, field, *how, ends)
    # A rule of derivatives must not close over what is differentiated.
    if integrator.adjoint == "reverse" and field.is_data:
        return _shielded(given)
    return _diffrax_solution(given)


def _diffrax_solution(given: tuple) -> tuple:
    integrator, field, t0, t1, y0, *rest, ends = given
    implicit = integrator.solver in ADAPTIVE_ONLY and field.is_data
    rate = _finite_rate if implicit else _rate
    sol = integrator.run(rate, t0, t1, y0, field, *rest, ends=ends)
    (*_, (t_end,)), (*flats, (last,)) = sol.ts, sol.ys  # pyright: ignore
    done = integrator.done(sol.result, t_end, t1)
    return flats, t_end, last, done, sol.stats["num_steps"]


@eqx.filter_custom_vjp
def _shielded(given: tuple) -> tuple:
    """Return a solution whose gradient is zero where it does not reach the end.

    Without this rule a state that overflows makes it NaN, and with it the gradients of
    whatever other lanes of a batch share.
    """
    return _diffrax_solution(given)


@_shielded.def_fwd
def _(perturbed: Any, given: tuple) -> tuple:
    del perturbed

    def split(given: tuple) -> tuple:
        flats, t_end, last, done, steps = _diffrax_solution(given)
        return (flats, t_end, last), (done, steps)

    found, pull_back, (done, steps) = eqx.filter_vjp(split, given, has_aux=True)
    finite = [jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(found)]
    good = done & jnp.all(jnp.stack(finite))
    return (*found, done, steps), (found, pull_back, good)


@_shielded.def_bwd
def _(residuals: tuple, grad_out: tuple, perturbed: Any, given: tuple) -> Any:
    del perturbed, given
    found, pull_back, good = residuals
    grads = jax.tree.map(
        lambda x, g: jnp.zeros_like(x) if g is None else g, found, grad_out[:3]
    )
    (slopes,) = pull_back(grads)
    return jax.tree.map(lambda g: jnp.where(good, g, 0), slopes)


def _along_resolved_steps(integrator: Integrator, field: Any, *how: Any) -> tuple:
    """Return a run along steps that resolve a tangent too.

    The steps are found in a run of their own, so that a reverse sweep, which rounds
    differently, cannot choose others.
    """
    t0, t1, y0, saves, most, jumps, _ = how
    stopped = jax.tree.map(stop_gradient, (integrator, field, t0, t1, y0, saves, jumps))
    by, rate_of, t0, t1, y0, saves, jumps = stopped
    ends, found = by.step_ends(_rate, t0, t1, y0, rate_of, saves, most, jumps)
    flats, t_end, last, done, steps = _solution(integrator, field, *how, ends=ends)
    return flats, t_end, last, done & found, steps


@eqx.filter_custom_jvp
def _resolved(*how: Any) -> tuple:
    """Return a run whose steps, where it is differentiated, resolve a tangent too."""
    return _solution(*how)


@_resolved.def_jvp
def _(primals: tuple, tangents: tuple) -> tuple:
    return eqx.filter_jvp(_along_resolved_steps, primals, tangents)


def _solver_of(integrator: Integrator, field: Any) -> Callable[..., tuple]:
    """Return the function that runs a field, by what its gradient needs."""
    adaptive = integrator.dt is None and integrator.solver in EXPLICIT
    if not (adaptive and field.has_impacts):
        return _solution
    # A rule of derivatives must not close over what is differentiated.
    return _resolved if field.is_data else _along_resolved_steps


def solve_between(
    integrator: Integrator, field: Any, y0: Array, times: Array, span: Any, jumps, meter
) -> tuple[Array, Array, Array, Array, Array]:
    """Return states at `times`, steps, success, and the last time and state reached."""
    t0, t1 = span
    most = integrator.steps(t0, t1)
    solution = _solver_of(integrator, field)
    (flats,), t_end, last, done, steps = solution(
        integrator, field, t0, t1, y0, times, most, jumps, meter
    )
    return flats, steps, done, t_end, last


def advance(
    integrator: Integrator,
    field: Any,
    y0: Array,
    t0: Any,
    t1: Any,
    length: float,
    jumps,
) -> tuple[Array, Array, Array]:
    """Return the state at `t1`, `length` after `t0`, success, and the steps taken."""
    most = integrator.steps(0.0, length)
    solution = _solver_of(integrator, field)
    _, _, end, done, steps = solution(
        integrator, field, t0, t1, y0, None, most, jumps, False
    )
    return end, done & jnp.all(jnp.isfinite(end)), steps
