"""A winch drive with limits and a brake."""

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from djdyn.multibody.kinematics import World
from djdyn.parts.base import AbstractDrive, Response, Signals
from djdyn.smooth import clip
from djdyn.typing import Scalar, si


def scalar(signals: Signals, name: str) -> Scalar:
    """A signal of one number, which may stand in a vector."""
    value = signals[name]
    if value.size != 1:
        raise ValueError(f"signal {name!r} has shape {value.shape}, expected one value")
    return value.reshape(())


class WinchState(eqx.Module):
    rate: Scalar  # m/s, positive pays out


class Winch(AbstractDrive):
    r"""A drive whose payout rate $v$ follows the signal `target`, within limits.

    $$\dot v = \operatorname{clip}\bigl(k\,(e\,v_{set} - v),\ -a_{dec},\ a_{acc}\bigr)$$

    `acceleration` $a_{acc}$ is the most that the rate rises by, `deceleration`
    $a_{dec}$ the most that it falls by, whatever its sign (Roy, Steinke and Nicoll,
    *Ship Mechanical Systems API*, 2014, eqs 9 and 10, which chatter at the set point;
    here $k$, `gain`, settles it). The clip's corners are round within `width`.
    The signal `engaged` $e$, one where none is named, lets go of the drive at zero: the
    brake brings the rate to rest within the same limits. It is no controller: where
    those take samples it goes on between them. The output `asked` is what is wanted of
    the drive as a share of what it can do.
    """

    signal_units: ClassVar[Mapping[str, str]] = {
        "rate": "m/s",
        "acceleration": "m/s^2",
        "asked": "1",
    }
    target: str = eqx.field(static=True)
    acceleration: Scalar = eqx.field(converter=si("m/s^2", above=0.0), default=3.0)
    deceleration: Scalar = eqx.field(converter=si("m/s^2", above=0.0), default=3.0)
    gain: Scalar = eqx.field(converter=si("1/s", above=0.0), default=50.0)
    width: Scalar = eqx.field(converter=si("m/s^2", above=0.0), default=0.01)
    engaged: str | None = eqx.field(static=True, default=None)
    start: Scalar = eqx.field(converter=si("m/s"), default=0.0)

    def initial_state(self) -> WinchState:
        return WinchState(self.start)

    def __call__(
        self, t: Scalar, state: WinchState, world: World, signals: Signals
    ) -> Response:
        del t, world
        target = scalar(signals, self.target)
        if self.engaged is not None:
            target = scalar(signals, self.engaged) * target
        wanted = self.gain * (target - state.rate)
        a = clip(wanted, -self.deceleration, self.acceleration, self.width)
        most = jnp.where(wanted > 0, self.acceleration, -self.deceleration)
        return Response(
            WinchState(rate=a), outputs={"acceleration": a, "asked": wanted / most}
        )
