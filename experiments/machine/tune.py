"""Command `djdyn tune`: gains of a scenario file, tuned, with a report on them."""

import json
import re
import tomllib
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from controllers import TuningResult
from djdyn.files import read_text, write_text
from djdyn.io.scenario import read_scenario
from djdyn.io.scenario_write import write_scenario

from ..harness.study import Study
from ..harness.tuning_report import save_gains
from .kinds import KINDS
from .tune_report import STAGES, report_result
from .tune_table import TuningTask, read_task


PROBLEM = "tuning.json"  # what the saved steps beside it belong to
NO_MATTER = ("title", "output", "shape")  # sections that change no result


def tune(
    scenario: str | Path,
    *,
    out: str | Path | None = None,
    kinds: Iterable[Callable[..., Any]] = (),
    allow_outside: bool = False,
    progress: bool = True,
) -> TuningResult:
    """Tune the gains of a machine, as the table `tune` of its scenario file asks for.

    **Arguments:**

    - `scenario`: a TOML file.
    - `out`: a folder for what the command writes: the report, the scenario with the
        gains found, and the last step of the search, to resume it from. Without it
        nothing is written.
    - `kinds`, `allow_outside`: as of `djdyn.io.scenario.read_scenario`.
    """
    path = Path(scenario)
    task = _read(path, kinds, allow_outside)
    if out is None:
        return task.run(progress=progress)
    return _tune_and_report(task, path, Path(out), progress)[0]


def run(path: Path, out: Path | None, allow_outside: bool = False) -> int:
    """Tune the gains of a scenario and write them; return the exit status."""
    task = _read(path, (), allow_outside)
    out = out or Path("runs") / path.stem / "tune"
    _, study = _tune_and_report(task, path, out, True)
    return 0 if study.passed else 1


def _read(
    path: Path, kinds: Iterable[Callable[..., Any]], allow_outside: bool
) -> TuningTask:
    scenario = read_scenario(path, (*KINDS, *kinds), allow_outside=allow_outside)
    return read_task(scenario)


def _tune_and_report(
    task: TuningTask, path: Path, out: Path, progress: bool
) -> tuple[TuningResult, Study]:
    """Tune, and write the report, the gains and the scenario with the gains."""
    target = out / "tuned.toml"
    if target.exists() and target.samefile(path):
        raise ValueError(f"{path} would be replaced by its result: give another --out")
    problem = _problem(path)
    _check_saved_steps(out, problem)
    study = Study(task.scenario.title, f"Tuning of {path.name}", out, stages=STAGES)
    write_text(out / PROBLEM, json.dumps(problem))
    with study.progress:
        try:
            with study.stage("tuning"), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                found = task.run(out / "tuning", progress)
            for said in dict.fromkeys(str(warning.message) for warning in caught):
                study.report.text(f"Warning: {said}.")
                study.progress.console.print(f"  warning: {said}", markup=False)
            comment = f"tuned by djdyn tune {path.name}"
            write_scenario(path, target, found.gains, comment)
            with study.stage("report"):
                report_result(study, task, found)
            save_gains(study, found)
            (out / PROBLEM).unlink()
        finally:
            study.finish()
    study.console.print(f"scenario with the gains found: {target}", markup=False)
    return found, study


def _problem(path: Path) -> dict[str, Any]:
    """Return what decides the result of a tuning, as JSON has it."""
    data = tomllib.loads(read_text(path))
    data = {key: x for key, x in data.items() if key not in NO_MATTER}
    tuning = dict(data["tune"])
    search = dict(tuning.pop("search", {}))
    search.pop("max_steps", None)  # a search goes on with more steps
    data["tune"] = tuning | {"search": search}
    return json.loads(json.dumps(data))


def _check_saved_steps(out: Path, problem: dict[str, Any]) -> None:
    """Raise if the folder holds the steps of a search for other gains."""
    saved = [p for p in out.glob("tuning-*.npz") if re.search(r"-\d+$", p.stem)]
    if not saved:
        return
    try:
        known = json.loads(read_text(out / PROBLEM))
    except (OSError, ValueError):
        known = {}
    if known != problem:
        known = known if isinstance(known, dict) else {}
        keys = (k for k in {**problem, **known} if problem.get(k) != known.get(k))
        raise ValueError(
            f"{min(saved)} was saved by a tuning of another problem, whose table "
            f"{next(keys)!r} differs: delete tuning*.npz there, or give another --out"
        )
