"""Nodes of a circuit: where oil has one pressure."""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._smooth import eased_square, step
from ..typing import Scalar, check_values, known, si
from .oil import Oil, power_integral


class AbstractNode(eqx.Module):
    """A place of one pressure."""

    def __check_init__(self):
        check_values(self)


class AbstractBoundary(AbstractNode):
    """A place whose pressure is given."""

    pressure: eqx.AbstractVar[Scalar]


class Supply(AbstractBoundary):
    """A source of constant pressure."""

    pressure: Scalar = eqx.field(converter=si("Pa"))


class Tank(AbstractBoundary):
    """Where oil returns to."""

    pressure: Scalar = eqx.field(converter=si("Pa"), default=0.0)


class AbstractVolume(AbstractNode):
    """A place whose pressure follows from the oil in it; `pressure` at the start."""

    pressure: eqx.AbstractVar[Scalar]
    volume: eqx.AbstractVar[Scalar]

    @abc.abstractmethod
    def dead_volume(self) -> Scalar:
        """Its volume without pressure, without the chambers that open into it, m3."""

    @abc.abstractmethod
    def wall_compliance(self, p: Scalar, oil: Oil) -> tuple[Scalar, Scalar, Scalar]:
        """What the walls give way: compliance (m3/Pa), volume gained, energy stored."""


class Volume(AbstractVolume):
    r"""Oil in pipes, ports and hoses, beside the chambers that open into it.

    $$\Bigl(\frac{V}{B} + \frac{V_h}{B_h}\Bigr)\dot p = \sum Q - \dot V ,$$

    with $V$ all of it and $V_h$, $B_h$ the hoses' volume and bulk modulus. Where the
    fluid conserves mass, $V$ counts what the hoses have gained, $V_h\,p/B_h$.
    """

    volume: Scalar = eqx.field(converter=si("m^3", at_least=0.0))
    pressure: Scalar = eqx.field(converter=si("Pa"), default=0.0)
    hose_volume: Scalar = eqx.field(converter=si("m^3", at_least=0.0), default=0.0)
    hose_modulus: Scalar = eqx.field(converter=si("Pa", above=0.0), default=5e8)

    def __check_init__(self):
        size = self.volume + self.hose_volume
        if known(size) and not np.all(np.asarray(size) > 0):
            raise ValueError("a volume holds some oil: give its volume, or its hoses'")

    def dead_volume(self) -> Scalar:
        return self.volume + self.hose_volume

    def wall_compliance(self, p: Scalar, oil: Oil) -> tuple[Scalar, Scalar, Scalar]:
        K = self.hose_volume / self.hose_modulus
        if oil.conserves == "mass":
            return K, K * p, K * p**2 / 2
        return K, jnp.zeros_like(p), K * oil.stretching(p)


class Accumulator(AbstractVolume):
    r"""Oil against gas: beyond the precharge $p_0$ the gas gives way,

    $$V_g = V_0\,\Bigl(\frac{p_0 + p_a}{p + p_a}\Bigr)^{1/n} .$$

    Over the first `width` above $p_0$ the compliance comes in by a smooth step.
    `volume` is the oil that stays in the port.
    """

    volume: Scalar = eqx.field(converter=si("m^3", above=0.0))
    gas_volume: Scalar = eqx.field(converter=si("m^3", above=0.0))
    precharge: Scalar = eqx.field(converter=si("Pa", above=0.0))
    pressure: Scalar = eqx.field(converter=si("Pa"), default=0.0)
    exponent: Scalar = eqx.field(converter=si("1", at_least=1.0), default=1.4)
    width: Scalar = eqx.field(converter=si("Pa", above=0.0), default=1e5)

    def dead_volume(self) -> Scalar:
        return self.volume

    def wall_compliance(self, p: Scalar, oil: Oil) -> tuple[Scalar, Scalar, Scalar]:
        n, w, p_a = self.exponent, self.width, oil.atmosphere
        P0 = self.precharge + p_a
        P1, P = P0 + w, jnp.maximum(p + p_a, P0 + w)
        K1 = self.gas_volume / (n * P1) * (P0 / P1) ** (1 / n)  # where the step ends
        x = jnp.maximum(p - self.precharge, 0.0)
        s = jnp.minimum(x / w, 1.0)
        gained = K1 * w * (s**3 - s**4 / 2)
        stored = K1 * (eased_square(jnp.minimum(x, w), w)) + self.precharge * gained
        r = P / P1
        gained = gained + K1 * P1 * power_integral(r, -1 / n)
        stored = stored + K1 * P1 * (
            P1 * power_integral(r, 1 - 1 / n) - p_a * power_integral(r, -1 / n)
        )
        return step(x, w) * K1 * r ** (-1 - 1 / n), gained, stored
