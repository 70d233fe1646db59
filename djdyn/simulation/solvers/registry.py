"""Solvers by name: all numerical choices, no physics."""

from collections.abc import Callable
from functools import partial
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool

from ...typing import Scalar, check_values, known, si
from .methods import RK4, Rodas4, Ros2, SemiImplicit
from .step_times import ExactSaves, TabulatedSteps
from .tangent_control import (
    larger_error,
    stop_gradient,
    tangent_rate,
    tangent_tolerances,
    with_tangent,
)


SOLVERS: dict[str, Callable[[], dfx.AbstractSolver]] = {
    "tsit5": dfx.Tsit5,  # not stiff: mechanisms, elastic cables
    "dopri8": dfx.Dopri8,  # not stiff, tight tolerances
    "kvaerno3": dfx.Kvaerno3,  # stiff, loose tolerances
    "kvaerno5": dfx.Kvaerno5,  # stiff: fluid volumes, hard stops, strong damping
    "rodas4": Rodas4,  # stiff, with fixed steps and in kernels too
    "rk4": RK4,
    "semi_implicit": SemiImplicit,
    "ros2": Ros2,  # stiff, fixed steps: elastic cables, fluid volumes
}


def _dense(tableau: dfx.ButcherTableau) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`A`, `b` and `c`, without a last stage that only serves the error estimate."""
    b, n = tableau.b_sol, np.max(np.flatnonzero(tableau.b_sol)) + 1
    A = np.zeros((len(b), len(b)))
    for i, row in enumerate(tableau.a_lower, start=1):
        A[i, : len(row)] = row
    return A[:n, :n], b[:n], np.concatenate([[0.0], tableau.c])[:n]


TABLEAUS = {"rk4": _dense(RK4.tableau), "tsit5": _dense(dfx.Tsit5.tableau)}
ADJOINTS: dict[str, Callable[[], dfx.AbstractAdjoint]] = {
    "reverse": dfx.RecursiveCheckpointAdjoint,  # jax.grad, jax.vjp, jax.jacrev
    "forward": dfx.ForwardMode,  # jax.jvp, jax.jacfwd
    "direct": dfx.DirectAdjoint,  # both; slow
}
FIXED_ONLY = ("rk4", "semi_implicit", "ros2")
EXPLICIT = ("tsit5", "dopri8")  # gradients take steps that resolve a tangent
ADAPTIVE_ONLY = ("kvaerno3", "kvaerno5")  # their Newton iterations may fail


def equal_times(t0: Any, t1: Any, steps: int, dtype: Any) -> Array:
    """The times between `steps` equal steps, and both ends."""
    if known(t0, t1):  # in double precision, whatever the states have
        times = np.append(t0 + (t1 - t0) * (np.arange(steps) / steps), t1)
        return jnp.asarray(times, dtype)
    fraction = jnp.asarray(np.arange(steps) / steps, dtype)
    return jnp.append(t0 + (t1 - t0) * fraction, t1)


class Integrator(eqx.Module):
    """How a system is integrated. With `dt` the steps are fixed, else adaptive.

    The tolerances are arrays: changing them compiles nothing anew.
    """

    solver: str = eqx.field(static=True)
    dt: float | None = eqx.field(static=True)
    rtol: Scalar = eqx.field(converter=si("1", at_least=0.0))
    atol: Scalar = eqx.field(converter=si("", above=0.0))
    max_steps: int = eqx.field(static=True)
    adjoint: str = eqx.field(static=True)

    def __check_init__(self):
        check_values(self)
        if self.max_steps < 1:
            raise ValueError(f"max_steps must be at least one, got {self.max_steps}")
        for what, value, table in (
            ("solver", self.solver, SOLVERS),
            ("adjoint", self.adjoint, ADJOINTS),
        ):
            if value not in table:
                raise ValueError(
                    f"unknown {what} {value!r}; there are {', '.join(table)}"
                )
        if self.dt is not None and not self.dt > 0:
            raise ValueError(f"the step dt must be positive, got {self.dt}")
        if self.dt is None and self.solver in FIXED_ONLY:
            raise ValueError(f"solver {self.solver!r} has fixed steps: give dt")
        if self.dt is not None and self.solver in ADAPTIVE_ONLY:
            raise ValueError(f"solver {self.solver!r} has adaptive steps: give no dt")

    def steps(self, t0: float, t1: float) -> int:
        """The most steps that may be taken between two times."""
        if self.dt is None:
            return self.max_steps
        return int(np.ceil((t1 - t0) / self.dt * (1 - 1e-9))) + 1

    def resolution(self, t0, t1, dtype):
        """A span of time too short to tell two times apart."""
        return 64 * jnp.finfo(dtype).eps * jnp.maximum(abs(t0), abs(t1))

    def done(self, result: dfx.RESULTS, t: Scalar, t1: Any) -> Bool[Array, ""]:
        """Whether the end was reached; one rounding error before it is there."""
        there = t >= t1 - 2 * self.resolution(0.0, t1, t.dtype)
        return (result == dfx.RESULTS.successful) | there

    def run(self, field, t0, t1, y0, args, saves, max_steps, jumps, meter, ends=None):
        """Calls `diffrax.diffeqsolve` so that it never raises.

        The solution has the states at the times `saves`, if there are any, and at the
        end. Steps end at the times `ends` where these are given.
        """
        end = dfx.SubSaveAt(t1=True)
        subs = [end] if saves is None else [dfx.SubSaveAt(ts=saves), end]
        if self.dt is not None:
            ends = equal_times(t0, t1, max_steps - 1, y0.dtype)
        if ends is not None:
            steps: Any = TabulatedSteps(ends)
        else:
            tolerances = (self.rtol, self.atol)
            steps = self._adaptive(tolerances, None, t0, t1, y0.dtype, saves, jumps)
        return self._solve(field, t0, t1, y0, args, subs, steps, max_steps, meter)

    def step_ends(self, field, t0, t1, y0, args, saves, max_steps, jumps):
        """Return where adaptive steps end that resolve a tangent too, and success.

        The first time is the start; those that are not needed are the end. Nothing is
        differentiated.
        """
        tolerances = tangent_tolerances(self.rtol, self.atol, y0)
        how = (tolerances, larger_error, t0, t1, y0.dtype, saves, jumps)
        both, rate = with_tangent(y0), partial(tangent_rate, field)
        subs = [dfx.SubSaveAt(steps=True, fn=_time)]
        sol = self._solve(
            rate, t0, t1, both, args, subs, self._adaptive(*how), max_steps, False
        )
        (ends,) = sol.ts  # pyright: ignore
        last = jnp.max(jnp.where(jnp.isfinite(ends), ends, t0))
        start = jnp.asarray(t0, y0.dtype)[None]
        ends = jnp.concatenate([start, jnp.minimum(ends.astype(y0.dtype), t1)])
        done = self.done(sol.result, last, t1)
        return lax.stop_gradient(ends), done

    def _adaptive(self, tolerances, norm, t0, t1, dtype, saves, jumps):
        """Return the controller of adaptive steps."""
        least = self.resolution(t0, t1, dtype)
        rtol, atol = tolerances
        steps: Any = dfx.PIDController(
            rtol=rtol, atol=atol, dtmin=least, force_dtmin=False
        )
        if norm is not None:
            steps = eqx.tree_at(lambda s: s.norm, steps, norm)
        if saves is not None:
            steps = ExactSaves(steps, saves, least)  # pyright: ignore
        if jumps is not None:
            steps = dfx.ClipStepSizeController(steps, jump_ts=jumps)
        return steps

    def _solve(self, field, t0, t1, y0, args, subs, steps, max_steps, meter):
        return dfx.diffeqsolve(
            dfx.ODETerm(field),
            SOLVERS[self.solver](),
            t0,
            t1,
            None,
            y0,
            args=args,
            saveat=dfx.SaveAt(subs=subs),  # pyright: ignore
            stepsize_controller=steps,
            adjoint=ADJOINTS[self.adjoint](),
            max_steps=max_steps,
            throw=False,
            progress_meter=dfx.TqdmProgressMeter() if meter else dfx.NoProgressMeter(),
        )


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


def _time(t: Any, y: Array, args: Any) -> Array:
    del y, args
    return jnp.asarray(t)


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
