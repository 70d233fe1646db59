"""Control loop of the Titan 4 with sampling, delay and noise, and its cost."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from controllers import AbstractTerm, Backstepping, RootMeanSquare, Scenarios, multisine
from djdyn.multibody.time_functions import Moves
from djdyn.parts import ExternalWrench
from djdyn.system.instant import Instant

from ...harness.tuning_report import sampled_loop
from .conditions import MAX_AREA, MOVES, Shares, scenarios
from .operator_inputs import sticks
from .realtime import PERIOD


SPAN, SAVES = 5.0, 1001  # s, long enough to include oscillations after the moves
INPUTS = {"sticks": sticks(MOVES)}
SIMULATION: dict[str, Any] = {**sampled_loop(PERIOD), "inputs": INPUTS}
ANGLE_NOISE, PRESSURE_NOISE = 5e-5, 0.1  # rad, rms of a 16-bit resolver; bar
TONES = 10  # of the noise of a pressure
SIDES = tuple(f"{side}{k}" for k in range(1, 7) for side in "AB")
SENSORS = ("noise", *(f"gauge{x}" for x in SIDES))
EFFORT_WEIGHT = 0.02  # rad, cost of an rms effort of `MAX_AREA`
SPEED_WEIGHT = 0.1  # s, cost of a speed error over that of an angle error
# s: two force pulses on the tool, with sticks held and released
PULSES = ([1.0, 1.05, 2.3, 2.35], [1.05, 1.1, 2.35, 2.4])
MAX_PULSE = 150.0  # N


def distance(now: Instant) -> Array:
    """Return the distance of the joints from the targets of the sticks, rad."""
    return now.world.q - now.signals["guide.value"]


def speed_error(now: Instant) -> Array:
    """Return the difference of joint speeds from the reference, rad/s."""
    return now.world.v - now.signals["path.rate"]


COST: dict[str, AbstractTerm] = {  # rad
    "distance": RootMeanSquare(distance),
    "speed": RootMeanSquare(speed_error, 1 / SPEED_WEIGHT),
    "effort": RootMeanSquare("control.u", MAX_AREA / EFFORT_WEIGHT),
}


def instrumented(system: djdyn.System) -> djdyn.System:
    """Return the system with sensor noise and force pulses on the tool."""
    knocks = Moves(np.zeros(6), np.zeros((4, 6)), *PULSES)
    parts = {**system.parts, "knock": ExternalWrench("tool", knocks)}
    control = parts["control"]
    assert isinstance(control, Backstepping)
    read = tuple((f"gaugeA{k}.value", f"gaugeB{k}.value") for k in range(1, 7))
    parts["control"] = dataclasses.replace(control, reference="noise", pressures=read)
    sensors = {
        f"gauge{x}": multisine(f"oil.{x}.bar", deviation=PRESSURE_NOISE, tones=TONES)
        for x in SIDES
    }
    sensors["noise"] = multisine(
        "path.value", "path.rate", size=6, deviation=ANGLE_NOISE,
        others=("path.acceleration", "path.jerk"),
    )  # fmt: skip
    first = {name: parts[name] for name in ("guide", "path")}
    return djdyn.System(system.mechanism, first | sensors | parts, system.inputs)


def noisy(system: djdyn.System, x: Shares, seed: int) -> Scenarios:
    """Return scenarios of an instrumented system, with individual noise and pulses."""
    quiet, key, count = scenarios(system, x), jax.random.key(seed), x.shape[1]
    hit, key = jax.random.split(key)
    force = MAX_PULSE * jax.random.uniform(hit, (count, 2, 3), minval=-1.0)
    paths = [f"{name}.phase" for name in SENSORS]
    phases = {}
    for path, k in zip(paths, jax.random.split(key, len(paths)), strict=True):
        shape = (count, *djdyn.get_parameters(system, path).shape)
        phases[path] = 2 * jnp.pi * jax.random.uniform(k, shape)
    knocks = jnp.zeros((count, 4, 6)).at[:, ::2, 3:].set(force)
    lanes = quiet.parameters | phases | {"knock.wrench.points": knocks}
    return Scenarios(lanes, quiet.initial_state)


def silent(system: djdyn.System) -> djdyn.System:
    """Return the system without noise."""
    return djdyn.with_parameters(system, {f"{name}.deviation": 0.0 for name in SENSORS})
