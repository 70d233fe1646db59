"""Gradient tuning of the vehicle's and the arm's gains over payloads and seas."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import controllers
import djdyn
from controllers import MeanSquare, MeanSquareRate, Scenarios, SearchOptions
from djdyn import FreeParameter, Positive
from djdyn.marine.drag import WaveForce
from djdyn.marine.water import Fluid
from djdyn.marine.wave_field import LinearWaves, irregular_waves
from djdyn.multibody.time_functions import Moves
from djdyn.system.instant import Instant

from ...harness.study import Study
from ...harness.tuning_report import (
    compare_searches,
    gain_table,
    save_gains,
)
from .model import DENSITY, START, mechanism, values, vehicle_parts


SPAN, SAVES = 40.0, 2001  # s
PERIOD = 0.02  # s, of samples; commands act one sample late
SIMULATION = {
    "solver": "rk4", "dt": PERIOD / 4, "control_period": PERIOD, "control_delay": True
}  # fmt: skip
DEPTH = 20.0  # m, of the vehicle under the mean surface
COMPONENTS = 5  # of a sea
TRAIN, OTHERS, BUDGET = 8, 16, 400
STEPS = 24
MOVING = ("damping", "thrusters", "wave", "strips1", "strips2", "strips3")
FREE = [
    FreeParameter(f"{part}.{gain}", Positive())
    for part, gains in (("pid", ("kp", "kd", "ki")), ("arm", ("kp", "kd")))
    for gain in gains
]
TUNING_PLOT = "Held-out conditions: depth error before and after tuning"


def depth(now: Instant) -> Any:
    """Return the error of depth, m."""
    return now.signals["pid.error"][2]


def place(now: Instant) -> Any:
    """Return the errors of the horizontal place, m."""
    return now.signals["pid.error"][:2]


def attitude(now: Instant) -> Any:
    """Return the errors of roll, pitch and yaw, rad."""
    return now.signals["pid.error"][3:]


COST = {
    "depth": MeanSquare(depth, 0.05),
    "place": MeanSquare(place, 0.1),
    "attitude": MeanSquare(attitude, 0.02),
    "joints": MeanSquare("arm.error", 0.05),
    "thrust": MeanSquare("thrusters.thrust", 600.0),
    "roughness": MeanSquareRate("thrusters.thrust", 600.0),
}


def machine() -> djdyn.System:
    """Return the vehicle with a load in its hand, in a sea; set points and arm move."""
    sea = irregular_waves(2.0, 10.0, components=COMPONENTS)
    water = Fluid(DENSITY, surface=DEPTH, waves=sea)
    up = np.array([0.0, 0.0, 0.5, 0.0, 0.0, 0.0])
    turned = up + np.array([0.0, 0.0, 0.0, 0.0, 0.0, -0.5])
    target = Moves(np.zeros(6), [up, turned], [5.0, 12.0], [8.0, 15.0])
    reach = START + np.array([0.6, -0.3, 0.5])
    arm = Moves(START, [reach, START], [18.0, 28.0], [22.0, 32.0])
    of = values()
    added = [of[f"vehicle.{k}"] for k in ("X_udot", "Y_vdot", "Z_wdot")]
    parts = vehicle_parts(target, arm, water)
    parts["wave"] = WaveForce("buoyancy0", of["vehicle.V_rov"], added, water)
    return djdyn.System(mechanism(payload=False, held=50.0), parts)


def conditions(count: int, seed: int) -> Scenarios:
    """Return payloads of 10 to 80 kg, currents to 0.4 m/s, seas of 0.5 to 2.5 m."""
    rng = np.random.default_rng(seed)
    draw = lambda low, high: rng.uniform(low, high, count)
    speed, way = draw(0.0, 0.4), draw(0, 2 * np.pi)
    currents = np.stack([speed * np.cos(way), speed * np.sin(way), 0 * way], 1)
    state = draw(0.5, 2.5), draw(7.0, 12.0), draw(0, 2 * np.pi)
    keys = jax.random.split(jax.random.key(seed), count)
    seas = jax.vmap(_sea)(jnp.asarray(state).T, keys)
    lanes: dict[str, Array] = {"payload.mass": jnp.asarray(draw(10.0, 80.0))}
    for part in MOVING:
        lanes[f"{part}.fluid.currents"] = jnp.asarray(currents[:, None])
        for what in ("amplitude", "frequency", "phase", "direction"):
            lanes[f"{part}.fluid.waves.{what}"] = getattr(seas, what)
    return Scenarios(lanes, start(machine()))


def _sea(state: Array, key: Array) -> LinearWaves:
    """Return a sea of a height, period and direction."""
    return irregular_waves(
        state[0], state[1], direction=state[2], spreading=8.0, seed=key,
        components=COMPONENTS,
    )  # fmt: skip


def start(system: djdyn.System) -> djdyn.State:
    """Return the state at rest, with the arm at its first set points."""
    return system.initial_state({f"joint{i + 1}": START[i] for i in range(3)})


def run(study: Study) -> None:
    """Tune the gains, evaluate them on other conditions, compare with CMA-ES."""
    study.report.text(
        "Twenty-four gains of vehicle and arm are tuned on payloads of 10 to 80 kg, "
        "currents of up to 0.4 m/s and seas of 0.5 to 2.5 m significant height, felt "
        f"{DEPTH:.0f} m below the surface, while set points and arm move. Controllers "
        f"are sampled every {1e3 * PERIOD:.0f} ms and their commands act one sample "
        "late. The cost adds errors of depth, place, attitude and joints to the thrust "
        "and its rate."
    )
    train, others = conditions(TRAIN, 0), conditions(OTHERS, 1)
    found = controllers.tune(
        study.customise(machine()) if not study.sets else machine(), SPAN, free=FREE,
        cost=COST, scenarios=train, hold_out=others,
        search=SearchOptions(method="bfgs", max_steps=STEPS), saves=SAVES,
        save=study.out / "tuning", **SIMULATION,
    )  # fmt: skip
    save_gains(study, found)
    study.metric(
        "rov.tuned.cost_ratio",
        found.cost_ratio,
        at_most=0.5,
        note="cost after tuning over before, on payloads, currents and seas that were "
        "not tuned on",
    )
    for name, (before, after) in found.summary()["held out"].items():
        if name in COST:
            ratio = after / before
            ratio = np.sqrt(ratio) if name == "thrust" else ratio
            what = "root mean square" if name == "thrust" else "mean square"
            study.metric(
                f"rov.tuned.{name}_ratio", ratio, note=f"{what}, after over before"
            )
    study.metric(
        "rov.tuned.completed_fraction",
        np.mean(found.evaluations["held out"][1].ok),
        at_least=1.0,
        note="fraction of the held-out conditions that run to their end",
    )
    gain_table(study, found)
    figures(study, found, others)
    compare_searches(study, "rov", found, BUDGET, ("CMA-ES",))


def figures(study: Study, found: Any, others: Scenarios) -> None:
    """Plot depth and pitch of a held-out condition before and after tuning."""
    runs = {
        name: djdyn.rollout(
            system, SPAN, others.initial_state, parameters=others.parameters,
            **SIMULATION,
        )
        for name, system in (
            ("before", found.objective.system), ("after", found.system)
        )
    }  # fmt: skip
    time = ("time", "s", runs["after"].t)
    errors = {k: np.asarray(r.sampled["pid"]["error"])[0] for k, r in runs.items()}
    for title, unit, i in ((TUNING_PLOT, "m", 2),
                           ("Held-out conditions: pitch error", "rad", 4)):  # fmt: skip
        lines = {k: x[:, i] for k, x in errors.items()}
        study.report.plot(title, time, ("error", unit), lines)
