r"""Trajectory optimisation by iterated linear-quadratic regulators, inputs in a box.

Each round replaces dynamics and cost along the last trajectory by their first two
derivatives, finds the best change of inputs from the end backwards, those at their
limits held there (Tassa, Mansard and Todorov, *Control-limited differential dynamic
programming*, 2014), and goes as far along it as the cost falls.
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
NEWTONS = 6  # rounds on the free inputs
LEAST, FIRST, MOST = 1e-9, 1e-6, 1e9  # regularisation
SOFTER, STIFFER = 0.25, 8.0
HALVINGS = 10


class Plan(eqx.Module):
    r"""States, inputs and gains: $u_i + K_i(x - x_i)$ follows the plan."""

    x: Xs
    u: Us
    K: Float[Array, "n m k"]
    cost: Scalar
    done: Array  # whether no change of the inputs lowers the cost further


def flat_step(
    system: System, dt: float, solver: str = "rk4"
) -> tuple[Step, Callable[[State], X]]:
    """A step of a system under held inputs on flat arrays, and how states become such.

    Inputs stand in the alphabetical order of their names.
    """
    if not system.inputs:
        raise ValueError("a plan needs inputs, and the system has none")
    _, named = ravel_pytree(dict(system.inputs))
    _, back = ravel_pytree((system.initial_state(), jnp.zeros(0)))

    def step(x: X, u: U) -> X:
        field = Field(system, named(u), {}, back, False)
        return one_step(field, solver, jnp.zeros(()), x, jnp.asarray(dt))

    return lambda x, u: kernels.as_kernel(step, x, u)[0], lambda y: ravel_pytree(y)[0]


def _boxed(H: Array, g: U, low: U, high: U) -> tuple[U, Array]:
    """The least of g d + d H d / 2 in a box, and which inputs are free there."""

    def once(d: U, _: None) -> tuple[U, Array]:
        slope = g + H @ d
        active = ((d <= low) & (slope > 0)) | ((d >= high) & (slope < 0))
        both = ~active[:, None] & ~active[None]
        move = jnp.linalg.solve(
            jnp.where(both, H, jnp.eye(len(g))), jnp.where(active, 0.0, slope)
        )
        return jnp.clip(d - move, low, high), ~active

    d, free = jax.lax.scan(once, jnp.zeros_like(g), None, NEWTONS)
    return d, free[-1]


class _Problem(eqx.Module):
    step: Step = eqx.field(static=True)
    running: Callable[[X, U], Scalar] = eqx.field(static=True)
    final: Callable[[X], Scalar] = eqx.field(static=True)
    low: U
    high: U

    def run(self, x0: X, follow: Callable[[Array, X], U], n: int) -> tuple:
        def one(x: X, i: Array) -> tuple[X, tuple[X, U, Scalar]]:
            u = jnp.clip(follow(i, x), self.low, self.high)
            return self.step(x, u), (x, u, self.running(x, u))

        end, (xs, us, costs) = jax.lax.scan(one, x0, jnp.arange(n))
        return jnp.vstack([xs, end[None]]), us, jnp.sum(costs) + self.final(end)

    def backward(self, xs: Xs, us: Us, mu: Scalar) -> tuple[Us, Array]:
        """Changes of the inputs, and gains, from the end to the start."""
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
            k, free = _boxed(H, Qu, self.low - u, self.high - u)
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
        """One round: the better plan, or the same and stiffer."""
        k, K = self.backward(plan.x, plan.u, mu)

        def along(share: Scalar) -> tuple[Xs, Us, Scalar]:
            follow = lambda i, x: plan.u[i] + share * k[i] + K[i] @ (x - plan.x[i])
            xs, us, cost = self.run(plan.x[0], follow, len(plan.u))
            return xs, us, jnp.where(jnp.isfinite(cost), cost, jnp.inf)

        xs, us, costs = jax.vmap(along)(0.5 ** jnp.arange(HALVINGS, dtype=float))
        best = jnp.argmin(costs)
        better = costs[best] < plan.cost
        small = plan.cost - costs[best] < tolerance * jnp.abs(plan.cost)
        done = plan.done | (small & (better | (mu >= MOST)))
        new = Plan(xs[best], us[best], K, costs[best], done)
        kept = eqx.tree_at(lambda p: (p.K, p.done), plan, (K, done))
        use = better & ~plan.done
        plan = jax.tree.map(lambda new, old: jnp.where(use, new, old), new, kept)
        mu = jnp.clip(mu * jnp.where(better, SOFTER, STIFFER), LEAST, MOST)
        return plan, mu


def ilqr(
    step: Step,
    running: Callable[[X, U], Scalar],
    final: Callable[[X], Scalar],
    x0: X,
    u: Us,
    *,
    low: Numbers = -jnp.inf,
    high: Numbers = jnp.inf,
    outer_iterations: int | Array = 100,
    tolerance: float = 1e-6,
) -> Plan:
    """The inputs, from `low` to `high`, with the least sum of costs from `x0` on.

    **Arguments:**

    - `step`: the next state, such as of `flat_step`.
    - `running`, `final`: costs of a step, and of the end.
    - `u`: where to begin.
    - `tolerance`: relative fall of the cost below which a plan is done.
    """
    bounds = [jnp.broadcast_to(jnp.asarray(b, float), u.shape[1:]) for b in (low, high)]
    problem = _Problem(step, running, final, *bounds)
    xs, us, cost = problem.run(x0, lambda i, x: u[i], len(u))
    K = jnp.zeros((*u.shape, len(x0)))
    start = Plan(xs, us, K, cost, jnp.array(False)), jnp.array(FIRST), jnp.array(0)

    def going(carry: tuple) -> Array:
        return ~carry[0].done & (carry[2] < outer_iterations)

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
    """States and inputs of a plant whose every input is the first of a new plan.

    `plan` makes one from a state and inputs to begin with, such as by `ilqr` in a few
    rounds; these are the last plan's, moved on by a step. `plant` may differ from what
    the plans are made with.
    """

    def one(carry: tuple[X, Us], _: None) -> tuple:
        x, u = carry
        found = plan(x, u).u
        moved = jnp.concatenate([found[1:], found[-1:]])
        return (plant(x, found[0]), moved), (x, found[0])

    (end, _), (xs, us) = jax.lax.scan(one, (x0, u), None, steps)
    return jnp.vstack([xs, end[None]]), us
