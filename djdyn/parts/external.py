"""Loads given as functions of time."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Scalar, Vec6
from ..kinematics import World
from ..part import AbstractDrive, JointLoad, Load, Response, Signals
from ..spatial import Pose
from ..timefunctions import Constant


def as_time_function(x: Any) -> Any:
    """Numbers become constants."""
    return x if callable(x) else Constant(x)


class ExternalWrench(AbstractDrive):
    """A wrench `[torque; force]` at the origin of `frame`.

    In world axes, or in the axes of the frame where `follows` is true.
    """

    frame: str = eqx.field(static=True)
    wrench: Callable[[Scalar], Vec6] = eqx.field(converter=as_time_function)
    follows: bool = eqx.field(static=True, default=False)

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del signals
        X_WF: Pose = world.pose(self.frame)
        F = self.wrench(t)
        if F.shape != (6,):
            raise ValueError(f"a wrench has 6 components, got shape {F.shape}")
        turn = X_WF.R if self.follows else jnp.eye(3, dtype=F.dtype)
        body = world.mechanism.frame(self.frame).body
        return Response(
            state, (Load(body, "world", X_WF.p, turn @ F[3:], turn @ F[:3]),)
        )


class JointForce(AbstractDrive):
    """A force on each of a joint's speeds."""

    joint: str = eqx.field(static=True)
    force: Callable[[Scalar], Float[Array, " nv"]] = eqx.field(
        converter=as_time_function
    )

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del signals
        _, v = world.joint(self.joint)
        return Response(
            state, (JointLoad(self.joint, self.force(t) + jnp.zeros_like(v)),)
        )
