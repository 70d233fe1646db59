r"""Thrusters: a propeller in a duct with its shaft, or simpler laws.

The law of blades and duct is that of Healey, Rock, Cody, Miles and Brown, *Toward an
improved understanding of thruster dynamics for underwater vehicles* (1995), in the form
of Rokseth's master's thesis (NTNU, 2014).
"""

import abc
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..multibody.spatial import cross
from ..parts.base import AbstractPart, Response, Signals
from ..parts.loads import Load
from ..smooth import clip, norm, signed_sqrt
from ..typing import Scalar, check_values, si
from .allocation import ThrusterLayout
from .water import Fluid


Each = Float[Array, "*#n"]  # one number, or one for each thruster
Row = Float[Array, " n"]


class Push(eqx.Module):
    """What thrusters do at an instant."""

    rate: dict[str, Row]
    thrust: Row  # on the vehicle, along their directions
    power_in: Row
    power_loss: Row
    outputs: dict[str, Row]


class AbstractThrusterLaw(eqx.Module):
    """How thrust follows a command; all thrusters of a vehicle at once."""

    @abc.abstractmethod
    def initial_state(self, count: int) -> dict[str, Row]:
        """States of as many thrusters at rest."""

    @abc.abstractmethod
    def push(self, state: dict[str, Row], command: Row, advance: Row) -> Push:
        """Thrusts and powers; `advance` is the speed through the water."""

    @abc.abstractmethod
    def energy(self, state: dict[str, Row]) -> Scalar:
        """Return what the thrusters store, J."""


class ShaftAndDuct(AbstractThrusterLaw):
    r"""A propeller with the states of its shaft and of the water in its duct.

    With the shaft's speed $\omega$, the water's $u_a$, $u_p = 0.7R\omega$,
    $v^2 = u_p^2 + u_a^2$, $\theta$ the angle of $(u_p, u_a)$, the angle of attack
    $\alpha = p - \theta$ and $A = \pi R^2$, the blades' lift, drag, thrust
    and torque are

    $$L = \tfrac12\rho v^2AC_L\sin2\alpha,\quad
      D = \tfrac12\rho v^2AC_D(1 - \cos2\alpha),$$
    $$T = L\cos\theta - D\sin\theta,\quad
      Q_p = 0.7R\,(L\sin\theta + D\cos\theta),$$
    $$J\dot\omega = Q - d\omega - Q_p,\quad m_w\dot u_a = T - f,\quad
      f = 2\rho A|u_a - u|(u_a - u) ,$$

    with $u$ the thruster's speed through the water. The vehicle feels $f$, which is $T$
    once the flow is steady. The command is the motor's torque $Q$; with `mode`
    `"thrust"` it is a thrust that a PI loop makes of the blades' $T$,
    $Q = K_p(T_d - T) + I$, $\dot I = K_i(T_d - T)$.
    """

    pitch: Each = eqx.field(converter=si("rad"))
    radius: Each = eqx.field(converter=si("m", above=0.0))
    inertia: Each = eqx.field(converter=si("kg m^2", above=0.0))
    friction: Each = eqx.field(converter=si("N m s/rad", at_least=0.0))
    water_mass: Each = eqx.field(converter=si("kg", above=0.0))
    lift: Each = eqx.field(converter=si("1", at_least=0.0))
    drag: Each = eqx.field(converter=si("1", at_least=0.0))
    density: Scalar = eqx.field(converter=si("kg/m^3", above=0.0), default=1025.0)
    mode: Literal["torque", "thrust"] = eqx.field(static=True, default="torque")
    kp: Each = eqx.field(converter=si("N m/N", at_least=0.0), default=0.0)
    ki: Each = eqx.field(converter=si("N m/(N s)", at_least=0.0), default=0.0)

    def __check_init__(self):
        check_values(self)
        if self.mode not in ("torque", "thrust"):
            raise ValueError(f"mode is torque or thrust, not {self.mode!r}")

    def initial_state(self, count: int) -> dict[str, Row]:
        states = ("shaft", "water") + ("integral",) * (self.mode == "thrust")
        return {name: jnp.zeros(count) for name in states}

    def blades(self, shaft: Row, water: Row) -> tuple[Row, Row, Row]:
        """Return thrust, torque and the power that the blades' drag takes."""
        u_p, u_a = 0.7 * self.radius * shaft, water
        half = self.density / 2 * jnp.pi * self.radius**2
        v = norm(jnp.stack([u_p, u_a], -1))
        # v^2 times cosine and sine of twice the angle, and those of the angle
        c2, s2 = u_p**2 - u_a**2, 2 * u_p * u_a
        c, s = (x / jnp.where(v > 0, v, 1.0) for x in (u_p, u_a))
        two = 2 * self.pitch
        lift = half * self.lift * (jnp.sin(two) * c2 - jnp.cos(two) * s2)
        turned = jnp.cos(two) * c2 + jnp.sin(two) * s2
        drag = half * self.drag * (v**2 - turned)
        thrust = lift * c - drag * s
        torque = 0.7 * self.radius * (lift * s + drag * c)
        return thrust, torque, drag * v

    def push(self, state: dict[str, Row], command: Row, advance: Row) -> Push:
        shaft, water = state["shaft"], state["water"]
        thrust, torque, lost = self.blades(shaft, water)
        rate: dict[str, Row] = {}
        motor = command
        if self.mode == "thrust":
            short = command - thrust
            motor = self.kp * short + state["integral"]
            rate["integral"] = self.ki * short
        through = water - advance
        jet = 2 * self.density * jnp.pi * self.radius**2 * jnp.abs(through) * through
        rate["shaft"] = (motor - self.friction * shaft - torque) / self.inertia
        rate["water"] = (thrust - jet) / self.water_mass
        loss = self.friction * shaft**2 + lost + jet * through
        outputs = {"blade_thrust": thrust, "torque": motor}
        return Push(rate, jet, motor * shaft, loss, outputs)

    def energy(self, state: dict[str, Row]) -> Scalar:
        spin = self.inertia * state["shaft"] ** 2
        return jnp.sum(spin + self.water_mass * state["water"] ** 2) / 2


class FirstOrderThrust(AbstractThrusterLaw):
    r"""Thrust that follows its command with a lag, $\tau\dot T = T_d - T$, in limits.

    Corners of the limits are rounded within `width`.
    """

    lag: Each = eqx.field(converter=si("s", above=0.0))
    lower: Each = eqx.field(converter=si("N"), default=-1e12)
    upper: Each = eqx.field(converter=si("N"), default=1e12)
    width: Each = eqx.field(converter=si("N", above=0.0), default=1e-3)

    def initial_state(self, count: int) -> dict[str, Row]:
        return {"lagged": jnp.zeros(count)}

    def push(self, state: dict[str, Row], command: Row, advance: Row) -> Push:
        thrust = state["lagged"]
        wanted = clip(command, self.lower, self.upper, self.width)
        rate = {"lagged": (wanted - thrust) / self.lag}
        given = thrust * advance
        return Push(rate, thrust, given, jnp.zeros_like(thrust), {})

    def energy(self, state: dict[str, Row]) -> Scalar:
        del state
        return jnp.zeros(())


class QuadraticThrust(AbstractThrusterLaw):
    r"""Thrust by the square of the shaft's speed $n$, less where the thruster advances.

    $$T = k\,|n|\,n - k_a\,|n|\,u,\qquad \tau\dot n = n_d - n,\qquad
      n_d = \operatorname{sign}(T_d)\sqrt{|T_d|/k},$$

    with $u$ the speed through the water. The command is $T_d$; within `width` of zero
    the root is rounded.
    """

    gain: Each = eqx.field(converter=si("N s^2/rad^2", above=0.0))
    lag: Each = eqx.field(converter=si("s", above=0.0))
    advance_gain: Each = eqx.field(converter=si("N s^2/m", at_least=0.0), default=0.0)
    width: Scalar = eqx.field(converter=si("N", above=0.0), default=0.1)

    def initial_state(self, count: int) -> dict[str, Row]:
        return {"shaft": jnp.zeros(count)}

    def push(self, state: dict[str, Row], command: Row, advance: Row) -> Push:
        n = state["shaft"]
        wanted = signed_sqrt(command / self.gain, self.width / self.gain)
        thrust = jnp.abs(n) * (self.gain * n - self.advance_gain * advance)
        rate = {"shaft": (wanted - n) / self.lag}
        return Push(rate, thrust, thrust * advance, jnp.zeros_like(n), {})

    def energy(self, state: dict[str, Row]) -> Scalar:
        del state
        return jnp.zeros(())


class ThrottleCurve(AbstractThrusterLaw):
    r"""Thrust by an odd polynomial of the throttle $u$ within ±1, which lags.

    $T = c_1u + c_3u^3 + c_5u^5 + \dots$. The default is the T200 thruster of Blue
    Robotics as published for the BlueROV2 (von Benzon and others, *An open-source
    benchmark simulator*, 2022).
    """

    lag: Each = eqx.field(converter=si("s", above=0.0))
    coefficients: Float[Array, " k"] = eqx.field(
        converter=si("N"), default=(8.9, 176.0, -404.1, 389.9, -140.3)
    )
    width: Scalar = eqx.field(converter=si("1", above=0.0), default=1e-6)

    def initial_state(self, count: int) -> dict[str, Row]:
        return {"throttle": jnp.zeros(count)}

    def thrust(self, throttle: Row) -> Row:
        """Return the thrust of a throttle."""
        total, square = jnp.zeros_like(throttle), throttle**2
        for i in reversed(range(len(self.coefficients))):
            total = total * square + self.coefficients[i]
        return total * throttle

    def push(self, state: dict[str, Row], command: Row, advance: Row) -> Push:
        u = state["throttle"]
        one = jnp.ones_like(u)
        rate = {"throttle": (clip(command, -one, one, self.width) - u) / self.lag}
        thrust = self.thrust(u)
        return Push(rate, thrust, thrust * advance, jnp.zeros_like(u), {})

    def energy(self, state: dict[str, Row]) -> Scalar:
        del state
        return jnp.zeros(())


class Thrusters(AbstractPart):
    """The thrusters of a vehicle, at places of a `layout` in the axes of `frame`.

    Signal `command` has one value for each thruster, as its `law` wants it: a thrust,
    a torque or a throttle. Outputs: `thrust` on the vehicle and those of the law.
    Thrusters do not turn the vehicle by the torque of their propellers.
    """

    signal_units: ClassVar[Mapping[str, str]] = {
        "thrust": "N",
        "blade_thrust": "N",
        "torque": "N m",
        "shaft": "rad/s",
        "water": "m/s",
        "integral": "N m",
        "lagged": "N",
        "throttle": "1",
    }
    frame: str = eqx.field(static=True)
    layout: ThrusterLayout
    command: str = eqx.field(static=True)
    law: AbstractThrusterLaw
    fluid: Fluid = eqx.field(default_factory=Fluid)

    def initial_state(self) -> dict[str, Array]:
        return self.law.initial_state(self.layout.count)

    def _flow(self, t: Scalar, world: World) -> tuple[Row, Row]:
        """Speeds of the thrusters through the water, and of the water, along them."""
        X, V = world.pose(self.frame), world.twist(self.frame)
        arms, axes = self.layout.positions @ X.R.T, self.layout.axes @ X.R.T
        v = V[3:][None] + cross(V[:3][None], arms)
        current = self.fluid.velocity(X.p, t)
        return jnp.sum((v - current[None]) * axes, 1), axes @ current

    def _push(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> tuple[Push, Row]:
        advance, current = self._flow(t, world)
        command = jnp.atleast_1d(signals[self.command])
        if command.shape != (self.layout.count,):
            raise ValueError(
                f"signal {self.command!r} has shape {command.shape}, expected one "
                f"value for each of {self.layout.count} thrusters"
            )
        return self.law.push(state, command, advance), current

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        push, _ = self._push(t, state, world, signals)
        X, F = world.pose(self.frame), self.layout.matrix() @ push.thrust
        body = world.mechanism.frame(self.frame).body
        load = Load(body, "world", X.p, X.R @ F[3:], X.R @ F[:3])
        outputs = {"thrust": push.thrust} | push.outputs
        return Response(push.rate, (load,), outputs)

    def energy(self, state: dict, world: World) -> Scalar:
        del world
        return self.law.energy(state)

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        return jnp.sum(self._push(t, state, world, signals)[0].power_loss)

    def power_in(self, t: Scalar, state: Any, world: World, signals: Signals) -> Scalar:
        """The work of motors and of the current."""
        push, current = self._push(t, state, world, signals)
        return jnp.sum(push.power_in + push.thrust * current)
