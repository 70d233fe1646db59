"""Arm identification: masses and dampings of seven joints from one marker at the tip.

Fit (a) finds seven masses and seven dampings, fit (b) the masses alone, from starts
with errors of 25 to 30 %. Both are compared with MuJoCo's least squares.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from djdyn import FreeParameter, Positive
from djdyn.multibody.time_functions import Harmonic
from djdyn.parts import JointActuator, JointFriction
from estimation import FitResult, Trial, fit

from ...benchmarks.problems import arm7
from ...harness.study import Study
from . import peer as peer
from .peer import AMPLITUDE, FREQUENCY, PHASE, RATE


TITLE = "Arm identification: masses and dampings from one marker"
STAGES = 5
ERRORS_PLOT = "Fit (a): errors of masses and dampings, at the start and found"
NOISE = 1e-4  # m, one deviation of an optical marker
DAMPING = 0.5  # N m s/rad
START_RATIO = np.array([1.3, 0.75, 1.27, 0.72, 1.28, 0.74, 1.3])  # over true masses
START_DAMPING = 0.8  # N m s/rad
MAX_RELATIVE_ERROR = 0.02  # standard error of a parameter that counts as observable
ARM = arm7()
TORQUE = Harmonic(AMPLITUDE, 2 * np.pi * FREQUENCY, PHASE, ARM.torques)
TIMES = np.arange(1, RATE + 1) / RATE  # s
LINKS = range(1, 8)
MASSES = [f"l{i}.mass" for i in LINKS]
DAMPINGS = [f"d{i}.viscous" for i in LINKS]


def arm() -> djdyn.System:
    """Return the arm with damped joints and torques as an input."""
    mechanism = djdyn.from_mjcf(ARM.text or "")
    joints = mechanism.joint_names
    parts: dict[str, Any] = {"motors": JointActuator(joints, "torque")}
    for i, joint in zip(LINKS, joints, strict=True):
        parts[f"d{i}"] = JointFriction(joint, viscous=DAMPING)
    return djdyn.System(mechanism, parts, {"torque": jnp.asarray(ARM.torques)})


def tip(system: djdyn.System, times: np.ndarray) -> Array:
    """Return the positions of the marker, m."""
    y0 = jax.tree.map(lambda x: x[None], system.initial_state(q=ARM.q0))
    run = djdyn.rollout(
        system, 1.0, y0, saveat=times, solver="rk4", dt=1 / RATE,
        inputs={"torque": TORQUE},
    )  # fmt: skip
    place = lambda q: djdyn.frame_pose(system.mechanism, q, "tip").p
    return jax.vmap(place)(run.y.q[0])


def started(system: djdyn.System, both: bool) -> djdyn.System:
    """Return the system at the start of a fit: wrong masses, and dampings if free."""
    values = {
        k: x * djdyn.get_parameters(system, k)
        for k, x in zip(MASSES, START_RATIO, strict=True)
    }
    return djdyn.with_parameters(
        system, values | ({k: START_DAMPING for k in DAMPINGS} if both else {})
    )


def identify(system: djdyn.System, record: np.ndarray, both: bool) -> FitResult:
    """Fit the record, even if the identifiability test flags parameters."""
    free = [FreeParameter(k, Positive()) for k in MASSES + (DAMPINGS if both else [])]
    trial = Trial(TIMES, record, tip, sigma=NOISE, labels=("x", "y", "z"), name="tip")
    start = started(system, both)
    return fit(start, trial, free, limit=MAX_RELATIVE_ERROR, allow_unidentifiable=True)


def errors(found: FitResult, system: djdyn.System) -> dict[str, float]:
    """Return relative errors by path."""
    return {
        k: float(v / djdyn.get_parameters(system, k)) - 1
        for k, v in found.values.items()
    }


def run(study: Study) -> None:
    """Identify both sets of parameters and compare with MuJoCo."""
    study.report.text(
        "A marker at the tip of a seven-joint arm is recorded for 1 s at 1 kHz under "
        "known torques. MuJoCo simulates the record with steps ten times finer than "
        "those of djdyn's model. Link 1 turns about a vertical axis on which its mass "
        "centre nearly lies, so the record hardly depends on its mass. The "
        "identifiability test flags this mass before the fit."
    )
    system = arm()
    with study.stage("record"):
        record = peer.record(ARM.text or "", ARM.q0, ARM.torques, DAMPING, finer=10)
    fits: dict[str, FitResult] = {}
    for case, both in (("a", True), ("b", False)):
        with study.stage(f"fit ({case})"):
            fits[case] = identify(system, record, both)
            report_fit(study, case, fits[case], system)
    worst = max(_observable_error(found, system) for found in fits.values())
    study.metric(
        "arm_id.max_error", worst, at_most=1e-3,
        note="largest relative error of parameters determined to "
        f" {MAX_RELATIVE_ERROR:.0%}, both fits",
    )  # fmt: skip
    if study.quick:
        study.progress.update(study.task, total=STAGES - 2)
    else:
        for case, both in (("a", True), ("b", False)):
            with study.stage(f"MuJoCo ({case})"):
                report_comparison(study, case, fits[case], system, both)
    study.answer(summary(study.metrics, fits["a"]), ERRORS_PLOT)


def summary(metrics: dict[str, float], found: FitResult) -> str:
    """Return the conclusions of the study."""
    of = lambda name: metrics[f"arm_id.{name}"]
    hidden = found.after.unidentifiable
    said = (
        f"One marker with 0.1 mm of noise determines {len(found.values) - len(hidden)} "
        f"of {len(found.values)} masses and dampings, with errors of at most "
        f"{100 * of('max_error'):.1g} %. It hardly determines "
        f"{', '.join(f'`{k}`' for k in hidden) or 'nothing'}, which the "
        "identifiability test flags before the fit. The fits take "
        f"{of('a.rollouts'):.0f} and {of('b.rollouts'):.0f} simulations with a Jacobian"
    )
    if "arm_id.a.rollouts_ratio" not in metrics:
        return f"{said}."
    return (
        f"{said}, {of('a.rollouts_ratio'):.0%} and {of('b.rollouts_ratio'):.0%} of "
        "those of MuJoCo's least squares."
    )


def _observable_error(found: FitResult, system: djdyn.System) -> float:
    """Return the largest relative error of the observable parameters."""
    hidden = found.after.unidentifiable
    return max(abs(e) for k, e in errors(found, system).items() if k not in hidden)


def report_fit(study: Study, case: str, found: FitResult, system: djdyn.System) -> None:
    """Report cost, errors and parameters of a fit."""
    stem, off, before = f"arm_id.{case}", errors(found, system), found.before
    if case == "a":
        flagged = "l1.mass" in before.unidentifiable
        note = "1 if the identifiability test before the fit flags it; it flagged "
        note += ", ".join(before.unidentifiable)
        study.metric("arm_id.mass_1_flagged", flagged, at_least=1.0, note=note)
    study.metric(
        f"{stem}.rollouts",
        found.num_evaluations,
        at_most=39.0,
        note="simulations with a Jacobian",
    )
    study.metric(f"{stem}.error_mass_1", off["l1.mass"], note="relative error")
    study.metric(
        f"{stem}.held_out", found.hold_out_error or 0.0, at_most=0.05,
        note="rms error on the last tenth of the record, over 0.1 mm",
    )  # fmt: skip
    study.report.text(f"Fit ({case}), identifiability: {before.verdict()}.")
    units = djdyn.parameters(system).units
    rows = [
        (k, units[k], float(djdyn.get_parameters(system, k)),
         float(djdyn.get_parameters(found.problem.model, k)), float(v),
         float(found.deviations[k]), off[k])
        for k, v in found.values.items()
    ]  # fmt: skip
    study.report.table(
        f"Fit ({case}); standard errors are those of 0.1 mm of noise",
        (
            "parameter",
            "unit",
            "true",
            "start",
            "found",
            "standard error",
            "relative error",
        ),
        rows,
    )
    if case == "a":
        plot_errors(study, found, system)
    study.report.plot(
        f"Fit ({case}): half the sum of squares",
        ("step", "", np.arange(len(found.history), dtype=float)),
        ("log10 of cost", ""),
        {"cost": np.log10(found.history[:, 0])},
    )


def plot_errors(study: Study, found: FitResult, system: djdyn.System) -> None:
    """Plot the errors of masses and dampings by link, at the start and at the end."""
    off = errors(found, system)
    start = {
        "mass": START_RATIO - 1,
        "damping": np.full(7, START_DAMPING / DAMPING - 1),
    }
    paths = {"mass": MASSES, "damping": DAMPINGS}
    percent = lambda x: 100 * np.abs(x)
    study.report.plot(
        ERRORS_PLOT,
        ("link", "", np.arange(1.0, 8.0)),
        ("relative error", "%"),
        {f"{k}, found": percent([off[p] for p in paths[k]]) for k in paths},
        {f"{k}, at the start": percent(start[k]) for k in paths},
        log="y",
    )


def report_comparison(
    study: Study, case: str, found: FitResult, system: djdyn.System, both: bool
) -> None:
    """Compare with MuJoCo's fit from the same start; both are timed."""
    start = started(system, both)
    masses = np.array([float(djdyn.get_parameters(start, k)) for k in MASSES])
    dampings = np.array([float(djdyn.get_parameters(start, k)) for k in DAMPINGS])
    true = np.array([float(djdyn.get_parameters(system, k)) for k in MASSES])
    own = peer.timed(
        lambda: identify(system, np.asarray(found.problem.trials[0].values), both)
    )
    theirs = peer.identify(
        ARM.text or "", ARM.q0, ARM.torques, DAMPING, masses, dampings if both else None
    )
    off = np.abs(theirs.x[1:7] / true[1:] - 1).max()
    stem = f"arm_id.{case}"
    study.metric(
        f"{stem}.mujoco.max_error_mass", off, note=f"masses 2 to 7, by {peer.tool()}",
    )  # fmt: skip
    study.metric(
        f"{stem}.rollouts_ratio", found.num_evaluations / theirs.rollouts,
        note=f"to MuJoCo's {theirs.rollouts}; ours come with a Jacobian",
    )  # fmt: skip
    study.metric(
        f"{stem}.time_ratio", own.seconds / theirs.seconds,
        note=f"CPU time to MuJoCo's {theirs.seconds:.2g} s, once compiled",
    )  # fmt: skip
