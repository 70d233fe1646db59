"""Actuators: a command, a law of the force, and a transmission to the mechanism."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..smooth import clip, step
from ..typing import Scalar, Vec3, check_values, known, optional, si
from .base import AbstractDrive, Response, Signals
from .transmission import AbstractTransmission
from .winch import scalar


class AbstractActuatorLaw(eqx.Module):
    """The force of an actuator, from its command and its transmission's length."""

    def __check_init__(self):
        check_values(self)

    @abc.abstractmethod
    def force(self, u: Scalar, length: Scalar, rate: Scalar) -> Scalar:
        """The force before its limits."""


class MotorLaw(AbstractActuatorLaw):
    r"""A motor: $f = g\,u$."""

    gain: Scalar = eqx.field(converter=si("N/unit, N m/unit"), default=1.0)

    def force(self, u: Scalar, length: Scalar, rate: Scalar) -> Scalar:
        del length, rate
        return self.gain * u


class PositionLaw(AbstractActuatorLaw):
    r"""A position servo: $f = k_p(u - \ell) - k_d\,\dot\ell$."""

    kp: Scalar = eqx.field(converter=si("N/m, N m/rad"))
    kd: Scalar = eqx.field(converter=si("N s/m, N m s/rad"), default=0.0)

    def force(self, u: Scalar, length: Scalar, rate: Scalar) -> Scalar:
        return self.kp * (u - length) - self.kd * rate


class VelocityLaw(AbstractActuatorLaw):
    r"""A velocity servo: $f = k_v(u - \dot\ell)$."""

    kv: Scalar = eqx.field(converter=si("N s/m, N m s/rad"))

    def force(self, u: Scalar, length: Scalar, rate: Scalar) -> Scalar:
        del length
        return self.kv * (u - rate)


class AffineLaw(AbstractActuatorLaw):
    r"""A general law, with `gain` $g$ and `bias` $b$:

    $$f = (g_0 + g_1\ell + g_2\dot\ell)\,u + b_0 + b_1\ell + b_2\dot\ell .$$
    """

    gain: Vec3 = eqx.field(converter=si("N, N/m, N s/m"))
    bias: Vec3 = eqx.field(converter=si("N, N/m, N s/m"), default=(0.0, 0.0, 0.0))

    def force(self, u: Scalar, length: Scalar, rate: Scalar) -> Scalar:
        terms = jnp.stack([jnp.ones_like(length), length, rate])
        return (self.gain @ terms) * u + self.bias @ terms


class Actuator(AbstractDrive):
    r"""An actuator with limits: a commanded force along a transmission.

    The signal `command`, clipped to `command_range`, is the law's $u$. With a
    `time_constant` $T$ a state follows it, $\dot a = (u - a)/T$, and the law takes
    $a$; an actuator that `integrates` has $\dot a = u$. A state starts at `start` and
    stays in `state_range`. The force is clipped to `force_range`. All corners are
    rounded within `corner` of a range's width.

    Outputs: the `force` along the transmission, its `length` and `rate`.
    """

    transmission: AbstractTransmission
    command: str = eqx.field(static=True)
    law: AbstractActuatorLaw
    command_range: Float[Array, "2"] | None = eqx.field(
        converter=optional(si("command")), default=None
    )
    force_range: Float[Array, "2"] | None = eqx.field(
        converter=optional(si("N, N m")), default=None
    )
    time_constant: Scalar | None = eqx.field(
        converter=optional(si("s", above=0.0)), default=None
    )
    integrates: bool = eqx.field(static=True, default=False)
    state_range: Float[Array, "2"] | None = eqx.field(
        converter=optional(si("command")), default=None
    )
    start: Scalar = eqx.field(converter=si("command"), default=0.0)
    corner: Scalar = eqx.field(converter=si("1", above=0.0), default=1e-4)

    def __check_init__(self):
        for name in ("command_range", "force_range", "state_range"):
            bounds = getattr(self, name)
            if bounds is None:
                continue
            if bounds.shape != (2,):
                raise ValueError(f"{name} has shape {bounds.shape}, expected (2,)")
            if known(bounds) and not np.all(np.diff(bounds) > 0):
                raise ValueError(f"{name} is {bounds}: the lower bound is not below")
        if self.integrates and self.time_constant is not None:
            raise ValueError("an actuator integrates or has a time constant, not both")

    @property
    def has_state(self) -> bool:
        """Whether the force follows a state of the actuator, not the command."""
        return self.integrates or self.time_constant is not None

    def initial_state(self) -> dict[str, Array]:
        return {"activation": self.start} if self.has_state else {}

    def _clip(self, x: Scalar, bounds: Array | None) -> Scalar:
        if bounds is None:
            return x
        return clip(x, bounds[0], bounds[1], self.corner * (bounds[1] - bounds[0]))

    def _rate(self, u: Scalar, a: Scalar) -> Scalar:
        """The state's rate, which fades out where a bound is near."""
        rate = u if self.time_constant is None else (u - a) / self.time_constant
        if self.state_range is None:
            return rate
        low, high = self.state_range[0], self.state_range[1]
        width = self.corner * (high - low)
        up, down = step(high - a, width), step(a - low, width)
        return rate * jnp.where(rate > 0, up, down)

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t
        u = self._clip(scalar(signals, self.command), self.command_range)
        if self.has_state:
            state, u = {"activation": self._rate(u, state["activation"])}, state
            u = u["activation"]
        length, rate = self.transmission.length(world), self.transmission.rate(world)
        force = self._clip(self.law.force(u, length, rate), self.force_range)
        outputs = {"force": force, "length": length, "rate": rate}
        return Response(state, self.transmission.loads(world, force), outputs)
