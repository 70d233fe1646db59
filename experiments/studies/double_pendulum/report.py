"""Reports of the double pendulum: parameters, errors, pictures."""

from collections.abc import Sequence

import numpy as np

import djdyn
from djdyn.view.machine import draw
from estimation import FitResult

from ...harness.study import Study
from . import synthetic
from .fits import fit_torques, replay, rms, torque_errors, undetermined, window_errors
from .model import JOINTS, SAVE_EVERY, WINDOW, DrivenPendulum, combinations
from .records import CUTOFF, Record, read, windows


PUBLISHED = {  # torque RMSE of others on trials they had not fitted, N m
    "published model": (0.320, 0.185),
    "linear least squares": (0.289, 0.191),
}
FILTERED = 0.1  # N m, a fifth of the torques: filters round off stick and slip
BEST = (0.289, 0.185)  # of these, by joint
OTHERS_MOMENT = {"published model": 0.160, "linear least squares": 0.077}  # kg m
CUTOFFS = (4.0, CUTOFF, 9.0)  # Hz
UNITS = {"inertia_1": "kg m2", "inertia_2": "kg m2", "rotor_2": "kg m2",
         "moment_1": "kg m", "moment_2": "kg m"}  # fmt: skip
TORQUE_PLOT = "Torques of a trial that was not fitted"
WINDOW_PLOT = "Simulated second of a trial that was not fitted"


def report_parameters(
    study: Study, model: DrivenPendulum, fitted: list[Record], found: FitResult
) -> None:
    """Report what was found, and what the trials do not determine."""
    hidden = undetermined(model, fitted)
    flagged = sorted(set(hidden.unidentifiable))
    study.metric(
        "double_pendulum.flagged", len(flagged), at_least=1.0,
        note="unknowns that torques do not determine if masses are free, too: "
        + ", ".join(flagged),
    )  # fmt: skip
    weak = found.after.unidentifiable
    study.report.text(
        "A motion in a plane depends on five combinations of masses, centres and "
        "inertias. With the masses of the links free, too, the test of identifiability "
        f"flags {', '.join(f'`{k}`' for k in flagged)}; so masses are kept at guessed "
        "values, which changes no torque and no motion. The fit determines "
        + (f"all but {', '.join(f'`{k}`' for k in weak)}." if weak else "all others.")
    )
    low_high, units = found.intervals(), djdyn.parameters(found.model).units
    rows = []
    for name, value in found.values.items():
        unit = next((u for k, u in units.items() if name.startswith(k)), "")
        for i, x in enumerate(np.atleast_1d(value)):
            low, high = (np.atleast_1d(end)[i] for end in low_high[name])
            label = f"{name}[{i}]" if np.ndim(value) else name
            rows.append((label.removeprefix("system."), unit, x, low, high))
    header = ("parameter", "unit", "found", "low", "high")
    study.report.table(
        "Parameters, with 95 % intervals of a perfect model", header, rows
    )
    values = {k: float(x) for k, x in combinations(found.model.system).items()}
    rows = []
    for name, value in values.items():
        known = None if study.options["data"] else synthetic.TRUE[name]
        study.metric(
            f"double_pendulum.{name}", value, known,
            None if known is None else 0.1 * abs(known), unit=UNITS[name],
        )  # fmt: skip
        rows.append((name, UNITS[name], value))
    study.report.table("Combinations that the motion depends on", header[:3], rows)


def report_errors(
    study: Study,
    found: FitResult,
    fitted: list[Record],
    held: list[Record],
    measured: bool,
) -> None:
    """Report errors of torques and of simulated windows, fitted and not."""
    of = {
        name: (
            [torque_errors(found.model, one) for one in some],
            np.rad2deg(window_errors(found.model, some)),
        )
        for name, some in (("fitted", fitted), ("validation", held))
    }
    rows = []
    for name, some in (("fitted", fitted), ("validation", held)):
        for one, off in zip(some, of[name][0], strict=True):
            rows.append((one.name, name, *rms(one.torque, 0), *rms(off, 0)))
    study.report.table(
        "Errors of torques by trial; those of fitted trials are in-sample",
        ("trial", "", "size 1, N m", "size 2, N m", "error 1, N m", "error 2, N m"),
        rows,
    )
    torque = rms(np.concatenate(of["validation"][0]), 0)
    for i, bound in enumerate(BEST):
        study.metric(
            f"double_pendulum.torque_rmse_{i + 1}", torque[i],
            at_most=bound if measured else FILTERED, unit="N m",
            note=f"{JOINTS[i]}, on trials not fitted; others got "
            + ", ".join(f"{v[i]:g} ({k})" for k, v in PUBLISHED.items()),
        )  # fmt: skip
    angles, inside = of["validation"][1], of["fitted"][1]
    study.metric(
        "double_pendulum.simulated_rmse_deg", rms(angles), unit="deg",
        note=f"angles simulated over {WINDOW:g} s, on trials not fitted",
    )  # fmt: skip
    study.metric(
        "double_pendulum.simulated_median_deg", np.median(rms(angles, (1, 2))),
        unit="deg", note="median of the windows' root mean squares",
    )  # fmt: skip
    study.metric(
        "double_pendulum.fitted_rmse_deg", rms(inside), unit="deg",
        note="the same, in-sample: on trials that were fitted",
    )  # fmt: skip
    sigma = rms(np.concatenate(of["fitted"][0]), 0)
    cover = np.mean(np.abs(np.concatenate(of["validation"][0])) < 1.96 * sigma)
    study.metric(
        "double_pendulum.torque_coverage95", cover,
        note="share of torques not fitted within 1.96 rms errors of those fitted",
    )  # fmt: skip
    band = 1.96 * rms(inside, 0)  # grows with the time since the window began
    study.metric(
        "double_pendulum.coverage95", np.mean(np.abs(angles[:, 1:]) < band[None, 1:]),
        note="share of simulated angles not fitted within bands of the errors of those "
        "fitted, by time since the start of the window",
    )  # fmt: skip
    pictures(study, found, held, of["validation"][0][0], angles, band)


def pictures(
    study: Study,
    found: FitResult,
    held: Sequence[Record],
    off: np.ndarray,
    angles: np.ndarray,
    band: np.ndarray,
) -> None:
    """Draw torques and a simulated window of a trial that was not fitted."""
    one, some = held[0], slice(0, 1000)
    lines = {f"{k}, model": (one.torque + off)[some, i] for i, k in enumerate(JOINTS)}
    known = {f"{k}, measured": one.torque[some, i] for i, k in enumerate(JOINTS)}
    time = ("time", "s", one.t[some])
    study.report.plot(TORQUE_PLOT, time, ("torque", "N m"), lines, known)
    q = np.rad2deg(windows([one], WINDOW, SAVE_EVERY).q[0])
    grid = ("time", "s", np.arange(len(q)) * SAVE_EVERY)
    lines, known = {}, {}
    for i, joint in enumerate(JOINTS):
        lines[f"{joint}, simulated"] = q[:, i] + angles[0, :, i]
        lines[f"{joint}, band low"] = q[:, i] + angles[0, :, i] - band[:, i]
        lines[f"{joint}, band high"] = q[:, i] + angles[0, :, i] + band[:, i]
        known[f"{joint}, measured"] = q[:, i]
    study.report.plot(WINDOW_PLOT, grid, ("angle", "deg"), lines, known)
    typical = rms(angles, (0, 2))
    lines = {"not fitted": typical, "fitted": band.mean(1) / 1.96}
    study.report.plot(
        "Error of simulated angles by time since the window began", grid,
        ("root mean square error", "deg"), lines,
    )  # fmt: skip
    study.report.scene(draw(replay(found.model, one)), "Identified model")


def report_holdout(study: Study, found: FitResult) -> None:
    """Report errors on further trials, which were used for nothing."""
    path = study.options["holdout"]
    records = [one for one in read(path) if not one.blocked]
    if not records:
        raise ValueError(f"{path}: a joint is blocked in every trial")
    torque = rms(np.concatenate([torque_errors(found.model, x) for x in records]), 0)
    for i, size in enumerate(torque):
        study.metric(
            f"double_pendulum.holdout.torque_rmse_{i + 1}", size, at_most=BEST[i],
            unit="N m", note=f"{JOINTS[i]}, {len(records)} trials",
        )  # fmt: skip
    angles = rms(np.rad2deg(window_errors(found.model, records)), (1, 2))
    stem = "double_pendulum.holdout.simulated"
    study.metric(f"{stem}_rmse_deg", rms(angles), unit="deg")
    study.metric(f"{stem}_median_deg", np.median(angles), unit="deg")


def spread(study: Study, model: DrivenPendulum, path: str) -> dict[float, float]:
    """Fit with other filters, and report how the second moment depends on them."""
    found = {}
    for cutoff in CUTOFFS:
        records = [one for one in read(path, cutoff) if not one.blocked]
        first = fit_torques(model, records[:-1], records[-1:])
        found[cutoff] = float(combinations(first.model.system)["moment_2"])
    rows = [(f"torques alone, {k:g} Hz", x) for k, x in found.items()]
    rows += list(OTHERS_MOMENT.items())
    study.report.table(
        "First moment of link 2, mass times distance, by filter of the angles",
        ("source", "kg m"),
        rows,
    )
    low, high = min(found.values()), max(found.values())
    study.metric(
        "double_pendulum.moment_2_spread", (high - low) / np.mean([low, high]),
        note="relative, among filters, by torques alone; others differ twofold",
    )  # fmt: skip
    return found
