"""The Titan 4 as its controller would meet it: samples, late commands, noise."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

import djdyn
from controllers import Backstepping, Late, Noisy
from controllers.hardening import TONES
from djdyn.hydraulics import Circuit, ServoValve
from djdyn.kinematics import World, look
from djdyn.part import AbstractSignalPart, Response, Signals

from .titan4_realtime import PERIOD


NOISE, BANDWIDTH = 1.4e-5, 50.0  # rad, of an encoder of 17 bits; Hz
HOW: dict[
    str, Any
] = {  # in kernels the delays, tied to all states, take long to compile
    "solver": "rk4",
    "dt": PERIOD,
    "control_period": PERIOD,
    "backend": "xla",
}


class Measured(AbstractSignalPart):
    """A controller that sees angles and speeds with the noise of their encoders."""

    control: Backstepping
    encoder: Noisy

    def initial_state(self) -> dict:
        return self.control.initial_state()

    def __call__(self, t, state: dict, world: World, signals: Signals) -> Response:
        true = {"q": world.q, "v": world.v}
        seen = self.encoder(t, {}, world, true).outputs
        here = look(world.mechanism, seen["value"], seen["rate"], t)
        return self.control(t, state, here, signals)


def hardened(system: djdyn.System, seed: int = 0) -> djdyn.System:
    """For a run with `HOW`: valves get their commands a sample late."""
    control, oil = system.parts["control"], system.parts["oil"]
    assert isinstance(control, Backstepping) and isinstance(oil, Circuit)
    one, two = jax.random.split(jax.random.key(seed))
    tones = 2 * jnp.pi * BANDWIDTH * jax.random.uniform(one, (TONES,))
    phase = 2 * jnp.pi * jax.random.uniform(two, (TONES, len(control.joints)))
    encoder = Noisy("q", "v", NOISE, tones, phase)
    late, valves = {}, {}
    for name, valve in oil.parts.items():
        if isinstance(valve, ServoValve):
            late[f"{name}_late"] = Late(valve.command, 1, PERIOD / 50)
            valves[name] = dataclasses.replace(valve, command=f"{name}_late.value")
    parts = {
        **system.parts,
        "control": Measured(control, encoder),
        **late,
        "oil": dataclasses.replace(oil, parts={**oil.parts, **valves}),
    }
    return djdyn.System(system.mechanism, parts, system.inputs)
