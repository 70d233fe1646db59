"""Motions of what is coupled in a MoorDyn deck, from plain functions of time."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from ..multibody.spatial import Pose, rotation_x, rotation_y, rotation_z
from ..typing import Scalar, Vec3


def pose_xyz(numbers: Any) -> Pose:
    """Return the pose of six numbers: position, and MoorDyn's roll, pitch and yaw.

    The body is turned about its own x axis, then its y axis, then its z axis (rad).
    """
    x = jnp.stack([jnp.asarray(number, float) for number in numbers])
    return Pose(rotation_x(x[3]) @ rotation_y(x[4]) @ rotation_z(x[5]), x[:3])


class PointMotion(eqx.Module):
    """The position of a point, from a function of time that gives three numbers."""

    motion: Callable[[Scalar], Any]

    def __call__(self, t: Scalar) -> Vec3:
        return jnp.stack([jnp.asarray(number, float) for number in self.motion(t)])


class PinMotion(eqx.Module):
    """A pose that does not turn, at the position that a function of time gives."""

    motion: Callable[[Scalar], Vec3]

    def __call__(self, t: Scalar) -> Pose:
        return Pose(jnp.eye(3), self.motion(t))


class PoseMotion(eqx.Module):
    """A pose, from a function of time that gives a `Pose` or six numbers."""

    motion: Callable[[Scalar], Any]

    def __call__(self, t: Scalar) -> Pose:
        found = self.motion(t)
        return found if isinstance(found, Pose) else pose_xyz(found)


class Placed(eqx.Module):
    """A pose that stays what it is."""

    pose: Pose

    def __call__(self, t: Scalar) -> Pose:
        del t
        return self.pose
