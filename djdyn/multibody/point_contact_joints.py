r"""Joints of a ball that touches a curved surface in one point: it rolls and slides.

The first coordinates say where the surface is touched, the others how the ball is
turned. The body's origin is the ball's centre, so the constraint holds identically:
nothing drifts, and both sides may pull on each other.
"""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..typing import Mat3, Scalar, check_values, known, si
from .joints import AbstractVectorJoint, Q, body_twist
from .spatial import Pose, rotation_x, rotation_y, rotation_z


class AbstractSurface(eqx.Module):
    """A surface that a ball touches from one side."""

    def __check_init__(self):
        check_values(self)

    @abc.abstractmethod
    def contact(self, u: Float[Array, " k"]) -> Pose:
        """`X_JA` of the point A with the coordinates `u`.

        Its x axis is the normal, out of the ball.
        """

    @abc.abstractmethod
    def tightest(self) -> Scalar:
        """The radius that a ball must not reach."""


class HollowSphere(AbstractSurface):
    """The inside of a sphere around J: turned by `u[0]` about z, then `u[1]` about y.

    Singular where the second is ninety degrees.
    """

    radius: Scalar = eqx.field(converter=si("m", above=0.0))

    def contact(self, u: Float[Array, " k"]) -> Pose:
        R_JA = rotation_z(u[0]) @ rotation_y(u[1])
        return Pose(R_JA, self.radius * R_JA[:, 0])

    def tightest(self) -> Scalar:
        return self.radius


class HollowCircle(AbstractSurface):
    """The inside of a circle around J in its xy plane: turned by `u[0]` about z."""

    radius: Scalar = eqx.field(converter=si("m", above=0.0))

    def contact(self, u: Float[Array, " k"]) -> Pose:
        R_JA = rotation_z(u[0])
        return Pose(R_JA, self.radius * R_JA[:, 0])

    def tightest(self) -> Scalar:
        return self.radius


class AbstractPointContact(AbstractVectorJoint):
    """A ball of `radius` on a surface."""

    on_surface: eqx.AbstractClassVar[int]  # coordinates of the point that is touched
    surface: eqx.AbstractVar[AbstractSurface]
    radius: eqx.AbstractVar[Scalar]

    def __check_init__(self):
        check_values(self)
        most = self.surface.tightest()
        if known(self.radius, most) and np.any(self.radius >= most):
            raise ValueError(
                f"a ball of {float(self.radius):g} m does not fit a surface of "
                f"{float(most):g} m"
            )

    @abc.abstractmethod
    def turn(self, angles: Float[Array, " m"]) -> Mat3:
        """`R_AM` of the ball, seen from the surface."""

    def contact(self, q: Q) -> Pose:
        """`X_JA` of the point of contact; its x axis is the normal, out of the ball."""
        return self.surface.contact(q[: self.on_surface])

    def pose(self, q: Q, t: Scalar) -> Pose:
        del t
        X_JA, R_AM = self.contact(q), self.turn(q[self.on_surface :])
        return Pose(X_JA.R @ R_AM, X_JA.p - self.radius * X_JA.R[:, 0])

    def subspace(self, q: Q) -> Float[Array, "nv 6"]:
        place = lambda q: self.pose(q, jnp.zeros((), q.dtype))
        along = lambda dq: body_twist(*jax.jvp(place, (q,), (dq,)))
        return jax.vmap(along)(jnp.eye(self.nv, dtype=q.dtype))


class PointContact(AbstractPointContact):
    r"""Five freedoms: two on the surface, then $R_z R_y R_x$ of three angles.

    In a hollow sphere the whole turn is $R_z R_y R_z R_y R_x$. Singular where the
    fourth angle is ninety degrees.
    """

    nq: ClassVar[int] = 5
    nv: ClassVar[int] = 5
    on_surface: ClassVar[int] = 2
    surface: AbstractSurface
    radius: Scalar = eqx.field(converter=si("m", above=0.0))

    def turn(self, angles: Float[Array, " m"]) -> Mat3:
        z, y, x = angles
        return rotation_z(z) @ rotation_y(y) @ rotation_x(x)


class PlanarPointContact(AbstractPointContact):
    """Two freedoms, of a disc in a plane: where it touches, and its turn about z."""

    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    on_surface: ClassVar[int] = 1
    surface: AbstractSurface
    radius: Scalar = eqx.field(converter=si("m", above=0.0))

    def turn(self, angles: Float[Array, " m"]) -> Mat3:
        return rotation_z(angles[0])
