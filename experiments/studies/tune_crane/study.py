"""Crane tuning: gains and timing with the least loads in the foot of a crane at sea.

The offshore crane of `djdyn run crane` goes through its hoisting cycle with payloads
and on vessels that differ. PD gains and the timing of its moves are tuned together for
peak and fatigue of the bending moment in the slewing bearing, which Cibicik and
Egeland, *Determination of constraint forces for an offshore crane on a moving base*,
name as the use of their method.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

import controllers
import djdyn
from controllers import Scenarios, TuningResult
from controllers.tuning.objective import Objective
from controllers.tuning.tune import evaluate

from ...harness.study import Study
from ...harness.tuning_report import gain_table, keep, margin_table, race, without
from ..crane import study as crane
from .model import (
    DAMPED,
    DAMPING,
    FOOT,
    HOW,
    HULL,
    LATEST,
    LIMITS,
    PERIOD,
    SAVES,
    SPAN,
    build,
    conditions,
    cost,
    free,
    rest,
    standing,
)


TITLE = "Crane tuning: least loads in the foot"
STAGES = 3


def run(study: Study) -> None:
    system = study.customise(build())
    study.report.text(
        "The crane slews to the pick-up side, reaches out, lifts, slews across the "
        "vessel and reaches out again, in 25 s, with payloads of 50 to 300 kg on hulls "
        "whose stiffness differs by a half. Six gains, and when its five moves begin "
        "and end, are tuned at once: moves stay in their order and within the cycle, "
        "and may use its pauses. The cost is the peak of the bending moment in the "
        "foot and the range of one cycle that tires it as much, each over its value "
        "at the start, and errors of angle and speed; each joint stays damped to at "
        f"least {DAMPED:g} of critical, and its loop loses at most {LATEST:g} rad to "
        "the delay where its gain is one. Controllers take samples every 2 ms, their "
        "torques come a sample late, and encoders have noise. All runs start where the "
        "first gains hold the crane; stiffer ones first lift its sag, which counts "
        "against them."
    )
    study.report.text(
        "Under the crane's weight the cubic springs of the source leave the vessel "
        "unstable when upright, and its motion chaotic: no gain could be judged over "
        "more than some seconds. So water is added, which holds the hull upright "
        f"({HULL:g} N m/rad) and damps it ({DAMPING:g} N m s/rad, an eighth of "
        "critical). The cycle runs twice as fast as in the crane study, where the "
        "moment at rest is nearly all of the peak."
    )
    with study.stage("scenarios"):
        some = (8, 8) if study.quick else (16, 64)
        train, others = (
            conditions(system, n, seed) for n, seed in zip(some, (0, 1), strict=True)
        )
        scale = at_start(system, train)
    with study.stage("tuning"):
        found = controllers.tune(
            system, SPAN, free=free(), cost=cost(*scale), constraints=LIMITS,
            penalty=100.0, scenarios=train, held_out=others, saves=SAVES,
            max_steps=10 if study.quick else 60, rest=rest, loop="pd.u",
            delay=1.5 * PERIOD, save=study.out / "tuning", **HOW,
        )  # fmt: skip
        keep(study, found)
        judged(study, found)
        without(study, "tune_crane", found, others)
    with study.stage("other searches"):
        if not study.quick:
            race(study, "tune_crane", found, 1000, ("CMA-ES", "Nelder-Mead"))


def at_start(system: djdyn.System, some: Scenarios) -> tuple[float, float]:
    """Mean peak and mean equivalent range before tuning, N m."""
    terms = cost(1.0, 1.0)
    plain = Objective(
        system, SPAN, free(), terms, some, {}, SAVES, "mean", "penalise", 1.0, HOW
    )
    seen = evaluate(plain, plain.x0).terms
    return float(np.mean(seen["peak"])), float(np.mean(seen["fatigue"]))


def judged(study: Study, found: TuningResult) -> None:
    numbers = found.figures()["held out"]
    for name, term in (("peak_moment", "peak"), ("fatigue", "fatigue")):
        before, after = numbers[term]
        study.metric(
            f"tune_crane.{name}_ratio",
            after / before,
            0.0,
            0.9 if study.quick else 0.7,
            note="after over before, on scenarios held out",
        )
    before, after = numbers["tracking"]
    study.metric(
        "tune_crane.tracking_ratio",
        np.sqrt(after / before),
        0.0,
        1.0,
        note="of rms errors, on scenarios held out",
    )
    assert found.spectral_abscissa is not None
    study.metric(
        "tune_crane.largest_growth",
        found.spectral_abscissa[1].max(),
        0.0,
        1e-6,
        unit="1/s",
        note="largest real part of a pole of the tuned loop, in all scenarios; that of "
        "the integrals, which are not used, is zero",
    )
    at_rest = standing_share(found)
    study.metric(
        "tune_crane.standing_share",
        at_rest,
        note="of the first peak, what the crane reaching out at rest has: no tuning "
        "gets below it",
    )
    margin_table(study, "tune_crane", found)
    postures(study, found)
    gain_table(study, found)
    figures(study, found)


def standing_share(found: TuningResult) -> float:
    """Mean moment in the foot when all stands still at the last point, of the peak."""
    some, system = found.objective.scenarios, found.system
    end = djdyn.get_parameters(system, "reference.path.points")[-1]
    still = [standing(some.put(system, k), end) for k in range(len(some))]
    moments = [jnp.linalg.norm(FOOT(here.at(0.0, y))) for here, y in still]
    peak: Any = found.objective.probes.terms["peak"]
    return float(np.mean(moments) / peak.scale)


def postures(study: Study, found: TuningResult) -> None:
    """Margins at rest at each point of the cycle, with the extremes of payloads."""
    some, path = found.objective.scenarios, crane.moves()
    masses = np.asarray(some.parameters["payload.mass"])
    rows = []
    for i, point in enumerate((path.first, *path.points)):
        worst = []
        for system in (found.objective.system, found.system):
            still = [
                standing(some.put(system, int(k)), point)
                for k in (np.argmin(masses), np.argmax(masses))
            ]
            margins = [controllers.margins(*x, "pd.u", 1.5 * PERIOD) for x in still]
            worst.append(min(m.modulus.min() for m in margins))
        rows.append((f"P{i}", *worst))
    study.metric(
        "tune_crane.postures.modulus_margin",
        min(after for _, _, after in rows),
        1.0,
        0.5,
        note="at the worst point of the cycle, with the lightest and heaviest payload; "
        "half is what is asked for",
    )
    study.report.table(
        "Modulus margin at the points of the cycle, worst joint and payload",
        ("point", "before", "after"),
        rows,
    )


def figures(study: Study, found: TuningResult) -> None:
    """The first scenario, before and after."""
    some = found.objective.scenarios
    shown = {}
    for name, system in (("before", found.objective.system), ("after", found.system)):
        run = djdyn.rollout(
            system, SPAN, some.initial_state, parameters=some.parameters, **HOW
        )
        shown[name] = run.lane(0)
    times = np.asarray(shown["after"].t)[::10]
    time = ("time", "s", times)
    moment = {k: np.linalg.norm(r.map(FOOT)[::10], axis=-1) for k, r in shown.items()}
    study.report.plot("Bending moment in the foot", time, ("moment", "N m"), moment)
    for i, joint in ((0, "slew"), (1, "luff")):
        study.report.plot(
            f"{joint.capitalize()} joint",
            time,
            ("angle", "deg"),
            {k: np.asarray(r.y.q)[::10, 3 + i] * crane.DEG for k, r in shown.items()},
        )
    study.report.plot(
        "Roll of the vessel",
        time,
        ("angle", "deg"),
        {k: np.asarray(r.y.q)[::10, 0] * crane.DEG for k, r in shown.items()},
    )
    study.report.plot(
        "Tuning: the least cost so far",
        ("step", "", np.arange(1.0, len(found.history) + 1)),
        ("cost", ""),
        {"scenarios tuned on": np.minimum.accumulate(found.history[:, 0])},
    )
