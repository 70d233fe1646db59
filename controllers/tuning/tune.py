"""Tuning by gradient: one call for any controller, over many scenarios at once."""

import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from djdyn import FreeParameter, System
from djdyn.optimize.bfgs import BFGS
from djdyn.optimize.multistart import (
    descend,
    is_least_squares,
    is_self_scaling,
    solver_for,
)
from djdyn.optimize.nl2sol import NL2SOL
from djdyn.optimize.problem import Flat
from djdyn.system.parameters import as_free
from djdyn.system.transforms import bounds_of

from .evaluate import evaluate_at
from .evaluation import Evaluation
from .loop_limit import loop_limit
from .objective import Objective
from .options import RobustnessMargins, SearchOptions
from .result import SIMULATIONS_PER_GRADIENT, TuningResult
from .robustness import check_robustness
from .scenarios import Scenarios
from .terms import AbstractTerm, Limit


CONSTRAINT_TOLERANCE = 1e-3  # relative to a limit: smaller excesses do not count
PENALTY_GROWTH = 4.0  # factor from one outer iteration to the next


def tune(
    system: System,
    t1: float,
    *,
    free: Sequence[FreeParameter | str],
    cost: Mapping[str, AbstractTerm],
    scenarios: Scenarios | None = None,
    hold_out: Scenarios | None = None,
    constraints: Mapping[str, Limit] | None = None,
    search: SearchOptions | None = None,
    robustness: RobustnessMargins | None = None,
    saves: int = 101,
    save: str | Path | None = None,
    progress: bool = True,
    **rollout_options: Any,
) -> TuningResult:
    """Find the free parameters with the least cost of simulations from 0 to `t1`, s.

    **Arguments:**

    - `free`: paths of parameters, with transforms that keep them in their domains.
    - `cost`: terms by name (`MeanSquare`, `Peak`, `DamageEquivalentLoad`, ...); their
      sum is minimised.
    - `scenarios`: conditions to tune on, see `sample`; `hold_out`: other conditions, on
      which the result is validated.
    - `constraints`: limits by name.
    - `search`: method, starting points, treatment of constraints and scenarios.
    - `robustness`: where stability is checked, and the margins that loops must keep.
    - `saves`: number of times, evenly spaced, at which terms and limits are evaluated.
    - `save`: a file that keeps the last step. If it exists, the tuning resumes there.
    - `rollout_options`: further arguments of `djdyn.rollout`, such as `solver`, `dt`.

    **Returns:** the gains, and evaluations before and after on all scenarios.
    """
    search, scenarios = search or SearchOptions(), scenarios or Scenarios()
    if not cost:
        raise ValueError("the cost has no terms")
    if robustness is not None:
        robustness.check_time(t1)
    objective = Objective(
        system, t1, as_free(free), cost, scenarios, constraints, saves=saves,
        risk=search.risk, diverged=search.diverged, penalty=search.penalty,
        loop=loop_limit(system, scenarios, robustness), rollout_options=rollout_options,
    )  # fmt: skip
    solver = solver_for(search.method, search.tolerance)
    _check_method(solver, objective)
    before = evaluate_at(objective, objective.x0)
    if not np.any(before.ok):
        raise ValueError("all scenarios diverge with the initial gains")
    path = None if save is None else Path(save).with_suffix(".npz")
    began = time.perf_counter()
    objective, x, after, histories = _search(
        objective, before, solver, search, path, progress
    )
    seconds = time.perf_counter() - began
    if search.outer_iterations > 1:
        _warn_of_limits(after, search.outer_iterations)
    evaluations = {"tuned on": (before, after)}
    if hold_out is not None:
        others = objective.with_scenarios(hold_out)
        first = evaluate_at(others, objective.x0)
        evaluations["held out"] = first, evaluate_at(others, x)
    spectral_abscissa, margins = check_robustness(objective, x, robustness)
    return TuningResult(
        objective=objective,
        x=x,
        evaluations=evaluations,
        history=np.concatenate(histories),
        simulations=_simulations(solver, objective, histories),
        spectral_abscissa=spectral_abscissa,
        margins=margins,
        seconds=seconds,
    )


def _search(
    objective: Objective,
    before: Evaluation,
    solver: Any,
    search: SearchOptions,
    path: Path | None,
    progress: bool,
) -> tuple[Objective, Flat, Evaluation, list[np.ndarray]]:
    """Minimise an objective, by an augmented Lagrangian if it has outer iterations.

    **Returns:** the objective with its last multipliers, the best gains, what they were
    evaluated to, and the costs of each outer iteration.
    """
    xs, histories = _starting_points(objective, search), []
    x, after = objective.x0, before
    for i in range(search.outer_iterations):
        kept = None if path is None else path.with_stem(f"{path.stem}-{i}")
        ahead = is_least_squares(solver) and not is_self_scaling(solver)
        J = _linearise(objective, xs[0])[1] if ahead else None
        xs, costs, _, history = descend(
            objective, xs, J, solver, search.max_steps, kept, progress, "tuning"
        )
        histories.append(history)
        x = xs[int(jnp.argmin(costs))]
        after = evaluate_at(objective, x)
        worst = [np.max(g, initial=0.0) for g in after.excess.values()]
        if all(g < CONSTRAINT_TOLERANCE for g in worst):
            break
        if i + 1 < search.outer_iterations:
            objective = _with_new_multipliers(objective, after)
    return objective, x, after, histories


def _check_method(solver: Any, objective: Objective) -> None:
    """Raise if a solver cannot minimise an objective, and say why."""
    if not isinstance(solver, BFGS):
        for f in objective.free:
            if any(np.any(np.isfinite(b)) for b in bounds_of(f.transform)):
                raise ValueError(f"only method 'bfgs' keeps the bounds of {f.path!r}")
    if is_least_squares(solver):
        if objective.risk != "mean":
            raise ValueError(
                "least squares minimise the mean over scenarios, not "
                f"{objective.risk!r}"
            )
        eqx.filter_eval_shape(objective.residuals, objective.x0)  # refuses other terms


def _simulations(
    solver: Any, objective: Objective, histories: list[np.ndarray]
) -> Float[np.ndarray, " steps"]:
    """Return how many simulations had been run after each step.

    A derivative counts as several. `BFGS` needs one more gradient in every outer
    iteration, of the penalties alone, and solvers other than our own one more to find
    their units. Where `NL2SOL` rejects a step it evaluates no derivative.
    """
    squares = is_least_squares(solver)
    price = 1 + objective.x0.size if squares else SIMULATIONS_PER_GRADIENT
    more = not is_self_scaling(solver)
    if isinstance(solver, BFGS):
        more = objective.penalties() is not None
    spent = []
    for costs in histories:  # of all starting points, step by step
        count = np.full(costs.shape, float(price))
        if isinstance(solver, NL2SOL):
            count = 1.0 + price * (np.diff(costs, axis=0, prepend=np.inf) < 0)
            count[0] = price
        count[0] += more * price
        spent.append(np.sum(count, 1))
    return np.cumsum(np.concatenate(spent))


@eqx.filter_jit
def _linearise(objective: Objective, x: Flat) -> tuple[Array, Array]:
    return objective.linearise_residuals(x)


def _starting_points(objective: Objective, search: SearchOptions) -> Array:
    """Return the starting points of a search, a row each, the given gains first."""
    shape = (search.num_starts, objective.x0.size)
    away = jax.random.normal(jax.random.key(search.seed), shape).at[0].set(0.0)
    xs = objective.x0[None] + search.spread * objective.scale[None] * away
    low, high = objective.bounds()
    return jnp.clip(xs, low[None], high[None])


def _with_new_multipliers(objective: Objective, after: Evaluation) -> Objective:
    """Return the augmented Lagrangian of the next outer iteration."""
    mu, ok = objective.penalty, after.ok[:, None]
    new = {
        k: jnp.where(ok, jnp.maximum(held + mu * after.excess[k], 0), 0.0)
        for k, held in objective.multipliers.items()
    }
    at = lambda o: (o.multipliers, o.penalty)
    return eqx.tree_at(at, objective, (new, mu * PENALTY_GROWTH))


def _warn_of_limits(after: Evaluation, outer_iterations: int) -> None:
    """Warn of the limits that are still exceeded."""
    for name, g in after.excess.items():
        worst = np.max(np.where(after.ok[:, None], g, 0.0), axis=1, initial=0.0)
        if lost := int(np.sum(worst >= CONSTRAINT_TOLERANCE)):
            warnings.warn(
                f"limit {name!r} is not kept: after outer iteration {outer_iterations} "
                f"it is exceeded by up to {worst.max():.2g} of its size in {lost} of "
                f"{len(worst)} scenarios; it may not be feasible within the bounds of "
                "the free parameters",
                stacklevel=3,
            )
