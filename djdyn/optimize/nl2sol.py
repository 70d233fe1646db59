"""NL2SOL: an adaptive nonlinear least-squares method (Dennis, Gay and Welsch, 1981)."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Bool, Float, PyTree

from ..typing import Scalar
from .trial_steps import MIN_STEP, AbstractTrialStepSolver, select


# Ratios of the actual to the predicted reduction of the cost.
MIN_RATIO = 1e-4  # a step with less is rejected
SHRINK_RATIO, EXPAND_RATIO = 0.25, 0.75  # below, above: the trust radius changes
# Factors of the trust radius.
REJECTED_FACTOR, SHRINK_FACTOR, EXPAND_FACTOR = 0.3, 0.5, 2.0
AT_RADIUS = 0.9  # of the trust radius: a step as long may make it grow
BISECTIONS = 60


class NL2SOLState(eqx.Module):
    """The last accepted point and its trust radius.

    `r`, `J` and `S` are residuals, Jacobian and the approximate second-order part of
    the Hessian there.
    """

    first: Bool[Array, ""]
    r: Float[Array, " n"]
    J: Float[Array, "n k"]
    S: Float[Array, "k k"]
    radius: Scalar
    aux: Any
    ended: Bool[Array, ""]


class NL2SOL(AbstractTrialStepSolver, optx.AbstractLeastSquaresSolver):
    r"""Gauss–Newton with a secant update for the second-order part of the Hessian.

    The Hessian of $|r|^2/2$ is $J^T J + \sum_i r_i \nabla^2 r_i$. Its second part $S$
    counts where residuals stay large at the minimum. It follows from the secant
    condition $S s = (J_+ - J)^T r_+$ of each step $s$, sized down where it has become
    smaller (Dennis, Gay and Welsch, *An adaptive nonlinear least-squares algorithm*,
    1981). Steps minimise the quadratic model within a trust radius, `initial_radius` at
    first, which follows the ratio of actual to predicted reduction. A rejected step
    costs residuals alone, without their Jacobian.
    """

    rtol: Any
    atol: Any
    initial_radius: Any = 0.6
    norm: Callable[[PyTree], Scalar] = eqx.field(static=True, default=optx.max_norm)

    def first_state(self, y: Array, out: Array, aux: Any) -> NL2SOLState:
        n, k, no = len(out), len(y), jnp.array(False)
        J, S = jnp.zeros((n, k), out.dtype), jnp.zeros((k, k), out.dtype)
        radius = jnp.asarray(self.initial_radius, out.dtype)
        return NL2SOLState(~no, out, J, S, radius, aux, no)

    def step(
        self,
        fn: Callable,
        y: Array,
        args: Any,
        options: dict[str, Any],
        state: NL2SOLState,
        tags: frozenset[object],
    ) -> tuple[Array, NL2SOLState, Any]:
        """Evaluate one trial point; `y` moves there if it is accepted."""
        del options, tags
        g, B = state.J.T @ state.r, state.J.T @ state.J + state.S
        p = jnp.where(state.first, 0.0, trust_region_step(B, g, state.radius))
        predicted = -(g @ p + p @ B @ p / 2)
        cost = state.r @ state.r / 2
        converged = self.converged(p, y, predicted, cost)
        trial = y + p
        r, aux = fn(trial, args)
        ratio = (cost - r @ r / 2) / jnp.where(predicted > 0, predicted, jnp.inf)
        accepted = state.first | (ratio > MIN_RATIO)
        jacobian = lambda: jax.jacfwd(lambda y: fn(y, args)[0])(trial)
        J = jax.lax.cond(accepted, jacobian, lambda: state.J)
        S = jnp.where(state.first, state.S, _secant_update(state, p, g, r, J))

        length = jnp.linalg.norm(p)
        radius = jnp.where(
            (ratio > EXPAND_RATIO) & (length > AT_RADIUS * state.radius),
            EXPAND_FACTOR * state.radius,
            jnp.where(ratio < SHRINK_RATIO, SHRINK_FACTOR * length, state.radius),
        )
        first_radius = jnp.asarray(self.initial_radius, r.dtype)
        radius = jnp.where(state.first, first_radius, radius)
        no = jnp.array(False)
        moved = NL2SOLState(no, r, J, S, radius, aux, converged & ~state.first)
        smaller = REJECTED_FACTOR * length
        fields, ended = lambda s: (s.radius, s.ended), converged | (smaller < MIN_STEP)
        stayed = eqx.tree_at(fields, state, (smaller, ended))
        new = select(accepted, moved, stayed)
        return jnp.where(accepted, trial, y), new, new.aux


def _secant_update(state: NL2SOLState, s: Array, g: Array, r: Array, J: Array) -> Array:
    """Return the second-order part of the Hessian after one more step `s`.

    `g` is the gradient before the step, `r` and `J` are residuals and Jacobian after.
    """
    change = (J - state.J).T @ r
    d, Ss = J.T @ r - g, state.S @ s
    ratio = jnp.abs(s @ change) / jnp.where(s @ Ss != 0, jnp.abs(s @ Ss), jnp.inf)
    sizing = jnp.where(s @ Ss != 0, jnp.minimum(ratio, 1.0), 1.0)
    u, ds = change - sizing * Ss, d @ s
    well_posed = jnp.abs(ds) > 1e-12 * jnp.linalg.norm(d) * jnp.linalg.norm(s)
    safe = jnp.where(well_posed, ds, 1.0)
    both = (jnp.outer(u, d) + jnp.outer(d, u)) / safe
    new = sizing * state.S + both - (s @ u) / safe**2 * jnp.outer(d, d)
    return jnp.where(well_posed, new, state.S)


def trust_region_damping(B: Array, g: Array, radius: Scalar) -> Scalar:
    r"""Return the smallest $\sigma \ge 0$ that keeps a damped step within the radius.

    $|(B + \sigma)^{-1} g|$ is at most the radius and $B + \sigma$ positive definite
    (Moré and Sorensen, *Computing a trust region step*, 1983). Found by bisection.
    """
    eigenvalues, V = jnp.linalg.eigh(B)
    components = V.T @ g
    lowest = jnp.maximum(-eigenvalues[0], 0.0)
    width = jnp.linalg.norm(g) / radius

    def bisect(_: Any, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = (low + high) / 2
        shifted = eigenvalues + middle
        safe = jnp.where(shifted > 0, shifted, 1.0)
        too_long = jnp.linalg.norm(components / safe) > radius
        too_small = too_long | (shifted[0] <= 0)
        return jnp.where(too_small, middle, low), jnp.where(too_small, high, middle)

    return jax.lax.fori_loop(0, BISECTIONS, bisect, (lowest, lowest + width))[1]


def trust_region_step(B: Array, g: Array, radius: Scalar) -> Float[Array, " k"]:
    r"""Return the minimiser of $g^T p + p^T B p/2$ among steps within the radius."""
    shift = trust_region_damping(B, g, radius) * jnp.eye(len(g), dtype=g.dtype)
    return -jnp.linalg.solve(B + shift, g)
