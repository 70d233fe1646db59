"""What studies of tuning share: hardened loops, and races with other searches."""

from typing import Any

import equinox as eqx
import numpy as np

import controllers
from controllers import Scenarios, Tuned
from controllers.hardening import hardened
from controllers.objective import Objective
from controllers.tune import judge

from .study import Study


def hardened_ratios(
    study: Study,
    name: str,
    found: Tuned,
    others: Scenarios,
    loop: tuple[str, str],
    period: float,
    deviation: float,
) -> None:
    """Terms over those before tuning, in a loop with samples, delay and noise."""
    before, after = (
        _hard(found.objective, system, others, loop, period, deviation)
        for system in (found.objective.system, found.system)
    )
    study.metric(
        f"{name}.sampled.survived",
        np.mean(after.ok),
        1.0,
        0.0,
        note=f"scenarios held out, samples of {1e3 * period:g} ms, a command that is a "
        f"sample late, noise of {deviation:g} on what is measured",
    )
    for term in after.terms:
        ratio = np.mean(after.terms[term]) / np.mean(before.terms[term])
        study.metric(f"{name}.sampled.{term}_ratio", ratio, note="after over before")


def _hard(
    objective: Objective, system: Any, others: Scenarios, loop: tuple[str, str],
    period: float, deviation: float,
) -> controllers.Seen:  # fmt: skip
    """The tuned terms once more; states of the new parts begin at zero."""
    hard = hardened(system, *loop, period=period, deviation=deviation)
    y = others.initial_state
    assert y is not None
    wide = {
        k: np.broadcast_to(x, (len(others), *x.shape))
        for part in (f"{loop[1]}_late",)
        for k, x in hard.initial_state().parts[part].items()
    }
    parts = {**y.parts, f"{loop[1]}_late": wide, f"{loop[0]}_noise": {}}
    state = eqx.tree_at(lambda y: y.parts, y, parts)
    new = Objective(
        hard, objective.span, objective.free, objective.probes.terms,
        Scenarios(others.parameters, state), {}, len(objective.saves), "mean",
        "penalise", 1.0, {"solver": "rk4", "dt": period, "control_period": period},
    )  # fmt: skip
    return judge(new, new.x0)


def race(study: Study, name: str, found: Tuned, budget: int) -> None:
    """Beside CMA-ES, Nelder and Mead and chance, at equal cost."""
    runs = controllers.compare(found, budget=budget)
    mine, rival = runs["gradient"], runs["CMA-ES"]
    study.metric(
        f"{name}.simulations_vs_cmaes",
        mine.simulations_to(rival.cost) / rival.history[-1, 0],
        0.0,
        0.1,
        note=f"to the cost of CMA-ES after {budget} runs through all scenarios; a "
        "gradient is counted as four",
    )
    rows = [
        (k, x.history[-1, 0], x.history[-1, 1], x.cost, mine.simulations_to(x.cost))
        for k, x in runs.items()
    ]
    study.report.table(
        "Searches on the same scenarios",
        (
            "search",
            "simulations",
            "seconds",
            "least cost",
            "gradient's simulations to it",
        ),
        rows,
    )
    grid = np.arange(1.0, budget + 1)
    lines = {
        k: np.interp(grid, x.history[:, 0], x.history[:, 2]) for k, x in runs.items()
    }
    study.report.plot(
        "Searches: the least cost so far",
        ("runs through all scenarios", "", grid),
        ("cost", ""),
        lines,
    )
