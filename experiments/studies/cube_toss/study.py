"""Cube toss: friction, dissipation and mass centre of a cube from its recorded tosses.

The tosses of an acrylic cube that Pfrommer, Halm and Posa published with *ContactNets:
Learning discontinuous contact dynamics with smooth, implicit representations* (2020)
are rolled out from their first frames without correction.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

import djdyn

from ...harness.study import Study
from ...harness.toss_report import (
    SCENE,
    report_errors,
    report_learning,
    report_mean,
    report_parameters,
)
from ...harness.tosses import Tosses, search
from . import peer
from .fit import BATCH, FRAMES, STEPS, fit, gradient_cost
from .model import Unknowns, build as build, errors, read
from .report import KINDS, numbers, report_median_toss
from .synthetic import TRUTH, synthesise


TITLE = "Cube toss: contact identified from recorded impacts"
STAGES = 5
OPTIONS: dict[str, Any] = {"data": "", "holdout": ""}
MAX_TRAINING = 256  # tosses
FEW = 16  # tosses that should determine the friction
# Steps, tosses per step and their frames, compared with MuJoCo: best in a fourfold
# cross-validation of four such schedules on the training tosses.
LEAN_FIT = (34, 10, 40)
AIMS = (10.0, 14.0)  # %, deg


def run(study: Study) -> None:
    """Fit the tosses, evaluate held-out ones and compare with MuJoCo."""
    data, holdout = (str(study.options.get(k, "")) for k in ("data", "holdout"))
    other = read(holdout) if holdout else None
    system = study.customise(build())
    with study.stage("tosses"):
        tosses = (
            read(data) if data else synthesise(system, 24 if study.quick else 80, 80)
        )
        if len(tosses) < 2:
            raise ValueError(f"{data}: one toss to fit and one to evaluate are needed")
        n = max(1, min(MAX_TRAINING, int(0.64 * len(tosses))))
        validation = tosses.lanes(np.arange(len(tosses) - n))
        training = tosses.lanes(np.arange(len(tosses) - n, len(tosses)))
        source = f"`{data}`" if data else "synthetic, as no data were given"
        study.report.text(
            f"{len(tosses)} tosses ({source}): the last {n} are fitted, the others are "
            "held out. Each is simulated from its first frame on without correction."
        )
        study.console.print(f"  {len(tosses)} tosses: {source.replace('`', '')}")
    steps = 25 if study.quick else STEPS
    with study.stage("fit to all"):
        x = fit(system, training.cut(FRAMES), steps)
        found = errors(system, x, validation)
        before = errors(system, Unknowns.zeros(), validation)
        on = errors(system, x, training)
        report_mean(study, "cube_toss.training", KINDS, on, note="fitted tosses")
        report_mean(study, "cube_toss.start", KINDS, before)
        report_mean(study, "cube_toss.validation", KINDS, found, AIMS)
        report_mean(study, "cube_toss.first_60", KINDS, [e[:60] for e in found])
        if other is not None:
            report_mean(
                study, "cube_toss.holdout", KINDS, errors(system, x, other), AIMS
            )
        study.metric(
            "cube_toss.fit.simulations",
            steps * min(BATCH, n),
            note="simulations, each with its gradient",
        )
        report_errors(study, KINDS, {"first guess": before, "fitted": found})
    with study.stage("comparison with MuJoCo"):
        if not data or study.quick:
            study.report.text(
                "The comparison with MuJoCo is left out of quick runs and without data."
            )
        else:
            compare(study, system, training.cut(FRAMES), validation)
    with study.stage("learning curve"):
        fits = learn(study, training, steps)
        of = lambda some: [numbers(system, y) for y in some]
        first, best = of((Unknowns.zeros(), x))
        report_parameters(study, "cube_toss", first, best, of(fits.get(FEW, [])))
        scores = {
            size: [errors(system, y, validation) for y in some]
            for size, some in (fits | {n: [x]}).items()
        }
        report_learning(study, "cube_toss", KINDS, scores)
        if FEW in fits:
            friction(study, x, fits[FEW])
    with study.stage("replay"):
        if not data:
            recovered(study, x)
        report_median_toss(study, system, x, validation)
    study.answer(summary(study.metrics, n, len(validation)), SCENE)


def summary(found: dict[str, float], fitted: int, held_out: int) -> str:
    """Return the conclusions of the study."""
    of = lambda name: found[f"cube_toss.{name}"]
    said = (
        f"Contact parameters fitted to {fitted} tosses predict {held_out} others with "
        f"mean errors of {of('validation.position_percent'):.1f} % of the cube's width "
        f"and {of('validation.rotation_deg'):.1f} degrees; the first guess has "
        f"{of('start.position_percent'):.1f} % and {of('start.rotation_deg'):.1f} "
        "degrees. "
    )
    if "cube_toss.synthetic.friction" in found:
        said += (
            f"The friction is found to be {of('synthetic.friction'):.3f} times the one "
            "that the synthetic tosses have. "
        )
    if "cube_toss.mujoco.position_percent" in found:
        said += (
            "MuJoCo tuned by Nelder–Mead has "
            f"{of('mujoco.position_percent'):.1f} % and "
            f"{of('mujoco.rotation_deg'):.1f} degrees."
        )
    return said


def learn(study: Study, training: Tosses, steps: int) -> dict[int, list[Unknowns]]:
    """Return fits to disjoint parts of the tosses, by the size of a part."""
    system, fits = study.customise(build()), {}
    for size in (4,) if study.quick else (1, 4, FEW, 64):
        parts = len(training) // size
        parts = parts if size == FEW else min(parts, 4)
        if size < len(training):
            picks = (np.arange(k * size, (k + 1) * size) for k in range(parts))
            some = (training.lanes(pick).cut(FRAMES) for pick in picks)
            fits[size] = [fit(system, part, steps) for part in some]
    return fits


def compare(
    study: Study, system: djdyn.System, training: Tosses, validation: Tosses
) -> None:
    """Compare MuJoCo tuned by Nelder–Mead with a fit of a tenth of its simulations."""
    some = training.lanes(np.arange(min(BATCH, len(training))))
    try:
        found = search(peer.error_function, some, [validation], peer.START, AIMS)
    except ImportError:
        study.report.text(
            "The comparison with MuJoCo is left out: it is not installed."
        )
        return
    steps, batch, frames = LEAN_FIT
    short = training.cut(frames)
    lean = fit(system, short, steps, batch)
    (errors_found,), friction = found.errors, found.parameters[0]
    note = "found by Nelder–Mead, together with stiffness and damping"
    report_mean(study, "cube_toss.mujoco", KINDS, errors_found)
    report_mean(
        study, "cube_toss.mujoco.first_60", KINDS, [e[:60] for e in errors_found]
    )
    study.metric("cube_toss.mujoco.friction", friction, note=note)
    study.metric(
        "cube_toss.mujoco.simulations", found.simulations, note="simulations of a toss"
    )
    report_mean(study, "cube_toss.lean", KINDS, errors(system, lean, validation), AIMS)
    each = gradient_cost(system, short.lanes(np.arange(batch)))
    share = short.poses.shape[1] / training.poses.shape[1]  # of the frames
    study.metric(
        "cube_toss.simulations_vs_mujoco",
        steps * min(batch, len(training)) * share * each / found.simulations,
        at_most=0.1,
        note=f"aim: frames that the fit `lean` simulates, {each:.1f} times as many for "
        "a gradient, over those of MuJoCo's search",
    )


def friction(study: Study, x: Unknowns, fits: list[Unknowns]) -> None:
    """Report how far the friction from few tosses is from that from all."""
    off = np.abs(np.expm1([float(y.mu - x.mu) for y in fits]))
    study.metric(
        f"cube_toss.friction.deviation_of_{FEW}_percent",
        100 * off.max(),
        at_most=10.0,
        unit="%",
        note=f"largest of {len(off)} fits to {FEW} tosses each, beside the fit to all",
    )


def recovered(study: Study, x: Unknowns) -> None:
    """Compare the fitted parameters with those of the synthetic tosses."""
    for name, log_ratio, within in (
        ("friction", x.mu - TRUTH.mu, 0.05),
        ("dissipation", x.dissipation - TRUTH.dissipation, 0.2),
    ):
        note, metric = "over its true value", f"cube_toss.synthetic.{name}"
        study.metric(metric, jnp.exp(log_ratio), 1.0, within, note=note)
    study.metric(
        "cube_toss.synthetic.centre",
        10 * jnp.linalg.norm(x.centre - TRUTH.centre),
        at_most=1.0,
        unit="mm",
        note="distance from the true mass centre",
    )
