"""The Titan 4's loop as built, with samples, a delay and noise, and what it costs."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

import djdyn
from controllers import Backstepping, RootMeanSquare, Scenarios, multisine
from controllers.terms import AbstractTerm
from djdyn.system import Instant

from .titan4_conditions import AREA, MOVES, scenarios
from .titan4_realtime import PERIOD
from .titan4_sticks import sticks
from .tuning import as_built


SPAN, SAVES = 3.0, 601  # s
STICKS = {"sticks": sticks(MOVES)}
HOW: dict[str, Any] = {**as_built(PERIOD), "inputs": STICKS}
ANGLE, PRESSURE = 5e-5, 0.1  # rad, of a resolver of 16 bits; bar
TONES = 10  # of a pressure, whose noise matters little
SIDES = tuple(f"{side}{k}" for k in range(1, 7) for side in "AB")
PRICE = 0.02  # rad, for the effort of all of `AREA`


def distance(now: Instant) -> Array:
    """Of joints from the sticks' targets, rad."""
    return now.world.q - now.signals["guide.value"]


COST: dict[str, AbstractTerm] = {  # rad
    "distance": RootMeanSquare(distance),
    "effort": RootMeanSquare("control.u", AREA / PRICE),
}


def instrumented(system: djdyn.System) -> djdyn.System:
    """The same with noise between the machine and its controller."""
    parts = dict(system.parts)
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


def noisy(system: djdyn.System, first: int, count: int) -> Scenarios:
    """Conditions of an instrumented machine, each with noise of its own."""
    quiet, key = scenarios(system, first, count), jax.random.key(first)
    paths = [f"{name}.phase" for name in ("noise", *(f"gauge{x}" for x in SIDES))]
    phases = {}
    for path, k in zip(paths, jax.random.split(key, len(paths)), strict=True):
        shape = (count, *djdyn.get(system, path).shape)
        phases[path] = 2 * jnp.pi * jax.random.uniform(k, shape)
    return Scenarios(quiet.parameters | phases, quiet.initial_state)
