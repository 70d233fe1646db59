"""Transmissions: one length and one force in place of many joints, or of a frame."""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..multibody.mechanism import WORLD
from ..typing import Scalar, Vec6, check_values, known, si
from .joint import names
from .loads import JointLoad, Load


class AbstractTransmission(eqx.Module):
    """What a scalar force acts through: a length, its rate, and loads per force."""

    @abc.abstractmethod
    def length(self, world: World) -> Scalar:
        """The length that the force does work along."""

    @abc.abstractmethod
    def rate(self, world: World) -> Scalar:
        """The length's rate."""

    @abc.abstractmethod
    def loads(self, world: World, force: Scalar) -> tuple[JointLoad | Load, ...]:
        """What a force along the length does on the mechanism."""


class JointTransmission(AbstractTransmission):
    r"""$\ell = \sum_i g_i q_i$ over single-speed joints: a gear, or a fixed tendon.

    A force $f$ along $\ell$ is $g_i f$ on each joint.
    """

    joints: tuple[str, ...] = eqx.field(static=True, converter=names)
    gear: Float[Array, " n"] = eqx.field(converter=si("1, m"), default=(1.0,))

    def __check_init__(self):
        check_values(self)
        if self.gear.shape != (len(self.joints),):
            raise ValueError(
                f"gear has shape {self.gear.shape}, expected one number for each of "
                f"the joints {', '.join(self.joints)}"
            )
        if known(self.gear) and not np.all(np.isfinite(self.gear)):
            raise ValueError("gear must be finite")

    def _sum(self, world: World, which: int) -> Scalar:
        values = []
        for joint in self.joints:
            found = world.joint(joint)
            if found[0].shape != (1,) or found[1].shape != (1,):
                raise ValueError(
                    f"joint {joint!r} has {found[1].size} speeds: a transmission acts "
                    "on joints of one"
                )
            values.append(found[which][0])
        return jnp.sum(self.gear * jnp.stack(values))

    def length(self, world: World) -> Scalar:
        return self._sum(world, 0)

    def rate(self, world: World) -> Scalar:
        return self._sum(world, 1)

    def loads(self, world: World, force: Scalar) -> tuple[JointLoad | Load, ...]:
        del world
        each = zip(self.joints, self.gear, strict=True)
        return tuple(JointLoad(joint, (gear * force)[None]) for joint, gear in each)


class FrameTransmission(AbstractTransmission):
    """A wrench `gear`, `[torque; force]` in the axes of `frame`, per force.

    It acts at the frame's origin, against the world: a propeller, a thruster. There is
    no length, only its rate.
    """

    frame: str = eqx.field(static=True)
    gear: Vec6 = eqx.field(converter=si("1, m"))

    def __check_init__(self):
        check_values(self)
        if self.gear.shape != (6,):
            raise ValueError(f"gear has shape {self.gear.shape}, expected (6,)")

    def length(self, world: World) -> Scalar:
        return jnp.zeros((), world.q.dtype)

    def rate(self, world: World) -> Scalar:
        V_F = world.twist(self.frame).reshape(2, 3) @ world.pose(self.frame).R
        return jnp.sum(self.gear * V_F.reshape(6))

    def loads(self, world: World, force: Scalar) -> tuple[JointLoad | Load, ...]:
        X_WF = world.pose(self.frame)
        wrench_W = force * (self.gear.reshape(2, 3) @ X_WF.R.T)
        body = world.mechanism.frame(self.frame).body
        return (Load(body, WORLD, X_WF.p, wrench_W[1], wrench_W[0]),)
