"""Transforms that keep a parameter in its domain, whatever an optimiser tries."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class AbstractTransform(eqx.Module):
    """A smooth, invertible map from all of R^n onto a domain."""

    @abc.abstractmethod
    def constrain(self, theta: Array) -> Any:
        """From the unconstrained number to the parameter."""

    @abc.abstractmethod
    def unconstrain(self, value: Any) -> Array:
        """From the parameter to the unconstrained number."""


class Unbounded(AbstractTransform):
    """Any number."""

    def constrain(self, theta: Array) -> Array:
        return theta

    def unconstrain(self, value: Array) -> Array:
        return value


class Positive(AbstractTransform):
    """A positive number, by its logarithm."""

    def constrain(self, theta: Array) -> Array:
        return jnp.exp(theta)

    def unconstrain(self, value: Array) -> Array:
        return jnp.log(value)


class Sigmoid(AbstractTransform):
    """A number between `low` and `high`, by the logistic function."""

    low: Float[Array, "..."] = eqx.field(converter=jnp.asarray)
    high: Float[Array, "..."] = eqx.field(converter=jnp.asarray)

    def constrain(self, theta: Array) -> Array:
        return self.low + (self.high - self.low) * jax.nn.sigmoid(theta)

    def unconstrain(self, value: Array) -> Array:
        x = (value - self.low) / (self.high - self.low)
        return jnp.log(x) - jnp.log1p(-x)


class Box(AbstractTransform):
    """A number from `low` to `high` that may reach both, for searches that keep bounds.

    For gains that may well be best at a bound. By the logistic function of `Sigmoid` a
    bound is infinitely far, and a step that goes too near it is not taken back. For
    searches that know no bounds what lies beyond is as good as what lies on them.
    """

    low: Float[Array, "..."] = eqx.field(converter=jnp.asarray)
    high: Float[Array, "..."] = eqx.field(converter=jnp.asarray)

    def constrain(self, theta: Array) -> Array:
        # Not `clip`, which has half a slope on its bounds.
        above = jnp.where(theta < self.low, self.low, theta)
        return jnp.where(above > self.high, self.high, above)

    def unconstrain(self, value: Array) -> Array:
        return jnp.where((self.low <= value) & (value <= self.high), value, jnp.nan)


def bounds_of(transform: AbstractTransform) -> tuple[Array, Array]:
    """Bounds of the unconstrained number; infinite unless a search keeps them."""
    if isinstance(transform, Box):
        return transform.low, transform.high
    return jnp.array(-jnp.inf), jnp.array(jnp.inf)


class PositiveDefinite(AbstractTransform):
    """A symmetric positive definite matrix, by its Cholesky factor's logarithms."""

    def constrain(self, theta: Float[Array, "n n"]) -> Float[Array, "n n"]:
        L = jnp.tril(theta, -1) + jnp.diag(jnp.exp(jnp.diagonal(theta)))
        return L @ L.T

    def unconstrain(self, value: Float[Array, "n n"]) -> Float[Array, "n n"]:
        L = jnp.linalg.cholesky(value)
        return jnp.tril(L, -1) + jnp.diag(jnp.log(jnp.diagonal(L)))


class Direction(AbstractTransform):
    """A unit vector."""

    def constrain(self, theta: Float[Array, " n"]) -> Float[Array, " n"]:
        return theta / jnp.sqrt(theta @ theta)

    def unconstrain(self, value: Float[Array, " n"]) -> Float[Array, " n"]:
        return value


class PhysicalInertia(AbstractTransform):
    r"""Mass, centre and inertia of a body, as some distribution of mass has them.

    For `FreeParameter("boom", PhysicalInertia())`, a body and not one number. The ten
    unconstrained numbers are the logarithmic Cholesky factor of the pseudo-inertia
    $\begin{bmatrix}\Sigma & h\\ h^\top & m\end{bmatrix}$,
    $\Sigma = \tfrac12\operatorname{tr}(I)1 - I$ about the origin, which is positive
    definite just for physical bodies (Rucker and Wensing, *Smooth parameterization of
    rigid-body inertia*, 2022).
    """

    def constrain(self, theta: Float[Array, "10"]) -> dict[str, Array]:
        factor = jnp.zeros((4, 4)).at[jnp.tril_indices(4)].set(theta)
        P = PositiveDefinite().constrain(factor)
        mass, c = P[3, 3], P[:3, 3] / P[3, 3]
        second = P[:3, :3] - mass * jnp.outer(c, c)
        inertia = jnp.trace(second) * jnp.eye(3) - second
        return {"mass": mass, "p_BC": c, "I_BC": inertia}

    def unconstrain(self, value: Any) -> Float[Array, "10"]:
        mass, c, inertia = value["mass"], value["p_BC"], value["I_BC"]
        second = 0.5 * jnp.trace(inertia) * jnp.eye(3) - inertia
        second = second + mass * jnp.outer(c, c)
        h = (mass * c)[:, None]
        P = jnp.block([[second, h], [h.T, mass[None, None]]])
        return PositiveDefinite().unconstrain(P)[jnp.tril_indices(4)]
