"""Solvers that diffrax does not have: all but RK4 know the structure of a system."""

from collections.abc import Callable
from typing import Any, ClassVar

import diffrax as dfx
import jax.numpy as jnp
import numpy as np

from .rodas4 import rosenbrock_step
from .ros2 import ros2_step


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
