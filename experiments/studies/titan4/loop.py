"""The Titan 4's loop as built, with samples, a delay and noise, and what it costs."""

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

from ...harness.tuning_report import as_built
from .conditions import AREA, MOVES, Shares, scenarios
from .operator_inputs import sticks
from .realtime import PERIOD


SPAN, SAVES = 5.0, 1001  # s: what rings after the moves is seen
STICKS = {"sticks": sticks(MOVES)}
HOW: dict[str, Any] = {**as_built(PERIOD), "inputs": STICKS}
ANGLE, PRESSURE = 5e-5, 0.1  # rad, of a resolver of 16 bits; bar
TONES = 10  # of a pressure, whose noise matters little
SIDES = tuple(f"{side}{k}" for k in range(1, 7) for side in "AB")
SENSORS = ("noise", *(f"gauge{x}" for x in SIDES))
PRICE = 0.02  # rad, for the effort of all of `AREA`
HORIZON = 0.1  # s, within which an error of speed becomes one of place
# s, N: up and down again, while sticks are held and once more when they are let go
KNOCKS, HARDEST = ([1.0, 1.05, 2.3, 2.35], [1.05, 1.1, 2.35, 2.4]), 150.0


def distance(now: Instant) -> Array:
    """Of joints from the sticks' targets, rad."""
    return now.world.q - now.signals["guide.value"]


def speed_error(now: Instant) -> Array:
    """Of joints from the reference's speeds, rad/s."""
    return now.world.v - now.signals["path.rate"]


COST: dict[str, AbstractTerm] = {  # rad
    "distance": RootMeanSquare(distance),
    "speed": RootMeanSquare(speed_error, 1 / HORIZON),
    "effort": RootMeanSquare("control.u", AREA / PRICE),
}


def instrumented(system: djdyn.System) -> djdyn.System:
    """The same with noise between the machine and its controller, and knocks."""
    knocks = Moves(np.zeros(6), np.zeros((4, 6)), *KNOCKS)
    parts = {**system.parts, "knock": ExternalWrench("tool", knocks)}
    control = parts["control"]
    assert isinstance(control, Backstepping)
    read = tuple((f"gaugeA{k}.value", f"gaugeB{k}.value") for k in range(1, 7))
    parts["control"] = dataclasses.replace(control, reference="noise", pressures=read)
    sensors = {
        f"gauge{x}": multisine(f"oil.{x}.bar", deviation=PRESSURE, tones=TONES)
        for x in SIDES
    }
    sensors["noise"] = multisine(
        "path.value", "path.rate", size=6, deviation=ANGLE,
        others=("path.acceleration", "path.jerk"),
    )  # fmt: skip
    first = {name: parts[name] for name in ("guide", "path")}
    return djdyn.System(system.mechanism, first | sensors | parts, system.inputs)


def noisy(system: djdyn.System, x: Shares, seed: int) -> Scenarios:
    """Conditions of an instrumented machine, each with noise and knocks of its own."""
    quiet, key, count = scenarios(system, x), jax.random.key(seed), x.shape[1]
    hit, key = jax.random.split(key)
    force = HARDEST * jax.random.uniform(hit, (count, 2, 3), minval=-1.0)
    paths = [f"{name}.phase" for name in SENSORS]
    phases = {}
    for path, k in zip(paths, jax.random.split(key, len(paths)), strict=True):
        shape = (count, *djdyn.get_parameters(system, path).shape)
        phases[path] = 2 * jnp.pi * jax.random.uniform(k, shape)
    knocks = jnp.zeros((count, 4, 6)).at[:, ::2, 3:].set(force)
    lanes = quiet.parameters | phases | {"knock.wrench.points": knocks}
    return Scenarios(lanes, quiet.initial_state)


def silent(system: djdyn.System) -> djdyn.System:
    """Without noise."""
    return djdyn.with_parameters(system, {f"{name}.deviation": 0.0 for name in SENSORS})
