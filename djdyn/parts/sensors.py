"""What is measured on the machine, as signals."""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx

from ..multibody.kinematics import World
from ..typing import Scalar
from .base import AbstractSignalPart, Response, Signals


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
