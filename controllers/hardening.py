"""What a controller meets outside of simulations: noise, and a command that is late."""

import dataclasses
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from djdyn import State, System
from djdyn._types import Scalar
from djdyn._units import si
from djdyn.kinematics import World
from djdyn.part import AbstractSignalPart, Response, Signals
from djdyn.parts import JointActuator

from .pid import JointPID


TONES = 40  # of a noise


class Late(AbstractSignalPart):
    r"""A signal behind a lag, $T\dot x = u - x$; output `value`.

    Where controllers take samples (`control_period`) and $T$ is much shorter than
    their period, it is the value of the sample before.
    """

    signal: str = eqx.field(static=True)
    size: int = eqx.field(static=True)
    time: Scalar = eqx.field(converter=si("s", above=0.0))

    def initial_state(self) -> dict[str, Array]:
        return {"x": jnp.zeros(self.size)}

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        del t, world
        rate = {"x": (jnp.atleast_1d(signals[self.signal]) - state["x"]) / self.time}
        return Response(rate, outputs={"value": state["x"]})


class Noisy(AbstractSignalPart):
    """A target, and its rate, with noise of many tones; outputs `value` and `rate`.

    An error formed with it is as noisy as one formed with a noisy measurement.
    """

    target: str = eqx.field(static=True)
    rate: str | None = eqx.field(static=True)
    deviation: Float[Array, "*#n"] = eqx.field(converter=si("", at_least=0.0))
    frequency: Float[Array, " k"] = eqx.field(converter=si("rad/s"))
    phase: Float[Array, "k n"] = eqx.field(converter=si("rad"))

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        del world
        angle = self.frequency[:, None] * t + self.phase
        size = jnp.sqrt(2 / len(self.frequency)) * self.deviation
        value = signals[self.target] + size * jnp.sum(jnp.cos(angle), 0)
        known = signals[self.rate] if self.rate else 0.0
        swing = -jnp.sum(self.frequency[:, None] * jnp.sin(angle), 0)
        return Response(state, outputs={"value": value, "rate": known + size * swing})


def hardened(
    system: System,
    pid: str,
    actuator: str,
    *,
    period: float,
    deviation: float,
    bandwidth: float = 50.0,
    seed: int = 0,
) -> System:
    """The same with noise on what a `JointPID` measures, and its command a sample late.

    For a run with `control_period=period`. The noise is a multisine of random phases up
    to `bandwidth`, Hz, that of the sensors (Pintelon and Schoukens, *System
    Identification: A Frequency Domain Approach*, 2012, chapter 2).
    """
    control, drive = system.parts[pid], system.parts[actuator]
    if not isinstance(control, JointPID) or not isinstance(drive, JointActuator):
        raise ValueError(
            f"{pid!r} and {actuator!r} are not a JointPID and its actuator"
        )
    n = len(control.joints)
    tones = 2 * jnp.pi * bandwidth * (jnp.arange(0.5, TONES) / TONES)
    phase = 2 * jnp.pi * jax.random.uniform(jax.random.key(seed), (TONES, n))
    given = (control.target, control.rate, deviation, tones, phase)
    parts = {
        **system.parts,
        pid: dataclasses.replace(
            control,
            target=f"{pid}_noise.value",
            rate=f"{pid}_noise.rate" if control.rate else None,
        ),
        actuator: dataclasses.replace(drive, command=f"{actuator}_late.value"),
        f"{pid}_noise": Noisy(*given),
        f"{actuator}_late": Late(drive.command, n, period / 50),
    }
    return System(system.mechanism, parts, system.inputs)


def softened(system: System, pid: str, actuator: str) -> System:
    """What was `hardened`, as it was."""
    names = (f"{pid}_noise", f"{actuator}_late", pid, actuator)
    noise, late, control, drive = (cast(Any, system.parts[k]) for k in names)
    parts = {
        **{k: part for k, part in system.parts.items() if k not in names[:2]},
        pid: dataclasses.replace(control, target=noise.target, rate=noise.rate),
        actuator: dataclasses.replace(drive, command=late.signal),
    }
    return System(system.mechanism, parts, system.inputs)


def hardened_state(system: System, y: State, pid: str, actuator: str) -> State:
    """A state of what was `softened` for the hardened system: the command is there."""
    late = cast(Late, system.parts[f"{actuator}_late"])
    command = softened(system, pid, actuator).at(0.0, y).signals[late.signal]
    new = {f"{pid}_noise": {}, f"{actuator}_late": {"x": jnp.atleast_1d(command)}}
    order = {k: ({**y.parts, **new})[k] for k in system.parts}
    return State(y.q, y.v, order)
