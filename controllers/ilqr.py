r"""Trajectory optimisation by the iterated linear-quadratic regulator (iLQR).

Each iteration linearises the dynamics and takes the cost to second order along the last
trajectory. A backward pass finds the best change of the inputs, with those at their
limits held there (Tassa, Mansard and Todorov, *Control-limited differential dynamic
programming*, 2014). A forward pass takes the step length of least cost.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from djdyn import State, System, kernels
from djdyn.simulation.solvers.fixed_step import one_step
from djdyn.simulation.vector_field import Field
from djdyn.typing import Numbers, Scalar


X = Float[Array, " k"]
U = Float[Array, " m"]
Xs = Float[Array, "n_and_end k"]
Us = Float[Array, "n m"]
Step = Callable[[X, U], X]
BOX_QP_ITERATIONS = 6
MIN_REGULARISATION, FIRST_REGULARISATION, MAX_REGULARISATION = 1e-9, 1e-6, 1e9
REGULARISATION_DECREASE, REGULARISATION_INCREASE = 0.25, 8.0
STEP_LENGTHS = 10  # tried in the forward pass, each half of the last


class Plan(eqx.Module):
    r"""A planned trajectory and its feedback: $u_i + K_i(x - x_i)$ follows it."""

    x: Xs
    u: Us
    K: Float[Array, "n m k"]
    cost: Scalar
    done: Array  # whether no change of the inputs lowers the cost further


def flat_step(
    system: System, dt: float, solver: str = "rk4"
) -> tuple[Step, Callable[[State], X]]:
    """Return a time step of a system as a function of flat arrays.

    Inputs are constant over the step, in the alphabetical order of their names.

    **Returns:** the step, from a state and inputs to the next state, and a function
    that flattens states.
    """
    if not system.inputs:
        raise ValueError("a plan needs a system with inputs, but this has none")
    _, named = ravel_pytree(dict(system.inputs))
    _, back = ravel_pytree((system.initial_state(), jnp.zeros(0)))

    def step(x: X, u: U) -> X:
        field = Field(system, named(u), {}, back, False)
        return one_step(field, solver, jnp.zeros(()), x, jnp.asarray(dt))

    return lambda x, u: kernels.as_kernel(step, x, u)[0], lambda y: ravel_pytree(y)[0]


def _solve_box_qp(H: Array, g: U, low: U, high: U) -> tuple[U, Array]:
    """Minimise g d + d H d / 2 in a box; return d and which inputs are free there."""

    def once(d: U, _: None) -> tuple[U, Array]:
        slope = g + H @ d
        active = ((d <= low) & (slope > 0)) | ((d >= high) & (slope < 0))
        both = ~active[:, None] & ~active[None]
        move = jnp.linalg.solve(
            jnp.where(both, H, jnp.eye(len(g))), jnp.where(active, 0.0, slope)
        )
        return jnp.clip(d - move, low, high), ~active

    d, free = jax.lax.scan(once, jnp.zeros_like(g), None, BOX_QP_ITERATIONS)
    return d, free[-1]


class _Problem(eqx.Module):
    """The dynamics, costs and input limits of an optimal control problem."""

    step: Step = eqx.field(static=True)
    running: Callable[[X, U], Scalar] = eqx.field(static=True)
    final: Callable[[X], Scalar] = eqx.field(static=True)
    low: U
    high: U

    def run(self, x0: X, follow: Callable[[Array, X], U], n: int) -> tuple:
        """Simulate `n` steps of a control law; return states, inputs and cost."""

        def one(x: X, i: Array) -> tuple[X, tuple[X, U, Scalar]]:
            u = jnp.clip(follow(i, x), self.low, self.high)
            return self.step(x, u), (x, u, self.running(x, u))

        end, (xs, us, costs) = jax.lax.scan(one, x0, jnp.arange(n))
        return jnp.vstack([xs, end[None]]), us, jnp.sum(costs) + self.final(end)

    def backward(self, xs: Xs, us: Us, mu: Scalar) -> tuple[Us, Array]:
        """Return changes of the inputs, and feedback gains, by the backward pass."""
        fx, fu = jax.vmap(jax.jacfwd(self.step, (0, 1)))(xs[:-1], us)
        gx, gu = jax.vmap(jax.grad(self.running, (0, 1)))(xs[:-1], us)
        (hxx, _), (hux, huu) = jax.vmap(jax.hessian(self.running, (0, 1)))(xs[:-1], us)
        ends = jax.grad(self.final)(xs[-1]), jax.hessian(self.final)(xs[-1])

        def one(V: tuple[Array, Array], row: tuple) -> tuple:
            (Vx, Vxx), (u, fx, fu, gx, gu, hxx, hux, huu) = V, row
            Qx, Qu = gx + fx.T @ Vx, gu + fu.T @ Vx
            Qxx, Qux, Quu = (
                h + a.T @ Vxx @ b
                for h, a, b in ((hxx, fx, fx), (hux, fu, fx), (huu, fu, fu))
            )
            H = Quu + mu * (jnp.eye(len(Qu)) + fu.T @ fu)
            k, free = _solve_box_qp(H, Qu, self.low - u, self.high - u)
            both = free[:, None] & free[None]
            K = -jnp.linalg.solve(
                jnp.where(both, H, jnp.eye(len(Qu))), jnp.where(free[:, None], Qux, 0.0)
            )
            Vx = Qx + K.T @ (Quu @ k + Qu) + Qux.T @ k
            Vxx = Qxx + K.T @ Quu @ K + K.T @ Qux + Qux.T @ K
            return (Vx, (Vxx + Vxx.T) / 2), (k, K)

        rows = (us, fx, fu, gx, gu, hxx, hux, huu)
        return jax.lax.scan(one, ends, rows, reverse=True)[1]

    def improve(self, plan: Plan, mu: Scalar, tolerance: float) -> tuple[Plan, Scalar]:
        """Return a better plan, or the same one and more regularisation."""
        k, K = self.backward(plan.x, plan.u, mu)

        def along(share: Scalar) -> tuple[Xs, Us, Scalar]:
            follow = lambda i, x: plan.u[i] + share * k[i] + K[i] @ (x - plan.x[i])
            xs, us, cost = self.run(plan.x[0], follow, len(plan.u))
            return xs, us, jnp.where(jnp.isfinite(cost), cost, jnp.inf)

        xs, us, costs = jax.vmap(along)(0.5 ** jnp.arange(STEP_LENGTHS, dtype=float))
        best = jnp.argmin(costs)
        better = costs[best] < plan.cost
        small = plan.cost - costs[best] < tolerance * jnp.abs(plan.cost)
        done = plan.done | (small & (better | (mu >= MAX_REGULARISATION)))
        new = Plan(xs[best], us[best], K, costs[best], done)
        kept = eqx.tree_at(lambda p: (p.K, p.done), plan, (K, done))
        use = better & ~plan.done
        plan = jax.tree.map(lambda new, old: jnp.where(use, new, old), new, kept)
        factor = jnp.where(better, REGULARISATION_DECREASE, REGULARISATION_INCREASE)
        return plan, jnp.clip(mu * factor, MIN_REGULARISATION, MAX_REGULARISATION)


def ilqr(
    step: Step,
    running: Callable[[X, U], Scalar],
    final: Callable[[X], Scalar],
    x0: X,
    u: Us,
    *,
    low: Numbers = -jnp.inf,
    high: Numbers = jnp.inf,
    iterations: int | Array = 100,
    tolerance: float = 1e-6,
) -> Plan:
    """Find the inputs between `low` and `high` with the least sum of costs from `x0`.

    **Arguments:**

    - `step`: a function from a state and inputs to the next state; see `flat_step`.
    - `running`, `final`: costs of a step, and of the last state.
    - `u`: initial guess of the inputs.
    - `tolerance`: relative decrease of the cost below which a plan is done.

    **Returns:** the plan: states, inputs and feedback gains.
    """
    bounds = [jnp.broadcast_to(jnp.asarray(b, float), u.shape[1:]) for b in (low, high)]
    problem = _Problem(step, running, final, *bounds)
    xs, us, cost = problem.run(x0, lambda i, x: u[i], len(u))
    K = jnp.zeros((*u.shape, len(x0)))
    first = Plan(xs, us, K, cost, jnp.array(False))
    start = first, jnp.array(FIRST_REGULARISATION), jnp.array(0)

    def going(carry: tuple) -> Array:
        return ~carry[0].done & (carry[2] < iterations)

    def once(carry: tuple) -> tuple:
        plan, mu, i = carry
        return *problem.improve(plan, mu, tolerance), i + 1

    return jax.lax.while_loop(going, once, start)[0]


def receding_horizon(
    plant: Step,
    plan: Callable[[X, Us], Plan],
    x0: X,
    u: Us,
    steps: int,
) -> tuple[Xs, Float[Array, "steps m"]]:
    """Control a plant by model-predictive control: apply the first input of each plan.

    **Arguments:**

    - `plant`: a step of the plant, which may differ from the model of the plans.
    - `plan`: a function from a state and an initial guess of the inputs to a plan, such
      as a few iterations of `ilqr`. The guess is the last plan, shifted by one step.
    - `u`: the first guess.

    **Returns:** the states and inputs of the plant.
    """

    def one(carry: tuple[X, Us], _: None) -> tuple:
        x, u = carry
        found = plan(x, u).u
        moved = jnp.concatenate([found[1:], found[-1:]])
        return (plant(x, found[0]), moved), (x, found[0])

    (end, _), (xs, us) = jax.lax.scan(one, (x0, u), None, steps)
    return jnp.vstack([xs, end[None]]), us
