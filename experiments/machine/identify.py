"""Command `djdyn identify`: a scenario's machine, identified from measurements."""

from collections.abc import Sequence
from pathlib import Path

import equinox as eqx
import numpy as np

from djdyn.io.scenario import read_scenario
from djdyn.system.units import signal_unit
from djdyn.view.machine import draw
from estimation import UnidentifiableError
from estimation.scenario import Identification, Task, prepare, read_specification

from ..harness.study import Study
from .kinds import KINDS


MAX_RECORDS_SHOWN = 4
RAW = "As measured"


def prepared(
    path: str | Path, data: Sequence[str | Path] = (), allow_outside: bool = False
) -> Task:
    """Return the identification of a scenario, with its records read and checked."""
    scenario = read_scenario(path, KINDS, allow_outside=allow_outside)
    spec = read_specification(scenario, data, allow_outside)
    return prepare(scenario, spec)


def identify(
    path: str | Path, data: Sequence[str | Path] = (), save: str | Path | None = None
) -> Identification:
    """Identify the machine of a scenario from the records that it names.

    **Arguments:**

    - `data`: files of measurements in place of those that it names.
    - `save`: a file that keeps the last step. If it exists, the fit resumes there.

    **Returns:** the estimates with a verdict; prints as a table.

    !!! example

        ```python
        from experiments import identify
        found = identify("pendulum.toml")
        print(found)
        ```
    """
    task = prepared(path, data)
    task.check_columns()
    return task.fit(save)


def run(
    path: Path, data: Sequence[Path], out: Path | None, allow_outside: bool = False
) -> int:
    """Identify the machine of a scenario, and write report, scenario and metrics."""
    task = prepared(path, data, allow_outside)
    out = out or Path("runs") / path.stem / "identify"
    asked = f"Which parameters do the records of {path.name} determine, and how well"
    study = Study(task.scenario.title, asked, out, stages=4)
    with study.progress:
        try:
            with study.stage("records"):
                report_records(study, task)
                task.check_columns()
            with study.stage("fit"):
                try:
                    found = task.fit(out / "fit.npz", progress=False)
                except UnidentifiableError as error:
                    return report_unidentifiable(study, task, error)
            for said in found.aligned:
                study.report.text(f"{said}.")
                study.console.print(f"  {said}", soft_wrap=True)
            with study.stage("report"):
                report_fit(study, found)
            with study.stage("files"):
                found.save_scenario(out / "identified.toml")
                study.console.print(found.fit.told(found.readable), soft_wrap=True)
                study.console.print(found.readable(str(found.verdict)), soft_wrap=True)
        finally:
            study.finish()
    return 0 if study.passed else 1


# Records ------------------------------------------------------------------------------


def report_records(study: Study, task: Task) -> None:
    """Report the records as they were measured, and what is odd about them."""
    kept = [r for r in task.records if not r.file.hold_out]
    study.report.text(
        f"{len(task.records)} records, {len(kept)} of them fitted. "
        + (" ".join(f"{said}." for said in task.faults) or "Nothing is odd about them.")
    )
    for said in task.faults:
        study.console.print(f"  {said}", soft_wrap=True)
    for i, channel in enumerate(task.spec.channels):
        some = task.records[:MAX_RECORDS_SHOWN]
        lines = {r.file.name: (r.raw_t, r.raw[:, i]) for r in some}
        time = ("time", "s", task.records[0].raw_t)
        study.report.plot(f"{RAW}: {channel.name}", time, _axis(task, i), lines)
    for one in task.spec.inputs:
        for k, column in enumerate(one.columns):
            lines = {
                r.file.name: (r.inputs[one.name][0], r.inputs[one.name][1][:, k])
                for r in task.records[:MAX_RECORDS_SHOWN]
            }
            time = ("time", "s", task.records[0].raw_t)
            unit = task.records[0].input_units[one.name]
            label = (one.name, f"SI, from {unit}" if unit else "no unit given")
            study.report.plot(f"{RAW}: {column}", time, label, lines)


def _axis(task: Task | Identification, i: int) -> tuple[str, str]:
    """Return label and unit of a channel's axis."""
    channel = task.spec.channels[i]
    unit = "m" if channel.frame else signal_unit(task.scenario.system, channel.signal)
    return channel.name, unit


def report_unidentifiable(study: Study, task: Task, error: UnidentifiableError) -> int:
    """Report that the data cannot determine an unknown, before any fit."""
    said = task.readable(error.check.verdict())
    study.report.text(task.readable(str(error.check)))
    study.metric(
        "identifiable", 0.0, at_least=1.0,
        note="whether the data determine all unknowns",
    )  # fmt: skip
    study.answer(f"NOT IDENTIFIABLE: {said}. Nothing was fitted.")
    study.console.print(f"NOT IDENTIFIABLE: {said}.", soft_wrap=True)
    return 1


# Results ------------------------------------------------------------------------------


def report_fit(study: Study, found: Identification) -> None:
    """Report the fit: its verdict, channels, parameters and residuals."""
    verdict, fit = found.verdict, found.fit
    study.metric(
        "improved", float(verdict.ok), at_least=1.0, note=found.readable(str(verdict))
    )
    study.metric("identifiable", float(fit.after.ok), at_least=1.0)
    note = "reduced chi-squared of fitted data (in-sample): one if residuals are noise"
    study.metric("chi2", fit.chi2, note=note)
    if found.after is not None:
        note = "rms error on data not fitted, in standard deviations of the noise"
        study.metric("hold_out_error", found.after, note=note)
        study.metric("hold_out_error_of_first_guess", found.before, note=note)
    pictures = _plot_channels(study, found)
    rows = [[found.readable(str(x)) for x in row] for row in fit.rows()]
    study.report.table("Parameters, with 95 % intervals", rows[0], rows[1:])
    for name, value in found.parameters().items():
        for i, x in enumerate(np.ravel(value)):
            entry = name if np.ndim(value) == 0 else f"{name}[{i}]"
            study.metric(f"parameter.{entry}", x)
    study.report.text(found.readable(fit.after.verdict()) + ".")
    study.report.table(
        "What the data say of combinations of unknowns, in units of their scales",
        ("singular value", "combination"),
        [(fit.after.singular[i], found.readable(fit.after.direction(int(i))))
         for i in np.argsort(fit.after.singular)],
    )  # fmt: skip
    study.report.table(
        "Residuals of fitted data (in-sample)",
        ("record", "channel", "rms, standard deviations", "p of whiteness", "outliers"),
        [
            (t.trial, label, np.sqrt(np.nanmean(t.values[:, i] ** 2)), t.p_white[i],
             int(t.outliers[:, i].sum()))
            for t in found.residuals for i, label in enumerate(t.labels)
        ],
    )  # fmt: skip
    names = [found.readable(name) for name in fit.names]
    if 1 < len(names) <= 30:
        square = np.clip(fit.correlation, -1.0, 1.0)
        study.report.matrix("Correlation of the estimates", names, square)
    start = fit.trial_starts[0]
    trajectory = eqx.filter_jit(found.predict.simulate)(found.machine, start)
    study.report.scene(draw(trajectory, found.scenario.shapes), "Identified machine")
    study.answer(f"{found.readable(str(verdict))} {_estimates(found)}", pictures[0])


def _estimates(found: Identification) -> str:
    """Return the first estimates with their standard errors, in a sentence."""
    said, errors = [], found.fit.deviations
    for name, value in list(found.parameters().items())[:4]:
        error = errors[f"system.{name}"]
        if np.ndim(value) == 0:
            said.append(f"`{name}` is {value:.4g} ± {error:.2g}")
    return f"{', '.join(said)} (one standard error)." if said else ""


def _plot_channels(study: Study, found: Identification) -> list[str]:
    """Plot measured and predicted channels of some records; return the titles."""
    titles = []
    predict = eqx.filter_jit(lambda m, start: found.predict(m, np.zeros(0), start))
    trials = list(zip(found.fit.problem.trials, found.fit.trial_starts, strict=True))
    trials = trials[:MAX_RECORDS_SHOWN] + [(t, t.start) for t in found.held[:2]]
    byname = {r.file.name: r for r in found.records}
    for trial, start in trials:
        record = byname[trial.name]
        x = predict(found.machine, start)
        before = predict(found.fit.problem.model, trial.start)
        n = len(record.t)
        held = " (held out)" if record.file.hold_out else ""
        for i, channel in enumerate(found.spec.channels):
            title = f"{channel.name} in {trial.name}{held}"
            label = _axis(found, i)
            study.report.plot(
                title, ("time", "s", record.t), label,
                {"model, identified": np.asarray(x)[:n, i],
                 "model, first guess": _finite(np.asarray(before)[:n, i])},
                {"measured": record.values[:, i]},
            )  # fmt: skip
            titles.append(title)
    return titles


def _finite(x: np.ndarray) -> np.ndarray:
    """Return a series, or zeros where a first guess diverges."""
    return x if np.isfinite(x).any() else np.zeros_like(x)
