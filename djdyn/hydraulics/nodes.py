"""Nodes of a circuit: volumes, supplies and tanks, each with one pressure."""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..smooth import eased_square, step
from ..typing import Scalar, check_values, known, si
from .oil import Oil, power_integral


class AbstractNode(eqx.Module):
    """A node of a circuit, with one pressure."""

    def __check_init__(self):
        check_values(self)


class AbstractBoundary(AbstractNode):
    """A node whose pressure is given."""

    pressure: eqx.AbstractVar[Scalar]


class Supply(AbstractBoundary):
    """A source of constant pressure."""

    pressure: Scalar = eqx.field(converter=si("Pa"))


class Tank(AbstractBoundary):
    """A tank of constant pressure, to which oil returns."""

    pressure: Scalar = eqx.field(converter=si("Pa"), default=0.0)


class AbstractVolume(AbstractNode):
    """A node whose pressure follows from its oil; `pressure` is that at the start."""

    pressure: eqx.AbstractVar[Scalar]
    volume: eqx.AbstractVar[Scalar]

    @abc.abstractmethod
    def dead_volume(self) -> Scalar:
        """Return the volume at zero pressure, without adjoining chambers, m3."""

    @abc.abstractmethod
    def wall_compliance(self, p: Scalar, oil: Oil) -> tuple[Scalar, Scalar, Scalar]:
        """Return the walls' compliance (m3/Pa), volume gained and energy stored."""


class Volume(AbstractVolume):
    r"""The oil in pipes, ports and hoses, besides that in adjoining chambers.

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
            raise ValueError("a volume must be positive: give volume or hose_volume")

    def dead_volume(self) -> Scalar:
        return self.volume + self.hose_volume

    def wall_compliance(self, p: Scalar, oil: Oil) -> tuple[Scalar, Scalar, Scalar]:
        K = self.hose_volume / self.hose_modulus
        if oil.conserves == "mass":
            return K, K * p, K * p**2 / 2
        return K, jnp.zeros_like(p), K * oil.hose_integral(p)


class Accumulator(AbstractVolume):
    r"""A gas accumulator: above the precharge $p_0$ the gas is compressed.

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
