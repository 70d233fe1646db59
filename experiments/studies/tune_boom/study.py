"""Boom tuning: PID gains of a boom crane with limited power on a moving deck.

The crane of `djdyn run boom-crane` (Roy, Steinke and Nicoll, *Ship Mechanical Systems
API: Final Report*, 2014, section 4.4.9) slews, luffs and knuckles at once while its
deck heaves, rolls and pitches. The power of each joint's drive is limited.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.stats

import controllers
import djdyn
from controllers import (
    JointPID,
    MeanSquare,
    MeanSquareRate,
    PIDState,
    PowerDrawn,
    Reference,
    RobustnessMargins,
    Scenarios,
    SearchOptions,
    TuningResult,
    multisine,
)
from djdyn import FreeParameter, Positive, Sigmoid
from djdyn.multibody.spatial import translation
from djdyn.multibody.time_functions import DeckMotion, Moves
from djdyn.parts import ExternalWrench, JointActuator
from djdyn.system.instant import Instant

from ...harness.study import Study
from ...harness.tuning_report import (
    compare_continuous,
    compare_searches,
    gain_table,
    margin_table,
    sampled_loop,
    save_gains,
    searched,
)
from ..boom_crane.model import PALFINGER, crane, lock


TITLE = "Boom tuning: PID gains under a power limit on a moving deck"
STAGES = 3
HELD_OUT_PLOT = "{joint}: {what}, held-out scenario"
LUFF_PLOT = HELD_OUT_PLOT.format(joint="Luff", what="error")
JOINTS = ("link1", "link2", "link3")
SPAN, SAVES = 12.0, 1201  # s
SNAG = [9.0], [9.1]  # s, start and end of the ramp of the force on the load
POWER = np.array([8e3, 8e3, 4e3])  # W
KP, KI, KD = 5e5, 5e4, 4e4  # N m/rad, N m/(rad s), N m s/rad
NOISE, PERIOD = 1.7e-6, 2e-3  # rad, rms of a 20-bit encoder; s
SIMULATION = sampled_loop(PERIOD)
MODULUS_MARGIN = 0.6  # below it, the tuning adds a penalty
MAX_KP = 400 * np.array([6000.0, 6900.0, 2400.0])  # N m/rad: 20 rad/s
FREE = [
    FreeParameter("pid.kp", Sigmoid(0.01 * MAX_KP, MAX_KP)),
    *(FreeParameter(f"pid.{k}", Positive()) for k in ("ki", "kd")),
]


def speed_error(now: Instant) -> Any:
    """Return the speed error of each joint, rad/s."""
    return now.signals["path.rate"] - now.y.v


def build() -> djdyn.System:
    """Return the crane with three joints; each telescope section is out by 0.5 m."""
    whole, q = crane(PALFINGER)
    arm = lock(whole, q.at[3:].set(0.5), JOINTS)
    zero = np.zeros(6)
    deck = djdyn.Body("deck", "world", djdyn.Prescribed(DeckMotion(zero, zero)), 1.0)
    on_deck = [
        dataclasses.replace(b, parent="deck") if b.parent == "world" else b
        for b in arm.bodies
    ]
    tip = translation((0.0, 0.0, 2.5))
    load = djdyn.Body("payload", "link3", djdyn.Fixed(), 200.0, X_PJ=tip)
    mechanism = djdyn.Mechanism((deck, *on_deck, load), (), arm.gravity_W)
    first = jnp.array([0.0, 0.0, np.pi / 2])
    last = jnp.array([1.0, 0.7, np.pi / 2 - 0.6])
    path = Moves(first, last[None], [1.0], [7.0])
    ones = jnp.ones(3)
    parts = {
        "path": Reference(path),
        "noise": multisine("path.value", "path.rate", size=3, deviation=NOISE),
        "pid": JointPID(
            JOINTS,
            "noise.value",
            KP * ones,
            KD * ones,
            KI * ones,
            rate="noise.rate",
            power=POWER,
        ),
        "motors": JointActuator(JOINTS, "pid.u"),
        "snag": ExternalWrench("payload", Moves(zero, zero[None], *SNAG)),
    }
    return djdyn.System(mechanism, parts)


def start(system: djdyn.System) -> djdyn.State:
    """Return the state at the first point, with integrals that carry the weight."""
    q, zero = djdyn.get_parameters(system, "path.path.first"), jnp.zeros(3)
    torque = djdyn.inverse_dynamics(system.mechanism, q, zero, zero)
    integral = {"pid": PIDState(torque, jnp.zeros(0))}
    return system.initial_state(q, parts=integral)


COST = {
    "tracking": MeanSquare("pid.error", 5e-3),
    "speed": MeanSquare(speed_error, 5e-3),
    "power": MeanSquare(PowerDrawn("motors"), 2e4),
    "roughness": MeanSquareRate("pid.u", 5e4),
}


def conditions(system: djdyn.System, count: int, seed: int) -> Scenarios:
    """Return random payloads of 50 to 400 kg and decks in seas of 6 to 12 s."""
    uniform = lambda low, high: scipy.stats.uniform(low, high - low)
    deck, laws = "deck.joint.motion.", {"payload.mass": uniform(50, 400)}
    for i, (low, high) in {2: (0.3, 1.2), 3: (0.02, 0.1), 4: (0.01, 0.05)}.items():
        laws[f"{deck}amplitude[{i}]"] = uniform(low, high)
        laws[f"{deck}frequency[{i}]"] = uniform(2 * np.pi / 12, 2 * np.pi / 6)
        laws[f"{deck}phase[{i}]"] = uniform(0.0, 2 * np.pi)
    for i in (3, 4, 5):
        laws[f"snag.wrench.points[0][{i}]"] = uniform(-2e3, 2e3)
    laws["noise.phase"] = uniform(0.0, 2 * np.pi)
    return controllers.sample(system, count, laws, start=start, seed=seed)


def powers(now: Instant) -> Any:
    """Return the power of each drive, W."""
    return now.tau * now.y.v


def run(study: Study) -> None:
    """Tune the gains and compare with other searches."""
    system = study.customise(build())
    study.report.text(
        "The crane slews by 57 degrees, luffs by 40 and knuckles by 34 in 6 s, with "
        "payloads of 50 to 400 kg on decks that heave, roll and pitch. Then its load "
        "snags, and a force of up to 2 kN in each direction acts on it. Nine gains are "
        "tuned for errors of angle and speed, power drawn and mean square rate of the "
        "torques; the power of each drive is limited. Controllers are sampled every "
        "2 ms, their commands act one sample late, and encoders have noise."
    )
    with study.stage("scenarios"):
        some = (8, 8) if study.quick else (32, 64)
        train, others = (
            conditions(system, n, seed) for n, seed in zip(some, (0, 1), strict=True)
        )
    with study.stage("tuning"):
        found = controllers.tune(
            system, SPAN, free=FREE, cost=COST, scenarios=train, hold_out=others,
            search=SearchOptions(method="lm", max_steps=4 if study.quick else 12),
            robustness=RobustnessMargins(
                start, "pid.u", delay=1.5 * PERIOD, modulus=MODULUS_MARGIN
            ),
            saves=SAVES, save=study.out / "tuning", **SIMULATION,
        )  # fmt: skip
        save_gains(study, found)
        report_result(study, found, others)
        compare_continuous(study, "tune_boom", found, others)
    with study.stage("other searches"):
        if not study.quick:
            methods = ("CMA-ES", "Nelder-Mead")
            compare_searches(study, "tune_boom", found, 1000, methods)
    study.answer(summary(study.metrics), LUFF_PLOT)


def summary(found: dict[str, float]) -> str:
    """Return the conclusions of the study."""
    of = lambda name: found[f"tune_boom.{name}"]
    return (
        "On payloads and decks that were not tuned on, tuned gains leave "
        f"{of('cost_ratio'):.0%} of the cost: {of('tracking_ratio'):.0%} of the mean "
        f"square error of the angles and {of('power_ratio'):.0%} of that of the power "
        f"drawn. The drives use at most {of('largest_power_share'):.0%} of their power "
        f"limits, and the least modulus margin is {of('modulus_margin'):.2f}."
        f"{searched(found, 'tune_boom')}"
    )


def report_result(study: Study, found: TuningResult, others: Scenarios) -> None:
    """Report costs, stability, margins and power on the held-out scenarios."""
    study.metric(
        "tune_boom.cost_ratio",
        found.cost_ratio,
        at_most=0.9 if study.quick else 0.7,
        note="cost after tuning over before, on held-out scenarios",
    )
    for name, (before, after) in found.summary()["held out"].items():
        if name in COST:
            note = "this term of the cost, after tuning over before"
            study.metric(f"tune_boom.{name}_ratio", after / before, note=note)
    assert found.spectral_abscissa is not None
    study.metric(
        "tune_boom.spectral_abscissa",
        max(found.spectral_abscissa[1].max(), 0.0),
        at_most=0.0,
        unit="1/s",
        note="largest real part of a pole of the tuned loop at its start, in all "
        "scenarios, or zero where all are negative",
    )
    runs = {
        name: djdyn.rollout(
            s, SPAN, others.initial_state, parameters=others.parameters, **SIMULATION
        )
        for name, s in (("before", found.objective.system), ("after", found.system))
    }  # fmt: skip
    given = np.asarray(runs["after"].map(powers))
    study.metric(
        "tune_boom.largest_power_share",
        np.max(np.abs(given) / POWER),
        at_most=1.0 + 1e-9,
        note="largest power over the limit of the drive, in all held-out scenarios",
    )
    figures(study, runs)
    margin_table(study, "tune_boom", found)
    gain_table(study, found)


def figures(study: Study, runs: dict[str, djdyn.Trajectory]) -> None:
    """Plot errors and powers of the first scenario before and after tuning."""
    runs = {k: r.lane(0) for k, r in runs.items()}
    time = ("time", "s", runs["after"].t[::10])
    errors = {k: np.asarray(r.signal("pid.error"))[::10] * 1e3 for k, r in runs.items()}
    given = {k: np.asarray(r.map(powers))[::10] / 1e3 for k, r in runs.items()}
    for i, joint in enumerate(("slew", "luff", "knuckle")):
        for what, unit, of in (("error", "mrad", errors), ("power", "kW", given)):
            study.report.plot(
                HELD_OUT_PLOT.format(joint=joint.capitalize(), what=what),
                time,
                (what, unit),
                {k: x[:, i] for k, x in of.items()},
            )
