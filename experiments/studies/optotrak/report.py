"""V14, told: what was recorded, what was found, how surely, and how fast."""

import numpy as np
import scipy.stats

import djdyn
from estimation import FitResult, residuals

from ...harness.study import Study
from .comparison import race
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
SHOWN = {"mm": 1e3, "deg": 180 / np.pi}  # of SI
LEVELS = np.linspace(0.05, 0.99, 48)


def run_twin(study: Study) -> None:
    found = identify(study.customise(build(**TWIN)))
    z, *others = draws(found, 15 if study.quick else 64)
    tell_record(study, found)
    judge(study, found, z, *others)
    tell_parameters(study, found, z)
    tell_channels(study, found)
    run_cures(study, found)
    tell_coverage(study, found.fit, z)
    if not study.quick:
        race(study, found)


def tell_record(study: Study, found: Found) -> None:
    said = "; ".join(found.raw.check(SET.rigid)) or "nothing"
    left = "; ".join(found.data.check(SET.rigid)) or "nothing"
    hidden = ", ".join(
        f"marker {' '.join(SET.labels[i] for i in m)} from {a:g} to {b:g} s"
        for m, a, b in GAPS
    )
    study.report.text(
        "V14, the twin (synthetic: another program's series, no measurement). Four "
        "markers at 157 samples a second for 5 s, with 0.1 mm of noise, gaps "
        f"({hidden}) and two labels exchanged for a while. Checked against the body's "
        f"shape, the record shows: {said}. Labels were changed back; a second check "
        f"finds {left}. Gaps stay gaps: nothing is fitted there."
    )


def judge(
    study: Study, found: Found, z: np.ndarray, bias: np.ndarray, last: np.ndarray
) -> None:
    fit = found.fit
    k = int(np.argmax(np.abs(found.z)))
    # Of the mean of z^2 by chance, for unknowns as correlated as these.
    chance = np.sqrt(2 * np.mean(fit.correlation**2) / len(z))
    for name, value, reference, within, note in (
        ("max_z", np.abs(found.z).max(), 0.0, 3.0,
         f"true values, in standard errors from those found: farthest of {len(fit.x)}, "
         f"{fit.problem.names[k]}"),
        ("coverage95", np.mean(np.abs(z) < 1.96), 0.945, 0.045,
         f"true values inside of 95 % intervals, {len(fit.x)} unknowns, "
         f"{len(z)} draws of noise and priors"),
        ("mean_z2", np.mean(z**2), 1.0, 3 * chance,
         f"over {len(z)} draws; tolerance of three deviations by chance"),
        ("refit_left", np.abs(last).max(), 0.0, 0.05,
         "standard errors: the last step of all refits"),
        ("bias_z", np.abs(bias).max(), 0.0, 0.1,
         "standard errors, without noise: what steps of 0.8 ms do beside finer ones"),
        ("chi2", fit.chi2, 1.0, 0.05, "one, if noise is all that is left"),
        ("held_out", fit.hold_out_error, 1.0, 0.05,
         "rms error on the last 0.5 s, not fitted, over the noise"),
        ("simulations", fit.evaluations, 0.0, 29.0, "with a Jacobian, to converge"),
    ):  # fmt: skip
        note = f"V14, synthetic: {note}"
        study.metric(f"{STEM}.{name}", value, reference, within, note=note)


def tell_parameters(study: Study, found: Found, z: np.ndarray) -> None:
    fit, rows = found.fit, []
    ends, names = fit.intervals(), list(fit.names)
    flat = lambda values: np.concatenate([np.ravel(values[k]) for k in fit.values])
    low, high = (flat({k: e[i] for k, e in ends.items()}) for i in (0, 1))
    first = np.asarray(fit.problem.flat_values(fit.x0))
    value, error = flat(fit.values), flat(fit.deviations)
    for group, paths in GROUPS.items():
        for path, unit in zip(paths, UNITS[group], strict=True):
            i, scale = names.index(path), SHOWN.get(unit, 1.0)
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
        "V14, identified from twelve noisy channels (synthetic); inside: of "
        f"{len(z)} draws, those whose 95 % interval holds the truth",
        ("number", "unit", "true", "start", "found", "std error", "95 % from", "to",
         "z", "inside, %"),
        rows,
    )  # fmt: skip
    inside = sum(abs(x) < 1.96 for x in found.z)
    worst = fit.after.names[int(np.argmax(fit.after.deviations))]
    study.report.text(
        f"From 5 s of markers (synthetic) the fit finds {len(names)} numbers at "
        f"once, in {fit.evaluations} simulations; {inside} of {len(names)} true values "
        "lie inside of their 95 % intervals. Friction and the viscous torque are known "
        "to about a tenth of a per cent, the mass centre to a tenth of a millimetre "
        "across the rod, the pose to a tenth of a degree. Stiffnesses are known singly "
        "no better than to a few parts in a thousand, for springs above each other "
        f"act nearly alike: the data say least about {worst}, next to its prior."
    )
    order = [names.index(p) for paths in GROUPS.values() for p in paths]
    short = [_short(names[i]) for i in order]
    square = fit.correlation[np.ix_(order, order)]
    study.report.matrix("V14, correlation of what was found (synthetic)", short, square)


def _true(found: Found, path: str) -> float:
    if path.startswith("twin/"):
        return float(found.start.q[int(path[-2])])
    return float(djdyn.get_parameters(found.truth, path))


def _short(name: str) -> str:
    """`contact.coulomb` as coulomb, `spring_E.stiffness` as E, angles as x1 to x5."""
    if name.startswith("twin/"):
        return f"x{int(name[-2]) + 1}"
    owner, leaf = name.split(".")
    return owner[-1] if owner.startswith("spring") else leaf


def tell_channels(study: Study, found: Found) -> None:
    start = found.fit.starts[0]
    run = released(found.fit.model, start, TIMES).lane(0)
    study.report.scene(replay(run), "The twin as identified, with its markers")
    model = np.asarray(places(found.fit.model.mechanism, run.y.q))
    study.series("twin", labelled(TIMES, model=model, record=found.data.with_gaps))
    seen = 1e3 * found.data.with_gaps
    (left,) = residuals(found.fit)
    for k, axis in enumerate("xyz"):
        study.report.plot(
            f"V14, {axis} of the markers: model, and record (reference, synthetic)",
            ("time", "s", TIMES),
            (axis, "mm"),
            {f"marker {i + 1}": 1e3 * model[:, i, k] for i in range(4)},
            {f"marker {i + 1}": (TIMES[::4], seen[::4, i, k]) for i in range(4)},
        )
    for i, label in enumerate(SET.labels):
        study.report.plot(
            f"V14, residuals of marker {label}: model less record",
            ("time", "s", TIMES),
            ("residual", "standard deviations of the noise"),
            {k: left.values[:, 3 * i + j] for j, k in enumerate("xyz")},
        )
    rms = np.sqrt(np.nanmean(left.values**2, 0))
    study.report.table(
        "V14, what is left: noise, if its size is one and p is not tiny",
        ("channel", "rms, deviations", "p (Ljung and Box)", "outliers"),
        list(zip(left.labels, rms, left.p_white, left.outliers.sum(0), strict=True)),
    )


def tell_coverage(study: Study, fit: FitResult, z: np.ndarray) -> None:
    ends = scipy.stats.norm.ppf(0.5 + LEVELS / 2)
    inside = lambda z: [100 * np.mean(np.abs(z) < end) for end in ends]
    at = {g: [fit.names.index(p) for p in paths] for g, paths in GROUPS.items()}
    study.report.plot(
        f"V14, coverage over {len(z)} draws of noise (synthetic)",
        ("level of the interval", "%", 100 * LEVELS),
        ("true values inside", "%"),
        {"all": inside(z), **{g: inside(z[:, i]) for g, i in at.items()}},
        {"as it should be": 100 * LEVELS},
    )
