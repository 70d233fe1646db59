"""Report of a tuned scenario: costs, limits, margins, gains, and runs to look at."""

from collections.abc import Mapping

import numpy as np

import djdyn
from controllers import STABILITY_TOLERANCE, Evaluation, TuningResult
from controllers.tuning.tune import CONSTRAINT_TOLERANCE
from djdyn.system.transforms import bounds_of

from ..harness.study import Study
from ..harness.tuning_report import gain_table, margin_rows
from .tune_plots import plot_costs, plot_runs, plot_search
from .tune_table import TuningTask


STAGES = 2
LEAST_FALL = 1e-6  # of the cost, relative: less is none


def report_result(study: Study, task: TuningTask, found: TuningResult) -> None:
    """Report a tuning, with what it is judged by."""
    where = [*found.evaluations][-1]  # held out, if there are such scenarios
    evaluations = found.evaluations[where]
    before, after = found.summary()[where]["cost"]
    count = len(evaluations[1].ok)
    among = f"{count} scenarios {where}" if count > 1 else f"the scenario {where}"
    study.metric(
        "cost_ratio",
        1 + (after - before) / abs(before),  # also where costs are negative
        at_most=1 - LEAST_FALL,
        note=f"cost after tuning over before, in {among}",
    )
    study.metric("cost_before", before)
    study.metric("cost_after", after)
    _judge_limits(study, task, found)
    _judge_runs(study, task, evaluations)
    _judge_loops(study, task, found)
    at_bound = _record_gains(study, found)
    picture = plot_runs(study, task, found, where)
    _tabulate_terms(study, found)
    gain_table(study, found)
    if found.margins is not None:
        header = ("gains", "loop", "gain, dB", "phase, deg", "modulus")
        title = "Margins of each loop with the others closed, worst of those tuned on"
        study.report.table(title, header, margin_rows(found))
    plot_costs(study, evaluations, where)
    plot_search(study, found)
    answer = _answer(study.metrics, task, among)
    if at_bound:
        verb = "ends" if len(at_bound) == 1 else "end"
        answer += f" At a bound {verb} {', '.join(at_bound)}."
    study.answer(answer, picture)


def _record_gains(study: Study, found: TuningResult) -> list[str]:
    """Record all gains; return the names of those that end at a bound."""
    at_bound, units = [], djdyn.parameters(found.system).units
    for free in found.objective.free:
        value = np.asarray(found.gains[free.path])
        low, high = (np.broadcast_to(b, value.shape) for b in bounds_of(free.transform))
        for index in np.ndindex(value.shape):
            name = free.path + "".join(f"[{i}]" for i in index)
            unit = units.get(free.path.partition("[")[0], "")
            study.metric(f"gain.{name}", value[index], unit=unit)
            if value[index] in (low[index], high[index]):
                at_bound.append(f"`{name}`")
    return at_bound


def _judge_limits(study: Study, task: TuningTask, found: TuningResult) -> None:
    """Judge how far limits are exceeded, in all scenarios that reach their end."""
    for name in task.limits:
        key = f"{name} exceeded by"
        worst = max(numbers[key][1] for numbers in found.summary().values())
        study.metric(
            f"limit.{name}.exceeded_by",
            worst,
            at_most=CONSTRAINT_TOLERANCE,
            note="largest excess in all scenarios, relative to the limit",
        )


def _judge_runs(
    study: Study, task: TuningTask, evaluations: tuple[Evaluation, Evaluation]
) -> None:
    """Judge how many runs reach their end."""
    before, after = (float(np.mean(evaluation.ok)) for evaluation in evaluations)
    least = before if task.search.diverged == "exclude" else 1.0
    note = "fraction of the scenarios whose runs reach their end"
    study.metric("completed_fraction", after, at_least=least, note=note)


def _judge_loops(study: Study, task: TuningTask, found: TuningResult) -> None:
    """Judge poles, and margins where they are asked for."""
    loop = task.robustness
    if loop is None or found.spectral_abscissa is None:
        return
    worst = float(np.max(found.spectral_abscissa[1]))
    note = f"largest real part of a pole at {loop.time:g} s, in all scenarios tuned on"
    if found.margins is not None:
        worst = max(worst, found.margins[1].spectral_abscissa)
        note += ", also with the delay"
    study.metric(
        "spectral_abscissa", worst, at_most=STABILITY_TOLERANCE, unit="1/s", note=note
    )
    if found.margins is None:
        return
    least = None
    if loop.modulus is not None:
        least = loop.modulus * (1 - CONSTRAINT_TOLERANCE)
    study.metric(
        "modulus_margin",
        found.margins[1].modulus.min(),
        at_least=least,
        note="least distance of an open loop from minus one in all scenarios tuned on, "
        "delay included",
    )
    study.metric(
        "phase_margin",
        found.margins[1].phase.min(),
        unit="deg",
        note="least phase margin of a loop in all scenarios tuned on, delay included",
    )


def _tabulate_terms(study: Study, found: TuningResult) -> None:
    """Tabulate the cost and its terms before and after, in all sets of scenarios."""
    sets = found.summary()
    header = [f"{when}, {where}" for where in sets for when in ("before", "after")]
    rows = [
        (name, *(x for numbers in sets.values() for x in numbers[name]))
        for name in next(iter(sets.values()))
        if all(name in numbers for numbers in sets.values())
    ]
    study.report.table("Cost, its terms, and limits", ("quantity", *header), rows)


def _answer(metrics: Mapping[str, float], task: TuningTask, among: str) -> str:
    """Return the conclusions of the tuning."""
    before, after = metrics["cost_before"], metrics["cost_after"]
    fell = "falls" if metrics["cost_ratio"] < 1 - LEAST_FALL else "does not fall"
    risk = task.search.risk
    which = {"mean": "mean", "worst": "largest"}
    kind = which[risk] if isinstance(risk, str) else f"upper {1 - risk:.0%} mean"
    said = [
        f"In {among}, the {kind} cost {fell}: {before:.4g} before, {after:.4g} after."
    ]
    for name in task.limits:
        over = metrics[f"limit.{name}.exceeded_by"]
        kept = f"is exceeded by up to {over:.1%} of its size"
        kept = "is kept" if over <= CONSTRAINT_TOLERANCE else kept
        said.append(f"Limit `{name}` {kept}.")
    if (lost := 1 - metrics["completed_fraction"]) > 0:
        said.append(f"Of all runs, {lost:.0%} do not reach their end.")
    if "spectral_abscissa" in metrics:
        stable = metrics["spectral_abscissa"] < STABILITY_TOLERANCE
        said.append(f"The tuned loop is {'stable' if stable else 'not stable'}.")
    if "modulus_margin" in metrics:
        said.append(
            f"Its least modulus margin is {metrics['modulus_margin']:.2f}, its least "
            f"phase margin {metrics['phase_margin']:.0f} deg."
        )
    return " ".join(said)
