"""A system evaluated on scenarios: cost terms, constraints, and which runs diverge."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
from jaxtyping import Array

from djdyn import System
from djdyn.optimize.problem import Flat

from .evaluation import Evaluation
from .objective import Objective
from .scenarios import Scenarios
from .terms import AbstractTerm, Limit


def evaluate(
    system: System,
    t1: float,
    cost: Mapping[str, AbstractTerm],
    scenarios: Scenarios | None = None,
    constraints: Mapping[str, Limit] | None = None,
    *,
    saves: int = 101,
    **rollout_options: Any,
) -> Evaluation:
    """Simulate a system from 0 to `t1`, s, in all scenarios, and evaluate its cost.

    **Arguments:**

    - `cost`, `constraints`: terms and limits by name; see `tune`.
    - `scenarios`: see `sample`; without them, the system as it stands.
    - `saves`: number of times, evenly spaced, at which terms and limits are evaluated.
    - `rollout_options`: further arguments of `djdyn.rollout`, such as `solver`, `dt`.

    **Returns:** the terms, exceeded limits and success of every scenario.
    """
    batch = (scenarios or Scenarios()).with_initial_states(system)
    objective = Objective(
        system, t1, (), cost, batch, constraints,
        saves=saves, rollout_options=rollout_options,
    )  # fmt: skip
    return evaluate_at(objective, objective.x0)


@eqx.filter_jit
def evaluate_at(objective: Objective, x: Flat) -> Evaluation:
    """Evaluate all scenarios of an objective with the gains of `x`, compiled."""
    return objective.evaluate(x)


@eqx.filter_jit
def cost_of(objective: Objective, x: Flat) -> Array:
    """Evaluate the cost of an objective with the gains of `x`, compiled.

    **Returns:** the cost over all scenarios, penalties of constraints included.
    """
    return objective.cost(x)


@eqx.filter_jit
def costs_of(objective: Objective, xs: Array) -> Array:
    """Return the costs of many gains, a row each, simulated in one batch."""
    return objective.costs(xs)
