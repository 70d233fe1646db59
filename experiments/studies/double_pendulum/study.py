"""Double pendulum: inertia, friction and delays of a real machine from its torques.

With `--set data=FOLDER`, CSV files of trials of a torque-driven double pendulum; else
synthetic trials, by an independent program.
"""

from ...harness.study import Study
from . import synthetic
from .fits import fit_both
from .model import WINDOW, DrivenPendulum, build as build
from .records import CUTOFF, Record, read
from .report import (
    BEST,
    TORQUE_PLOT,
    report_errors,
    report_holdout,
    report_parameters,
    spread,
)


TITLE = "Double pendulum: identified from its torques and angles"
STAGES = 4
OPTIONS = {"data": "", "holdout": "", "validation": ""}


def run(study: Study) -> None:
    """Identify the pendulum, and predict trials that were not fitted."""
    study.report.text(
        "Two links on two geared drives are moved by known torques. Masses, centres, "
        "inertias, friction, rotors and delays are unknown. Angles are filtered "
        f"without delay (Butterworth, third order, {CUTOFF:g} Hz, forwards and "
        "backwards) and differentiated; torques are compared as they were measured. "
        "The fit is to the torques that the motion takes, and at once to the motion "
        f"that the torques cause in windows of {WINDOW:g} s."
    )
    path = study.options["data"]
    with study.stage("records"):
        fitted, held = choose(study, path, str(study.options["validation"]))
    model = DrivenPendulum(study.customise(build()), [0.0, 0.0])
    with study.stage("fit"):
        found = fit_both(model, fitted, held)
        report_parameters(study, model, fitted, found)
    with study.stage("validation"):
        report_errors(study, found, fitted, held, bool(path))
        if study.options["holdout"]:
            report_holdout(study, found)
    with study.stage("what depends on the filter"):
        moments = spread(study, model, path) if path and not study.quick else {}
    study.answer(summary(study, moments), TORQUE_PLOT)


def choose(study: Study, path: str, wanted: str) -> tuple[list[Record], list[Record]]:
    """Return the trials that are fitted, and those kept for validation.

    These are, if none is named, the third and the last.
    """
    if path:
        records, source = read(path), f"`{path}`"
    else:
        records = synthetic.trials(4 if study.quick else 6)
        source = "synthetic, as no data were given"
    for one in records:
        for joint in one.blocked:
            study.report.text(
                f"`{one.name}` is left out: joint {joint} hardly moves in it, although "
                "the other does. It was blocked, or its encoder was."
            )
            study.console.print(f"  {one.name} is left out: joint {joint} is blocked")
    usable = [one for one in records if not one.blocked]
    names = [one.name for one in usable]
    kept = [k.strip() for k in wanted.split(",") if k.strip()]
    unknown = set(kept) - set(names)
    if unknown:
        raise ValueError(f"no trial {', '.join(unknown)}; there are {', '.join(names)}")
    if len(usable) < 3:
        raise ValueError(
            f"three trials with motion are needed, there are {len(usable)}"
        )
    kept = kept or [names[2], names[-1]]
    held = [one for one in usable if one.name in kept]
    fitted = [one for one in usable if one.name not in kept]
    if not fitted:
        raise ValueError("all trials are kept for validation, and none is left to fit")
    study.report.text(
        f"{len(usable)} trials ({source}). Not fitted, but kept for validation: "
        f"{', '.join(one.name for one in held)}."
    )
    study.console.print(f"  {len(usable)} trials: {source.replace('`', '')}")
    return fitted, held


def summary(study: Study, moments: dict[float, float]) -> str:
    """Return the conclusions of the study."""
    of = lambda name: study.metrics[f"double_pendulum.{name}"]
    source = "measured" if study.options["data"] else "synthetic"
    said = (
        f"On {source} trials that were not fitted, torques are predicted to "
        f"{of('torque_rmse_1'):.3f} N m and {of('torque_rmse_2'):.3f} N m (root mean "
        f"square; others got {BEST[0]:g} and {BEST[1]:g} at best on such trials), and "
        f"angles simulated over {WINDOW:g} s to {of('simulated_median_deg'):.1f} deg "
        "in the median window. Masses are not determined one by one; "
        f"{of('moment_2'):.3f} kg m is the first moment of link 2."
    )
    if moments:
        said += (
            f" By torques alone it is {min(moments.values()):.3f} to "
            f"{max(moments.values()):.3f} kg m, depending on the filter of the angles."
        )
    return said
