r"""Laws of friction between surfaces, from the normal force and the sliding velocity.

Bristles are a state of each point. What they store counts as stored by the contact.
"""

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._smooth import magnitude, norm, step
from ..typing import Scalar, Vec3, check_values, known, si
from .contact_points import unit


class Grip(eqx.Module):
    """What friction does at a point: force, rate of its bristles, power they store."""

    force: Vec3
    rate: Float[Array, " m"]
    storing: Scalar


class AbstractSurfaceFriction(eqx.Module):
    """A force along a surface, against sliding.

    A law with bristles calls the friction of sliding `mu`.
    """

    bristles: eqx.AbstractClassVar[int]  # states of a point

    def __check_init__(self):
        check_values(self)

    @abc.abstractmethod
    def act(self, v: Vec3, f: Scalar, z: Float[Array, " m"], pull: Vec3) -> Grip:
        """At the sliding velocity `v` under the normal force `f`.

        `pull` is what else pulls along the surface.
        """


def _against(v: Vec3, f: Scalar, mu: Scalar, width: Scalar) -> Vec3:
    return -mu * f * v / magnitude(norm(v), width)


class Coulomb(AbstractSurfaceFriction):
    r"""$f = -\mu F\,v/\sqrt{v^2 + w^2}$: below the speed `width` it creeps."""

    mu: Scalar = eqx.field(converter=si("1", at_least=0.0))
    width: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e-3)
    bristles: ClassVar[int] = 0

    def act(self, v: Vec3, f: Scalar, z: Float[Array, " m"], pull: Vec3) -> Grip:
        del pull
        return Grip(_against(v, f, self.mu, self.width), z, jnp.zeros(()))


class Stribeck(AbstractSurfaceFriction):
    r"""Coulomb's law with $\mu = \mu_c + (\mu_s - \mu_c) e^{-(v/v_s)^2} + \sigma v$."""

    mu: Scalar = eqx.field(converter=si("1", at_least=0.0))
    mu_static: Scalar = eqx.field(converter=si("1", at_least=0.0))
    stribeck_speed: Scalar = eqx.field(converter=si("m/s", above=0.0), default=0.01)
    viscous: Scalar = eqx.field(converter=si("s/m", at_least=0.0), default=0.0)
    width: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e-3)
    bristles: ClassVar[int] = 0

    def act(self, v: Vec3, f: Scalar, z: Float[Array, " m"], pull: Vec3) -> Grip:
        del pull
        more = (self.mu_static - self.mu) * jnp.exp(-(v @ v) / self.stribeck_speed**2)
        dry = _against(v, f, self.mu + more, self.width)
        return Grip(dry - self.viscous * f * v, z, jnp.zeros(()))


class Karnopp(AbstractSurfaceFriction):
    r"""Sticks while what pulls is below $\mu_s F$ and the speed below `dead_zone`.

    There friction cancels the pull and lets the speed die out, so that nothing creeps
    (Karnopp, *Computer simulation of stick-slip friction in mechanical dynamic
    systems*, 1985); beyond it slides with $\mu F$.
    """

    mu: Scalar = eqx.field(converter=si("1", at_least=0.0))
    mu_static: Scalar = eqx.field(converter=si("1", at_least=0.0))
    dead_zone: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e-3)
    bristles: ClassVar[int] = 0

    def act(self, v: Vec3, f: Scalar, z: Float[Array, " m"], pull: Vec3) -> Grip:
        most = self.mu_static * f
        wanted = pull + most / self.dead_zone * v
        size = norm(wanted)
        over = size > most
        hold = -wanted * jnp.where(over, most / jnp.where(over, size, 1.0), 1.0)
        slide = -self.mu * f * unit(v, jnp.zeros(3))
        sliding = step(norm(v) - self.dead_zone / 2, self.dead_zone / 2)
        return Grip((1 - sliding) * hold + sliding * slide, z, jnp.zeros(()))


class LuGre(AbstractSurfaceFriction):
    r"""Bristles of deflection $z$ in two directions (Canudas de Wit, Olsson, Åström and
    Lischinsky, *A new model for control of systems with friction*, 1995):

    $$\dot z = v - \frac{\sigma_0|v|}{g(v)}\,z,\quad
      g = \mu_c + (\mu_s-\mu_c)\,e^{-(|v|/v_s)^a},\quad
      f = -F\,(\sigma_0 z + \sigma_1\dot z + \sigma_2 v).$$

    Where nothing presses they spring back within `release` seconds. $|v|$ is rounded
    below `width`.
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
        """Deflection times stiffness at a steady speed."""
        ratio = magnitude(v, self.width) / self.stribeck_speed
        fall = jnp.exp(-(ratio**self.exponent))
        return self.mu + (self.mu_static - self.mu) * fall

    def act(self, v: Vec3, f: Scalar, z: Float[Array, " m"], pull: Vec3) -> Grip:
        del pull
        speed = magnitude(norm(v), self.width) - self.width
        pressed = step(f, self.full)
        rate = pressed * (v - self.stiffness * speed / self.steady(norm(v)) * z)
        rate = rate - (1 - pressed) * z / self.release
        bent = self.stiffness * z
        force = -f * (bent + self.damping * rate + self.viscous * v)
        return Grip(force, rate, f * bent @ rate)
