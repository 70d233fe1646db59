"""The cost that `tune` minimises: simulations of all scenarios, as one number."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

import djdyn
from djdyn import FreeParameter, State, System
from djdyn.optimize.problem import AbstractProblem, Flat, entries
from djdyn.system.parameters import as_free, pack, unpack
from djdyn.system.transforms import Unbounded, bounds_of
from djdyn.typing import Scalar

from .evaluation import Evaluation, Probes, every_nth
from .loop_limit import LoopLimit
from .options import Risk
from .scenarios import Scenarios
from .terms import AbstractSquares, AbstractTerm, Limit


DIVERGED_COST = 1e3  # of a scenario that diverges, where those are penalised


class Objective(AbstractProblem):
    r"""Cost over scenarios, and the penalties of constraints that are exceeded.

    $$w \operatorname{risk}_i\, c_i(\theta) + \frac{1}{2\mu N}\sum_{i,k}
      \max(0, \lambda_{ik} + \mu g_{ik})^2/n ,$$

    with $w = 1$ the augmented Lagrangian of $g_{ik} \le 0$ in scenario $i$ at time
    $t_k$, but for a constant; with multipliers $\lambda = 0$ a penalty (Nocedal and
    Wright, *Numerical Optimization*, 2006, 17.4). The modulus margins of a `loop` are
    one more constraint, with loops in place of times, and so is its spectral abscissa.

    **Arguments:**

    - `free`, `cost`, `scenarios`, `constraints`, `saves`: as of `tune`; `free` may be
      empty, if the system is only evaluated as it stands.
    - `risk`, `diverged`, `penalty`: as of `SearchOptions`.
    - `rollout_options`: further arguments of `djdyn.rollout`.
    """

    system: System
    free: tuple[FreeParameter, ...]
    scenarios: Scenarios
    probes: Probes
    multipliers: dict[str, Float[Array, "scenarios n"]]
    penalty: Scalar
    weight: Scalar
    loop: LoopLimit | None
    x0: Flat
    t1: float = eqx.field(static=True)
    times: tuple[float, ...] = eqx.field(static=True)
    rollout_options: Any
    risk: Risk = eqx.field(static=True)
    diverged: str = eqx.field(static=True)

    def __init__(
        self,
        system: System,
        t1: float,
        free: Sequence[FreeParameter | str],
        cost: Mapping[str, AbstractTerm],
        scenarios: Scenarios,
        constraints: Mapping[str, Limit] | None = None,
        *,
        saves: int = 101,
        risk: Risk = "mean",
        diverged: str = "penalise",
        penalty: float = 10.0,
        loop: LoopLimit | None = None,
        rollout_options: dict[str, Any] | None = None,
    ):
        limits = dict(constraints or {})
        self.system, self.scenarios = system, scenarios
        self.free = as_free(free) if free else ()
        self.probes = Probes(dict(cost), limits)
        self.t1, self.times = float(t1), tuple(np.linspace(0.0, t1, saves).tolist())
        self.rollout_options = dict(rollout_options or {})
        self.risk, self.diverged = risk, diverged
        self.penalty, self.weight = jnp.asarray(penalty), jnp.ones(())
        zero = jnp.zeros((len(scenarios), saves))
        self.multipliers, self.loop = dict.fromkeys(limits, zero), loop
        if loop is not None:
            self.multipliers |= loop.multipliers(len(scenarios))
        self.x0 = ravel_pytree(self._theta())[0]

    # Unknowns -------------------------------------------------------------------------

    def _theta(self) -> dict[str, Array]:
        """Return the free parameters as the system has them, unconstrained, by path."""
        return pack(self.system, self.free) if self.free else {}

    def gains(self, x: Flat) -> dict[str, Array]:
        """Return the values of the free parameters, by path."""
        theta = ravel_pytree(self._theta())[1](x)
        return {f.path: f.transform.constrain(theta[f.path]) for f in self.free}

    def system_at(self, x: Flat) -> System:
        """Return the system with the gains of `x`."""
        theta = ravel_pytree(self._theta())[1](x)
        return unpack(self.system, self.free, theta)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all entries of `x`."""
        theta = self._theta()
        return entries({path: theta[path] for path in sorted(theta)})

    @property
    def scale(self) -> Flat:
        """Typical change of each entry of `x`.

        It is the size of an unbounded parameter, half the width of a `Box`, and one for
        logarithms and the like.
        """
        sizes = {}
        for f, x in zip(self.free, self._theta().values(), strict=True):
            low, high = bounds_of(f.transform)
            size = jnp.max(jnp.abs(x), initial=0.0)
            known = isinstance(f.transform, Unbounded) & (size > 0)
            size = jnp.where(known, size, 1.0)
            room = jnp.where(jnp.isfinite(high - low), (high - low) / 2, size)
            sizes[f.path] = jnp.broadcast_to(room, x.shape)
        return ravel_pytree(sizes)[0]

    def bounds(self) -> tuple[Flat, Flat]:
        """Return the lower and upper bounds of `x`, infinite where there are none."""
        theta = self._theta()
        of = {f.path: bounds_of(f.transform) for f in self.free}
        ends = [
            {k: jnp.broadcast_to(of[k][i], theta[k].shape) for k in theta}
            for i in (0, 1)
        ]
        return ravel_pytree(ends[0])[0], ravel_pytree(ends[1])[0]

    def penalties(self) -> "Objective | None":
        """Return the objective with the penalties of constraints alone, if any."""
        if not self.multipliers:
            return None
        return eqx.tree_at(lambda o: o.weight, self, jnp.zeros(()))

    def with_scenarios(self, scenarios: Scenarios) -> "Objective":
        """Return the objective on other scenarios, without multipliers and `loop`."""
        zero = jnp.zeros((len(scenarios), len(self.times)))
        none = dict.fromkeys(self.probes.limits, zero)
        at = lambda o: (o.scenarios, o.multipliers, o.loop)
        new = (scenarios, none, None)
        return eqx.tree_at(at, self, new, is_leaf=lambda x: x is None)

    # Simulations ----------------------------------------------------------------------

    def _parameters(self, xs: Float[Array, "scenarios k"]) -> dict[str, Array]:
        """Return the parameters of every scenario, gains included, by path."""
        return {**self.scenarios.parameters, **jax.vmap(self.gains)(xs)}

    def run(self, xs: Float[Array, "scenarios k"]) -> tuple[Any, dict, dict]:
        """Simulate all scenarios, each with gains of its own.

        **Returns:** the runs, and the quantities that terms and limits look at.
        """
        options = self.rollout_options.get("options")
        period = options.control_period if options is not None else None
        period = self.rollout_options.get("control_period", period)
        sampled = period is not None  # then a rollout saves its samples
        run = djdyn.rollout(
            self.system,
            self.t1,
            self.scenarios.initial_state,
            parameters=self._parameters(xs),
            saveat=None if sampled else np.array(self.times),
            **self.rollout_options,
        )
        run = every_nth(run, len(self.times)) if sampled else run
        return run, *run.map(self.probes)

    def evaluate_each(self, xs: Float[Array, "scenarios k"]) -> Evaluation:
        """Simulate and evaluate all scenarios, each with gains of its own."""
        run, series, bounded = self.run(xs)
        of = lambda term: lambda x: term.measure(run.t, x)
        terms = {k: jax.vmap(of(x))(series[k]) for k, x in self.probes.terms.items()}
        return Evaluation(terms, self._excess(xs, run, bounded), run.ok)

    def _states(self, run: djdyn.Trajectory, t: float) -> State:
        """Return the states of all scenarios at the saved time nearest to `t`."""
        k = int(np.argmin(np.abs(np.array(self.times) - t)))
        return jax.tree.map(lambda x: x[:, k], run.y)

    def _excess(
        self, xs: Float[Array, "scenarios k"], run: djdyn.Trajectory, bounded: dict
    ) -> dict:
        """Return how far limits are exceeded, relative to them; negative if kept."""
        limits, loop = self.probes.limits, self.loop
        found = {k: jax.vmap(x.excess)(bounded[k]) for k, x in limits.items()}
        if loop is not None:
            states = loop.states
            if states is None:  # second derivatives of a machine take long to compile
                states = lax.stop_gradient(self._states(run, loop.t))
            found |= loop.excess(self.system, self._parameters(xs), states)
        return found

    def _in_all(self, x: Flat) -> Float[Array, "scenarios k"]:
        """Return the same gains for every scenario."""
        return jnp.broadcast_to(x, (len(self.scenarios), x.size))

    def evaluate(self, x: Flat) -> Evaluation:
        """Simulate and evaluate all scenarios with the same gains."""
        return self.evaluate_each(self._in_all(x))

    def states_at(self, x: Flat, t: float) -> State:
        """Return the states of all scenarios at time `t`, s, with the same gains."""
        return self._states(self.run(self._in_all(x))[0], t)

    # Cost -----------------------------------------------------------------------------

    def _penalties(self, evaluation: Evaluation) -> Float[Array, " scenarios"]:
        """Return the penalty of each scenario for the limits that it exceeds."""
        penalty, mu = jnp.zeros(len(evaluation.ok)), self.penalty
        for name, g in evaluation.excess.items():
            held = self.multipliers[name]
            pushed = jnp.maximum(held + mu * g, 0.0)
            penalty = penalty + jnp.mean(pushed**2, 1) / (2 * mu)
        return penalty

    def _counts(self, ok: Array) -> Array:
        """Return which scenarios count: all, or those that did not diverge."""
        return jnp.ones_like(ok) if self.diverged == "penalise" else ok

    def risk_of(self, costs: Array, ok: Array) -> Scalar:
        """Return the cost over all scenarios by `risk`: their mean, the worst, ..."""
        counts = self._counts(ok)
        costs = jnp.where(ok, costs, DIVERGED_COST)
        if self.risk == "mean":
            return jnp.mean(costs, where=counts)
        tail = jnp.sort(jnp.where(counts, costs, -jnp.inf))[::-1]
        share = 0.0 if self.risk == "worst" else 1 - float(self.risk)
        number = max(1, round(share * len(costs)))
        return jnp.mean(tail[:number])

    def total(self, costs: Array, penalties: Array, ok: Array) -> Scalar:
        """Return the objective from the costs and penalties of all scenarios."""
        safe = jnp.where(ok, penalties, 0.0)
        cost = self.weight * self.risk_of(costs, ok)
        return cost + jnp.mean(safe, where=self._counts(ok))

    def cost(self, x: Flat) -> Scalar:
        """Return the cost over all scenarios, penalties included."""
        evaluation = self.evaluate(x)
        return self.total(evaluation.costs, self._penalties(evaluation), evaluation.ok)

    def costs(self, xs: Float[Array, "points k"]) -> Float[Array, " points"]:
        """Return the costs of many gains, simulated in one batch."""
        n, count = len(self.scenarios), len(xs)
        again = lambda tree: jax.tree.map(lambda x: jnp.concatenate([x] * count), tree)
        at = lambda o: (o.scenarios, o.multipliers, o.loop)
        limits = again((self.multipliers, self.loop))
        new = (self.scenarios.repeated(count), *limits)
        many = eqx.tree_at(at, self, new, is_leaf=lambda x: x is None)
        evaluation = many.evaluate_each(jnp.repeat(xs, n, axis=0))
        rows = [
            x.reshape(count, n)
            for x in (evaluation.costs, many._penalties(evaluation), evaluation.ok)
        ]
        return jax.vmap(self.total)(*rows)

    def slope(self, x: Flat) -> tuple[Scalar, Flat]:
        """Return the cost and its gradient.

        Gradients are taken scenario by scenario, so that one that diverges does not
        spoil the others.
        """

        def both(xs: Array) -> tuple[tuple[Array, Array], Array]:
            evaluation = self.evaluate_each(xs)
            return (evaluation.costs, self._penalties(evaluation)), evaluation.ok

        (costs, penalties), pull, ok = jax.vjp(both, self._in_all(x), has_aux=True)
        value, weights = jax.value_and_grad(self.total, (0, 1))(costs, penalties, ok)
        (g,) = pull(weights)
        return value, jnp.sum(jnp.where(ok[:, None], g, 0.0), 0)

    def residuals(self, x: Flat) -> Float[Array, " n"]:
        """Return the residuals: half the sum of their squares is the mean cost."""
        xs, rows = self._in_all(x), []
        run, series, bounded = self.run(xs)
        for name, term in self.probes.terms.items():
            if not isinstance(term, AbstractSquares):
                raise ValueError(
                    f"term {name!r} is not a sum of squares, which this method needs"
                )
            of = lambda x, term=term: term.residuals(run.t, x).ravel()
            rows.append(jax.vmap(of)(series[name]))
        for name, g in self._excess(xs, run, bounded).items():
            mu, n = self.penalty, g.shape[1]
            pushed = jnp.maximum(self.multipliers[name] / mu + g, 0.0)
            rows.append(jnp.sqrt(mu / (2 * n)) * pushed)
        penalised = self.diverged == "penalise"
        diverged = jnp.sqrt(DIVERGED_COST) if penalised else 0.0
        lost = jnp.where(run.ok, 0.0, diverged)[:, None]
        r = jnp.where(run.ok[:, None], jnp.concatenate(rows, 1), 0.0)
        number = jnp.sum(self._counts(run.ok).astype(r.dtype))
        return jnp.concatenate([r, lost], 1).ravel() * jnp.sqrt(2 / number)

    def linearise_residuals(
        self, x: Flat
    ) -> tuple[Float[Array, " n"], Float[Array, "n k"]]:
        """Return the residuals and their Jacobian."""
        twice = lambda x: (self.residuals(x),) * 2
        J, r = jax.jacfwd(twice, has_aux=True)(x)
        return r, jnp.where(jnp.isfinite(J), J, 0.0)
