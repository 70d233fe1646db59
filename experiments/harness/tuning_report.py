"""Report of tuning studies: margins, gains, and comparison with other searches."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import controllers
import djdyn
from controllers import (
    BASELINE_METHODS,
    SIMULATIONS_PER_GRADIENT,
    BaselineSearch,
    Scenarios,
    TuningResult,
)

from .study import Study


def sampled_loop(period: float) -> dict[str, Any]:
    """Return options of `rollout` for sampled controllers with a sample of delay."""
    control = {"control_period": period, "control_delay": True}
    return {"solver": "rk4", "dt": period, **control}


def compare_continuous(
    study: Study, name: str, found: TuningResult, others: Scenarios
) -> None:
    """Report the cost ratio in a loop without sampling, delay and noise.

    The noise is the part named `noise`.
    """
    old = found.objective
    how = {k: old.rollout_options[k] for k in ("solver", "dt")}
    before, after = (
        controllers.evaluate(
            djdyn.with_parameters(system, {"noise.deviation": 0.0}), old.t1,
            old.probes.terms, others, saves=len(old.times), **how,
        )
        for system in (old.system, found.system)
    )  # fmt: skip
    ratio = np.mean(after.costs) / np.mean(before.costs)
    study.metric(
        f"{name}.continuous.cost_ratio",
        ratio,
        at_most=1.0,
        note="cost after tuning over before, without sampling, delay and noise",
    )
    study.metric(
        f"{name}.completed_fraction",
        np.mean(found.evaluations["held out"][1].ok),
        at_least=1.0,
        note="fraction of the held-out scenarios that run to their end, with sampling, "
        "delay and noise",
    )


def save_gains(study: Study, found: TuningResult) -> None:
    """Write the gains and delete the checkpoints of the finished tuning."""
    found.save(study.out / "gains.json")
    for checkpoint in study.out.glob("tuning*.npz"):
        checkpoint.unlink()


def compare_searches(
    study: Study,
    name: str,
    found: TuningResult,
    budget: int,
    methods: Sequence[str] = tuple(BASELINE_METHODS),
) -> dict[str, BaselineSearch]:
    """Compare with other searches by the simulations they need for equal cost."""
    runs = controllers.compare_searches(found, budget=budget, methods=methods)
    gradient, cmaes = runs["gradient"], runs["CMA-ES"]
    study.metric(
        f"{name}.simulations_vs_cmaes",
        gradient.simulations_to(cmaes.cost) / cmaes.history[-1, 0],
        at_most=0.1,
        note="aim: simulations that the gradient search needs to reach the cost of "
        f"CMA-ES, over the {budget} that CMA-ES takes; a gradient is counted as "
        f"{SIMULATIONS_PER_GRADIENT}",
    )
    rows = [
        (
            k,
            x.history[-1, 0],
            x.history[-1, 1],
            x.cost,
            x.best_after(gradient.history[-1, 1]),
            gradient.simulations_to(x.cost),
        )
        for k, x in runs.items()
    ]
    study.report.table(
        "Searches on the same scenarios",
        (
            "search",
            "simulations",
            "seconds",
            "lowest cost",
            "lowest cost in the time of the gradient search",
            "simulations of the gradient search to this cost",
        ),
        rows,
    )
    grid = np.arange(1.0, budget + 1)
    lines = {
        k: np.interp(grid, x.history[:, 0], x.history[:, 2]) for k, x in runs.items()
    }
    study.report.plot(
        "Searches: lowest cost so far",
        ("runs through all scenarios", "", grid),
        ("cost", ""),
        lines,
        log="y",
    )
    return runs


def searched(metrics: dict[str, float], name: str) -> str:
    """Return how the gradient search compares with CMA-ES, if that was run."""
    ratio = metrics.get(f"{name}.simulations_vs_cmaes")
    if ratio is None:
        return ""
    return f" For the cost of CMA-ES the gradient needs {ratio:.1%} of its simulations."


def margin_table(study: Study, name: str, found: TuningResult) -> None:
    """Report gain, phase and modulus margins with the delay, before and after."""
    assert found.margins is not None
    study.metric(
        f"{name}.modulus_margin",
        found.margins[1].modulus.min(),
        at_least=0.5,
        note="least distance of an open loop from minus one, delay included",
    )
    study.metric(
        f"{name}.phase_margin",
        found.margins[1].phase.min(),
        unit="deg",
        note="least phase margin of a loop, delay included",
    )
    study.report.table(
        "Margins of each loop with the others closed, worst of all scenarios",
        ("gains", "loop", "gain, dB", "phase, deg", "modulus"),
        margin_rows(found),
    )


def margin_rows(found: TuningResult) -> list[tuple[str, int, float, float, float]]:
    """Return gain, phase and modulus margins of each loop, before and after."""
    assert found.margins is not None
    return [
        (when, i + 1, 20 * np.log10(m.gain[i]), m.phase[i], m.modulus[i])
        for when, m in zip(("before", "after"), found.margins, strict=True)
        for i in range(len(m.gain))
    ]


def gain_table(study: Study, found: TuningResult) -> None:
    """Tabulate the parameters before and after, and the sensitivity of the cost."""
    study.report.table(
        "Tuned parameters",
        ("parameter", "before", "after", "cost at 90 %", "cost at 110 %"),
        found.gain_table(),
    )
