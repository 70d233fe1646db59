"""The winch tuned on a batch of seas: by gradient, by simplex and by evolution."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.optimize
from jaxtyping import Array

import djdyn
from djdyn.sea import jonswap
from djdyn.timefunctions import HarmonicSum

from .study import Study
from .winch_gear import COMPONENTS, build, heave, moved, rest


FREE = ("pid.kp", "pid.ki", "pid.kd", "pid.limit")
FREE += ("winch.acceleration", "winch.deceleration")
PRICE = np.array([0.0, 0.0, 0.0, 2.0, 1.0, 1.0])  # N for each unit of what is free
START = np.array([0.01, 1e-4, 1e-3, 3.0, 3.0, 3.0])  # a tenth of the print's gains
SPAN = 10.0  # s
STEPS: dict[str, Any] = {"solver": "rk4", "dt": 2.5e-3}
GRADIENT = 4  # simulations that a gradient is counted as
DECK = "deck.joint.motion.height"


def seas(first: int, count: int) -> HarmonicSum:
    """Irregular seas of 0.5 to 1.5 m and 7 to 12 s, by seeds from `first` on."""
    seeds = jnp.arange(first, first + count)
    turn = lambda k: ((seeds * k) % 16).astype(float) / 15  # from 0 to 1, mixed
    height, period = 0.5 + turn(7), 7.0 + 5 * turn(5)
    one = lambda height, period, seed: jonswap(
        height, period, seed=seed, components=COMPONENTS
    )
    return jax.vmap(one)(height, period, seeds)


@eqx.filter_jit
def _cost(theta: Array, system: djdyn.System, y0: djdyn.State, decks: dict) -> Array:
    values = jnp.asarray(START) * jnp.exp(theta)
    here = djdyn.put(system, dict(zip(FREE, values, strict=True)))
    end = djdyn.rollout(here, SPAN, y0, parameters=decks, saveat=[SPAN], **STEPS)
    error = jnp.sqrt(end.y.parts["squares"]["sum"][:, -1] / SPAN)
    return jnp.mean(error) + values @ PRICE


_slope = eqx.filter_jit(jax.value_and_grad(_cost))


class Problem:
    """Mean over seas of the rms tension error, N, and the price of the drive.

    Its argument are logarithms of what is free, over their start.
    """

    def __init__(self, system: djdyn.System, batch: HarmonicSum):
        ready = rest(system)
        y0 = jax.vmap(lambda sea: moved(ready, *heave(sea)))(batch)
        parts = ("amplitude", "frequency", "phase")
        self.given = system, y0, {f"{DECK}.{k}": getattr(batch, k) for k in parts}

    def __call__(self, theta: Any) -> float:
        return float(_cost(jnp.asarray(theta), *self.given))

    def slope(self, theta: Array) -> tuple[Array, Array]:
        return _slope(theta, *self.given)

    def show(self, theta: Array) -> djdyn.Trajectory:
        """The first sea, with the winch at its start and as it is now."""
        system, y0, decks = self.given
        twice = lambda x: jnp.stack([x[0], x[0]])
        scale = jnp.exp(jnp.stack([jnp.zeros_like(theta), theta]))
        gains = dict(zip(FREE, (jnp.asarray(START)[None] * scale).T, strict=True))
        lanes = jax.tree.map(twice, decks) | gains
        saves = np.linspace(0.0, SPAN, 201)
        y0 = jax.tree.map(twice, y0)
        return djdyn.rollout(system, SPAN, y0, parameters=lanes, saveat=saves, **STEPS)


def by_gradient(cost: Problem, steps: int) -> tuple[Array, list[tuple[int, float]]]:
    """Adam on the logarithms; the best that it saw, and how it came there."""
    theta = best = jnp.zeros(len(FREE))
    adam = optax.adam(optax.cosine_decay_schedule(0.4, steps, 0.1), b1=0.8, b2=0.95)
    state, seen, least = adam.init(theta), [], np.inf
    for k in range(steps):
        value, gradient = cost.slope(theta)
        if float(value) < least:
            best, least = theta, float(value)
        seen.append((GRADIENT * (k + 1), least))
        if not np.all(np.isfinite(gradient)):  # beyond what the winch survives
            theta, state = (theta + best) / 2, adam.init(theta)
            continue
        with jax.numpy_dtype_promotion("standard"):  # optax mixes types
            update, state = adam.update(gradient, state)
        theta = jnp.asarray(optax.apply_updates(theta, update))
    return best, seen


class Counted:
    """A cost in NumPy that remembers the best it saw, up to a number of calls."""

    def __init__(self, cost: Problem, budget: int):
        self.cost, self.budget = cost, budget
        self.best, self.least, self.seen = np.zeros(len(FREE)), np.inf, []

    def __call__(self, theta: np.ndarray) -> float:
        if len(self.seen) >= self.budget:
            raise StopIteration
        value = self.cost(theta)
        value = value if np.isfinite(value) else 1e6
        if value < self.least:
            self.best, self.least = np.array(theta), value
        self.seen.append((len(self.seen) + 1, self.least))
        return value


def by_simplex(cost: Counted) -> None:
    """Nelder and Mead, from a simplex as wide as a first step of the others."""
    n = len(FREE)
    simplex = np.vstack([np.zeros(n), 0.4 * np.eye(n)])
    options = {"initial_simplex": simplex, "maxfev": cost.budget, "adaptive": True}
    try:
        scipy.optimize.minimize(
            cost, np.zeros(n), method="Nelder-Mead", options=options
        )
    except StopIteration:
        pass


def by_evolution(cost: Counted) -> None:
    """CMA-ES, with the package's own settings."""
    import cma

    options = {"verbose": -9, "seed": 1, "maxfevals": cost.budget}
    search = cma.CMAEvolutionStrategy(np.zeros(len(FREE)), 0.4, options)
    try:
        while not search.stop():
            points = search.ask()
            search.tell(points, [cost(x) for x in points])
    except StopIteration:
        pass


def run(study: Study) -> None:
    """Tunes on some seas, and judges on others."""
    count, steps = (8, 6) if study.quick else (64, 25)
    system = study.customise(build(elements=2))
    cost, judge = (Problem(system, seas(first, count)) for first in (0, 1000))
    before = judge(np.zeros(len(FREE)))
    best, history = by_gradient(cost, steps)
    found: dict[str, tuple[Any, float]] = {"gradient": (best, judge(best))}
    ways = {"gradient": history}
    for name, search in (("Nelder-Mead", by_simplex), ("CMA-ES", by_evolution)):
        counted = Counted(cost, GRADIENT * steps)
        try:
            search(counted)
        except ImportError:
            study.report.text("CMA-ES was left out: the package `cma` is not there.")
            continue
        found[name] = counted.best, judge(counted.best)
        ways[name] = counted.seen
    tuned = found["gradient"][1]
    study.metric(
        "winch.tuned.cost_ratio",
        tuned / before,
        0.0,
        0.5,
        note="held out, to the start",
    )
    for key, name in (("nelder_mead", "Nelder-Mead"), ("cmaes", "CMA-ES")):
        if name in found:
            study.metric(
                f"winch.tuned.vs_{key}",
                tuned / found[name][1],
                0.0,
                1.05,
                note=f"held-out cost by gradient over that by {name}, equal cost",
            )
    rows = [("start", *START, before)]
    rows += [(k, *(START * np.exp(x)), value) for k, (x, value) in found.items()]
    study.report.table(
        f"Winch tuned on {count} seas, judged on {count} others",
        ("by", *FREE, "cost, N"),
        rows,
    )
    lines = {k: tuple(np.array(x, float).T) for k, x in ways.items()}
    study.report.plot(
        "Tuning: the best cost so far",
        ("cost of the search", "batches of simulations", lines["gradient"][0]),
        ("cost", "N"),
        lines,
        log="y",
    )
    shown = judge.show(best)
    tension = np.asarray(shown.signal("line.head_tension"))
    rate = np.asarray(shown.signal("winch.rate"))
    for what, unit, both in (("tension", "N", tension), ("payout rate", "m/s", rate)):
        study.report.plot(
            f"Winch on a sea that it was not tuned on: {what}",
            ("time", "s", shown.t),
            (what, unit),
            {"start": both[0], "tuned by gradient": both[1]},
        )
