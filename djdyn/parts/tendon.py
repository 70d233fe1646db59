"""Tendons: springs, dampers, friction and stops along a transmission."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..multibody.kinematics import World
from ..smooth import eased_square, ramp, ramp_area, sign, step
from ..typing import Scalar, known, optional, si
from .base import AbstractPassivePart, Response, Signals
from .transmission import AbstractTransmission


class TendonSpring(AbstractPassivePart):
    r"""Spring, damper and Coulomb friction along a transmission of length $\ell$.

    $$f = -k\,x - c\,\dot\ell - \mu\tanh(\dot\ell/w),$$

    with $x = \ell - \ell_0$. With `slack` $s$ the spring is limp between $\ell_0$ and
    $\ell_0 + s$; its corners are rounded within `corner`. $w$ is `friction_width`.
    Outputs: `force`, `length` and `rate`.
    """

    transmission: AbstractTransmission
    stiffness: Scalar = eqx.field(converter=si("N/m", at_least=0.0), default=0.0)
    damping: Scalar = eqx.field(converter=si("N s/m", at_least=0.0), default=0.0)
    rest_length: Scalar = eqx.field(converter=si("m"), default=0.0)
    slack: Scalar | None = eqx.field(
        converter=optional(si("m", above=0.0)), default=None
    )
    friction: Scalar = eqx.field(converter=si("N", at_least=0.0), default=0.0)
    friction_width: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e-3)
    corner: Scalar = eqx.field(converter=si("m", above=0.0), default=1e-6)

    def initial_state(self) -> dict:
        return {}

    def _elongation(self, world: World) -> tuple[Scalar, Scalar | None]:
        """Beyond the end of the slack, and short of its start."""
        x = self.transmission.length(world) - self.rest_length
        return (x, None) if self.slack is None else (x - self.slack, -x)

    def _lost_force(self, rate: Scalar) -> Scalar:
        dry = self.friction * sign(rate, self.friction_width)
        return -self.damping * rate - dry

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, signals
        (x, short), rate = self._elongation(world), self.transmission.rate(world)
        if short is not None:
            x = ramp(x, self.corner) - ramp(short, self.corner)
        force = self._lost_force(rate) - self.stiffness * x
        length = self.transmission.length(world)
        outputs = {"force": force, "length": length, "rate": rate}
        return Response(state, self.transmission.loads(world, force), outputs)

    def energy(self, state: Any, world: World) -> Scalar:
        del state
        x, short = self._elongation(world)
        if short is None:
            return self.stiffness * x**2 / 2
        area = ramp_area(x, self.corner) + ramp_area(short, self.corner)
        return self.stiffness * area

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t, state, signals
        rate = self.transmission.rate(world)
        return -self._lost_force(rate) * rate


class TendonStop(AbstractPassivePart):
    """One-sided spring and damper outside `lower` and `upper` of a tendon's length.

    Its law is that of `JointStop`.
    """

    transmission: AbstractTransmission
    lower: Scalar = eqx.field(converter=si("m"))
    upper: Scalar = eqx.field(converter=si("m"))
    stiffness: Scalar = eqx.field(converter=si("N/m", at_least=0.0))
    damping: Scalar = eqx.field(converter=si("N s/m", at_least=0.0), default=0.0)
    width: Scalar = eqx.field(converter=si("m", above=0.0), default=1e-4)

    def __check_init__(self):
        if known(self.lower, self.upper) and np.any(self.lower > self.upper):
            raise ValueError(
                f"stops at {self.lower} and {self.upper}: the lower is above"
            )

    def initial_state(self) -> dict:
        return {}

    def _sides(self, world: World) -> list[tuple[float, Scalar, Scalar]]:
        """Direction of the push, depth and its rate, at either limit."""
        length, rate = self.transmission.length(world), self.transmission.rate(world)
        short = jnp.maximum(self.lower - length, 0.0)
        long = jnp.maximum(length - self.upper, 0.0)
        return [(1.0, short, -rate), (-1.0, long, rate)]

    def _push(self, depth: Scalar, rate: Scalar) -> Scalar:
        pressed = self.stiffness * depth + self.damping * rate
        return step(depth, self.width) * jnp.maximum(pressed, 0.0)

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, signals
        pushes = [way * self._push(x, rate) for way, x, rate in self._sides(world)]
        force = pushes[0] + pushes[1]
        return Response(state, self.transmission.loads(world, force), {"force": force})

    def energy(self, state: Any, world: World) -> Scalar:
        del state
        depths = [x for _, x, _ in self._sides(world)]
        areas = [eased_square(x, self.width) for x in depths]
        return self.stiffness * (areas[0] + areas[1])

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t, state, signals
        loss = jnp.zeros((), world.q.dtype)
        for _, x, rate in self._sides(world):
            spring = step(x, self.width) * self.stiffness * x
            loss += (self._push(x, rate) - spring) * rate
        return loss
