"""What studies of tuning share: loops as built, and races with other searches."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import controllers
import djdyn
from controllers import BaselineSearch, Scenarios, TuningResult
from controllers.tuning.baselines import RIVALS
from controllers.tuning.objective import Objective
from controllers.tuning.result import GRADIENT, percent
from controllers.tuning.tune import evaluate

from .study import Study


def as_built(period: float) -> dict[str, Any]:
    """How loops run: controllers take samples, and what they send is a sample late."""
    held = {"control_period": period, "control_delay": True}
    return {"solver": "rk4", "dt": period, **held}


def without(study: Study, name: str, found: TuningResult, others: Scenarios) -> None:
    """Cost over that before tuning, in a loop without samples, delay and noise.

    The noise is the part of that name.
    """
    old = found.objective
    quiet = djdyn.with_parameters(old.system, {"noise.deviation": 0.0})
    new = Objective(
        quiet, old.span, old.free, old.probes.terms, others, {}, len(old.saves),
        "mean", "penalise", 1.0, {k: old.how[k] for k in ("solver", "dt")},
    )  # fmt: skip
    before, after = evaluate(new, new.x0), evaluate(new, found.x)
    ratio = np.mean(after.costs) / np.mean(before.costs)
    study.metric(
        f"{name}.continuous.cost_ratio",
        ratio,
        0.0,
        1.0,
        note="in a loop without samples, delay and noise",
    )
    study.metric(
        f"{name}.survived",
        np.mean(found.seen["held out"][1].ok),
        1.0,
        0.0,
        note="of scenarios held out, with samples, delay and noise",
    )


def keep(study: Study, found: TuningResult) -> None:
    """Gains on disk; what an interrupted tuning would go on with is gone."""
    found.save(study.out / "gains.json")
    for kept in study.out.glob("tuning*.npz"):
        kept.unlink()


def race(
    study: Study,
    name: str,
    found: TuningResult,
    budget: int,
    methods: Sequence[str] = tuple(RIVALS),
) -> dict[str, BaselineSearch]:
    """Beside CMA-ES, Nelder and Mead and chance, at equal cost."""
    runs = controllers.compare_searches(found, budget=budget, methods=methods)
    mine, rival = runs["gradient"], runs["CMA-ES"]
    study.metric(
        f"{name}.simulations_vs_cmaes",
        mine.simulations_to(rival.cost) / rival.history[-1, 0],
        0.0,
        1.0,
        note=f"to the cost of CMA-ES after {budget} runs through all scenarios; a "
        f"gradient is counted as {GRADIENT}; aim 0.1",
    )
    rows = [
        (
            k,
            x.history[-1, 0],
            x.history[-1, 1],
            x.cost,
            x.best_after(mine.history[-1, 1]),
            mine.simulations_to(x.cost),
        )
        for k, x in runs.items()
    ]
    study.report.table(
        "Searches on the same scenarios",
        (
            "search",
            "simulations",
            "seconds",
            "least cost",
            "in the gradient's time",
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
        log="y",
    )
    return runs


def margin_table(study: Study, name: str, found: TuningResult) -> None:
    """How much gain and lag the loop bears, with its delay, before and after."""
    assert found.margins is not None
    study.metric(
        f"{name}.modulus_margin",
        found.margins[1].modulus.min(),
        1.0,
        0.5,
        note="least distance of an open loop from minus one, delay included; half is "
        "what is asked for",
    )
    study.metric(
        f"{name}.phase_margin",
        found.margins[1].phase.min(),
        unit="deg",
        note="likewise",
    )
    study.report.table(
        "Margins of each loop, the others closed, worst of all scenarios",
        ("gains", "loop", "gain, dB", "phase, deg", "modulus"),
        [
            (when, i + 1, 20 * np.log10(m.gain[i]), m.phase[i], m.modulus[i])
            for when, m in zip(("before", "after"), found.margins, strict=True)
            for i in range(len(m.gain))
        ],
    )


def gain_table(study: Study, found: TuningResult) -> None:
    """Before, after, and how the cost changes with each."""
    flat = lambda gains: [float(y) for k in sorted(gains) for y in np.ravel(gains[k])]
    changes = found.sensitivity()
    study.report.table(
        "What was tuned",
        ("parameter", "before", "after", "cost with 0.9 of it", "with 1.1 of it"),
        [
            (name, f"{old:.5g}", f"{new:.5g}", *map(percent, changes[name]))
            for name, old, new in zip(
                changes, flat(found.before), flat(found.gains), strict=True
            )
        ],
    )
