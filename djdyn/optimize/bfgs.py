"""BFGS: the quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno (1970)."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Bool, Float, PyTree

from ..typing import Scalar
from .box_qp import max_step, solve_box_qp
from .line_search import ARMIJO, WOLFE, LineSearch, next_trial, start_line_search
from .trial_steps import MIN_STEP, AbstractTrialStepSolver, select


MAX_GROWTH = 3.0  # of the first trial step of a line, to the accepted step before


class BFGSState(eqx.Module):
    """The last accepted point, and the line search from it.

    `f`, `g` and `B` are cost, gradient and approximate Hessian there, `direction` the
    search direction, and `updates` counts the secant updates of `B`.
    """

    first: Bool[Array, ""]
    f: Scalar
    g: Float[Array, " k"]
    B: Float[Array, "k k"]
    direction: Float[Array, " k"]
    search: LineSearch
    updates: Scalar
    aux: Any
    ended: Bool[Array, ""]


class BFGS(AbstractTrialStepSolver, optx.AbstractMinimiser):
    r"""BFGS with a line search for the weak Wolfe conditions and optional bounds.

    Search directions are $-B^{-1}g$, with the approximate Hessian $B$ from secant
    updates; every trial step costs one gradient. A trial step $t$ is accepted where the
    Armijo and the weak Wolfe condition hold,

    $$f(t) \le f + c_1 t f', \qquad f'(t) \ge c_2 f' .$$

    They keep $B$ positive definite, and lead to minima at kinks too, such as peaks over
    time have (Lewis and Overton, *Nonsmooth optimization via quasi-Newton methods*,
    2013). Before a jump of the cost no step fulfils the second; the step then ends
    there. The first trial step of a line is at most three times as long as the step
    before. The method ends where a full step is short and its predicted reduction
    $-g^T p/2$ small, or where no step reduces the cost. The first step goes down the
    gradient by `initial_step`.

    `options` may hold:

    - `lower`, `upper`: bounds, kept at every trial point. The step $p$ then minimises
      $g^T p + p^T B p/2$ within them (Nocedal and Wright, *Numerical Optimization*,
      2006, sections 16.5 and 18).
    - `penalties`: the penalty terms $p$ of the cost and their gradient at the start.
      Penalties are stiff. Their curvature is taken to be $\nabla p \nabla p^T/2p$, as
      if their root were linear, and `initial_step` is for the rest of the cost;
      otherwise $B$ would need many short steps to learn both.
    """

    rtol: Any
    atol: Any
    initial_step: Any = 1.0
    norm: Callable[[PyTree], Scalar] = eqx.field(static=True, default=optx.max_norm)

    def first_state(self, y: Array, out: Array, aux: Any) -> BFGSState:
        no, zero = jnp.array(False), jnp.zeros_like(y)
        B, search = jnp.eye(len(y), dtype=y.dtype), start_line_search(out, out, out + 1)
        return BFGSState(~no, out, zero, B, zero, search, out, aux, no)

    def step(
        self,
        fn: Callable,
        y: Array,
        args: Any,
        options: dict[str, Any],
        state: BFGSState,
        tags: frozenset[object],
    ) -> tuple[Array, BFGSState, Any]:
        """Evaluate one trial point; `y` moves there if it is accepted."""
        del tags
        infinite = jnp.full_like(y, jnp.inf)
        lower = options.get("lower", -infinite)
        upper = options.get("upper", infinite)
        line, direction = state.search, state.direction
        trial = jnp.clip(y + line.t * direction, lower, upper)
        cost_and_gradient = jax.value_and_grad(lambda y: fn(y, args), has_aux=True)
        (f, aux), g = cost_and_gradient(trial)
        slope, trial_slope = state.g @ direction, g @ direction
        armijo = f <= state.f + ARMIJO * line.t * slope
        longest = jnp.min(max_step(direction, lower - y, upper - y), initial=jnp.inf)
        wolfe = (trial_slope >= WOLFE * slope) | (line.t >= longest)
        accepted = state.first | (armijo & (wolfe | (line.t == line.low)))

        B, updates = _secant_update(state, trial - y, g - state.g)
        penalty, push = options.get("penalties", (jnp.zeros_like(f), jnp.zeros_like(g)))
        start = _initial_hessian(g, penalty, push, self.initial_step)
        B = jnp.where(state.first, start, B)
        updates = jnp.where(state.first & (penalty > 0), 1.0, updates)
        p = solve_box_qp(B, g, lower - trial, upper - trial)
        ended = self.converged(p, trial, -g @ p / 2, jnp.abs(f))
        furthest, full = MAX_GROWTH * jnp.linalg.norm(trial - y), jnp.linalg.norm(p)
        too_long = ~state.first & (full > furthest)
        t = jnp.where(too_long, furthest / jnp.where(too_long, full, 1.0), 1.0)
        search = start_line_search(f, g @ p, t)
        moved = BFGSState(jnp.array(False), f, g, B, p, search, updates, aux, ended)

        line = next_trial(line, armijo, f, trial_slope, longest)
        fields = lambda s: (s.search, s.ended)
        stayed = eqx.tree_at(fields, state, (line, line.high < MIN_STEP))
        new = select(accepted, moved, stayed)
        return jnp.where(accepted, trial, y), new, new.aux


def _initial_hessian(g: Array, penalty: Array, push: Array, length: Any) -> Array:
    """Return the Hessian whose first step is `length` long, plus that of penalties.

    `push` is the gradient of the penalties.
    """
    rest = jnp.where(jnp.any(g != push), g - push, jnp.where(jnp.any(g != 0), g, 1))
    B = jnp.linalg.norm(rest) / length * jnp.eye(len(g), dtype=g.dtype)
    return B + jnp.outer(push, push) / jnp.where(penalty > 0, 2 * penalty, jnp.inf)


def _secant_update(state: BFGSState, s: Array, d: Array) -> tuple[Array, Array]:
    """Return the Hessian after the BFGS update with step `s` and change `d` of the
    gradient, and the number of updates; the first update also sets the scale.
    """
    sd = s @ d
    curved = ~state.first & (sd > 0)
    safe = jnp.where(curved, sd, 1.0)
    scaled = (d @ d) / safe * jnp.eye(len(s), dtype=s.dtype)
    B = jnp.where(curved & (state.updates == 0), scaled, state.B)
    Bs = B @ s
    sBs = jnp.where(curved, s @ Bs, 1.0)
    new = B - jnp.outer(Bs, Bs) / sBs + jnp.outer(d, d) / safe
    return jnp.where(curved, new, state.B), state.updates + curved
