r"""Rotations, quaternions, poses, twists, wrenches and 6x6 inertias.

Spatial vectors are angular first: a twist is $[\omega; v]$, a wrench $[\tau; f]$.
Quaternions are `w, x, y, z` and need not be of unit length: they are read as the
rotation they point at, so the drift of an integrator never makes a rotation a stretch.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..typing import Mat3, Mat6, Numbers, Quat, Scalar, Vec3, Vec6, si


def cross(a: Float[Array, "... 3"], b: Float[Array, "... 3"]) -> Float[Array, "... 3"]:
    """Cross product over the last axis, written out: it fuses, `jnp.cross` does not."""
    a0, a1, a2 = a[..., 0], a[..., 1], a[..., 2]
    b0, b1, b2 = b[..., 0], b[..., 1], b[..., 2]
    return jnp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], -1)


def skew(a: Float[Array, "... 3"]) -> Float[Array, "... 3 3"]:
    r"""$\hat a$ with $\hat a b = a\times b$."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    o = jnp.zeros_like(x)
    rows = [jnp.stack(r, -1) for r in ((o, -z, y), (z, o, -x), (-y, x, o))]
    return jnp.stack(rows, -2)


def mirror(M: Float[Array, "*n k k"]) -> Float[Array, "*n k k"]:
    """A symmetric matrix from its upper half: who takes only what is needed of it,
    need not work out the other, forward or backward.
    """
    upper = np.triu(np.ones(M.shape[-2:], bool))
    return jnp.where(upper, M, jnp.swapaxes(M, -1, -2))


def rotation_x(angle: Scalar) -> Mat3:
    """Rotation about x."""
    return rotation_about(jnp.array([1.0, 0.0, 0.0]), angle)


def rotation_y(angle: Scalar) -> Mat3:
    """Rotation about y."""
    return rotation_about(jnp.array([0.0, 1.0, 0.0]), angle)


def rotation_z(angle: Scalar) -> Mat3:
    """Rotation about z."""
    return rotation_about(jnp.array([0.0, 0.0, 1.0]), angle)


def rotation_about(axis: Vec3, angle: Scalar) -> Mat3:
    r"""Rodrigues' formula $I + \sin\theta\,\hat e + (1-\cos\theta)\,\hat e^2$."""
    s, c = jnp.sin(angle), jnp.cos(angle)
    return (
        c * jnp.eye(3, dtype=axis.dtype)
        + s * skew(axis)
        + (1 - c) * (axis[:, None] * axis[None, :])
    )


def turned(R: Mat3, axis: Vec3, angle: Scalar) -> Mat3:
    """`R @ rotation_about(axis, angle)`, with all that does not turn worked out apart:
    it is the same at every angle.
    """
    along = (R @ axis)[:, None] * axis[None]
    return along + jnp.cos(angle) * (R - along) + jnp.sin(angle) * (R @ skew(axis))


def rotation_rpy(roll: Scalar, pitch: Scalar, yaw: Scalar) -> Mat3:
    r"""$R_z(\psi)R_y(\theta)R_x(\phi)$, the roll, pitch and yaw of a ship."""
    (sr, cr), (sp, cp), (sy, cy) = (
        (jnp.sin(a), jnp.cos(a)) for a in (roll, pitch, yaw)
    )
    return jnp.stack(
        [
            jnp.stack([cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr]),
            jnp.stack([sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr]),
            jnp.stack([-sp, cp * sr, cp * cr]),
        ]
    )


def quat_multiply(a: Quat, b: Quat) -> Quat:
    """The rotation `b` followed by `a`."""
    w = a[0] * b[0] - a[1:] @ b[1:]
    return jnp.concatenate([w[None], a[0] * b[1:] + b[0] * a[1:] + cross(a[1:], b[1:])])


def quat_to_rotation(q: Quat) -> Mat3:
    """Rotation matrix of the direction of `q`; smooth everywhere but at `q = 0`."""
    w, x, y, z = q / jnp.sqrt(q @ q)
    return jnp.stack(
        [
            jnp.stack(
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)]
            ),
            jnp.stack(
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)]
            ),
            jnp.stack(
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
            ),
        ]
    )


def quat_from_rotation(R: Mat3) -> Quat:
    """Unit quaternion with the same rotation, from the largest of its four components.

    Each candidate is safe where it is the one chosen (Shepperd, *Quaternion from
    rotation matrix*, 1978), so the gradient is finite at every rotation.
    """
    d = jnp.stack([R[0, 0], R[1, 1], R[2, 2]])  # kernels know no `diagonal`
    t = jnp.sum(d)
    size = jnp.stack([t, d[0], d[1], d[2]])  # the largest says which one to divide by
    a, b, c = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    p, q, r = R[1, 0] + R[0, 1], R[0, 2] + R[2, 0], R[2, 1] + R[1, 2]
    candidates = jnp.stack(
        [
            jnp.stack([1 + t, a, b, c]),
            jnp.stack([a, 1 + 2 * d[0] - t, p, q]),
            jnp.stack([b, p, 1 + 2 * d[1] - t, r]),
            jnp.stack([c, q, r, 1 + 2 * d[2] - t]),
        ]
    )
    chosen = candidates[jnp.argmax(size)]
    return chosen / jnp.sqrt(chosen @ chosen)


def quat_rate(q_AB: Quat, w_AB_B: Vec3) -> Quat:
    r"""$\dot q = \tfrac12\, q\otimes[0;\omega]$, the angular velocity in B's axes."""
    return 0.5 * quat_multiply(
        q_AB, jnp.concatenate([jnp.zeros_like(w_AB_B[:1]), w_AB_B])
    )


def quat_exp(rotation_vector: Vec3) -> Quat:
    """Unit quaternion of a rotation vector; smooth at zero."""
    half = 0.5 * rotation_vector
    square = half @ half
    small = square < 1e-8
    angle = jnp.sqrt(jnp.where(small, 1.0, square))
    sinc = jnp.where(small, 1 - square / 6, jnp.sin(angle) / angle)
    cosine = jnp.where(small, 1 - square / 2, jnp.cos(angle))
    return jnp.concatenate([cosine[None], sinc * half])


def quat_log(q: Quat) -> Vec3:
    """Rotation vector of a quaternion, of length at most pi; smooth at zero."""
    q = q * jnp.where(q[0] < 0, -1.0, 1.0)
    square = q[1:] @ q[1:]
    small = square < 1e-8 * q[0] ** 2
    length = jnp.sqrt(jnp.where(small, 1.0, square))
    ratio = jnp.where(
        small,
        2 / jnp.where(small, q[0], 1.0),
        2 * jnp.arctan2(length, jnp.where(small, 1.0, q[0])) / length,
    )
    return ratio * q[1:]


class Pose(eqx.Module):
    """`X_AB`: orientation `R_AB` and origin `p_AB` of a frame B in a frame A.

    `X_AB @ X_BC` is `X_AC`. Leading axes stack many poses.
    """

    R: Float[Array, "*n 3 3"] = eqx.field(converter=si("1"))
    p: Float[Array, "*n 3"] = eqx.field(converter=si("m"))

    def __matmul__(self, other: "Pose") -> "Pose":
        return Pose(self.R @ other.R, self.act(other.p))

    def act(self, p_BP: Float[Array, "*n 3"]) -> Float[Array, "*n 3"]:
        """`p_AP`, the same point seen from A."""
        return jnp.einsum("...ij,...j->...i", self.R, p_BP) + self.p

    @property
    def inverse(self) -> "Pose":
        """`X_BA` of the pose `X_AB`."""
        R_BA = jnp.swapaxes(self.R, -1, -2)
        return Pose(R_BA, -jnp.einsum("...ij,...j->...i", R_BA, self.p))


def identity_pose() -> Pose:
    """Return the pose that neither moves nor turns."""
    return Pose(jnp.eye(3), jnp.zeros(3))


def translation(p: Numbers | Sequence[Any]) -> Pose:
    """Return a pose moved by `p`, not turned."""
    return Pose(jnp.eye(3), jnp.asarray(p, dtype=float))


def pose_rpy(
    position: Numbers | Sequence[Any],
    roll_pitch_yaw: Numbers | Sequence[Any] = (0.0, 0.0, 0.0),
) -> Pose:
    """Return a pose at `position`, turned by roll, pitch and yaw (rad)."""
    angles = jnp.asarray(roll_pitch_yaw, dtype=float)
    return Pose(rotation_rpy(*angles), jnp.asarray(position, dtype=float))


def motion_matrix(X_AB: Pose) -> Mat6:
    r"""Takes a twist at B in B-axes to the same twist at A in A-axes: $V_A = X V_B$."""
    zero = jnp.zeros_like(X_AB.R)
    return jnp.block([[X_AB.R, zero], [skew(X_AB.p) @ X_AB.R, X_AB.R]])


def shift_twist(
    V: Float[Array, "*n 6"], offset: Float[Array, "*n 3"]
) -> Float[Array, "*n 6"]:
    """Twist of the point `offset` away on the same rigid body, same axes."""
    w, v = V[..., :3], V[..., 3:]
    return jnp.concatenate([w, v + cross(w, offset)], -1)


def shift_wrench(
    F: Float[Array, "*n 6"], offset: Float[Array, "*n 3"]
) -> Float[Array, "*n 6"]:
    """The wrench `F` acting `offset` away, as felt here, same axes."""
    tau, f = F[..., :3], F[..., 3:]
    return jnp.concatenate([tau + cross(offset, f), f], -1)


def cross_wrench(V: Vec6, F: Vec6) -> Vec6:
    r"""$V\times^* F = [\omega\times\tau + v\times f;\ \omega\times f]$."""
    w, v, tau, f = V[:3], V[3:], F[:3], F[3:]
    return jnp.concatenate([cross(w, tau) + cross(v, f), cross(w, f)])


def spatial_inertia(mass: Scalar, p_BC: Vec3, I_BC: Mat3) -> Mat6:
    r"""6x6 inertia about B of a rigid body with centre of mass C, angular first.

    $$M_B = \begin{bmatrix} I_C - m\hat c^2 & m\hat c\\ -m\hat c & m\,1\end{bmatrix}$$
    """
    c = skew(p_BC)
    return jnp.block(
        [[I_BC - mass * (c @ c), mass * c], [-mass * c, mass * jnp.eye(3)]]
    )
