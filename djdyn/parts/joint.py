"""What acts on a joint: springs, friction, stops, actuators."""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..smooth import eased_square, even_power, odd_power, sign, step
from ..typing import Number, Scalar, known, si
from .base import AbstractDrive, AbstractPassivePart, Response, Signals
from .loads import JointLoad
from .springs import check_exponent
from .units import JointUnit, Unit


PerSpeed = Float[Array, "*#n"]  # one number, or one for each of the joint's speeds


def coordinates(world: World, joint: str) -> tuple[Array, Array]:
    """A joint's coordinates and speeds, where the ones are the rates of the others."""
    q, v = world.joint(joint)
    if q.shape != v.shape:
        raise ValueError(
            f"joint {joint!r} has {q.size} coordinates for {v.size} speeds: springs and"
            " stops act on joints whose speeds are the rates of their coordinates"
        )
    return q, v


def names(joints: Any) -> tuple[str, ...]:
    """Converter of a field of names: one of them need not be in a list."""
    return (joints,) if isinstance(joints, str) else tuple(joints)


class JointSpring(AbstractPassivePart):
    r"""Spring and damper on a joint.

    $$\tau = -k\,\operatorname{sign}(q - q_0)\,|q - q_0|^n - c\,\dot q,\quad n \ge 1 .$$
    """

    signal_units: ClassVar[Mapping[str, Unit]] = {"force": JointUnit.FORCE}
    joint: str = eqx.field(static=True)
    stiffness: PerSpeed = eqx.field(converter=si("N m/rad^n, N/m^n", at_least=0.0))
    damping: PerSpeed = eqx.field(
        converter=si("N m s/rad, N s/m", at_least=0.0), default=0.0
    )
    rest: PerSpeed = eqx.field(converter=si("rad, m"), default=0.0)
    exponent: Number = eqx.field(static=True, default=1)

    def __check_init__(self):
        check_exponent(self.exponent)

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, signals
        q, v = coordinates(world, self.joint)
        x = q - self.rest
        force = -self.stiffness * odd_power(x, self.exponent) - self.damping * v
        return Response(state, (JointLoad(self.joint, force),), {"force": force})

    def energy(self, state: Any, world: World) -> Scalar:
        del state
        q, _ = coordinates(world, self.joint)
        n = self.exponent + 1
        return jnp.sum(self.stiffness * even_power(q - self.rest, n) / n)

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t, state, signals
        _, v = coordinates(world, self.joint)
        return jnp.sum(self.damping * v**2)


class JointFriction(AbstractPassivePart):
    r"""Viscous and Coulomb friction, $\tau = -d\,v - c\tanh(v/w)$.

    `width` is the speed at which Coulomb friction has three quarters of its full force;
    below it the joint creeps. At rest force and slope are finite.
    """

    signal_units: ClassVar[Mapping[str, Unit]] = {"force": JointUnit.FORCE}
    joint: str = eqx.field(static=True)
    viscous: PerSpeed = eqx.field(
        converter=si("N m s/rad, N s/m", at_least=0.0), default=0.0
    )
    coulomb: PerSpeed = eqx.field(converter=si("N m, N", at_least=0.0), default=0.0)
    width: PerSpeed = eqx.field(converter=si("rad/s, m/s", above=0.0), default=1e-3)

    def initial_state(self) -> dict:
        return {}

    def force(self, v: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return the friction force on each of the joint's speeds `v`."""
        return -self.viscous * v - self.coulomb * sign(v, self.width)

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, signals
        force = self.force(world.joint(self.joint)[1])
        return Response(state, (JointLoad(self.joint, force),), {"force": force})

    def energy(self, state: Any, world: World) -> Scalar:
        del state, world
        return jnp.zeros(())

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t, state, signals
        v = world.joint(self.joint)[1]
        return -self.force(v) @ v


class JointStop(AbstractPassivePart):
    r"""One-sided spring and damper outside `lower` and `upper`.

    With $x$ the depth beyond a limit and $\dot x$ its rate, the stop pushes back with

    $$F = s(x/w)\,\max(0,\; K x + D \dot x),$$

    where the step $s = 3\xi^2 - 2\xi^3$ brings the force in over the first $w$, so it
    is continuous at the touch however fast, and it never pulls. (Roy, Steinke and
    Nicoll, *Ship Mechanical Systems API*, 2014, eqs 71 and 72, whose force jumps.)
    """

    signal_units: ClassVar[Mapping[str, Unit]] = {"force": JointUnit.FORCE}
    joint: str = eqx.field(static=True)
    lower: PerSpeed = eqx.field(converter=si("rad, m"))
    upper: PerSpeed = eqx.field(converter=si("rad, m"))
    stiffness: PerSpeed = eqx.field(converter=si("N m/rad, N/m", at_least=0.0))
    damping: PerSpeed = eqx.field(
        converter=si("N m s/rad, N s/m", at_least=0.0), default=0.0
    )
    width: PerSpeed = eqx.field(converter=si("rad, m", above=0.0), default=1e-4)

    def __check_init__(self):
        low, high = self.lower, self.upper
        if known(low, high) and np.any(np.asarray(low) > np.asarray(high)):
            raise ValueError(f"stops at {low} and {high}: the lower is above")

    def initial_state(self) -> dict:
        return {}

    def _sides(self, world: World) -> list[tuple[Array, Array, Array]]:
        """Direction of the push, depth and its rate, at either limit."""
        q, v = coordinates(world, self.joint)
        out = jnp.ones_like(v)
        below = jnp.maximum(self.lower - q, 0.0)
        above = jnp.maximum(q - self.upper, 0.0)
        return [(out, below, -v), (-out, above, v)]

    def _push(self, depth: Array, rate: Array) -> Array:
        pressed = self.stiffness * depth + self.damping * rate
        return step(depth, self.width) * jnp.maximum(pressed, 0.0)

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, signals
        sides = self._sides(world)
        force = sum(
            (out * self._push(x, rate) for out, x, rate in sides),
            start=jnp.zeros_like(sides[0][0]),
        )
        return Response(state, (JointLoad(self.joint, force),), {"force": force})

    def energy(self, state: Any, world: World) -> Scalar:
        """Work of the spring alone, the integral of its force over the depth."""
        del state
        total = jnp.zeros(())
        for _, x, _ in self._sides(world):
            total += jnp.sum(self.stiffness * eased_square(x, self.width))
        return total

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t, state, signals
        loss = jnp.zeros(())
        for _, x, rate in self._sides(world):
            spring = step(x, self.width) * self.stiffness * x
            loss += jnp.sum((self._push(x, rate) - spring) * rate)
        return loss


class JointActuator(AbstractDrive):
    """Applies a commanded force to single-speed joints: signal `command`, one each."""

    joints: tuple[str, ...] = eqx.field(static=True, converter=names)
    command: str = eqx.field(static=True)

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, world
        force = jnp.atleast_1d(signals[self.command])
        if force.shape != (len(self.joints),):
            raise ValueError(
                f"signal {self.command!r} has shape {force.shape}, expected one value"
                f" for each of the joints {', '.join(self.joints)}"
            )
        loads = tuple(JointLoad(j, force[i : i + 1]) for i, j in enumerate(self.joints))
        return Response(state, loads)
