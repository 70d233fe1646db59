"""What is measured on the machine, as signals."""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array

from ..multibody.kinematics import World
from ..multibody.spatial import cross, quat_from_rotation, shift_wrench
from ..typing import Scalar
from .base import AbstractSignalPart, InstantView, Response, Signals
from .transmission import AbstractTransmission


class FrameSensor(AbstractSignalPart):
    """Where the origin of `frame` is and how it moves, in world axes.

    Outputs: `position`, `velocity`, and of these the vertical ones, `height`, `climb`.
    """

    signal_units: ClassVar[Mapping[str, str]] = {
        "position": "m",
        "velocity": "m/s",
        "height": "m",
        "climb": "m/s",
    }
    frame: str = eqx.field(static=True)

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, signals
        p_W, v_W = world.point(self.frame)
        outputs = {"position": p_W, "velocity": v_W, "height": p_W[2], "climb": v_W[2]}
        return Response(state, outputs=outputs)


def _check_quantity(quantity: str, known: tuple[str, ...]) -> None:
    if quantity not in known:
        raise ValueError(f"unknown quantity {quantity!r}; there are {', '.join(known)}")


class PoseSensor(AbstractSignalPart):
    """One `quantity` of a frame's pose or twist, as the output `value`.

    In world axes: `position`, `quaternion`, `x_axis`, `y_axis`, `z_axis`,
    `linear_velocity`, `angular_velocity`. In the frame's own: `gyro`, `velocimeter`.
    """

    frame: str = eqx.field(static=True)
    quantity: str = eqx.field(static=True)

    def __check_init__(self):
        axes = ("x_axis", "y_axis", "z_axis")
        rates = ("linear_velocity", "angular_velocity", "gyro", "velocimeter")
        _check_quantity(self.quantity, ("position", "quaternion", *axes, *rates))

    def initial_state(self) -> dict:
        return {}

    def _value(self, world: World) -> Array:
        X, V = world.pose(self.frame), world.twist(self.frame)
        match self.quantity:
            case "position":
                return X.p
            case "quaternion":
                return quat_from_rotation(X.R)
            case "linear_velocity":
                return V[3:]
            case "angular_velocity":
                return V[:3]
            case "gyro":
                return V[:3] @ X.R
            case "velocimeter":
                return V[3:] @ X.R
        return X.R[:, "xyz".index(self.quantity[0])]

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, signals
        return Response(state, outputs={"value": self._value(world)})


class SignalSensor(AbstractSignalPart):
    """Another signal by a name of its own, as the output `value`."""

    signal: str = eqx.field(static=True)

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, world
        return Response(state, outputs={"value": signals[self.signal]})


class TransmissionSensor(AbstractSignalPart):
    """The length of a transmission and its rate, as outputs `length` and `rate`."""

    transmission: AbstractTransmission

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, signals
        path = self.transmission
        return Response(
            state, outputs={"length": path.length(world), "rate": path.rate(world)}
        )


class MotionSensor(AbstractSignalPart):
    """One `quantity` that follows from accelerations, as the signal `value`.

    In the frame's axes: `accelerometer` (less gravity), and `force` and `torque` that
    the parent exerts through the joint on the frame's body, at the frame's origin. In
    world axes: `linear_acceleration`, `angular_acceleration`, and the former less
    gravity, `proper_acceleration`. The signal is known after all parts have been
    evaluated, so no part can read it.
    """

    frame: str = eqx.field(static=True)
    quantity: str = eqx.field(static=True)

    def __check_init__(self):
        wrench, rates = ("force", "torque"), ("linear_acceleration",)
        rates += ("angular_acceleration", "proper_acceleration")
        _check_quantity(self.quantity, ("accelerometer", *wrench, *rates))

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, world, signals
        return Response(state)

    def outputs_at(self, now: InstantView) -> dict[str, Array]:
        """The measured value, once accelerations are known."""
        world, mechanism = now.world, now.world.mechanism
        X, body = world.pose(self.frame), mechanism.frame(self.frame).body
        b = mechanism.index(body)
        if self.quantity in ("force", "torque"):
            joint, R = mechanism.joint_names[b - 1], world.X_WB.R[b]
            at_body = (now.reaction(joint).reshape(2, 3) @ R.T).reshape(6)
            at_frame = shift_wrench(at_body, world.X_WB.p[b] - X.p)
            part = at_frame[3:] if self.quantity == "force" else at_frame[:3]
            return {"value": part @ X.R}
        w, alpha, a = world.V_WB[b, :3], now.A_WB[b, :3], now.A_WB[b, 3:]
        arm = X.p - world.X_WB.p[b]
        a = a + cross(alpha, arm) + cross(w, cross(w, arm))
        if self.quantity == "angular_acceleration":
            return {"value": alpha}
        if self.quantity == "linear_acceleration":
            return {"value": a}
        proper = a - world.gravity_W
        return {"value": proper if self.quantity[0] == "p" else proper @ X.R}
