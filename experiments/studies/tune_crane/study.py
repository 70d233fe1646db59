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
from controllers import (
    RobustnessMargins,
    Scenarios,
    SearchOptions,
    TuningResult,
)

from ...harness.study import Study
from ...harness.tuning_report import (
    compare_continuous,
    compare_searches,
    gain_table,
    margin_table,
    save_gains,
    searched,
)
from ..crane import model as crane
from .model import (
    FOOT,
    HULL_DAMPING,
    HULL_STIFFNESS,
    LIMITS,
    MAX_PHASE_LAG,
    MIN_DAMPING_RATIO,
    PERIOD,
    SAVES,
    SIMULATION,
    SPAN,
    build,
    conditions,
    cost,
    free,
    parked_state,
    standing,
)


TITLE = "Crane tuning: least loads in the foot"
STAGES = 3
MOMENT_PLOT = "Bending moment in the foot, before and after tuning"


def run(study: Study) -> None:
    """Tune gains and timing, and compare with other searches."""
    system = study.customise(build())
    study.report.text(
        "The crane slews to the pick-up side, reaches out, lifts, slews across the "
        "vessel and reaches out again in 25 s. Payloads range from 50 to 300 kg, hull "
        "stiffnesses from 0.75 to 1.25 of the nominal one. Six gains and the start and "
        "end times of five moves are tuned together. The moves keep their order and "
        "stay within the cycle and its pauses. The cost is the sum of the peak bending "
        "moment in the foot, the damage-equivalent moment range, each over its value "
        "at the start, and the errors of angle and speed. Two constraints hold: each "
        f"joint has a damping ratio of at least {MIN_DAMPING_RATIO:g}, and the delay "
        f"takes at most {MAX_PHASE_LAG:g} rad of phase where the loop has a gain of "
        "one. Controllers are sampled every 2 ms, their torques act one sample late, "
        "and encoders have noise. All runs start from the equilibrium with the first "
        "gains. Stiffer gains first lift the crane from its sag, and this motion is "
        "part of their cost."
    )
    study.report.text(
        "Under the weight of the crane, the cubic springs of the source do not "
        "stabilise the upright vessel. Its motion is chaotic, and gains cannot be "
        "compared over more than a few seconds. This study adds water that holds the "
        f"hull upright ({HULL_STIFFNESS:g} N m/rad) and damps it ({HULL_DAMPING:g} "
        "N m s/rad, an eighth of critical). The cycle is twice as fast as in the crane "
        "study, where the static moment is nearly all of the peak."
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
            scenarios=train, hold_out=others, saves=SAVES,
            search=SearchOptions(max_steps=10 if study.quick else 60, penalty=100.0),
            robustness=RobustnessMargins(parked_state, "pd.u", delay=1.5 * PERIOD),
            save=study.out / "tuning", **SIMULATION,
        )  # fmt: skip
        save_gains(study, found)
        report_result(study, found)
        compare_continuous(study, "tune_crane", found, others)
    with study.stage("other searches"):
        if not study.quick:
            methods = ("CMA-ES", "Nelder-Mead")
            compare_searches(study, "tune_crane", found, 1000, methods)
    study.answer(summary(study.metrics), MOMENT_PLOT)


def summary(found: dict[str, float]) -> str:
    """Return the conclusions of the study."""
    of = lambda name: found[f"tune_crane.{name}"]
    return (
        "On payloads and vessels that were not tuned on, tuned gains and timing leave "
        f"{of('peak_moment_ratio'):.0%} of the peak moment in the foot, "
        f"{of('fatigue_ratio'):.0%} of the damage-equivalent moment range and "
        f"{of('tracking_ratio'):.0%} of the tracking error. The crane's weight alone "
        f"takes {of('static_load_share'):.0%} of the first peak, which no tuning can "
        f"lower. The least modulus margin is {of('modulus_margin'):.2f}."
        f"{searched(found, 'tune_crane')}"
    )


def at_start(system: djdyn.System, some: Scenarios) -> tuple[float, float]:
    """Return the mean peak and damage-equivalent moment before tuning, N m."""
    terms = cost(1.0, 1.0)
    seen = controllers.evaluate(
        system, SPAN, terms, some, saves=SAVES, **SIMULATION
    ).terms
    return float(np.mean(seen["peak"])), float(np.mean(seen["fatigue"]))


def report_result(study: Study, found: TuningResult) -> None:
    """Report loads, tracking, stability and margins on the held-out scenarios."""
    numbers = found.summary()["held out"]
    for name, term in (("peak_moment", "peak"), ("fatigue", "fatigue")):
        before, after = numbers[term]
        study.metric(
            f"tune_crane.{name}_ratio",
            after / before,
            at_most=0.9 if study.quick else 0.7,
            note="after tuning over before, on held-out scenarios",
        )
    before, after = numbers["tracking"]
    study.metric(
        "tune_crane.tracking_ratio",
        np.sqrt(after / before),
        at_most=1.0,
        note="rms error after tuning over before, on held-out scenarios",
    )
    assert found.spectral_abscissa is not None
    study.metric(
        "tune_crane.spectral_abscissa",
        found.spectral_abscissa[1].max(),
        at_most=1e-6,
        unit="1/s",
        note="largest real part of a pole of the tuned loop, in all scenarios; the "
        "unused integrals have poles at zero",
    )
    at_rest = static_load_share(found)
    study.metric(
        "tune_crane.static_load_share",
        at_rest,
        note="static moment of the crane reaching out, over the peak before tuning; no "
        "tuning gets below it",
    )
    figures(study, found)
    margin_table(study, "tune_crane", found)
    postures(study, found)
    gain_table(study, found)


def static_load_share(found: TuningResult) -> float:
    """Return the mean static moment in the foot at the last point, over the peak."""
    some, system = found.objective.scenarios, found.system
    end = djdyn.get_parameters(system, "reference.path.points")[-1]
    still = [standing(some.put(system, k), end) for k in range(len(some))]
    moments = [jnp.linalg.norm(FOOT(here.at(0.0, y))) for here, y in still]
    peak: Any = found.objective.probes.terms["peak"]
    return float(np.mean(moments) / peak.scale)


def postures(study: Study, found: TuningResult) -> None:
    """Report static margins at each point of the cycle, with extreme payloads."""
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
        at_least=0.5,
        note="at the worst point of the cycle, with the lightest and heaviest payload",
    )
    study.report.table(
        "Modulus margin at each point of the cycle, worst joint and payload",
        ("point", "before", "after"),
        rows,
    )


def figures(study: Study, found: TuningResult) -> None:
    """Plot the first scenario before and after tuning."""
    some = found.objective.scenarios
    shown = {}
    for name, system in (("before", found.objective.system), ("after", found.system)):
        run = djdyn.rollout(
            system, SPAN, some.initial_state, parameters=some.parameters, **SIMULATION
        )
        shown[name] = run.lane(0)
    times = np.asarray(shown["after"].t)[::10]
    time = ("time", "s", times)
    moment = {k: np.linalg.norm(r.map(FOOT)[::10], axis=-1) for k, r in shown.items()}
    study.report.plot(MOMENT_PLOT, time, ("moment", "N m"), moment)
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
        "Tuning: lowest cost so far",
        ("step", "", np.arange(1.0, len(found.history) + 1)),
        ("cost", ""),
        {"scenarios tuned on": np.minimum.accumulate(found.history[:, 0])},
    )
