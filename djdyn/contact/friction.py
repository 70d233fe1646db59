r"""Laws of friction between surfaces, from the normal force and the sliding velocity.

Bristles are a state of each point. What they store counts as stored by the contact.
"""

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..smooth import magnitude, norm, step
from ..typing import Scalar, Vec3, check_values, known, si
from .contact_points import unit


class FrictionForce(eqx.Module):
    """Friction at a point: force, rate of the bristles, and power they store."""

    force: Vec3
    rate: Float[Array, " m"]
    stored_power: Scalar


class AbstractSurfaceFriction(eqx.Module):
    """A law of the friction force along a surface, against sliding.

    `mu` is the coefficient of sliding friction.
    """

    mu: eqx.AbstractVar[Scalar]
    bristles: eqx.AbstractClassVar[int]  # number of states at each point

    def __check_init__(self):
        check_values(self)

    @abc.abstractmethod
    def evaluate(
        self, v: Vec3, f: Scalar, z: Float[Array, " m"], pull: Vec3
    ) -> FrictionForce:
        """Return the friction at the sliding velocity `v` under the normal force `f`.

        `z` is the bristle deflection, `pull` the other forces along the surface.
        """


def _regularised(v: Vec3, f: Scalar, mu: Scalar, width: Scalar) -> Vec3:
    return -mu * f * v / magnitude(norm(v), width)


class Coulomb(AbstractSurfaceFriction):
    r"""Regularised Coulomb friction, $f = -\mu F\,v/\sqrt{v^2 + w^2}$.

    Below the speed `width` $w$ it creeps instead of sticking.
    """

    mu: Scalar = eqx.field(converter=si("1", at_least=0.0))
    width: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e-3)
    bristles: ClassVar[int] = 0

    def evaluate(
        self, v: Vec3, f: Scalar, z: Float[Array, " m"], pull: Vec3
    ) -> FrictionForce:
        del pull
        return FrictionForce(_regularised(v, f, self.mu, self.width), z, jnp.zeros(()))


class Stribeck(AbstractSurfaceFriction):
    r"""Stribeck friction, $\mu = \mu_c + (\mu_s - \mu_c) e^{-(v/v_s)^2} + \sigma v$.

    Regularised below the speed `width`, as `Coulomb` is.
    """

    mu: Scalar = eqx.field(converter=si("1", at_least=0.0))
    mu_static: Scalar = eqx.field(converter=si("1", at_least=0.0))
    stribeck_speed: Scalar = eqx.field(converter=si("m/s", above=0.0), default=0.01)
    viscous: Scalar = eqx.field(converter=si("s/m", at_least=0.0), default=0.0)
    width: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e-3)
    bristles: ClassVar[int] = 0

    def evaluate(
        self, v: Vec3, f: Scalar, z: Float[Array, " m"], pull: Vec3
    ) -> FrictionForce:
        del pull
        more = (self.mu_static - self.mu) * jnp.exp(-(v @ v) / self.stribeck_speed**2)
        dry = _regularised(v, f, self.mu + more, self.width)
        return FrictionForce(dry - self.viscous * f * v, z, jnp.zeros(()))


class Karnopp(AbstractSurfaceFriction):
    r"""Karnopp friction: sticking within a dead zone of speed.

    It sticks while the pull is below $\mu_s F$ and the speed below `dead_zone`: there
    friction cancels the pull and brakes, so that nothing creeps. Beyond it slides with
    $\mu F$ (Karnopp, *Computer simulation of stick-slip friction in mechanical dynamic
    systems*, 1985).
    """

    mu: Scalar = eqx.field(converter=si("1", at_least=0.0))
    mu_static: Scalar = eqx.field(converter=si("1", at_least=0.0))
    dead_zone: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e-3)
    bristles: ClassVar[int] = 0

    def evaluate(
        self, v: Vec3, f: Scalar, z: Float[Array, " m"], pull: Vec3
    ) -> FrictionForce:
        most = self.mu_static * f
        wanted = pull + most / self.dead_zone * v
        size = norm(wanted)
        over = size > most
        hold = -wanted * jnp.where(over, most / jnp.where(over, size, 1.0), 1.0)
        slide = -self.mu * f * unit(v, jnp.zeros(3))
        sliding = step(norm(v) - self.dead_zone / 2, self.dead_zone / 2)
        return FrictionForce((1 - sliding) * hold + sliding * slide, z, jnp.zeros(()))


class LuGre(AbstractSurfaceFriction):
    r"""LuGre friction: bristles with a deflection $z$ along the surface.

    $$\dot z = v - \frac{\sigma_0|v|}{g(v)}\,z,\quad
      g = \mu_c + (\mu_s-\mu_c)\,e^{-(|v|/v_s)^a},\quad
      f = -F\,(\sigma_0 z + \sigma_1\dot z + \sigma_2 v).$$

    Source: Canudas de Wit, Olsson, Åström and Lischinsky, *A new model for control of
    systems with friction*, 1995. Where the normal force is far below `full` the
    bristles spring back within `release` seconds. $|v|$ is rounded below `width`.
    """

    mu: Scalar = eqx.field(converter=si("1", above=0.0))
    mu_static: Scalar = eqx.field(converter=si("1", above=0.0))
    stiffness: Scalar = eqx.field(converter=si("1/m", above=0.0))
    damping: Scalar = eqx.field(converter=si("s/m", at_least=0.0), default=0.0)
    viscous: Scalar = eqx.field(converter=si("s/m", at_least=0.0), default=0.0)
    stribeck_speed: Scalar = eqx.field(converter=si("m/s", above=0.0), default=0.01)
    exponent: Scalar = eqx.field(converter=si("1", above=0.0), default=2.0)
    release: Scalar = eqx.field(converter=si("s", above=0.0), default=0.01)
    full: Scalar = eqx.field(converter=si("N", above=0.0), default=1e-3)
    width: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e-6)
    bristles: ClassVar[int] = 3

    def __check_init__(self):
        if known(self.mu, self.mu_static) and np.any(self.mu_static < self.mu):
            raise ValueError(
                f"static friction {self.mu_static:g} is below sliding friction "
                f"{self.mu:g}"
            )

    def steady(self, v: Scalar) -> Scalar:
        """Return the friction coefficient at a steady speed, $g(v)$."""
        ratio = magnitude(v, self.width) / self.stribeck_speed
        fall = jnp.exp(-(ratio**self.exponent))
        return self.mu + (self.mu_static - self.mu) * fall

    def evaluate(
        self, v: Vec3, f: Scalar, z: Float[Array, " m"], pull: Vec3
    ) -> FrictionForce:
        del pull
        speed = magnitude(norm(v), self.width) - self.width
        pressed = step(f, self.full)
        rate = pressed * (v - self.stiffness * speed / self.steady(norm(v)) * z)
        rate = rate - (1 - pressed) * z / self.release
        bent = self.stiffness * z
        force = -f * (bent + self.damping * rate + self.viscous * v)
        return FrictionForce(force, rate, f * bent @ rate)
