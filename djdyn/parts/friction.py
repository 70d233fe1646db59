"""Friction of real bearings and gears: more near rest, and more under load."""

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..smooth import magnitude, sign
from ..typing import Scalar, si
from .base import AbstractPassivePart, Response, Signals
from .loads import JointLoad
from .units import JointUnit, Unit


class AbstractJointFriction(AbstractPassivePart):
    """Friction on the speeds of one joint, from a law `force`."""

    joint: eqx.AbstractVar[str]

    @abc.abstractmethod
    def force(self, v: Float[Array, " n"], signals: Signals) -> Float[Array, " n"]:
        """Return the friction force on each of the joint's speeds `v`."""

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t
        force = self.force(world.joint(self.joint)[1], signals)
        return Response(state, (JointLoad(self.joint, force),), {"force": force})

    def energy(self, state: Any, world: World) -> Scalar:
        del state, world
        return jnp.zeros(())

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t, state
        v = world.joint(self.joint)[1]
        return -self.force(v, signals) @ v


class StribeckFriction(AbstractJointFriction):
    r"""Friction of a lubricated joint, which falls from rest to sliding.

    $$\tau = -d\,v - \bigl(c + (s - c)\,e^{-(v/v_s)^2}\bigr)\tanh(v/w)$$

    with `static` friction $s$, `coulomb` friction $c$ and `stribeck_speed` $v_s$
    (Armstrong-Hélouvry, Dupont and Canudas de Wit, *A survey of models, analysis tools
    and compensation methods for the control of machines with friction*, 1994). `width`
    $w$ is the speed below which it creeps; take less than $v_s$.
    """

    signal_units: ClassVar[Mapping[str, Unit]] = {"force": JointUnit.FORCE}
    joint: str = eqx.field(static=True)
    static: Scalar = eqx.field(converter=si("N m, N", at_least=0.0))
    coulomb: Scalar = eqx.field(converter=si("N m, N", at_least=0.0))
    stribeck_speed: Scalar = eqx.field(converter=si("rad/s, m/s", above=0.0))
    viscous: Scalar = eqx.field(
        converter=si("N m s/rad, N s/m", at_least=0.0), default=0.0
    )
    width: Scalar = eqx.field(converter=si("rad/s, m/s", above=0.0), default=1e-3)

    def force(self, v: Float[Array, " n"], signals: Signals) -> Float[Array, " n"]:
        del signals
        near_rest = jnp.exp(-((v / self.stribeck_speed) ** 2))
        dry = self.coulomb + (self.static - self.coulomb) * near_rest
        return -self.viscous * v - dry * sign(v, self.width)


class GearFriction(AbstractJointFriction):
    r"""Friction of a gear, which grows with the force that its drive exerts.

    $$\tau = -\bigl(c + \mu\,\sqrt{u^2 + w_u^2} - \mu w_u\bigr)\tanh(v/w)$$

    with $u$ the drive's force, entry `entry` of the signal `drive`. A gear of
    efficiency $\eta$ passes on $\eta u$ while it drives, so $\mu$, `load_share`, is
    $1 - \eta$; while the load drives it, the drive sees $1 + \mu$ of what it exerts.
    """

    signal_units: ClassVar[Mapping[str, Unit]] = {"force": JointUnit.FORCE}
    joint: str = eqx.field(static=True)
    drive: str = eqx.field(static=True)
    load_share: Scalar = eqx.field(converter=si("1", at_least=0.0))
    coulomb: Scalar = eqx.field(converter=si("N m, N", at_least=0.0), default=0.0)
    entry: int = eqx.field(static=True, default=0)
    width: Scalar = eqx.field(converter=si("rad/s, m/s", above=0.0), default=1e-3)
    force_width: Scalar = eqx.field(converter=si("N m, N", above=0.0), default=1e-3)

    def force(self, v: Float[Array, " n"], signals: Signals) -> Float[Array, " n"]:
        drive = jnp.ravel(signals[self.drive])
        if not -drive.size <= self.entry < drive.size:
            raise ValueError(
                f"signal {self.drive!r} has {drive.size} entries, none numbered "
                f"{self.entry}"
            )
        load = magnitude(drive[self.entry], self.force_width) - self.force_width
        return -(self.coulomb + self.load_share * load) * sign(v, self.width)
