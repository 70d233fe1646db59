r"""Surfaces of changing curvature, on which the ball of a point contact rolls.

Each gives a place $p(u)$ for two coordinates. Its normal follows from the tangents
$\partial p/\partial u_0$, along which the frame of the contact has its y axis, and
$\partial p/\partial u_1$.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..smooth import norm
from ..typing import Scalar, Vec3, known, si
from .point_contact_joints import AbstractSurface
from .spatial import Pose, cross


U = Float[Array, "2"]


class AbstractParametricSurface(AbstractSurface):
    """A surface that gives a place for two coordinates."""

    @abc.abstractmethod
    def place(self, u: U) -> Vec3:
        """`p_JA` of the point with the coordinates `u`."""

    @abc.abstractmethod
    def side(self) -> float:
        """One if the cross product of both tangents points out of the ball, else -1."""

    def contact(self, u: Float[Array, " k"]) -> Pose:
        along = jax.jacfwd(self.place)(u)
        normal = self.side() * cross(along[:, 0], along[:, 1])
        x, y = normal / norm(normal), along[:, 0] / norm(along[:, 0])
        return Pose(jnp.stack([x, y, cross(x, y)], -1), self.place(u))


class Ellipsoid(AbstractParametricSurface):
    r"""An ellipsoid around J, $p = \mathrm{diag}(r)\,R_z(u_0)R_y(u_1)\,e_x$.

    Singular where the second coordinate is ninety degrees. The ball is inside, or
    outside if not `hollow`.
    """

    radii: Vec3 = eqx.field(converter=si("m", above=0.0))
    hollow: bool = eqx.field(static=True, default=True)

    def place(self, u: U) -> Vec3:
        c = jnp.cos(u[1])
        e = jnp.stack([jnp.cos(u[0]) * c, jnp.sin(u[0]) * c, -jnp.sin(u[1])])
        return self.radii * e

    def side(self) -> float:
        return -1.0 if self.hollow else 1.0

    def tightest(self) -> Scalar:
        if not self.hollow:
            return jnp.asarray(jnp.inf)
        return jnp.min(self.radii) ** 2 / jnp.max(self.radii)


class Torus(AbstractParametricSurface):
    """A torus about the z axis of J: `u[0]` runs around it, `u[1]` around its tube.

    Both are zero at its outermost point on the x axis. The ball is inside of the tube,
    or outside if not `hollow`.
    """

    radius: Scalar = eqx.field(converter=si("m", above=0.0))  # to the tube's middle
    tube: Scalar = eqx.field(converter=si("m", above=0.0))
    hollow: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        if known(self.radius, self.tube) and np.any(self.tube >= self.radius):
            raise ValueError(
                f"a torus' tube of {float(self.tube):g} m must be thinner than its "
                f"radius of {float(self.radius):g} m"
            )

    def place(self, u: U) -> Vec3:
        out = self.radius + self.tube * jnp.cos(u[1])
        z = self.tube * jnp.sin(u[1])
        return jnp.stack([out * jnp.cos(u[0]), out * jnp.sin(u[0]), z])

    def side(self) -> float:
        return 1.0 if self.hollow else -1.0

    def tightest(self) -> Scalar:
        return self.tube if self.hollow else self.radius - self.tube


class PolynomialHeight(eqx.Module):
    r"""The function $h(u) = \sum_{ij} c_{ij}\,u_0^i\,u_1^j$ of two coordinates, m."""

    coefficients: Float[Array, "i j"] = eqx.field(converter=si("m"))

    def __call__(self, u: U) -> Scalar:
        rows, columns = self.coefficients.shape
        powers = lambda x, n: jnp.stack([x**k for k in range(n)])
        return powers(u[0], rows) @ self.coefficients @ powers(u[1], columns)


class HeightSurface(AbstractParametricSurface):
    """A surface whose height over the xy plane of J is a function of both coordinates.

    The ball lies above it. `height` takes `[x, y]`, m, to a height, m: a module or a
    function of a module's level. How tight its hollows are is for the user to know.
    """

    height: Callable[[U], Scalar]

    def place(self, u: U) -> Vec3:
        return jnp.stack([u[0], u[1], self.height(u)])

    def side(self) -> float:
        return -1.0

    def tightest(self) -> Scalar:
        return jnp.asarray(jnp.inf)
