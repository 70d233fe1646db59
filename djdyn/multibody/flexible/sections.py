r"""Cross sections of beams along x: y is across, z is up.

$I_y = \int z^2\,dA$ resists bending in the xz plane, $I_z = \int y^2\,dA$ that in the
xy plane. The shear factors $\kappa$ are the shares of the area that carry shear
(Cowper, *The shear coefficient in Timoshenko's beam theory*, 1966).
"""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ...typing import Scalar, check_values, known, si


class SectionProperties(NamedTuple):
    """What a beam needs of its section."""

    area: Scalar
    I_y: Scalar
    I_z: Scalar
    torsion: Scalar  # of Saint-Venant
    shear_y: Scalar  # kappa A
    shear_z: Scalar


class AbstractSection(eqx.Module):
    """A cross section; sizes of tapered beams go from those of one to another."""

    def __check_init__(self):
        check_values(self)

    @abc.abstractmethod
    def properties(self) -> SectionProperties:
        """Area, second moments, torsion constant and shear areas."""


class Section(AbstractSection):
    """A section by its properties; shear areas count for Timoshenko's theory alone."""

    area: Scalar = eqx.field(converter=si("m^2", above=0.0))
    I_y: Scalar = eqx.field(converter=si("m^4", above=0.0))
    I_z: Scalar = eqx.field(converter=si("m^4", above=0.0))
    torsion: Scalar = eqx.field(converter=si("m^4", above=0.0))
    shear_y: Scalar = eqx.field(converter=si("1", above=0.0), default=5 / 6)
    shear_z: Scalar = eqx.field(converter=si("1", above=0.0), default=5 / 6)

    def properties(self) -> SectionProperties:
        """Area, second moments, torsion constant and shear areas."""
        shear = self.shear_y * self.area, self.shear_z * self.area
        return SectionProperties(self.area, self.I_y, self.I_z, self.torsion, *shear)


class Rectangle(AbstractSection):
    r"""A solid rectangle, `width` along y and `height` along z.

    Torsion by the series of Saint-Venant, the same from both sides,

    $$J = \tfrac13 ab^3\Bigl(1 - \tfrac{192}{\pi^5}\tfrac ba
    \sum_{n\,odd} n^{-5}\tanh\tfrac{n\pi a}{2b}\Bigr) .$$
    """

    width: Scalar = eqx.field(converter=si("m", above=0.0))
    height: Scalar = eqx.field(converter=si("m", above=0.0))
    shear: Scalar = eqx.field(converter=si("1", above=0.0), default=5 / 6)

    def properties(self) -> SectionProperties:
        """Area, second moments, torsion constant and shear areas."""
        b, h = self.width, self.height
        area, n = b * h, jnp.asarray(np.arange(1.0, 60.0, 2.0))
        series = jnp.sum(jnp.tanh(n * (jnp.pi / 2) * h / b) / n**5.0)
        torsion = h * b**3 / 3 * (1 - 192 / jnp.pi**5 * b / h * series)
        shear = self.shear * area
        return SectionProperties(
            area, b * h**3 / 12, h * b**3 / 12, torsion, shear, shear
        )


class Hollow(AbstractSection):
    """A rectangular box of walls `wall` thick; torsion by Bredt, of the middle line."""

    width: Scalar = eqx.field(converter=si("m", above=0.0))
    height: Scalar = eqx.field(converter=si("m", above=0.0))
    wall: Scalar = eqx.field(converter=si("m", above=0.0))

    def __check_init__(self):
        sizes = self.width, self.height, self.wall
        if known(*sizes):
            thin = np.minimum(np.asarray(sizes[0]), np.asarray(sizes[1]))
            if np.any(2 * np.asarray(self.wall) >= thin):
                raise ValueError(
                    f"a hollow section of {float(thin):g} m has no room for two walls "
                    f"of {float(self.wall):g} m"
                )

    def properties(self) -> SectionProperties:
        """Area, second moments, torsion constant and shear areas."""
        b, h, t = self.width, self.height, self.wall
        c, d = b - 2 * t, h - 2 * t
        I_y, I_z = (b * h**3 - c * d**3) / 12, (h * b**3 - d * c**3) / 12
        torsion = 2 * t * ((b - t) * (h - t)) ** 2 / ((b - t) + (h - t))
        return SectionProperties(
            b * h - c * d, I_y, I_z, torsion, 2 * t * (b - t), 2 * t * (h - t)
        )


class Tube(AbstractSection):
    """A round tube by its outer `diameter` and its `wall`; a bar if `wall` is zero."""

    diameter: Scalar = eqx.field(converter=si("m", above=0.0))
    wall: Scalar = eqx.field(converter=si("m", at_least=0.0), default=0.0)

    def __check_init__(self):
        if known(self.diameter, self.wall):
            if np.any(2 * np.asarray(self.wall) >= np.asarray(self.diameter)):
                raise ValueError(
                    f"a tube of {float(self.diameter):g} m has no room for two walls "
                    f"of {float(self.wall):g} m"
                )

    def properties(self) -> SectionProperties:
        """Area, second moments, torsion constant and shear areas."""
        bar = self.wall <= 0
        inner = jnp.where(bar, 0.0, self.diameter - 2 * self.wall)
        area = jnp.pi / 4 * (self.diameter**2 - inner**2)
        second = jnp.pi / 64 * (self.diameter**4 - inner**4)
        shear = jnp.where(bar, 0.9, 0.5) * area
        return SectionProperties(area, second, second, 2 * second, shear, shear)
