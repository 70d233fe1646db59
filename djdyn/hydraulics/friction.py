"""Friction of a piston in its seals."""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..smooth import magnitude, sign
from ..typing import Scalar, check_values, known, si
from .component import States


class AbstractFriction(eqx.Module):
    """A law of the friction force against the speed of a piston."""

    def __check_init__(self):
        check_values(self)

    @abc.abstractmethod
    def initial_state(self) -> States:
        """Return the states at the start; `{}` if there are none."""

    @abc.abstractmethod
    def act(
        self, v: Scalar, push: Scalar, state: States
    ) -> tuple[Scalar, Scalar, States]:
        """Return the force against `v`, the dissipated power, and the states' rates.

        `push` is the net force of the pressures.
        """

    @abc.abstractmethod
    def energy(self, state: States) -> Scalar:
        """Return the stored energy, J."""


class AbstractSliding(AbstractFriction):
    """Friction without states, which stores no energy."""

    @abc.abstractmethod
    def force(self, v: Scalar, push: Scalar) -> Scalar:
        """Return the force against the speed `v`."""

    def initial_state(self) -> States:
        return {}

    def act(
        self, v: Scalar, push: Scalar, state: States
    ) -> tuple[Scalar, Scalar, States]:
        del state
        F = self.force(v, push)
        return F, F * v, {}

    def energy(self, state: States) -> Scalar:
        del state
        return jnp.zeros(())


class SealStribeck(AbstractSliding):
    r"""Stribeck friction of seals: viscous, Coulomb and static.

    $$F = d\,v + \bigl(F_c + (F_s - F_c)\,e^{-(v/v_s)^2}\bigr)\tanh(v/w) .$$

    Below `width` the piston creeps. `static` is $F_s - F_c$, what static friction has
    beyond Coulomb's.
    """

    viscous: Scalar = eqx.field(converter=si("N s/m", at_least=0.0), default=0.0)
    coulomb: Scalar = eqx.field(converter=si("N", at_least=0.0), default=0.0)
    static: Scalar = eqx.field(converter=si("N", at_least=0.0), default=0.0)
    stribeck_speed: Scalar = eqx.field(converter=si("m/s", above=0.0), default=0.01)
    width: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e-3)

    def force(self, v: Scalar, push: Scalar) -> Scalar:
        del push
        dry = self.coulomb + self.static * jnp.exp(-((v / self.stribeck_speed) ** 2))
        return self.viscous * v + dry * sign(v, self.width)


class Efficiency(AbstractSliding):
    r"""Friction by the efficiency of a cylinder.

    $$F = |p_1A_1 - p_2A_2|\,(1 - \eta)\,f(|v|)\tanh(v/w)$$

    $f$ is a table of factors by speed, with linear interpolation. The absolute value
    and the odd function of speed make it dissipate at all signs. (Baharudin,
    doctoral dissertation, Lappeenranta, 2016, eq. 2.54, corrected.)
    """

    efficiency: Scalar = eqx.field(converter=si("1", above=0.0), default=0.9)
    speeds: Float[Array, " k"] = eqx.field(
        converter=si("m/s", at_least=0.0), default=(0.0, 0.1, 1.0)
    )
    factors: Float[Array, " k"] = eqx.field(
        converter=si("1", at_least=0.0), default=(1.0, 0.2, 1.0)
    )
    width: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e-3)
    force_width: Scalar = eqx.field(converter=si("N", above=0.0), default=1.0)

    def __check_init__(self):
        if known(self.efficiency) and np.any(np.asarray(self.efficiency) > 1):
            raise ValueError(f"an efficiency is at most one, not {self.efficiency}")

    def force(self, v: Scalar, push: Scalar) -> Scalar:
        f = jnp.interp(magnitude(v, self.width / 100), self.speeds, self.factors)
        size = magnitude(push, self.force_width) * (1 - self.efficiency)
        return size * f * sign(v, self.width)


class SealLuGre(AbstractFriction):
    r"""LuGre friction of seals: bristles with a deflection $z$ (Canudas de Wit, Olsson,
    Åström and Lischinsky, *A new model for control of systems with friction*, 1995).

    $$\dot z = v - \sigma_0\frac{|v|}{g(v)}z,\quad
      g = F_c + (F_s - F_c)\,e^{-(v/v_s)^2},\quad
      F = \sigma_0 z + \sigma_1\dot z + \sigma_2 v .$$

    $|v|$ is $v\tanh(v/w)$; the state is $z$ in micrometres, `bristle_um`.
    """

    stiffness: Scalar = eqx.field(converter=si("N/m", above=0.0))
    damping: Scalar = eqx.field(converter=si("N s/m", at_least=0.0))
    viscous: Scalar = eqx.field(converter=si("N s/m", at_least=0.0))
    coulomb: Scalar = eqx.field(converter=si("N", above=0.0))
    static: Scalar = eqx.field(converter=si("N", at_least=0.0), default=0.0)
    stribeck_speed: Scalar = eqx.field(converter=si("m/s", above=0.0), default=0.01)
    width: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e-6)

    def initial_state(self) -> States:
        return {"bristle_um": jnp.zeros(())}

    def act(
        self, v: Scalar, push: Scalar, state: States
    ) -> tuple[Scalar, Scalar, States]:
        del push
        z = 1e-6 * state["bristle_um"]
        g = self.coulomb + self.static * jnp.exp(-((v / self.stribeck_speed) ** 2))
        slip = self.stiffness * v * sign(v, self.width) * z / g
        z_dot = v - slip
        F = self.stiffness * z + self.damping * z_dot + self.viscous * v
        loss = F * v - self.stiffness * z * z_dot
        return F, loss, {"bristle_um": 1e6 * z_dot}

    def energy(self, state: States) -> Scalar:
        return self.stiffness * (1e-6 * state["bristle_um"]) ** 2 / 2
