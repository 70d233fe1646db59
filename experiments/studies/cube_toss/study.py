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
from .fit import BATCH, FRAMES, STEPS, fit, price
from .model import Unknowns, build as build, errors
from .peer import tune
from .records import Tosses, read
from .report import show_errors, show_learning, show_table, show_toss
from .synthetic import TRUTH, synthesise


TITLE = "Cube toss: contact identified from recorded impacts"
STAGES = 5
OPTIONS: dict[str, Any] = {"data": "", "holdout": ""}
MOST = 256  # tosses to train on
FEW = 16  # tosses that friction should be known from
LEAN = (20, 4)  # steps, and tosses a step, of the fit beside MuJoCo's
KINDS = (
    ("position_percent", "%", "mean over a toss, of the cube's width"),
    ("rotation_deg", "deg", "mean over a toss"),
)
AIMS = (10.0, 14.0)


def judge(study: Study, name: str, found: Any, most: Any = (None, None)) -> None:
    """Both mean errors over some tosses, judged by the most they may be."""
    for (kind, unit, note), e, bound in zip(KINDS, found, most, strict=True):
        study.metric(
            f"cube_toss.{name}.{kind}",
            np.mean(e),
            at_most=bound,
            unit=unit,
            note=f"{note}; {len(e)} tosses",
        )


def run(study: Study) -> None:
    data, holdout = (str(study.options.get(k, "")) for k in ("data", "holdout"))
    other = read(holdout) if holdout else None
    system = study.customise(build())
    with study.stage("tosses"):
        tosses = (
            read(data) if data else synthesise(system, 24 if study.quick else 80, 80)
        )
        if len(tosses) < 2:
            raise ValueError(f"{data}: one toss to fit and one to judge are needed")
        n = max(1, min(MOST, int(0.64 * len(tosses))))
        validation = tosses.lanes(np.arange(len(tosses) - n))
        training = tosses.lanes(np.arange(len(tosses) - n, len(tosses)))
        source = f"`{data}`" if data else "synthesised, as no data were given"
        study.report.text(
            f"{len(tosses)} tosses ({source}): the last {n} to fit, the others to "
            "judge. Each is simulated from its first frame on without correction."
        )
        study.console.print(f"  {len(tosses)} tosses: {source.replace('`', '')}")
    steps = 25 if study.quick else STEPS
    with study.stage("fit to all"):
        x = fit(system, training.cut(FRAMES), steps)
        found = errors(system, x, validation)
        before = errors(system, Unknowns.zeros(), validation)
        judge(study, "training", errors(system, x, training))
        judge(study, "start", before)
        judge(study, "validation", found, AIMS)
        judge(study, "first_60", [e[:60] for e in found])
        if other is not None:
            judge(study, "holdout", errors(system, x, other), AIMS)
        study.metric(
            "cube_toss.fit.simulations",
            steps * min(BATCH, n),
            note="each with its gradient",
        )
        show_errors(study, before, found)
    with study.stage("beside MuJoCo"):
        if not data or study.quick:
            study.report.text(
                "Left out: MuJoCo on the same tosses, in a quick run or without data."
            )
        else:
            compare(study, system, training.cut(FRAMES), validation)
    with study.stage("learning curve"):
        fits = learn(study, training, steps)
        show_table(study, system, x, fits.get(FEW, []))
        show_learning(study, system, fits | {n: [x]}, validation)
        if FEW in fits:
            friction(study, x, fits[FEW])
    with study.stage("replay"):
        if not data:
            recovered(study, x)
        show_toss(study, system, x, validation)


def learn(study: Study, training: Tosses, steps: int) -> dict[int, list[Unknowns]]:
    """Fits to disjoint parts of the tosses, by the size of a part."""
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
    """MuJoCo tuned by Nelder-Mead, and a fit with a tenth of its simulations."""
    some = training.lanes(np.arange(min(BATCH, len(training))))
    try:
        peer = tune(some, validation)
    except ImportError:
        study.report.text("Left out: MuJoCo on the same tosses, as it is missing.")
        return
    steps, batch = LEAN
    eliminate_dead_code = fit(system, some, steps, batch)
    bounds = [np.mean(e) for e in peer.errors]
    note = "found by Nelder-Mead with stiffness and damping of its contact"
    judge(study, "mujoco", peer.errors)
    judge(study, "mujoco.first_60", [e[:60] for e in peer.errors])
    study.metric("cube_toss.mujoco.friction", peer.friction, note=note)
    study.metric("cube_toss.mujoco.simulations", peer.simulations, note="of a toss")
    judge(study, "lean", errors(system, eliminate_dead_code, validation), bounds)
    each = price(system, some.lanes(np.arange(batch)))
    study.metric(
        "cube_toss.simulations_vs_mujoco",
        steps * min(batch, len(some)) * each / peer.simulations,
        at_most=0.1,
        note="aim: simulations of the fit `lean`, whose gradients cost "
        f"{each:.1f} simulations each, over those of MuJoCo's search",
    )


def friction(study: Study, x: Unknowns, fits: list[Unknowns]) -> None:
    """From any few tosses, beside that from all."""
    off = np.abs(np.expm1([float(y.mu - x.mu) for y in fits]))
    study.metric(
        f"cube_toss.friction.deviation_of_{FEW}_percent",
        100 * off.max(),
        at_most=10.0,
        unit="%",
        note=f"largest of {len(off)} fits to {FEW} tosses each, to the fit to all",
    )


def recovered(study: Study, x: Unknowns) -> None:
    """What was fitted beside what the tosses were synthesised with."""
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
