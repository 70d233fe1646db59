"""Model of the winch: a payload on a line from a deck, with drive and controller."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from controllers import Reference, WinchPID, multisine
from djdyn.cable import Cable, CableProperties, PinnedEnd
from djdyn.multibody.time_functions import Harmonic, HarmonicSum, Heave
from djdyn.parts import ExternalWrench, Winch


GRAVITY = 9.81
LENGTH, EA, DENSITY = 30.0, 8e5, 7700 * np.pi / 4 * 0.005**2  # m, N, kg/m
PAYLOAD = 200.0  # kg
SET_POINT = 2006.1  # N (Roy, Steinke and Nicoll 2014)
SWING = 2 * np.pi / 5  # rad/s
REPORT_GAINS: dict[str, Any] = {  # (m/s)/N, ... (Roy, Steinke and Nicoll 2014)
    "kp": 0.1,
    "ki": 1e-4,
    "kd": 0.01,
}
WAVE_COMPONENTS = 30


def build(
    mode: str = "tension",
    *,
    order: Any = SET_POINT,
    mass: float = PAYLOAD,
    push: tuple[float, float] = (0.0, 0.0),
    damping: float = 1e3,
    elements: int = 3,
    noise: float | None = None,
    winch: dict[str, Any] | None = None,
) -> djdyn.System:
    """Return a payload on a line that a winch on a deck pays out.

    **Arguments:**

    - `mode`: kind of set point that `order`, a function of time, is: `"tension"` (N) or
        `"velocity"` (m/s).
    - `push`: mean and amplitude of an upward force on the payload, N.
    - `damping`: axial damping of the line, N s.
    - `noise`: rms noise of the measured tension, N.
    - `winch`: parameters of the drive that differ from their defaults.
    """
    none = np.zeros(WAVE_COMPONENTS)
    deck = Heave(HarmonicSum(none, none, none))
    bodies = (
        djdyn.Body("deck", "world", djdyn.Prescribed(deck), 1.0),
        djdyn.Body("load", "world", djdyn.Prismatic((0, 0, 1)), mass),
    )
    rope = CableProperties(DENSITY, EA, diameter=0.005, axial_damping=damping)
    ends = PinnedEnd(frame="load"), PinnedEnd(frame="deck", payout="winch.rate")
    mean, swing = np.zeros(6), np.zeros(6)
    mean[5], swing[5] = push
    parts: dict[str, Any] = {
        "line": Cable(rope, LENGTH, *ends, mesh=elements),
        "push": ExternalWrench("load", Harmonic(swing, SWING, 0.0, mean)),
        "order": Reference(order),
    }
    if mode == "tension":
        measured = "line.head_tension"
        if noise is not None:
            parts["noise"] = multisine(measured, deviation=noise)
            measured = "noise.value"
        parts["pid"] = WinchPID(measured, "order.value", **REPORT_GAINS)
    command = "pid.u" if mode == "tension" else "order.value"
    parts["winch"] = Winch(command, **(winch or {}))
    return djdyn.System(djdyn.Mechanism(bodies), parts)


def static_state(system: djdyn.System) -> djdyn.State:
    """Return the equilibrium under the deck, with the winch braked."""
    start = system.initial_state(q={"load": -LENGTH * (1 + SET_POINT / EA)})
    return djdyn.equilibrium(system, start)


def moved(y: djdyn.State, height: Array, speed: Array) -> djdyn.State:
    """Return the state displaced and moving with the deck."""
    up = jnp.array([[0.0, 0.0, 1.0]])
    line = y.parts["line"]
    line = {**line, "r": line["r"] + height * up, "v": line["v"] + speed * up}
    return djdyn.State(y.q + height, y.v + speed, {**y.parts, "line": line})


def heave(sea: HarmonicSum) -> tuple[Array, Array]:
    """Return height and speed of a deck on this sea at the start."""
    return jax.jvp(sea, (jnp.zeros(()),), (jnp.ones(()),))
