"""Linkages: how a cylinder is attached to a machine."""

import abc

import equinox as eqx
import jax.numpy as jnp

from ..multibody.kinematics import World
from ..parts.loads import JointLoad, Load
from ..smooth import norm
from ..typing import Scalar, check_values, si


class AbstractLinkage(eqx.Module):
    """The length between a cylinder's ends, and the loads of a force between them."""

    def __check_init__(self):
        check_values(self)

    @abc.abstractmethod
    def length(self, world: World) -> tuple[Scalar, Scalar]:
        """Return the length and its rate."""

    @abc.abstractmethod
    def loads(self, world: World, push: Scalar) -> tuple[Load | JointLoad, ...]:
        """Return the loads of a force that pushes the ends apart."""


class BetweenFrames(AbstractLinkage):
    """A cylinder from the origin of frame `tail` to that of `head`, on two bodies."""

    tail: str = eqx.field(static=True)
    head: str = eqx.field(static=True)

    def length(self, world: World) -> tuple[Scalar, Scalar]:
        length, e_W = self._line(world)
        v = world.point(self.head)[1] - world.point(self.tail)[1]
        return length, v @ e_W

    def _line(self, world: World):
        step_W = world.point(self.head)[0] - world.point(self.tail)[0]
        length = norm(step_W)
        return length, step_W / jnp.where(length > 0, length, 1.0)

    def loads(self, world: World, push: Scalar) -> tuple[Load | JointLoad, ...]:
        on, against = (world.mechanism.frame(f).body for f in (self.head, self.tail))
        p_WH, e_W = world.point(self.head)[0], self._line(world)[1]
        return (Load(on, against, p_WH, push * e_W, jnp.zeros_like(e_W)),)


class OnJoint(AbstractLinkage):
    """A cylinder along a prismatic joint, whose coordinate is the length."""

    joint: str = eqx.field(static=True)

    def length(self, world: World) -> tuple[Scalar, Scalar]:
        q, v = world.joint(self.joint)
        return q.reshape(()), v.reshape(())

    def loads(self, world: World, push: Scalar) -> tuple[Load | JointLoad, ...]:
        del world
        return (JointLoad(self.joint, push[None]),)


class Triangle(AbstractLinkage):
    r"""A cylinder across a revolute joint, from `base` on one link to `arm` on another.

    With both measured from the joint's axis and $\beta_0$ the angle between them at
    $q = 0$,

    $$\ell^2 = L^2 + L_1^2 - 2LL_1\cos(\beta_0 + q),\qquad
      \frac{d\ell}{dq} = \frac{LL_1\sin(\beta_0 + q)}{\ell} .$$
    """

    joint: str = eqx.field(static=True)
    base: Scalar = eqx.field(converter=si("m", above=0.0))
    arm: Scalar = eqx.field(converter=si("m", above=0.0))
    angle: Scalar = eqx.field(converter=si("rad"))

    def lever(self, q: Scalar) -> tuple[Scalar, Scalar]:
        r"""Return $\ell$ and $d\ell/dq$."""
        a = self.angle + q
        twice = self.base * self.arm
        length = jnp.sqrt(self.base**2 + self.arm**2 - 2 * twice * jnp.cos(a))
        return length, twice * jnp.sin(a) / length

    def length(self, world: World) -> tuple[Scalar, Scalar]:
        q, v = world.joint(self.joint)
        length, lever = self.lever(q.reshape(()))
        return length, lever * v.reshape(())

    def loads(self, world: World, push: Scalar) -> tuple[Load | JointLoad, ...]:
        q, _ = world.joint(self.joint)
        return (JointLoad(self.joint, (self.lever(q.reshape(()))[1] * push)[None]),)
