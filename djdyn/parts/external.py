"""Loads from outside: functions of time, and wrenches by command."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..multibody.time_functions import Constant
from ..typing import Scalar, Vec6
from .base import AbstractDrive, Response, Signals
from .loads import JointLoad, Load


def as_time_function(x: Any) -> Any:
    """Numbers become constants."""
    return x if callable(x) else Constant(x)


def _load(world: World, frame: str, F: Array, follows: bool) -> Load:
    """A wrench at a frame's origin, in world axes or the frame's own."""
    if F.shape != (6,):
        raise ValueError(f"a wrench has 6 components, got shape {F.shape}")
    X_WF = world.pose(frame)
    turn = X_WF.R if follows else jnp.eye(3, dtype=F.dtype)
    body = world.mechanism.frame(frame).body
    return Load(body, "world", X_WF.p, turn @ F[3:], turn @ F[:3])


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
        return Response(
            state, (_load(world, self.frame, self.wrench(t), self.follows),)
        )


class FrameActuator(AbstractDrive):
    """Applies a commanded wrench, signal `command`, as `ExternalWrench` does."""

    frame: str = eqx.field(static=True)
    command: str = eqx.field(static=True)
    follows: bool = eqx.field(static=True, default=False)

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t
        F = signals[self.command]
        return Response(state, (_load(world, self.frame, F, self.follows),))


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
