r"""Joint types, one class each.

A joint hangs a moving frame M on a fixed frame J of the parent. Its coordinates `q`
place M, `X_JM`; its speeds `v` move it, with the twist of M at M's origin in M's axes

$$V_{JM} = S(q)\,v, \qquad \dot q = N(q)\,v .$$
"""

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..smooth import norm
from ..typing import Numbers, Scalar, Vec3, Vec6, known
from .spatial import (
    Pose,
    identity_pose,
    quat_rate,
    quat_to_rotation,
    rotation_about,
    rotation_rpy,
    rotation_z,
)


Q = Float[Array, " nq"]
V = Float[Array, " nv"]


def unit_vector(axis: Numbers | Sequence[Any]) -> Vec3:
    """Converter of an axis: any length but zero is taken, unit length is kept."""
    axis = jnp.asarray(axis, dtype=float)
    if axis.shape != (3,):
        raise ValueError(f"a joint's axis has three components, not shape {axis.shape}")
    if known(axis) and not np.any(axis):
        raise ValueError("a joint's axis must not be zero")
    return axis / norm(axis)


class AbstractJoint(eqx.Module):
    """Coordinates `q` place the child, speeds `v` move it."""

    nq: eqx.AbstractClassVar[int]
    nv: eqx.AbstractClassVar[int]

    @abc.abstractmethod
    def q0(self) -> Q:
        """Coordinates of the undisplaced joint."""

    @abc.abstractmethod
    def q_dot(self, q: Q, v: V) -> Q:
        """The kinematic differential equation."""

    @abc.abstractmethod
    def pose(self, q: Q, t: Scalar) -> Pose:
        """`X_JM`; only a prescribed joint looks at the time."""

    @abc.abstractmethod
    def subspace(self, q: Q) -> Float[Array, "nv 6"]:
        """The twist of M, in M's axes, per unit of each speed."""


class AbstractVectorJoint(AbstractJoint):
    """A joint whose speeds are the rates of its coordinates."""

    def q_dot(self, q: Q, v: V) -> Q:
        del q
        return v

    def q0(self) -> Q:
        return jnp.zeros(self.nq)


class Fixed(AbstractVectorJoint):
    """No freedom."""

    nq: ClassVar[int] = 0
    nv: ClassVar[int] = 0

    def pose(self, q: Q, t: Scalar) -> Pose:
        del q, t
        return identity_pose()

    def subspace(self, q: Q) -> Float[Array, "nv 6"]:
        del q
        return jnp.zeros((0, 6))


class Prescribed(AbstractVectorJoint):
    """A motion given as a function of time: a ship's deck, a shaker, a driven joint.

    Only the pose is stated; twist and acceleration are its exact derivatives.
    """

    nq: ClassVar[int] = 0
    nv: ClassVar[int] = 0
    motion: Callable[[Scalar], Pose]

    def pose(self, q: Q, t: Scalar) -> Pose:
        del q
        return self.motion(t)

    def subspace(self, q: Q) -> Float[Array, "nv 6"]:
        del q
        return jnp.zeros((0, 6))


class Revolute(AbstractVectorJoint):
    """Turns about `axis`."""

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    axis: Vec3 = eqx.field(converter=unit_vector, default=(0.0, 0.0, 1.0))

    def pose(self, q: Q, t: Scalar) -> Pose:
        del t
        return Pose(rotation_about(self.axis, q[0]), jnp.zeros(3))

    def subspace(self, q: Q) -> Float[Array, "nv 6"]:
        del q
        return jnp.concatenate([self.axis, jnp.zeros(3)])[None]


class Prismatic(AbstractVectorJoint):
    """Slides along `axis`."""

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    axis: Vec3 = eqx.field(converter=unit_vector, default=(0.0, 0.0, 1.0))

    def pose(self, q: Q, t: Scalar) -> Pose:
        del t
        return Pose(jnp.eye(3), q[0] * self.axis)

    def subspace(self, q: Q) -> Float[Array, "nv 6"]:
        del q
        return jnp.concatenate([jnp.zeros(3), self.axis])[None]


class Cylindrical(AbstractVectorJoint):
    """Turns about and slides along `axis`: `q = (angle, displacement)`."""

    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    axis: Vec3 = eqx.field(converter=unit_vector, default=(0.0, 0.0, 1.0))

    def pose(self, q: Q, t: Scalar) -> Pose:
        del t
        return Pose(rotation_about(self.axis, q[0]), q[1] * self.axis)

    def subspace(self, q: Q) -> Float[Array, "nv 6"]:
        del q
        zero = jnp.zeros(3)
        turn, slide = (
            jnp.concatenate([self.axis, zero]),
            jnp.concatenate([zero, self.axis]),
        )
        return jnp.stack([turn, slide])


class Cartesian(AbstractVectorJoint):
    """Slides along the parent's three axes and does not turn: `q = (x, y, z)`."""

    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3

    def pose(self, q: Q, t: Scalar) -> Pose:
        del t
        return Pose(jnp.eye(3, dtype=q.dtype), q)

    def subspace(self, q: Q) -> Float[Array, "nv 6"]:
        return jnp.eye(6, dtype=q.dtype)[3:]


class Universal(AbstractVectorJoint):
    """Turns about `first`, fixed in the parent, then `second`, fixed in the child."""

    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    first: Vec3 = eqx.field(converter=unit_vector, default=(1.0, 0.0, 0.0))
    second: Vec3 = eqx.field(converter=unit_vector, default=(0.0, 1.0, 0.0))

    def pose(self, q: Q, t: Scalar) -> Pose:
        del t
        R_JM = rotation_about(self.first, q[0]) @ rotation_about(self.second, q[1])
        return Pose(R_JM, jnp.zeros(3))

    def subspace(self, q: Q) -> Float[Array, "nv 6"]:
        first_M = self.first @ rotation_about(self.second, q[1])
        zero = jnp.zeros(3)
        return jnp.stack(
            [jnp.concatenate([first_M, zero]), jnp.concatenate([self.second, zero])]
        )


class RollPitchYaw(AbstractVectorJoint):
    r"""A ship on a pivot: `q = (roll, pitch, yaw)` with $R = R_z R_y R_x$.

    Its speeds are the angles' rates, so springs on the angles are conservative.
    Singular at a pitch of ninety degrees; use `Spherical` there.
    """

    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3

    def pose(self, q: Q, t: Scalar) -> Pose:
        del t
        return Pose(rotation_rpy(q[0], q[1], q[2]), jnp.zeros(3))

    def subspace(self, q: Q) -> Float[Array, "nv 6"]:
        s1, c1, s2, c2 = jnp.sin(q[0]), jnp.cos(q[0]), jnp.sin(q[1]), jnp.cos(q[1])
        o, one = jnp.zeros_like(s1), jnp.ones_like(s1)
        w = [[one, o, o], [o, c1, -s1], [-s2, s1 * c2, c1 * c2]]
        return jnp.pad(jnp.stack([jnp.stack(row) for row in w]), ((0, 0), (0, 3)))


class Spherical(AbstractJoint):
    """A ball joint: `q` the quaternion `q_JM`, `v = w_JM_M`."""

    nq: ClassVar[int] = 4
    nv: ClassVar[int] = 3

    def q0(self) -> Q:
        return jnp.array([1.0, 0.0, 0.0, 0.0])

    def q_dot(self, q: Q, v: V) -> Q:
        return quat_rate(q, v)

    def pose(self, q: Q, t: Scalar) -> Pose:
        del t
        return Pose(quat_to_rotation(q), jnp.zeros(3))

    def subspace(self, q: Q) -> Float[Array, "nv 6"]:
        del q
        return jnp.eye(3, 6)


class Planar(AbstractVectorJoint):
    """Slides in the parent's xy plane and turns about z: `q = (x, y, angle)`."""

    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3

    def pose(self, q: Q, t: Scalar) -> Pose:
        del t
        return Pose(rotation_z(q[2]), jnp.stack([q[0], q[1], jnp.zeros_like(q[0])]))

    def subspace(self, q: Q) -> Float[Array, "nv 6"]:
        s, c, o = jnp.sin(q[2]), jnp.cos(q[2]), jnp.zeros_like(q[2])
        slide_x = jnp.stack([o, o, o, c, -s, o])
        slide_y = jnp.stack([o, o, o, s, c, o])
        return jnp.stack([slide_x, slide_y, jnp.eye(6)[2]])


class Free(AbstractJoint):
    """Six degrees of freedom: `q = (p_JM, q_JM)`, `v = (w_JM_M, v_JM)`.

    The angular velocity is in the body's axes, the linear one in the parent's.
    """

    nq: ClassVar[int] = 7
    nv: ClassVar[int] = 6

    def q0(self) -> Q:
        return jnp.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])

    def q_dot(self, q: Q, v: V) -> Q:
        return jnp.concatenate([v[3:], quat_rate(q[3:], v[:3])])

    def pose(self, q: Q, t: Scalar) -> Pose:
        del t
        return Pose(quat_to_rotation(q[3:]), q[:3])

    def subspace(self, q: Q) -> Float[Array, "nv 6"]:
        R_JM = quat_to_rotation(q[3:])
        zero = jnp.zeros_like(R_JM)
        return jnp.block([[jnp.eye(3), zero], [zero, R_JM]])


def drift(joint: AbstractJoint, q: Q, v: V) -> Vec6:
    r"""$\dot S v$: what the twist's components gain while the speeds are constant."""
    _, S_dot = jax.jvp(joint.subspace, (q,), (joint.q_dot(q, v),))
    return v @ S_dot


def body_twist(X: Pose, X_dot: Pose) -> Vec6:
    """The twist of a frame, in its own axes, from its pose and the pose's rate."""
    W = X.R.T @ X_dot.R
    w = 0.5 * jnp.stack([W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]])
    return jnp.concatenate([w, X.R.T @ X_dot.p])


def prescribed_motion(joint: Prescribed, t: Scalar) -> tuple[Pose, Vec6, Vec6]:
    """Pose, twist in M's axes at M, and the rate of the twist's components."""

    def pose_and_twist(t: Scalar) -> tuple[Pose, Vec6]:
        X, X_dot = jax.jvp(joint.motion, (t,), (jnp.ones_like(t),))
        return X, body_twist(X, X_dot)

    (X, twist), (_, rate) = jax.jvp(pose_and_twist, (t,), (jnp.ones_like(t),))
    return X, twist, rate
