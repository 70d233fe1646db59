"""A system, its free gains and the scenarios they are judged by: one number."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

import djdyn
from djdyn import FreeParameter, State, System
from djdyn.optimize.multistart import AbstractProblem, Flat, entries
from djdyn.system.parameters import Unbounded, as_free, bounds_of, pack, unpack
from djdyn.system.system import Instant
from djdyn.typing import Scalar

from ..linear.margins import moduli, opened
from .scenarios import Scenarios
from .terms import AbstractSquares, AbstractTerm, Limit, look


Risk = str | float  # "mean", "worst", or the share of scenarios that are not counted

MARGIN, GROWTH = "modulus margin", "growth of poles"  # limits that a loop keeps
SECOND = 1.0  # s: growth over it is what is weighed
HOPELESS = 1e3  # cost of a scenario that diverges, where those are penalised


class Evaluation(eqx.Module):
    """What became of each scenario."""

    terms: dict[str, Float[Array, " scenarios"]]
    excess: dict[str, Float[Array, "scenarios n"]]  # beyond limits, of their size
    ok: Bool[Array, " scenarios"]

    @property
    def costs(self) -> Float[Array, " scenarios"]:
        return sum(self.terms.values(), start=jnp.zeros(len(self.ok)))


class _Probes(eqx.Module):
    """All that is looked at, at once."""

    terms: dict[str, AbstractTerm]
    limits: dict[str, Limit]

    def __call__(self, now: Instant) -> tuple[dict, dict]:
        seen = {k: look(x.probe, now) / x.scale for k, x in self.terms.items()}
        return seen, {k: look(x.probe, now) for k, x in self.limits.items()}


class Loop(eqx.Module):
    """Where loops are opened about a state of each scenario, with a delay, s, and how
    far from minus one they are to stay.

    Without states, about those that runs have at `t`, s, which derivatives take as
    given.
    """

    states: State | None
    t: float = eqx.field(static=True)
    signals: tuple[str, ...] = eqx.field(static=True)
    entries: int = eqx.field(static=True)
    delay: float = eqx.field(static=True)
    modulus: float = eqx.field(static=True)


class Objective(AbstractProblem):
    r"""Cost over scenarios, and what limits add to it.

    $$w \operatorname{risk}_i\, c_i(\theta) + \frac{1}{2\mu N}\sum_{i,k}
      \max(0, \lambda_{ik} + \mu g_{ik})^2/n ,$$

    with $w = 1$ the augmented Lagrangian of $g_{ik} \le 0$ in scenario $i$ at time
    $t_k$, but for a constant; with multipliers $\lambda = 0$ a penalty (Nocedal and
    Wright, *Numerical Optimization*, 2006, 17.4). Margins of a `loop` are one more
    limit, with loops in place of times, and so is its growth.
    """

    system: System
    free: tuple[FreeParameter, ...]
    scenarios: Scenarios
    probes: _Probes
    multipliers: dict[str, Float[Array, "scenarios n"]]
    penalty: Scalar
    weight: Scalar
    loop: Loop | None
    x0: Flat
    span: float = eqx.field(static=True)
    saves: tuple[float, ...] = eqx.field(static=True)
    how: Any
    risk: Risk = eqx.field(static=True)
    diverged: str = eqx.field(static=True)

    def __init__(
        self,
        system: System,
        t1: float,
        free: Any,
        cost: dict[str, AbstractTerm],
        scenarios: Scenarios,
        constraints: dict[str, Limit],
        saves: int,
        risk: Risk,
        diverged: str,
        stiffness: float,
        how: dict[str, Any],
        loop: Loop | None = None,
    ):
        self.system, self.free, self.scenarios = system, as_free(free), scenarios
        self.probes = _Probes(dict(cost), dict(constraints))
        self.span, self.saves = float(t1), tuple(np.linspace(0.0, t1, saves).tolist())
        self.how, self.risk, self.diverged = how, risk, diverged
        self.penalty, self.weight = jnp.asarray(stiffness), jnp.ones(())
        zero = jnp.zeros((len(scenarios), saves))
        self.multipliers, self.loop = dict.fromkeys(constraints, zero), loop
        if loop is not None:
            self.multipliers[MARGIN] = jnp.zeros((len(scenarios), loop.entries))
            self.multipliers[GROWTH] = jnp.zeros((len(scenarios), 1))
        self.x0 = ravel_pytree(pack(system, self.free))[0]

    # Unknowns -------------------------------------------------------------------------

    def gains(self, x: Flat) -> dict[str, Array]:
        """Numbers of the system by path."""
        theta = ravel_pytree(pack(self.system, self.free))[1](x)
        return {f.path: f.transform.constrain(theta[f.path]) for f in self.free}

    def placed(self, x: Flat) -> System:
        theta = ravel_pytree(pack(self.system, self.free))[1](x)
        return unpack(self.system, self.free, theta)

    @property
    def names(self) -> tuple[str, ...]:
        theta = pack(self.system, self.free)
        return entries({path: theta[path] for path in sorted(theta)})

    @property
    def scale(self) -> Flat:
        """The size of what is unbounded, half the room between bounds; one, of
        logarithms and the like."""
        sizes = {}
        for f, x in zip(self.free, pack(self.system, self.free).values(), strict=True):
            low, high = bounds_of(f.transform)
            size = jnp.max(jnp.abs(x), initial=0.0)
            known = isinstance(f.transform, Unbounded) & (size > 0)
            size = jnp.where(known, size, 1.0)
            room = jnp.where(jnp.isfinite(high - low), (high - low) / 2, size)
            sizes[f.path] = jnp.broadcast_to(room, x.shape)
        return ravel_pytree(sizes)[0]

    def bounds(self) -> tuple[Flat, Flat]:
        theta = pack(self.system, self.free)
        of = {f.path: bounds_of(f.transform) for f in self.free}
        ends = [
            {k: jnp.broadcast_to(of[k][i], theta[k].shape) for k in theta}
            for i in (0, 1)
        ]
        return ravel_pytree(ends[0])[0], ravel_pytree(ends[1])[0]

    def penalties(self) -> "Objective | None":
        """What limits add to the cost, alone."""
        if not self.multipliers:
            return None
        return eqx.tree_at(lambda o: o.weight, self, jnp.zeros(()))

    # Simulations ----------------------------------------------------------------------

    def run(self, xs: Float[Array, "scenarios k"]) -> tuple[Any, dict, dict]:
        """All scenarios, each with gains of its own, and what was looked at."""
        lanes = {**self.scenarios.parameters, **jax.vmap(self.gains)(xs)}
        y0 = self.scenarios.initial_state
        sampled = self.how.get("control_period") is not None  # it saves its samples
        run = djdyn.rollout(
            self.system,
            self.span,
            y0,
            parameters=lanes,
            saveat=None if sampled else np.array(self.saves),
            **self.how,
        )
        run = _thinned(run, len(self.saves)) if sampled else run
        return run, *run.map(self.probes)

    def seen(self, xs: Float[Array, "scenarios k"]) -> Evaluation:
        run, series, bounded = self.run(xs)
        of = lambda term: lambda x: term.measure(run.t, x)
        terms = {k: jax.vmap(of(x))(series[k]) for k, x in self.probes.terms.items()}
        return Evaluation(terms, self._excess(xs, run, bounded), run.ok)

    def at(self, run: djdyn.Trajectory, t: float) -> State:
        """Of all scenarios, at the time nearest to `t` that is looked at."""
        k = int(np.argmin(np.abs(np.array(self.saves) - t)))
        return jax.tree.map(lambda x: x[:, k], run.y)

    def _excess(
        self, xs: Float[Array, "scenarios k"], run: djdyn.Trajectory, bounded: dict
    ) -> dict:
        """How far limits are exceeded, of their size; negative where they are kept."""
        limits, loop = self.probes.limits, self.loop
        found = {k: jax.vmap(x.excess)(bounded[k]) for k, x in limits.items()}
        if loop is not None:
            lanes = {**self.scenarios.parameters, **jax.vmap(self.gains)(xs)}
            placed = lambda values: djdyn.with_parameters(self.system, values)
            of = lambda values, y: moduli(
                opened(placed(values), y, loop.signals, loop.t).with_delay(loop.delay)
            )
            states = loop.states
            if states is None:  # second derivatives of a machine take long to compile
                states = lax.stop_gradient(self.at(run, loop.t))
            far, growth = jax.vmap(of)(lanes, states)
            grown = SECOND * growth[:, None]
            # Beyond the edge distances grow again: what has grown outweighs that.
            near = far - jnp.maximum(grown, 0.0)
            found |= {MARGIN: 1 - near / loop.modulus, GROWTH: grown}
        return found

    def _lanes(self, x: Flat) -> Float[Array, "scenarios k"]:
        return jnp.broadcast_to(x, (len(self.scenarios), x.size))

    def evaluate(self, x: Flat) -> Evaluation:
        return self.seen(self._lanes(x))

    def passed(self, x: Flat, t: float) -> State:
        """Where runs are at a time, s."""
        return self.at(self.run(self._lanes(x))[0], t)

    # One number -----------------------------------------------------------------------

    def _priced(self, seen: Evaluation) -> Float[Array, " scenarios"]:
        """What limits add to each scenario."""
        price, mu = jnp.zeros(len(seen.ok)), self.penalty
        for name, g in seen.excess.items():
            held = self.multipliers[name]
            pushed = jnp.maximum(held + mu * g, 0.0)
            price = price + jnp.mean(pushed**2, 1) / (2 * mu)
        return price

    def _counts(self, ok: Array) -> Array:
        return jnp.ones_like(ok) if self.diverged == "penalise" else ok

    def _risk(self, costs: Array, ok: Array) -> Scalar:
        counts = self._counts(ok)
        costs = jnp.where(ok, costs, HOPELESS)
        if self.risk == "mean":
            return jnp.mean(costs, where=counts)
        tail = jnp.sort(jnp.where(counts, costs, -jnp.inf))[::-1]
        share = 0.0 if self.risk == "worst" else 1 - float(self.risk)
        number = max(1, round(share * len(costs)))
        return jnp.mean(tail[:number])

    def total(self, costs: Array, prices: Array, ok: Array) -> Scalar:
        safe = jnp.where(ok, prices, 0.0)
        cost = self.weight * self._risk(costs, ok)
        return cost + jnp.mean(safe, where=self._counts(ok))

    def cost(self, x: Flat) -> Scalar:
        seen = self.evaluate(x)
        return self.total(seen.costs, self._priced(seen), seen.ok)

    def costs(self, xs: Float[Array, "points k"]) -> Float[Array, " points"]:
        """Of many gains at once, each in all scenarios."""
        n, count = len(self.scenarios), len(xs)
        again = lambda tree: jax.tree.map(lambda x: jnp.concatenate([x] * count), tree)
        at = lambda o: (o.scenarios, o.multipliers, o.loop)
        limits = again((self.multipliers, self.loop))
        new = (self.scenarios.repeated(count), *limits)
        many = eqx.tree_at(at, self, new, is_leaf=lambda x: x is None)
        seen = many.seen(jnp.repeat(xs, n, axis=0))
        rows = [x.reshape(count, n) for x in (seen.costs, many._priced(seen), seen.ok)]
        return jax.vmap(self.total)(*rows)

    def slope(self, x: Flat) -> tuple[Scalar, Flat]:
        """Lane by lane, so that one that diverges cannot spoil the others."""

        def both(xs: Array) -> tuple[tuple[Array, Array], Array]:
            seen = self.seen(xs)
            return (seen.costs, self._priced(seen)), seen.ok

        (costs, prices), pull, ok = jax.vjp(both, self._lanes(x), has_aux=True)
        value, weights = jax.value_and_grad(self.total, (0, 1))(costs, prices, ok)
        (g,) = pull(weights)
        return value, jnp.sum(jnp.where(ok[:, None], g, 0.0), 0)

    def residuals(self, x: Flat) -> Float[Array, " n"]:
        """Whose squares, halved, are the cost's mean over scenarios."""
        xs, rows = self._lanes(x), []
        run, series, bounded = self.run(xs)
        for name, term in self.probes.terms.items():
            if not isinstance(term, AbstractSquares):
                raise ValueError(
                    f"term {name!r} is no sum of squares, which this method needs"
                )
            of = lambda x, term=term: term.residuals(run.t, x).ravel()
            rows.append(jax.vmap(of)(series[name]))
        for name, g in self._excess(xs, run, bounded).items():
            mu, n = self.penalty, g.shape[1]
            pushed = jnp.maximum(self.multipliers[name] / mu + g, 0.0)
            rows.append(jnp.sqrt(mu / (2 * n)) * pushed)
        hopeless = jnp.sqrt(HOPELESS) if self.diverged == "penalise" else 0.0
        lost = jnp.where(run.ok, 0.0, hopeless)[:, None]
        r = jnp.where(run.ok[:, None], jnp.concatenate(rows, 1), 0.0)
        number = jnp.sum(self._counts(run.ok).astype(r.dtype))
        return jnp.concatenate([r, lost], 1).ravel() * jnp.sqrt(2 / number)

    def linearise_residuals(
        self, x: Flat
    ) -> tuple[Float[Array, " n"], Float[Array, "n k"]]:
        twice = lambda x: (self.residuals(x),) * 2
        J, r = jax.jacfwd(twice, has_aux=True)(x)
        return r, jnp.where(jnp.isfinite(J), J, 0.0)


def _thinned(run: djdyn.Trajectory, count: int) -> djdyn.Trajectory:
    """As many of its samples, evenly spread."""
    every, left = divmod(len(run.t) - 1, count - 1)
    if left:
        raise ValueError(
            f"{len(run.t) - 1} samples are looked at evenly, not {count - 1} times"
        )
    some = lambda tree: jax.tree.map(lambda x: x[:, ::every], tree)
    at = lambda r: (r.t, r.y, r.sampled, r.applied)
    seen = (run.t[::every], *map(some, (run.y, run.sampled, run.applied)))
    return eqx.tree_at(at, run, seen)
