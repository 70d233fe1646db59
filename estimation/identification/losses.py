r"""Loss functions: squares, and robust losses for measurements with outliers.

A loss turns a residual $r$ into $\tilde r$ with $\tilde r^2 = c^2\rho(r^2/c^2)$, so
that methods of least squares minimise $\tfrac12\sum c^2\rho$. Residuals are in standard
deviations, and so is the width $c$ up to which they are believed.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from djdyn.typing import Scalar, si


ResidualVector = Float[Array, " n"]


class AbstractLoss(eqx.Module):
    """A loss as a map from residuals to residuals."""

    @abc.abstractmethod
    def __call__(self, r: ResidualVector) -> ResidualVector:
        """Return residuals whose squares are the loss."""


class Squares(AbstractLoss):
    """Least squares, for normal noise."""

    def __call__(self, r: ResidualVector) -> ResidualVector:
        return r


class Huber(AbstractLoss):
    r"""Huber loss: quadratic up to `width`, linear beyond, $\rho = 2\sqrt z - 1$."""

    width: Scalar = eqx.field(converter=si("", above=0.0), default=1.345)

    def __call__(self, r: ResidualVector) -> ResidualVector:
        x = jnp.abs(r) / self.width
        far = jnp.sign(r) * self.width * jnp.sqrt(jnp.maximum(2 * x - 1, 1.0))
        return jnp.where(x > 1, far, r)


class SoftL1(AbstractLoss):
    r"""Smooth version of the Huber loss, $\rho = 2(\sqrt{1 + z} - 1)$."""

    width: Scalar = eqx.field(converter=si("", above=0.0), default=1.345)

    def __call__(self, r: ResidualVector) -> ResidualVector:
        z = (r / self.width) ** 2
        return r * jnp.sqrt(2 / (jnp.sqrt(1 + z) + 1))


class Cauchy(AbstractLoss):
    r"""Cauchy loss, in which outliers hardly count, $\rho = \ln(1 + z)$."""

    width: Scalar = eqx.field(converter=si("", above=0.0), default=2.385)

    def __call__(self, r: ResidualVector) -> ResidualVector:
        z = (r / self.width) ** 2
        near = z < 1e-8
        safe = jnp.where(near, 1.0, z)
        return r * jnp.where(near, 1 - z / 4, jnp.sqrt(jnp.log1p(safe) / safe))
