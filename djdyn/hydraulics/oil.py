"""Oil: density, bulk modulus and energy."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..typing import Scalar, check_values, si


QUADRATURE_POINTS = 12


def power_integral(r: Scalar, a: Scalar) -> Scalar:
    r"""Return $\int_1^r s^{a-1}\,ds = (r^a - 1)/a$, a logarithm where $a$ is zero."""
    log = jnp.log(r)
    small = jnp.abs(a) < 1e-6
    whole = jnp.expm1(a * log) / jnp.where(small, 1.0, a)
    return jnp.where(small, log * (1 + a * log / 2), whole)


class Oil(eqx.Module):
    r"""Oil with entrained air. Pressures are above the atmosphere's, $p_a$.

    Oil that fills one unit of volume at the atmosphere's pressure fills

    $$v(p) = (1-\varphi)\,e^{-p/B} + \varphi\,\Bigl(\frac{p_a}{p+p_a}\Bigr)^{1/n}$$

    at $p$, with $\varphi$ the volume of air among it and $n$ from 1 (isothermal) to 1.4
    (adiabatic); its bulk modulus is $-v/v'$. Below an absolute pressure of
    `cavitation` $p_a$ the air goes on along the tangent of its law, so that all is
    finite at all pressures that a long step may try, however low.

    `conserves` chooses what stays constant along a throttle. With `"mass"` (the
    default) flows are volumes at the atmosphere's pressure, and a node takes up
    $v(p)\,q$. With `"volume"` the flow that leaves one node enters the other, whatever
    their pressures, which is usual in textbooks and off by $p/B$.

    A flow $q$ carries the power $h(p)\,q$, with $h = \int_0^p v\,dp$ the enthalpy
    ($h/v$ if volume is conserved), and oil stores $e = h/v - p$ in each volume.
    """

    density: Scalar = eqx.field(converter=si("kg/m^3", above=0.0), default=870.0)
    bulk_modulus: Scalar = eqx.field(converter=si("Pa", above=0.0), default=1.4e9)
    air: Scalar = eqx.field(converter=si("1", at_least=0.0), default=0.0)
    exponent: Scalar = eqx.field(converter=si("1", at_least=1.0), default=1.0)
    atmosphere: Scalar = eqx.field(converter=si("Pa", above=0.0), default=101325.0)
    cavitation: Scalar = eqx.field(converter=si("1", above=0.0), default=0.1)
    conserves: Literal["mass", "volume"] = eqx.field(static=True, default="mass")

    def __check_init__(self):
        check_values(self)
        if self.conserves not in ("mass", "volume"):
            raise ValueError(
                f"a fluid conserves mass or volume, not {self.conserves!r}"
            )

    def _air(self, p: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        r"""Return the relative volume of air, its slope, its integral over $p_a$."""
        n, low = self.exponent, self.cavitation
        r = 1 + p / self.atmosphere
        x = jnp.minimum(r - low, 0.0) / (n * low)  # beyond the gas law
        r = jnp.maximum(r, low)
        v = r ** (-1 / n)
        slope = -v / (n * r) / self.atmosphere
        area = power_integral(r, 1 - 1 / n)
        area = area + n * low ** (1 - 1 / n) * (x - x**2 / 2)
        return v * (1 - x), slope, area

    def expansion(self, p: Scalar) -> Scalar:
        """Return the volume of a flow at `p`, relative to that which is counted."""
        return self._volume(p)[0] if self.conserves == "mass" else jnp.ones_like(p)

    def _volume(self, p: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """Return the relative volume of oil and air, its slope and its integral."""
        B, phi, x = self.bulk_modulus, self.air, -p / self.bulk_modulus
        v, slope, area = self._air(p)
        oil = jnp.exp(x)
        return (
            (1 - phi) * oil + phi * v,
            -(1 - phi) * oil / B + phi * slope,
            -(1 - phi) * B * jnp.expm1(x) + phi * self.atmosphere * area,
        )

    def stiffness(self, p: Scalar) -> Scalar:
        """Return the bulk modulus of oil and air at a pressure, Pa."""
        v, slope, _ = self._volume(p)
        return -v / slope

    def relative_density(self, p: Scalar) -> Scalar:
        """Return the density at a pressure, relative to that at the atmosphere's."""
        return 1 / self._volume(p)[0]

    def enthalpy(self, p: Scalar) -> Scalar:
        """Return the energy that one unit of a flow carries, Pa."""
        v, _, area = self._volume(p)
        return area if self.conserves == "mass" else area / v

    def energy(self, p: Scalar) -> Scalar:
        """Return the energy stored in one unit of volume, Pa."""
        v, _, area = self._volume(p)
        return area / v - p

    def surplus(self, q: Scalar, p1: Scalar, p2: Scalar) -> Scalar:
        """Return the power that a flow loses from `p1` to `p2` beyond `p1 - p2`."""
        return q * ((self.enthalpy(p1) - self.enthalpy(p2)) - (p1 - p2))

    def mean_relative_density(self, p1: Scalar, p2: Scalar) -> Scalar:
        r"""Return $(p_1 - p_2)/(h_1 - h_2)$, the flow of one unit of displaced volume.

        It is one if the oil conserves volume.
        """
        if self.conserves == "volume":
            return jnp.ones_like(p1)
        dp = p1 - p2
        near = jnp.abs(dp) < 1e-5 * self.atmosphere
        dh = self.enthalpy(p1) - self.enthalpy(p2)
        middle = self.relative_density((p1 + p2) / 2)
        return jnp.where(near, middle, dp / jnp.where(near, 1.0, dh))

    def hose_integral(self, p: Scalar) -> Scalar:
        r"""Return $\int_0^p (p' + e)\,dp'$, Pa^2: the energy in a hose per compliance.

        For oil that conserves volume.
        """
        nodes, weights = np.polynomial.legendre.leggauss(QUADRATURE_POINTS)
        at = jax.vmap(lambda x: self.energy(p * x) + p * x)
        shares = jnp.asarray((nodes + 1) / 2, p.dtype)
        return p * (jnp.asarray(weights / 2, p.dtype) @ at(shares))
