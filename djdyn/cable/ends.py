"""Ends of a line: how they are held, and the winch that feeds line there."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..multibody.kinematics import World
from ..multibody.spatial import cross
from ..smooth import norm
from ..typing import Scalar, Vec3, check_values, known, si


class Place(eqx.Module):
    """Where an end is held and how that moves; `a` is with all speeds constant.

    `tangent` and `side` are the directions of a clamp. Without a `body` the end is held
    from outside the system.
    """

    body: str | None = eqx.field(static=True)
    p: Vec3
    v: Vec3
    a: Vec3
    w: Vec3
    clamp: tuple[Vec3, Vec3] | None = None

    def turned(self, angle: Vec3) -> tuple[Vec3, Vec3] | None:
        """The clamp after a small rotation."""
        if self.clamp is None:
            return None
        tangent, side = self.clamp
        return tangent + cross(angle, tangent), side + cross(angle, side)


class AbstractEnd(eqx.Module):
    """`payout` names the signal of a winch: the rate at which line enters, m/s.

    With a minus before the name, line leaves at that rate.
    """

    payout: eqx.AbstractVar[str]

    @abc.abstractmethod
    def place(self, t: Scalar, world: World) -> Place | None:
        """None if the end is free."""


class FreeEnd(AbstractEnd):
    """Held by nothing; the line's curvature is zero there."""

    payout: str = eqx.field(static=True, default="", init=False)

    def place(self, t: Scalar, world: World) -> Place | None:
        del t, world
        return None


class FixedEnd(AbstractEnd):
    """Held at a point of the world, free to turn."""

    point: Vec3 = eqx.field(converter=si("m"))
    payout: str = eqx.field(static=True, default="")

    def __check_init__(self):
        check_values(self)

    def place(self, t: Scalar, world: World) -> Place | None:
        del t, world
        still = jnp.zeros_like(self.point)
        return Place(None, self.point, still, still, still)


class DrivenEnd(AbstractEnd):
    """At a position that is a function of time, free to turn."""

    motion: Callable[[Scalar], Vec3]
    payout: str = eqx.field(static=True, default="")

    def place(self, t: Scalar, world: World) -> Place | None:
        t = t.astype(world.q.dtype)
        rate = lambda t: jax.jvp(self.motion, (t,), (jnp.ones_like(t),))[1]
        v, a = jax.jvp(rate, (t,), (jnp.ones_like(t),))
        return Place(None, self.motion(t), v, a, jnp.zeros_like(v))


class PinnedEnd(AbstractEnd):
    """At the origin of a frame, free to turn: a swivel."""

    frame: str = eqx.field(static=True)
    payout: str = eqx.field(static=True, default="")

    def place(self, t: Scalar, world: World) -> Place | None:
        del t
        return _on_frame(world, self.frame)


class ClampedEnd(AbstractEnd):
    """At the origin of a frame, along its direction `axis`, which points from the
    line's tail to its head. Directions `side` of two clamps are aligned in a line
    without twist.
    """

    frame: str = eqx.field(static=True)
    axis: Vec3 = eqx.field(converter=si(""), default=(0.0, 0.0, 1.0))
    side: Vec3 = eqx.field(converter=si(""), default=(1.0, 0.0, 0.0))
    payout: str = eqx.field(static=True, default="")

    def __check_init__(self):
        check_values(self)
        if known(self.axis, self.side) and not np.any(np.cross(self.axis, self.side)):
            raise ValueError(
                f"the axis {self.axis} and the side {self.side} of a clamp are parallel"
            )

    def place(self, t: Scalar, world: World) -> Place | None:
        del t
        R = world.pose(self.frame).R
        axis = self.axis / norm(self.axis)
        side = self.side - (self.side @ axis) * axis
        clamp = (R @ axis, R @ (side / norm(side)))
        held = _on_frame(world, self.frame)
        return Place(held.body, held.p, held.v, held.a, held.w, clamp)


def _on_frame(world: World, frame: str) -> Place:
    V, body = world.twist(frame), world.mechanism.frame(frame).body
    b = world.mechanism.index(body)
    p = world.pose(frame).p
    arm, A = p - world.X_WB.p[b], world.A_bias_WB[b]
    w: Array = V[:3]
    a = A[3:] + cross(A[:3], arm) + cross(w, cross(w, arm))
    return Place(body, p, V[3:], a, w)
