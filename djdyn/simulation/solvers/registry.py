"""Solvers by name: all numerical choices, no physics."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool

from ...typing import Scalar, check_values, known, si
from .projected import Projected
from .rodas4 import rosenbrock_step
from .ros2 import ros2_step
from .step_times import ExactSaves, TabulatedSteps
from .tangent_control import (
    larger_error,
    tangent_rate,
    tangent_tolerances,
    with_tangent,
)


class SemiImplicit(dfx.AbstractSolver):
    r"""Semi-implicit Euler: speeds first, then coordinates with the new speeds.

    $$v_1 = v_0 + h\,\dot v(t_0, q_0, v_0),\qquad q_1 = q_0 + h\,N(q_0)\,v_1 .$$

    The states of the parts are stepped with the speeds. First order; cheap, stable for
    undamped oscillations, and often too coarse for gradients.
    """

    term_structure: ClassVar = dfx.AbstractTerm
    interpolation_cls: ClassVar[Callable[..., Any]] = dfx.LocalLinearInterpolation

    def order(self, terms):
        del terms
        return 1

    def init(self, terms, t0, t1, y0, args):
        del terms, t0, t1, y0, args

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        del solver_state, made_jump
        y1 = y0 + terms.vf_prod(t0, y0, args, terms.contr(t0, t1))
        y1 = args.correct_coordinates(y0, y1, t1 - t0)
        return y1, None, {"y0": y0, "y1": y1}, None, dfx.RESULTS.successful

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)


class Ros2(dfx.AbstractSolver):
    """Linearly implicit steps of second order, for stiff systems: see `ros2`."""

    term_structure: ClassVar = dfx.AbstractTerm
    interpolation_cls: ClassVar[Callable[..., Any]] = dfx.LocalLinearInterpolation

    def order(self, terms):
        del terms
        return 2

    def init(self, terms, t0, t1, y0, args):
        del terms, t0, t1, y0, args

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        del terms, solver_state, made_jump
        t = jnp.asarray(t0, y0.dtype)
        y1 = ros2_step(args, t, y0, jnp.asarray(t1 - t0, y0.dtype))
        return y1, None, {"y0": y0, "y1": y1}, None, dfx.RESULTS.successful

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)


class RK4(dfx.AbstractERK):
    """The classical fourth-order method; fixed steps only."""

    tableau: ClassVar[dfx.ButcherTableau] = dfx.ButcherTableau(
        c=np.array([0.5, 0.5, 1.0]),
        b_sol=np.array([1, 2, 2, 1]) / 6,
        b_error=np.zeros(4),
        a_lower=(np.array([0.5]), np.array([0.0, 0.5]), np.array([0.0, 0.0, 1.0])),
    )
    interpolation_cls: ClassVar[Callable[..., Any]] = (
        dfx.ThirdOrderHermitePolynomialInterpolation.from_k
    )

    def order(self, terms):
        del terms
        return 4


class Rodas4(dfx.AbstractAdaptiveSolver):
    """Linearly implicit steps; see `rodas4`."""

    term_structure: ClassVar = dfx.AbstractTerm
    interpolation_cls: ClassVar[Callable[..., Any]] = (
        dfx.ThirdOrderHermitePolynomialInterpolation
    )

    def order(self, terms):
        del terms
        return 4

    def error_order(self, terms):
        del terms
        return 4.0

    def init(self, terms, t0, t1, y0, args):
        del terms, t0, t1, y0, args

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        del solver_state, made_jump
        # A lane of a batch that is done waits with empty steps, which must not be NaN.
        h, f = jnp.where(t1 > t0, t1 - t0, 1.0), lambda t, y: terms.vf(t, y, args)
        y1, error = rosenbrock_step(f, t0, y0, h)
        ends = {"k0": h * f(t0, y0), "k1": h * f(t1, y1)}
        dense = {"y0": y0, "y1": y1, **ends}
        return y1, error, dense, None, dfx.RESULTS.successful

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)


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
        solver = SOLVERS[self.solver]()
        closes_loops = getattr(args, "projects", False)  # what runs may be any function
        solver = Projected(solver) if closes_loops else solver
        how = (subs, steps, max_steps, meter)
        return self._solve(solver, field, t0, t1, y0, args, *how)

    def step_ends(self, field, t0, t1, y0, args, saves, max_steps, jumps):
        """Return where adaptive steps end that resolve a tangent too, and success.

        The first time is the start; those that are not needed are the end. Nothing is
        differentiated.
        """
        tolerances = tangent_tolerances(self.rtol, self.atol, y0)
        how = (tolerances, larger_error, t0, t1, y0.dtype, saves, jumps)
        both, rate = with_tangent(y0), partial(tangent_rate, field)
        subs = [dfx.SubSaveAt(steps=True, fn=_time)]
        solver, steps = SOLVERS[self.solver](), self._adaptive(*how)
        sol = self._solve(
            solver, rate, t0, t1, both, args, subs, steps, max_steps, False
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

    def _solve(self, solver, field, t0, t1, y0, args, subs, steps, max_steps, meter):
        return dfx.diffeqsolve(
            dfx.ODETerm(field),
            solver,
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


def _time(t: Any, y: Array, args: Any) -> Array:
    del y, args
    return jnp.asarray(t)
