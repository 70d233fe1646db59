"""Elbow toss: friction, contact and inertia of two hinged blocks from their tosses.

The tosses of two hinged acrylic blocks that were published with *ContactNets* and
*dair_pll* are rolled out from their first frames without correction.
"""

from collections.abc import Sequence
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
from ...harness.tosses import PeerResult, Record, Tosses, search
from . import peer
from .fit import STEPS, fit, polish, windows
from .level import find_table, level, level_by_ends
from .model import Unknowns, build as build, errors, read
from .report import KINDS, describe_table, numbers, report_median_toss
from .synthetic import TRUTH, synthesise


TITLE = "Elbow toss: hinge and contact identified from recorded impacts"
STAGES = 5
OPTIONS: dict[str, Any] = {"data": "", "holdout": ""}
HELD_OUT = 3  # every third toss is not fitted
SCALES = (10.0, 14.0, 14.0)  # %, deg, deg: equally bad
SIZES = {4: 2, 16: 3, 64: 1}  # tosses of a fit, fits


def run(study: Study) -> None:
    """Fit the tosses, evaluate held-out ones and compare with MuJoCo."""
    data, holdout = (str(study.options.get(k, "")) for k in ("data", "holdout"))
    other = read(holdout) if holdout else None
    system = study.customise(build())
    with study.stage("tosses"):
        record = read(data) if data else synthesise(18 if study.quick else 90, 100)
        held = np.arange(len(record.states)) % HELD_OUT == 0
        if held.all():
            raise ValueError(f"{data}: one toss to fit and one to evaluate are needed")
        fitted, table = record.lanes(~held), find_table(record.lanes(~held))
        training = level(system, fitted, table)
        sets = {"validation": level(system, record.lanes(held), table)}
        if other is not None:
            sets["holdout"] = level(system, other, table)
        ends = level_by_ends(record.lanes(held), table)
        sets["windows"] = windows(ends, record.dt)
        source = f"`{data}`" if data else "synthetic by MuJoCo, as no data were given"
        introduce(study, record, held, source)
        describe_table(study, table, fitted)
    states, steps = level_by_ends(fitted, table), 40 if study.quick else STEPS
    with study.stage("fit"):
        x = fit(system, windows(states, record.dt), steps)
        if not study.quick:
            x = polish(system, x, training, SCALES)
    with study.stage("MuJoCo, tuned"):
        rival = compare(study, training, list(sets.values()), bool(data))
    with study.stage("errors and learning curve"):
        validation = sets["validation"]
        predicted = {name: errors(system, x, some) for name, some in sets.items()}
        report_means(study, system, x, training, validation, predicted, rival)
        fits = {} if study.quick else learn(system, states, record.dt)
        report_all(study, system, x, fits, len(states), validation)
    with study.stage("replay"):
        if not data:
            recovered(study, x)
        report_median_toss(study, system, x, validation)
    study.answer(summary(study.metrics, len(states), len(validation)), SCENE)


def introduce(study: Study, record: Record, held: np.ndarray, source: str) -> None:
    """Say which tosses there are, and how they are used."""
    study.report.text(
        f"{len(held)} tosses ({source}): {np.sum(~held)} are fitted, every third, "
        f"{np.sum(held)} in all, is held out. Fitted are windows of some frames, each "
        "from its measured first state; then friction, contact and hinge once more to "
        "whole tosses without gradients. Errors are those of whole tosses, simulated "
        "from their first frame on without correction. After the first impact they are "
        "chaotic: small errors of the first frame grow to the size of the motion."
    )
    study.console.print(f"  {len(held)} tosses: {source.replace('`', '')}")


def compare(
    study: Study, training: Tosses, others: Sequence[Tosses], measured: bool
) -> PeerResult | None:
    """Tune MuJoCo on the same tosses, and return its errors on others."""
    if not measured or study.quick:
        said = "left out of quick runs and without data"
    else:
        try:
            return search(peer.error_function, training, others, peer.START, SCALES)
        except ImportError:
            said = "left out: it is not installed"
    study.report.text(f"The comparison with MuJoCo is {said}.")
    return None


def report_means(
    study: Study,
    system: djdyn.System,
    x: Unknowns,
    training: Tosses,
    validation: Tosses,
    predicted: dict[str, tuple[Any, ...]],
    rival: PeerResult | None,
) -> None:
    """Report mean errors; MuJoCo's are the bounds of those on tosses not fitted."""
    before = errors(system, Unknowns.zeros(), validation)
    report_mean(study, "elbow_toss.start", KINDS, before)
    on = errors(system, x, training)
    report_mean(study, "elbow_toss.training", KINDS, on, note="fitted tosses")
    curves = {"first guess": before, "fitted": predicted["validation"]}
    for i, (name, found) in enumerate(predicted.items()):
        bounds: tuple[float | None, ...] = (None,) * len(KINDS)
        what = "short windows of them" if name == "windows" else "tosses not fitted"
        if rival is not None:
            whose = "mujoco" if name == "validation" else f"mujoco.{name}"
            report_mean(study, f"elbow_toss.{whose}", KINDS, rival.errors[i], note=what)
            if name != "windows":  # MuJoCo is tuned to whole tosses
                bounds = tuple(float(np.mean(e)) for e in rival.errors[i])
                report_advantage(study, f"elbow_toss.{name}", found, rival.errors[i])
        report_mean(study, f"elbow_toss.{name}", KINDS, found, bounds, note=what)
    if rival is not None:
        curves["MuJoCo"] = rival.errors[0]
        study.metric("elbow_toss.mujoco.friction", rival.parameters[0])
        study.metric("elbow_toss.mujoco.simulations", rival.simulations)
    report_errors(study, KINDS, curves)


def report_advantage(
    study: Study, name: str, found: Sequence[Any], others: Sequence[Any]
) -> None:
    """Report how much smaller errors are than MuJoCo's, toss by toss."""
    for kind, e, other in zip(KINDS, found, others, strict=True):
        less = np.asarray(other) - np.asarray(e)
        error = np.std(less) / np.sqrt(len(less))
        study.metric(
            f"{name}.less_than_mujoco.{kind.name}",
            np.mean(less),
            unit=kind.unit,
            note=f"standard error {error:.2g}",
        )


def learn(
    system: djdyn.System, states: list[np.ndarray], dt: float
) -> dict[int, list[Unknowns]]:
    """Return fits to disjoint parts of the tosses, by the size of a part."""
    fits = {}
    for size, count in SIZES.items():
        parts = [states[k * size : (k + 1) * size] for k in range(count)]
        whole = [part for part in parts if len(part) == size < len(states)]
        if whole:
            fits[size] = [fit(system, windows(part, dt), STEPS // 2) for part in whole]
    return fits


def report_all(
    study: Study,
    system: djdyn.System,
    x: Unknowns,
    fits: dict[int, list[Unknowns]],
    fitted: int,
    validation: Tosses,
) -> None:
    """Report parameters, their scatter over small fits, and the learning curve."""
    of = lambda some: [numbers(system, y) for y in some]
    first, best = of((Unknowns.zeros(), x))
    report_parameters(study, "elbow_toss", first, best, of(fits.get(16, [])))
    scores = {
        size: [errors(system, y, validation) for y in some]
        for size, some in (fits | {fitted: [x]}).items()
    }
    report_learning(study, "elbow_toss", KINDS, scores)


def recovered(study: Study, x: Unknowns) -> None:
    """Compare friction with that of the synthetic tosses."""
    for name, log_ratio, within in (
        ("friction", x.mu - jnp.log(TRUTH["mu"] / 0.2), 0.1),
        ("hinge", x.viscous - jnp.log(TRUTH["viscous"] / 1e-3), 0.4),
    ):
        note, metric = "over its true value", f"elbow_toss.synthetic.{name}"
        study.metric(metric, jnp.exp(log_ratio), 1.0, within, note=note)


def summary(found: dict[str, float], fitted: int, held_out: int) -> str:
    """Return the conclusions of the study."""
    of = lambda name: [found[f"elbow_toss.{name}.{kind.name}"] for kind in KINDS]
    text = "{:.1f} % of a block's length, {:.1f} and {:.1f} degrees"
    said = (
        f"Friction, contact, hinge and inertia fitted to {fitted} tosses predict "
        f"{held_out} others with mean errors of {text.format(*of('validation'))} "
        f"(block 1, and the hinge); the first guess has {text.format(*of('start'))}. "
    )
    if "elbow_toss.mujoco.friction" in found:
        said += f"MuJoCo tuned by Nelder–Mead has {text.format(*of('mujoco'))}."
    return said
