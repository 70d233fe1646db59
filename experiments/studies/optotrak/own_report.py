"""Report of the identification from a user's own records of the rig."""

import numpy as np

from estimation import residuals

from ...harness.study import Study
from .identification import CENTRE, LOSSES, STIFFNESSES
from .model import SET, SPRING_MASS, build
from .own_record import OwnRecord, read_motion, read_static
from .own_trial import OwnFound, identify_own
from .scene import labelled


STEM = "optotrak.own"
UNITS = {
    **dict(zip(LOSSES, ("N", "N m s/rad"), strict=True)),
    **dict.fromkeys(STIFFNESSES, "N/m"),
    **dict.fromkeys(CENTRE, "m"),
}
PICTURE = "y of the markers, model and record"
NOISE_LEVEL = 1.5  # standard deviations: larger residuals are not the noise alone


def run_own(study: Study) -> None:
    """Identify friction, springs, mass centre and poses from the user's records."""
    with study.stage("records"):
        record = read_motion(str(study.options["data"]), study.options)
        mean, faults = None, ()
        if study.options["static"]:
            mean, faults = read_static(str(study.options["static"]), study.options)
        report_raw(study, record, faults)
    with study.stage("fit"):
        system = study.customise(build(spring_mass=SPRING_MASS))
        found = identify_own(system, record, mean)
    with study.stage("report"):
        report_found(study, found)
        report_channels(study, found)
        study.answer(told(found), PICTURE)


def report_raw(study: Study, record: OwnRecord, faults: tuple[str, ...]) -> None:
    """Show the record as it was read, and say what was wrong with it."""
    raw = record.raw
    for k, axis in enumerate("xyz"):
        study.report.plot(
            f"Record as it was read: {axis}",
            ("time", "s", raw.times),
            (axis, "mm"),
            {
                f"marker {label}": 1e3 * raw.with_gaps[:, i, k]
                for i, label in enumerate(SET.labels)
            },
        )
    source = f"`{study.options['data']}`"
    if study.options["static"]:
        source += f", and the static trial `{study.options['static']}`"
    study.report.text(
        f"Records: {source}. The rod was released at {record.release:.3f} s, "
        f"{record.data.rate:.4g} samples a second. Noise is "
        f"{1e3 * record.noise.min():.2g} to {1e3 * record.noise.max():.2g} mm (from "
        f"third differences). Faults: {'; '.join((*record.faults, *faults)) or 'none'}."
    )


def report_found(study: Study, found: OwnFound) -> None:
    """Tabulate the estimates, and judge residuals and prediction."""
    fit, rows = found.fit, []
    first = fit.problem.flat_values(fit.x0)
    ends = fit.intervals()
    flat = lambda values: np.concatenate([np.ravel(values[k]) for k in fit.values])
    low, high = (flat({k: e[i] for k, e in ends.items()}) for i in (0, 1))
    columns = np.asarray(first), flat(fit.values), flat(fit.deviations), low, high
    for name, *numbers in zip(fit.names, *columns, strict=True):
        unit = UNITS.get(name, "s" if name.endswith(".time") else "rad")
        rows.append((name, unit, *map(float, numbers)))
    study.report.table(
        "Parameters identified from the records",
        ("parameter", "unit", "start", "found", "std error", "95 % from", "to"),
        rows,
    )
    study.report.text(f"Identifiability: {fit.after.verdict()}.")
    for path in (*LOSSES, *STIFFNESSES, *CENTRE):
        study.metric(f"{STEM}.{path}", float(fit.values[path]), unit=UNITS[path])
    note = "squared residuals over degrees of freedom; 1 if residuals are noise"
    study.metric(f"{STEM}.chi2", fit.chi2, at_most=NOISE_LEVEL**2, note=note)
    note = "rms error on the last tenth, not fitted, over the noise"
    error = fit.hold_out_error
    study.metric(f"{STEM}.held_out", error or np.nan, at_most=NOISE_LEVEL, note=note)
    ok = float(fit.after.ok)
    study.metric(f"{STEM}.identifiable", ok, at_least=1.0, note="1 if all unknowns are")


def report_channels(study: Study, found: OwnFound) -> None:
    """Plot channels of model and record, and test the residuals for whiteness."""
    trial, start = found.fit.problem.trials[0], found.fit.trial_starts[0]
    times = np.asarray(trial.times)
    values, _ = trial.predicted(found.fit.model, start, "forward")
    model = np.asarray(values).reshape(len(times), -1, 3)
    seen = found.record.data.with_gaps
    for k, axis in enumerate("xyz"):
        study.report.plot(
            f"{axis} of the markers, model and record",
            ("time", "s", times),
            (axis, "mm"),
            {f"marker {i + 1}": 1e3 * model[:, i, k] for i in range(4)},
            {f"marker {i + 1}": (times[::4], 1e3 * seen[::4, i, k]) for i in range(4)},
        )
    left = residuals(found.fit)[0]
    rms = np.sqrt(np.nanmean(left.values**2, 0))
    study.report.table(
        "Residuals: noise has an rms of 1 and a p above 0.01",
        ("channel", "rms, deviations", "p (Ljung–Box)", "outliers"),
        list(zip(left.labels, rms, left.p_white, left.outliers.sum(0), strict=True)),
    )
    study.series("own", labelled(times, model=model, record=seen))


def told(found: OwnFound) -> str:
    """Return the conclusions in words."""
    fit = found.fit
    number = lambda path: (float(fit.values[path]), 1.96 * float(fit.deviations[path]))
    (force, a), (torque, b) = (number(path) for path in LOSSES)
    said = (
        f"Coulomb friction is {force:.4g} N (give or take {a:.1g}, 95 %) and viscous "
        f"torque {1e3 * torque:.4g} mN m s (give or take {1e3 * b:.1g}). "
    )
    if not fit.after.ok:
        return f"NOT IDENTIFIABLE: {fit.after.verdict()}. {said}"
    error = fit.hold_out_error or np.inf
    ahead = f"the last tenth, not fitted, is predicted to {error:.2f} times the noise. "
    if fit.chi2 > NOISE_LEVEL**2 or error > NOISE_LEVEL:
        size = np.sqrt(fit.chi2)
        return (
            f"MODEL REJECTED: residuals are {size:.3g} times the noise, and {ahead}The "
            f"rig does not move as this model can. The best guess all the same: {said}"
        )
    size = np.sqrt(fit.chi2)
    return f"IDENTIFIED: residuals are {size:.2f} times the noise, and {ahead}{said}"
