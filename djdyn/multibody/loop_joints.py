r"""What a joint that closes a loop asks of the relative pose of two frames.

With $X_{AB}$ the pose of frame B in frame A, a joint has residuals $r(X_{AB}, t) = 0$
of a well-conditioned number: five for a hinge, three for a ball joint. A joint that
rolls has rows in the relative twist too, $s(X_{AB})V_{AB} = 0$. Derivatives come from
these functions, so a joint of one's own states its residual and nothing else.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..smooth import norm
from ..typing import Mat3, Scalar, Vec3, Vec6, check_values, si
from .joints import (
    AbstractJoint,
    Cartesian,
    Cylindrical,
    Fixed,
    Planar,
    Prescribed,
    Prismatic,
    Revolute,
    RollPitchYaw,
    Spherical,
    Universal,
    unit_vector,
)
from .spatial import Pose, cross


Residual = Float[Array, " m"]


class AbstractLoopJoint(eqx.Module):
    """A joint that only closes loops: it has residuals, and no coordinates."""

    @abc.abstractmethod
    def residual(self, X_AB: Pose, t: Scalar) -> Residual:
        """What is zero when the joint holds; smooth, of full rank."""

    @abc.abstractmethod
    def slip(self, X_AB: Pose, V_AB: Vec6) -> Residual:
        """What is zero beside the residual's rate, linear in the twist `[w; v]` of B.

        The twist is taken at B's origin in A's axes. Empty unless something rolls.
        """


class PointOnLine(AbstractLoopJoint):
    """B's origin stays on the line through A's origin along `axis`; B may turn."""

    axis: Vec3 = eqx.field(converter=unit_vector, default=(1.0, 0.0, 0.0))

    def residual(self, X_AB: Pose, t: Scalar) -> Residual:
        del t
        return perpendiculars(self.axis) @ X_AB.p

    def slip(self, X_AB: Pose, V_AB: Vec6) -> Residual:
        del X_AB
        return V_AB[:0]


class PointOnPlane(AbstractLoopJoint):
    """B's origin stays in the plane through A's origin with this `normal`."""

    normal: Vec3 = eqx.field(converter=unit_vector, default=(0.0, 0.0, 1.0))

    def residual(self, X_AB: Pose, t: Scalar) -> Residual:
        del t
        return (self.normal @ X_AB.p)[None]

    def slip(self, X_AB: Pose, V_AB: Vec6) -> Residual:
        del X_AB
        return V_AB[:0]


class PointOnSurface(AbstractLoopJoint):
    r"""B's origin stays on a surface fixed to A, where `surface(p) = 0`.

    The residual is $f/|\nabla f|$, a distance, so any smooth $f$ will do.
    """

    surface: Callable[[Vec3], Scalar]

    def residual(self, X_AB: Pose, t: Scalar) -> Residual:
        del t
        value, slope = jax.value_and_grad(self.surface)(X_AB.p)
        return (value / norm(slope))[None]

    def slip(self, X_AB: Pose, V_AB: Vec6) -> Residual:
        del X_AB
        return V_AB[:0]


class Distance(AbstractLoopJoint):
    r"""A massless rod: the origins of A and B stay `length` apart.

    `extension`, a function of time (m), lengthens it. The residual is
    $(p\cdot p - L^2)/2L$.
    """

    length: Scalar = eqx.field(converter=si("m", above=0.0))
    extension: Callable[[Scalar], Scalar] | None = None

    def __check_init__(self):
        check_values(self)

    def residual(self, X_AB: Pose, t: Scalar) -> Residual:
        L = self.length if self.extension is None else self.length + self.extension(t)
        return ((X_AB.p @ X_AB.p - L * L) / (2 * L))[None]

    def slip(self, X_AB: Pose, V_AB: Vec6) -> Residual:
        del X_AB
        return V_AB[:0]


class RollingDisc(AbstractLoopJoint):
    r"""A thin wheel B that rolls without slip on A's plane z = 0.

    `axle` is fixed to B through the wheel's centre. The residual is the height of the
    rim's lowest point; two rows say that the wheel's material there does not move
    along the plane. Singular for a wheel that lies flat.
    """

    radius: Scalar = eqx.field(converter=si("m", above=0.0))
    axle: Vec3 = eqx.field(converter=unit_vector, default=(0.0, 1.0, 0.0))

    def __check_init__(self):
        check_values(self)

    def arm(self, X_AB: Pose) -> Vec3:
        """From the centre to the rim's lowest point, in A's axes."""
        axle = X_AB.R @ self.axle
        down = axle * axle[2] - jnp.array([0.0, 0.0, 1.0], axle.dtype)
        return self.radius * down / norm(down)

    def residual(self, X_AB: Pose, t: Scalar) -> Residual:
        del t
        return (X_AB.p + self.arm(X_AB))[2:]

    def slip(self, X_AB: Pose, V_AB: Vec6) -> Residual:
        return (V_AB[3:] + cross(V_AB[:3], self.arm(X_AB)))[:2]


LoopJoint = AbstractJoint | AbstractLoopJoint


def perpendiculars(axis: Vec3) -> Float[Array, "2 3"]:
    """Return two unit vectors at right angles to a unit vector and to each other.

    Smooth but for a jump where the third component changes sign (Duff et al.,
    *Building an orthonormal basis, revisited*, 2017).
    """
    x, y, z = axis
    s = jnp.where(z < 0, -1.0, 1.0)
    a = -1 / (s + z)
    b = x * y * a
    first = jnp.stack([1 + s * x * x * a, s * b, -s * x])
    return jnp.stack([first, jnp.stack([b, s + y * y * a, -y])])


def turn(R: Mat3) -> Float[Array, "3"]:
    """Return the sine of a small rotation's angle times its axis."""
    W = 0.5 * (R - R.T)
    return jnp.stack([W[2, 1], W[0, 2], W[1, 0]])


def residual(joint: LoopJoint, X_AB: Pose, t: Scalar) -> Residual:
    """Return what is zero where the joint holds."""
    R, p = X_AB.R, X_AB.p
    match joint:
        case AbstractLoopJoint():
            return joint.residual(X_AB, t)
        case Fixed():
            return jnp.concatenate([p, turn(R)])
        case Prescribed():
            X = joint.motion(t).inverse @ X_AB
            return jnp.concatenate([X.p, turn(X.R)])
        case Spherical() | RollPitchYaw():
            return p
        case Cartesian():
            return turn(R)
        case Planar():
            return jnp.stack([p[2], R[0, 2], R[1, 2]])
        case Universal():
            skewed = joint.first @ R @ joint.second - joint.first @ joint.second
            return jnp.append(p, skewed)
        case Revolute():
            return jnp.concatenate([p, perpendiculars(joint.axis) @ R @ joint.axis])
        case Prismatic():
            return jnp.concatenate([perpendiculars(joint.axis) @ p, turn(R)])
        case Cylindrical():
            across = perpendiculars(joint.axis)
            return jnp.concatenate([across @ p, across @ R @ joint.axis])
    raise ValueError(f"a {type(joint).__name__} joint cannot close a loop")


def slip(joint: LoopJoint, X_AB: Pose, V_AB: Vec6) -> Residual:
    """Return what else is zero, in speeds, where the joint holds."""
    if isinstance(joint, AbstractLoopJoint):
        return joint.slip(X_AB, V_AB)
    return V_AB[:0]


def count_rows(joint: LoopJoint) -> tuple[int, int]:
    """Return how many residuals a joint has, and how many further rows in speeds."""

    def rows(joint: Any) -> tuple[Array, Array]:
        still = Pose(jnp.eye(3), jnp.zeros(3))
        now, V = jnp.zeros(()), jnp.zeros(6)
        return residual(joint, still, now), slip(joint, still, V)

    found = eqx.filter_eval_shape(rows, joint)
    return found[0].shape[0], found[1].shape[0]
