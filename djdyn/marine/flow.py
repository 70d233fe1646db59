"""What surrounds bodies and lines: a medium with density and velocity."""

import abc

import equinox as eqx

from ..typing import Scalar, Vec3


class AbstractFlow(eqx.Module):
    """Water or air, as drag feels it."""

    @property
    @abc.abstractmethod
    def reference_density(self) -> Scalar:
        """Density for which coefficients without one are meant, kg/m^3."""

    @abc.abstractmethod
    def around(self, p_W: Vec3, extent: Scalar | None, t: Scalar) -> Scalar:
        """Mean density around a sphere of this diameter at a time."""

    @abc.abstractmethod
    def velocity(self, p_W: Vec3, t: Scalar) -> Vec3:
        """The velocity of the medium at a point."""
