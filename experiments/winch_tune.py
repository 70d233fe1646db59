"""The winch tuned on a batch of seas: by gradient, by simplex and by evolution."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
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
STRAIN = 100.0  # N for a drive that is asked for all of its limit all the time
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
    excess = end.y.parts["excess"]["sum"][:, -1] / SPAN
    return jnp.mean(error + STRAIN * excess) + values @ PRICE


_slope = eqx.filter_jit(jax.value_and_grad(_cost))


class Problem:
    """Mean over seas of the rms tension error, N, and the price of the drive, which is
    to keep a fifth of its limits in hand.

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


class Counted:
    """A cost in NumPy that remembers the best it saw, up to a number of simulations."""

    def __init__(self, cost: Problem, budget: int):
        self.cost, self.budget, self.spent = cost, budget, 0
        self.best, self.least, self.seen = np.zeros(len(FREE)), np.inf, []

    def _note(self, theta: np.ndarray, value: float, price: int) -> float:
        if self.spent + price > self.budget:
            raise StopIteration
        self.spent += price
        value = value if np.isfinite(value) else 1e6
        if value < self.least:
            self.best, self.least = np.array(theta), value
        self.seen.append((self.spent, self.least))
        return value

    def __call__(self, theta: np.ndarray) -> float:
        return self._note(theta, self.cost(theta), 1)

    def slope(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.cost.slope(jnp.asarray(theta))
        return self._note(theta, float(value), GRADIENT), np.nan_to_num(gradient)


def by_gradient(cost: Counted) -> None:
    """Broyden, Fletcher, Goldfarb and Shanno: its line search turns back where a winch
    at its limits rings, which steps of Adam do not."""
    _until_spent(cost.slope, "BFGS", jac=True)


def by_simplex(cost: Counted) -> None:
    """Nelder and Mead, from a simplex as wide as a first step of the others."""
    n = len(FREE)
    simplex = np.vstack([np.zeros(n), 0.4 * np.eye(n)])
    options = {"initial_simplex": simplex, "maxfev": cost.budget, "adaptive": True}
    _until_spent(cost, "Nelder-Mead", options=options)


def _until_spent(cost: Any, method: str, **how: Any) -> None:
    try:
        scipy.optimize.minimize(cost, np.zeros(len(FREE)), method=method, **how)
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
    count, steps = 64, 16 if study.quick else 25
    system = study.customise(build(elements=2))
    cost, judge = (Problem(system, seas(first, count)) for first in (0, 1000))
    before = judge(np.zeros(len(FREE)))
    found: dict[str, tuple[Any, float]] = {}
    ways = {}
    for name, search in (
        ("gradient", by_gradient),
        ("Nelder-Mead", by_simplex),
        ("CMA-ES", by_evolution),
    ):
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
        0.7 if study.quick else 0.5,
        note=f"held out, to the start; {steps} gradients",
    )
    for key, name in (("nelder_mead", "Nelder-Mead"), ("cmaes", "CMA-ES")):
        if name in found:
            judged = () if study.quick else (0.0, 1.05)  # a search cut short is no race
            study.metric(
                f"winch.tuned.vs_{key}",
                tuned / found[name][1],
                *judged,
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
    shown = judge.show(jnp.asarray(found["gradient"][0]))
    tension = np.asarray(shown.signal("line.head_tension"))
    rate = np.asarray(shown.signal("winch.rate"))
    for what, unit, both in (("tension", "N", tension), ("payout rate", "m/s", rate)):
        study.report.plot(
            f"Winch on a sea that it was not tuned on: {what}",
            ("time", "s", shown.t),
            (what, unit),
            {"start": both[0], "tuned by gradient": both[1]},
        )
