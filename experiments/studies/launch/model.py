"""Models of the launch study: an arm and a crane, with a payload on a line."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from controllers import JointPID, Reference, WinchPID
from djdyn.cable import Cable, CableProperties, PinnedEnd
from djdyn.multibody.kinematics import World
from djdyn.multibody.spatial import Pose, rotation_rpy, translation
from djdyn.multibody.time_functions import DeckMotion, Moves
from djdyn.parts import FrameSensor, JointActuator, Winch
from djdyn.parts.base import AbstractSignalPart, Response, Signals
from djdyn.typing import Scalar, si

from ..boom_crane.model import PALFINGER, crane, lock


GRAVITY = 9.81
EA, DENSITY = 8e5, 7700 * np.pi / 4 * 0.005**2  # N, kg/m
LIGHT_LINE = 1e-3  # kg/m, where references have no mass in the line
ROD_INERTIA = (1.667, 1.667, 2.679e-4)  # kg m^2, payload of 5 kg of the report
SPAN = 80.0  # s
BOOM_KP, BOOM_KD = 1e7, 3e5  # N m/rad, N m s/rad


class Slew(eqx.Module):
    """Rotation about z at a constant rate."""

    rate: Scalar = eqx.field(converter=si("rad/s"))

    def __call__(self, t: Scalar) -> Pose:
        yaw = self.rate * t
        zero = jnp.zeros_like(yaw)
        return Pose(rotation_rpy(zero, zero, yaw), jnp.zeros(3, yaw.dtype))


class Voyage(eqx.Module):
    """Motion of a deck about a point with constant velocity."""

    deck: DeckMotion
    velocity: Float[Array, "3"] = eqx.field(converter=si("m/s"))

    def __call__(self, t: Scalar) -> Pose:
        X = self.deck(t)
        return Pose(X.R, X.p + self.velocity * t)


class Share(AbstractSignalPart):
    """Multiple of a signal, as `value`."""

    signal: str = eqx.field(static=True)
    share: Scalar = eqx.field(converter=si("1"))

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Array, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, world
        return Response(state, outputs={"value": self.share * signals[self.signal]})


def payload(mass: float, inertia: tuple, place: tuple[float, float, float]) -> Any:
    """Return a free body and the frame of its hook, 1 m above its centre."""
    body = djdyn.Body(
        "payload",
        "world",
        djdyn.Free(),
        mass,
        I_BC=np.diag(inertia),
        X_PJ=translation(place),
    )
    return body, djdyn.Frame("hook", "payload", translation((0, 0, 1)))


def arm(reach: float, rate: float, density: float) -> djdyn.System:
    """Return a turning arm with 20 m of line and the payload of the report.

    Roy, Steinke and Nicoll 2014, sections 4.4.7 and 4.4.8.
    """
    load, hook = payload(5.0, ROD_INERTIA, (reach, 0.0, -21.0))
    turn = djdyn.Body("arm", "world", djdyn.Prescribed(Slew(rate)), 10.0)
    tip = djdyn.Frame("tip", "arm", translation((reach, 0, 0)))
    rope = CableProperties(density, EA, axial_damping=1e3)
    line = Cable(rope, 20.0, PinnedEnd(frame="hook"), PinnedEnd(frame="tip"), mesh=2)
    return djdyn.System(djdyn.Mechanism((turn, load), (tip, hook)), {"line": line})


def circling(system: djdyn.System, reach: float, rate: float) -> djdyn.State:
    """Return line and payload on the cone on which they follow the arm."""
    angle, tension = cone(reach, rate)
    sine, cosine = np.sin(angle), np.cos(angle)
    along = np.array([sine, 0.0, -cosine])  # from the arm outwards and down
    length = 20.0 * (1 + tension / EA)
    middle = np.array([reach, 0, 0]) + length / 2 * along
    place = np.array([reach, 0, 0]) + (length + 1) * along
    turn = [np.cos(angle / 2), 0.0, -np.sin(angle / 2), 0.0]
    spin = rate * np.array([sine, 0.0, cosine])  # in the payload's axes
    q = np.concatenate([place - [reach, 0.0, -21.0], turn])
    v = np.concatenate([spin, [0.0, rate * place[0], 0.0]])
    y = system.initial_state(q, v)
    line = {
        "r": jnp.asarray(middle[None]),
        "v": jnp.asarray([[0.0, rate * middle[0], 0.0]]),
    }
    return djdyn.State(y.q, y.v, {**y.parts, "line": line})


def cone(reach: float, rate: float) -> tuple[float, float]:
    """Return angle (rad) and tension (N) of a conical pendulum of 5 kg and 21 m."""
    angle = 0.0
    for _ in range(200):
        angle = np.arctan(rate**2 * (reach + 21 * np.sin(angle)) / GRAVITY)
    return float(angle), float(5 * GRAVITY / np.cos(angle))


def ship(
    *,
    velocity: float = 0.0,
    motion: float = 0.0,
    mass: float = 5.0,
    inertia: tuple = ROD_INERTIA,
    density: float = LIGHT_LINE,
    length: float = 20.0,
    lower: float = 0.0,
    compensation: float = 0.0,
) -> djdyn.System:
    """Return the Palfinger-like crane on a moving deck, with line and winch.

    **Arguments:**

    - `velocity`: velocity of the ship along x, m/s.
    - `motion`: scale of 1 m of heave, 3 deg of roll and 2 deg of pitch.
    - `lower`: distance that the winch lowers the payload from 5 to 45 s, m.
    - `compensation`: 1 with heave compensation, 0 without.
    """
    boom, q = crane(PALFINGER)
    first, *others = boom.bodies
    swing = motion * np.array([0.0, 0.0, 1.0, np.deg2rad(3.0), np.deg2rad(2.0), 0.0])
    periods = np.array([8.0, 8.0, 8.0, 10.0, 7.0, 8.0])
    deck = DeckMotion(swing, 2 * np.pi / periods, np.full(6, np.pi / 2))
    base = djdyn.Body(
        "base", "world", djdyn.Prescribed(Voyage(deck, (velocity, 0.0, 0.0))), 1.0
    )
    first = dataclasses.replace(first, parent="base")
    tip = djdyn.Frame("tip", "link7", translation((0, 0, 1)))
    whole = djdyn.Mechanism((base, first, *others), (*boom.frames, tip))
    held = lock(whole, q, ["base", "link2"])
    load, hook = payload(mass, inertia, (0.0, 0.0, -length - 1.0))
    mechanism = djdyn.Mechanism((*held.bodies, load), (*held.frames, hook))
    rope = CableProperties(density, EA, diameter=0.005, axial_damping=1e3)
    ends = PinnedEnd(frame="hook"), PinnedEnd(frame="tip", payout="winch.rate")
    start = motion - length * (1 + mass * GRAVITY / EA) - 1.0
    path = Moves([start], [[start - lower]], [5.0], [45.0])
    return djdyn.System(
        mechanism,
        {
            "line": Cable(rope, length, *ends, mesh=3),
            "boom": Reference(q[1:2]),
            "pid": JointPID(("link2",), "boom.value", BOOM_KP, BOOM_KD),
            "motor": JointActuator(("link2",), "pid.u"),
            "sheave": FrameSensor("tip"),
            "load": FrameSensor("payload"),
            "order": Reference(path),
            "felt": Share("sheave.climb", compensation),
            "hoist": WinchPID(
                "load.height",
                "order.value",
                0.05 * compensation,  # below the bounce's own damping, 0.18 1/s
                deck="felt.value",
                wanted_rate="order.rate",
            ),
            "winch": Winch("hoist.u"),
        },
    )


def drift(y: djdyn.State, velocity: float, load: bool) -> djdyn.State:
    """Return the state with line and payload moving with the ship, or at rest."""
    along = jnp.array([velocity if load else 0.0, 0.0, 0.0])
    line = y.parts["line"]
    line = {**line, "v": line["v"] + along[None]}
    return djdyn.State(y.q, y.v.at[-3:].add(along), {**y.parts, "line": line})
