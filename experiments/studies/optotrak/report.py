"""Report of the identification from synthetic marker channels."""

import numpy as np
import scipy.stats

import djdyn
from estimation import FitResult, residuals

from ...harness.study import Study
from .comparison import compare_with_scipy
from .identification import (
    CENTRE,
    GAPS,
    LOSSES,
    POSE,
    STIFFNESSES,
    TIMES,
    Found,
    draws,
    identify,
    released,
)
from .model import SET, TWIN, build, places
from .pose import run_cures
from .scene import labelled, replay


STEM = "optotrak.twin"
GROUPS = {
    "friction": LOSSES,
    "springs": STIFFNESSES,
    "mass centre": CENTRE,
    "pose at release": [f"twin/{POSE}[{i}]" for i in range(5)],
}
UNITS = {"friction": ("N", "N m s/rad"), "springs": ("N/m",) * 6,
         "mass centre": ("mm",) * 2, "pose at release": ("deg",) * 5}  # fmt: skip
UNIT_SCALE = {"mm": 1e3, "deg": 180 / np.pi}  # over SI units
LEVELS = np.linspace(0.05, 0.99, 48)


def run_twin(study: Study) -> None:
    """Identify the synthetic record and report record, parameters and accuracy."""
    found = identify(study.customise(build(**TWIN)))
    z, *others = draws(found, 15 if study.quick else 64)
    report_record(study, found)
    report_accuracy(study, found, z, *others)
    report_parameters(study, found, z)
    report_channels(study, found)
    run_cures(study, found)
    report_coverage(study, found.fit, z)
    if not study.quick:
        compare_with_scipy(study, found)


def report_record(study: Study, found: Found) -> None:
    """Describe the record, its gaps and its exchanged labels."""
    said = "; ".join(found.raw.check(SET.rigid)) or "nothing"
    left = "; ".join(found.data.check(SET.rigid)) or "nothing"
    hidden = ", ".join(
        f"marker {' '.join(SET.labels[i] for i in m)} from {a:g} to {b:g} s"
        for m, a, b in GAPS
    )
    study.report.text(
        "Identification from markers. The record is synthetic: another program's "
        "simulation of trial 5 (Knutson 2007), not a measurement. It has four markers "
        "at 157 samples a second for 5 s, 0.1 mm of noise, gaps "
        f"({hidden}) and two labels that are exchanged for a while. A check against "
        f"the shape of the body finds: {said}. The labels are then corrected; a second "
        f"check finds {left}. The gaps are not filled and not fitted."
    )


def report_accuracy(
    study: Study, found: Found, z: np.ndarray, bias: np.ndarray, last: np.ndarray
) -> None:
    fit = found.fit
    k = int(np.argmax(np.abs(found.z)))
    # Standard deviation of the mean of z^2, for parameters as correlated as these.
    chance = np.sqrt(2 * np.mean(fit.correlation**2) / len(z))
    for name, value, most, note in (
        ("max_z", np.abs(found.z).max(), 3.0, "largest error in standard errors, of "
         f"{len(fit.x)} parameters: {fit.problem.names[k]}"),
        ("refit_left", np.abs(last).max(), 0.05,
         "largest last step of all refits, in standard errors"),
        ("bias_z", np.abs(bias).max(), 0.1, "largest error of a refit without noise, "
         "in standard errors: the effect of steps of 0.8 ms"),
        ("simulations", fit.num_evaluations, 29.0,
         "simulations with a Jacobian, to converge"),
    ):  # fmt: skip
        note = f"synthetic record: {note}"
        study.metric(f"{STEM}.{name}", value, at_most=most, note=note)
    for name, value, reference, within, note in (
        ("coverage95", np.mean(np.abs(z) < 1.96), 0.945, 0.045,
         f"share of true values inside 95 % intervals, {len(fit.x)} parameters, "
         f"{len(z)} draws of noise and priors"),
        ("mean_z2", np.mean(z**2), 1.0, 3 * chance,
         f"mean over {len(z)} draws; the tolerance is three standard deviations"),
        ("chi2", fit.chi2, 1.0, 0.05,
         "squared residuals over degrees of freedom; 1 if residuals are noise"),
        ("held_out", fit.hold_out_error, 1.0, 0.05,
         "rms error on the last 0.5 s, not fitted, over the noise"),
    ):  # fmt: skip
        note = f"synthetic record: {note}"
        study.metric(f"{STEM}.{name}", value, reference, within, note=note)


def report_parameters(study: Study, found: Found, z: np.ndarray) -> None:
    """Tabulate the identified parameters and their correlation."""
    fit, rows = found.fit, []
    ends, names = fit.intervals(), list(fit.names)
    flat = lambda values: np.concatenate([np.ravel(values[k]) for k in fit.values])
    low, high = (flat({k: e[i] for k, e in ends.items()}) for i in (0, 1))
    first = np.asarray(fit.problem.flat_values(fit.x0))
    value, error = flat(fit.values), flat(fit.deviations)
    for group, paths in GROUPS.items():
        for path, unit in zip(paths, UNITS[group], strict=True):
            i, scale = names.index(path), UNIT_SCALE.get(unit, 1.0)
            digits = 1 - int(np.floor(np.log10(scale * error[i])))
            numbers = (
                _true(found, path),
                first[i],
                value[i],
                error[i],
                low[i],
                high[i],
            )
            numbers = (round(scale * float(x), digits) for x in numbers)
            share = np.mean(np.abs(z[:, i]) < 1.96)
            row = (path, unit, *numbers, round(found.z[i], 2), round(100 * share, 1))
            rows.append(row)
    study.report.table(
        "Parameters identified from twelve synthetic marker channels; coverage is the "
        f"share of {len(z)} draws whose 95 % interval holds the true value",
        ("parameter", "unit", "true", "start", "found", "std error", "95 % from", "to",
         "z", "coverage, %"),
        rows,
    )  # fmt: skip
    inside = sum(abs(x) < 1.96 for x in found.z)
    worst = fit.after.names[int(np.argmax(fit.after.deviations))]
    study.report.text(
        f"From 5 s of synthetic markers, the fit determines {len(names)} parameters in "
        f"{fit.num_evaluations} simulations; {inside} of {len(names)} true values lie "
        "inside their 95 % intervals. The standard error of friction and viscous "
        "torque is about 0.1 %, that of the mass centre across the rod 0.1 mm, that of "
        "the pose 0.1 degrees. A single stiffness is known only to a few parts in a "
        "thousand, because springs above each other act nearly alike. The record adds "
        f"least to the prior of {worst}."
    )
    order = [names.index(p) for paths in GROUPS.values() for p in paths]
    short = [_short(names[i]) for i in order]
    square = fit.correlation[np.ix_(order, order)]
    study.report.matrix("Correlation of the identified parameters", short, square)


def _true(found: Found, path: str) -> float:
    if path.startswith("twin/"):
        return float(found.start.q[int(path[-2])])
    return float(djdyn.get_parameters(found.truth, path))


def _short(name: str) -> str:
    """Return a short name: coulomb, E for `spring_E.stiffness`, x1 to x5 for angles."""
    if name.startswith("twin/"):
        return f"x{int(name[-2]) + 1}"
    owner, leaf = name.split(".")
    return owner[-1] if owner.startswith("spring") else leaf


def report_channels(study: Study, found: Found) -> None:
    """Plot marker channels and residuals, and test the residuals for whiteness."""
    start = found.fit.trial_starts[0]
    run = released(found.fit.model, start, TIMES).lane(0)
    study.report.scene(replay(run), "Identified model, with its markers")
    model = np.asarray(places(found.fit.model.mechanism, run.y.q))
    study.series("twin", labelled(TIMES, model=model, record=found.data.with_gaps))
    seen = 1e3 * found.data.with_gaps
    (left,) = residuals(found.fit)
    for k, axis in enumerate("xyz"):
        study.report.plot(
            f"Identification: {axis} of the markers, model and synthetic record",
            ("time", "s", TIMES),
            (axis, "mm"),
            {f"marker {i + 1}": 1e3 * model[:, i, k] for i in range(4)},
            {f"marker {i + 1}": (TIMES[::4], seen[::4, i, k]) for i in range(4)},
        )
    for i, label in enumerate(SET.labels):
        study.report.plot(
            f"Identification: residuals of marker {label}, model less record",
            ("time", "s", TIMES),
            ("residual", "standard deviations of the noise"),
            {k: left.values[:, 3 * i + j] for j, k in enumerate("xyz")},
        )
    rms = np.sqrt(np.nanmean(left.values**2, 0))
    study.report.table(
        "Residuals of the identification: noise has an rms of 1 and a p above 0.01",
        ("channel", "rms, deviations", "p (Ljung–Box)", "outliers"),
        list(zip(left.labels, rms, left.p_white, left.outliers.sum(0), strict=True)),
    )


def report_coverage(study: Study, fit: FitResult, z: np.ndarray) -> None:
    """Plot the share of true values inside intervals of all levels."""
    ends = scipy.stats.norm.ppf(0.5 + LEVELS / 2)
    inside = lambda z: [100 * np.mean(np.abs(z) < end) for end in ends]
    at = {g: [fit.names.index(p) for p in paths] for g, paths in GROUPS.items()}
    study.report.plot(
        f"Coverage of the intervals over {len(z)} draws of noise",
        ("level of the interval", "%", 100 * LEVELS),
        ("true values inside", "%"),
        {"all": inside(z), **{g: inside(z[:, i]) for g, i in at.items()}},
        {"nominal": 100 * LEVELS},
    )
