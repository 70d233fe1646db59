"""The same cost handed to searches that know no gradient, to compare with."""

import dataclasses
import time
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
import scipy.optimize
from tqdm import tqdm

from .tuned import Tuned, cost_of


FAILED = 1e6  # cost where it is not finite
Cost = Callable[[np.ndarray], float]


@dataclasses.dataclass(frozen=True)
class Search:
    """Where a search ended; rows of `history` are simulations, seconds, least cost."""

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
    """A cost that remembers the best it saw, and stops when its budget is spent."""

    def __init__(self, cost: Cost, budget: int, n: int, bar: tqdm):
        self.cost, self.budget, self.began = cost, budget, time.perf_counter()
        self.bar = bar
        self.best, self.least = np.zeros(n), np.inf
        self.rows: list[tuple[int, float, float]] = []

    def __call__(self, x: np.ndarray) -> float:
        if len(self.rows) >= self.budget:
            raise StopIteration
        value = self.cost(x)
        value = value if np.isfinite(value) else FAILED
        if value < self.least:
            self.best, self.least = np.array(x), value
        took = time.perf_counter() - self.began
        self.rows.append((len(self.rows) + 1, took, self.least))
        self.bar.set_postfix(cost=f"{self.least:.6g}", refresh=False)
        self.bar.update()
        return value


def _evolution(cost: _Counted, n: int, spread: float, seed: int) -> None:
    """CMA-ES with the package's own settings."""
    try:
        import cma
    except ImportError:
        raise ImportError("CMA-ES needs the package `cma`") from None
    options = {"verbose": -9, "seed": seed + 1, "maxfevals": cost.budget}
    search = cma.CMAEvolutionStrategy(np.zeros(n), spread, options)
    while not search.stop():
        points = search.ask()
        search.tell(points, [cost(x) for x in points])


def _simplex(cost: _Counted, n: int, spread: float, seed: int) -> None:
    """Nelder and Mead, from a simplex as wide as the others' first steps."""
    del seed
    simplex = np.vstack([np.zeros(n), spread * np.eye(n)])
    options = {"initial_simplex": simplex, "maxfev": cost.budget, "adaptive": True}
    scipy.optimize.minimize(cost, np.zeros(n), method="Nelder-Mead", options=options)


def _random(cost: _Counted, n: int, spread: float, seed: int) -> None:
    """Points about the start, the start first."""
    rng = np.random.default_rng(seed)
    cost(np.zeros(n))
    while True:
        cost(spread * rng.standard_normal(n))


RIVALS = {"CMA-ES": _evolution, "Nelder-Mead": _simplex, "random search": _random}


def search(
    method: str,
    cost: Cost,
    n: int,
    *,
    budget: int,
    spread: float = 0.4,
    seed: int = 0,
    progress: bool = True,
) -> Search:
    """The least of a cost of `n` numbers about zero, by so many simulations."""
    if method not in RIVALS:
        raise ValueError(f"method is {', '.join(RIVALS)}, not {method!r}")
    shown = None if progress else True
    with tqdm(total=budget, desc=method, disable=shown, leave=False) as bar:
        counted = _Counted(cost, budget, n, bar)
        try:
            RIVALS[method](counted, n, spread, seed)
        except StopIteration:
            pass
    return Search(counted.best, np.array(counted.rows))


def compare(
    tuned: Tuned,
    *,
    budget: int,
    methods: Sequence[str] = tuple(RIVALS),
    spread: float = 0.4,
    seed: int = 0,
    progress: bool = True,
) -> dict[str, Search]:
    """A tuning beside other searches, each from the same start on the same cost.

    `budget` counts runs through all scenarios; a gradient is counted as four of them, a
    Jacobian as one for every unknown and one more.
    """
    objective = tuned.objective
    x0, unit = np.asarray(objective.x0), np.asarray(objective.scale)
    cost = lambda y: float(cost_of(objective, jnp.asarray(x0 + unit * y)))
    least = np.minimum.accumulate(tuned.history.min(1))
    seconds = tuned.seconds * np.arange(1, len(least) + 1) / len(least)
    rows = np.stack([tuned.simulations, seconds, least], 1)
    found = {"gradient": Search((np.asarray(tuned.x) - x0) / unit, rows)}
    for method in methods:
        found[method] = search(
            method, cost, len(x0), budget=budget, spread=spread, seed=seed,
            progress=progress,
        )  # fmt: skip
    return found
