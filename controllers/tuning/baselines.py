"""The same cost handed to searches that know no gradient, to compare with."""

import dataclasses
import time
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
import scipy.optimize
from tqdm import tqdm

from .result import TuningResult, cost_of, costs_of


FAILED = 1e6  # cost where it is not finite
Costs = Callable[[np.ndarray], np.ndarray]  # of points, a row each


@dataclasses.dataclass(frozen=True)
class BaselineSearch:
    """Where a search ended; rows of `history` are simulations, seconds, least cost.

    Seconds hold those of compiling.
    """

    x: np.ndarray
    history: np.ndarray

    @property
    def cost(self) -> float:
        return float(self.history[-1, 2])

    def simulations_to(self, cost: float) -> float:
        """How many it took to a cost; infinite if it never came there."""
        there = self.history[:, 2] <= cost
        return float(self.history[np.argmax(there), 0]) if there.any() else np.inf

    def best_after(self, seconds: float) -> float:
        """The least cost it had by then; infinite before its first."""
        seen = self.history[self.history[:, 1] <= seconds, 2]
        return float(seen[-1]) if len(seen) else np.inf


class _Counted:
    """Costs that remember the best they saw, and stop when their budget is spent."""

    def __init__(self, costs: Costs, budget: int, n: int, bar: tqdm):
        self.costs, self.budget, self.began = costs, budget, time.perf_counter()
        self.bar = bar
        self.best, self.least = np.zeros(n), np.inf
        self.rows: list[tuple[int, float, float]] = []

    def __call__(self, points: np.ndarray) -> np.ndarray:
        left = self.budget - len(self.rows)
        if left <= 0:
            raise StopIteration
        values = np.asarray(self.costs(points))
        values = np.where(np.isfinite(values), values, FAILED)
        took = time.perf_counter() - self.began
        for x, value in zip(points[:left], values[:left], strict=True):
            if value < self.least:
                self.best, self.least = np.array(x), float(value)
            self.rows.append((len(self.rows) + 1, took, self.least))
        self.bar.set_postfix(cost=f"{self.least:.6g}", refresh=False)
        self.bar.update(len(values[:left]))
        return values


def _population(n: int) -> int:
    """Points at once for so many unknowns, as CMA-ES takes them by itself."""
    return 4 + int(3 * np.log(n))


def _evolution(costs: _Counted, n: int, spread: float, seed: int) -> None:
    """CMA-ES with the package's own settings."""
    try:
        import cma
    except ImportError:
        raise ImportError("CMA-ES needs the package `cma`") from None
    options = {"verbose": -9, "seed": seed + 1, "maxfevals": costs.budget}
    options["popsize"] = _population(n)
    search = cma.CMAEvolutionStrategy(np.zeros(n), spread, options)
    while not search.stop():
        points = search.ask()
        search.tell(points, costs(np.array(points)).tolist())


def _simplex(costs: _Counted, n: int, spread: float, seed: int) -> None:
    """Nelder and Mead, from a simplex as wide as the others' first steps."""
    del seed
    simplex = np.vstack([np.zeros(n), spread * np.eye(n)])
    options = {"initial_simplex": simplex, "maxfev": costs.budget, "adaptive": True}
    cost = lambda x: costs(x[None])[0]
    scipy.optimize.minimize(cost, np.zeros(n), method="Nelder-Mead", options=options)


def _random(costs: _Counted, n: int, spread: float, seed: int) -> None:
    """Points about the start, the start first."""
    rng = np.random.default_rng(seed)
    points = np.zeros((_population(n), n))
    points[1:] = spread * rng.standard_normal((len(points) - 1, n))
    while True:
        costs(points)
        points = spread * rng.standard_normal(points.shape)


RIVALS = {"CMA-ES": _evolution, "Nelder-Mead": _simplex, "random search": _random}


def search(
    method: str,
    costs: Costs,
    n: int,
    *,
    budget: int,
    spread: float = 0.4,
    seed: int = 0,
    progress: bool = True,
) -> BaselineSearch:
    """The least of a cost of `n` numbers about zero, by so many simulations.

    `costs` takes points, a row each, as many as a search has at once.
    """
    if method not in RIVALS:
        raise ValueError(f"method is {', '.join(RIVALS)}, not {method!r}")
    shown = None if progress else True
    with tqdm(total=budget, desc=method, disable=shown, leave=False) as bar:
        counted = _Counted(costs, budget, n, bar)
        try:
            RIVALS[method](counted, n, spread, seed)
        except StopIteration:
            pass
    return BaselineSearch(counted.best, np.array(counted.rows))


def compare_searches(
    tuned: TuningResult,
    *,
    budget: int,
    methods: Sequence[str] = tuple(RIVALS),
    spread: float = 0.4,
    seed: int = 0,
    progress: bool = True,
) -> dict[str, BaselineSearch]:
    """A tuning beside other searches, each from the same start on the same cost.

    `budget` counts runs through all scenarios; a gradient is counted as four of them, a
    Jacobian as one for every unknown and one more.
    """
    objective = tuned.objective
    x0, unit = np.asarray(objective.x0), np.asarray(objective.scale)

    def costs(ys: np.ndarray) -> np.ndarray:
        xs = jnp.asarray(x0 + unit * ys)
        one = len(xs) == 1  # by a program that sensitivities need too
        return np.asarray(
            [cost_of(objective, xs[0])] if one else costs_of(objective, xs)
        )

    least = np.minimum.accumulate(tuned.history.min(1))
    seconds = tuned.seconds * np.arange(1, len(least) + 1) / len(least)
    rows = np.stack([tuned.simulations, seconds, least], 1)
    found = {"gradient": BaselineSearch((np.asarray(tuned.x) - x0) / unit, rows)}
    for method in methods:
        found[method] = search(
            method, costs, len(x0), budget=budget, spread=spread, seed=seed,
            progress=progress,
        )  # fmt: skip
    return found
