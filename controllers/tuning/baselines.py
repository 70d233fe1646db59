"""Searches without gradients, to compare a tuning with on the same cost."""

import dataclasses
import time
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
import scipy.optimize
from tqdm import tqdm

from .evaluate import cost_of, costs_of
from .result import TuningResult


FAILED_COST = 1e6  # in place of a cost that is not finite
Costs = Callable[[np.ndarray], np.ndarray]  # from points, a row each


@dataclasses.dataclass(frozen=True)
class BaselineSearch:
    """The result of a search: its best point `x`, and its history.

    Rows of `history` are simulations, seconds (including compilation) and least cost.
    """

    x: np.ndarray
    history: np.ndarray

    @property
    def cost(self) -> float:
        """Least cost found."""
        return float(self.history[-1, 2])

    def simulations_to(self, cost: float) -> float:
        """Return how many simulations a cost took; infinity if it was not reached."""
        there = self.history[:, 2] <= cost
        return float(self.history[np.argmax(there), 0]) if there.any() else np.inf

    def best_after(self, seconds: float) -> float:
        """Return the least cost after some seconds; infinity before the first."""
        seen = self.history[self.history[:, 1] <= seconds, 2]
        return float(seen[-1]) if len(seen) else np.inf


class _Counted:
    """A cost function that records the best point and stops at its budget."""

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
        values = np.where(np.isfinite(values), values, FAILED_COST)
        took = time.perf_counter() - self.began
        for x, value in zip(points[:left], values[:left], strict=True):
            if value < self.least:
                self.best, self.least = np.array(x), float(value)
            self.rows.append((len(self.rows) + 1, took, self.least))
        self.bar.set_postfix(cost=f"{self.least:.6g}", refresh=False)
        self.bar.update(len(values[:left]))
        return values


def _population(n: int) -> int:
    """Return the default population of CMA-ES for `n` unknowns."""
    return 4 + int(3 * np.log(n))


def _cma_es(costs: _Counted, n: int, spread: float, seed: int) -> None:
    """Search by CMA-ES with the default settings of the package `cma`."""
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


def _nelder_mead(costs: _Counted, n: int, spread: float, seed: int) -> None:
    """Search by Nelder-Mead, from a simplex as wide as the others' first steps."""
    del seed
    simplex = np.vstack([np.zeros(n), spread * np.eye(n)])
    options = {"initial_simplex": simplex, "maxfev": costs.budget, "adaptive": True}
    cost = lambda x: costs(x[None])[0]
    scipy.optimize.minimize(cost, np.zeros(n), method="Nelder-Mead", options=options)


def _random_search(costs: _Counted, n: int, spread: float, seed: int) -> None:
    """Search at random points about the start, the start first."""
    rng = np.random.default_rng(seed)
    points = np.zeros((_population(n), n))
    points[1:] = spread * rng.standard_normal((len(points) - 1, n))
    while True:
        costs(points)
        points = spread * rng.standard_normal(points.shape)


BASELINE_METHODS = {
    "CMA-ES": _cma_es,
    "Nelder-Mead": _nelder_mead,
    "random search": _random_search,
}


def search_baseline(
    method: str,
    costs: Costs,
    n: int,
    *,
    budget: int,
    spread: float = 0.4,
    seed: int = 0,
    progress: bool = True,
) -> BaselineSearch:
    """Minimise a cost of `n` numbers about zero without gradients.

    **Arguments:**

    - `method`: one of `BASELINE_METHODS`.
    - `costs`: a function from points, a row each, to their costs.
    - `budget`: how many simulations are made.
    - `spread`: width of the first steps about zero.

    **Returns:** the best point and the history of the search.
    """
    if method not in BASELINE_METHODS:
        known = ", ".join(BASELINE_METHODS)
        raise ValueError(f"method is {known}, not {method!r}")
    shown = None if progress else True
    with tqdm(total=budget, desc=method, disable=shown, leave=False) as bar:
        counted = _Counted(costs, budget, n, bar)
        try:
            BASELINE_METHODS[method](counted, n, spread, seed)
        except StopIteration:
            pass
    return BaselineSearch(counted.best, np.array(counted.rows))


def compare_searches(
    tuned: TuningResult,
    *,
    budget: int,
    methods: Sequence[str] = tuple(BASELINE_METHODS),
    spread: float = 0.4,
    seed: int = 0,
    progress: bool = True,
) -> dict[str, BaselineSearch]:
    """Compare a tuning with searches without gradients, from the same start.

    `budget` counts runs through all scenarios. A gradient is counted as four of them, a
    Jacobian as one for every unknown and one more.

    **Returns:** searches by name; that of the tuning is called `"gradient"`.
    """
    objective = tuned.objective
    x0, unit = np.asarray(objective.x0), np.asarray(objective.scale)

    def costs(ys: np.ndarray) -> np.ndarray:
        xs = jnp.asarray(x0 + unit * ys)
        one = len(xs) == 1  # the compiled function that sensitivities use too
        return np.asarray(
            [cost_of(objective, xs[0])] if one else costs_of(objective, xs)
        )

    least = np.minimum.accumulate(tuned.history.min(1))
    seconds = tuned.seconds * np.arange(1, len(least) + 1) / len(least)
    rows = np.stack([tuned.simulations, seconds, least], 1)
    found = {"gradient": BaselineSearch((np.asarray(tuned.x) - x0) / unit, rows)}
    for method in methods:
        found[method] = search_baseline(
            method, costs, len(x0), budget=budget, spread=spread, seed=seed,
            progress=progress,
        )  # fmt: skip
    return found
