"""PID control of a winch: constant tension and heave compensation.

The drive, `djdyn.parts.Winch`, takes its set point from a `WinchPID`, or from a
`Reference` in velocity mode. A cable reads its payout rate from the drive's state,
`winch.rate`.
"""

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from djdyn.multibody.kinematics import World
from djdyn.parts.base import AbstractSignalPart, Response, Signals
from djdyn.parts.units import SameUnit, Unit
from djdyn.parts.winch import scalar
from djdyn.smooth import clip
from djdyn.typing import Scalar, si


class WinchPIDState(eqx.Module):
    """State of a `WinchPID`."""

    integral: Scalar  # m/s, the integral term
    filtered: Scalar  # N or m, the filtered error


class WinchPID(AbstractSignalPart):
    r"""PID control of a payout rate, output `u`, from `measured` minus `wanted`.

    With $e$ the excess (too tight, or too high, pays out),

    $$w = K_p e + I + K_d\,\dot e + v_{deck} - \dot r,\qquad
      u = \operatorname{clip}(w, \pm u_{max}),\qquad
      \dot I = K_i e + a\,(K_i/K_p)(u - w),$$

    so the integral does not wind up at the limit (`anti_windup` $a$). $\dot e$ is taken
    through a filter of `filter_time`, which starts from no error; the clip's corners
    are round within `width`.

    - *Tension mode*: `measured` is a tension; gains in (m/s)/N.
    - *Heave compensation* holds a payload's height or a line's tension while the deck
      moves: `deck` is the sheave's vertical speed, fed forward. For a height that
      itself moves, `wanted_rate` is the rate of `wanted`.

    While the signal `engaged` is zero the integral is frozen. The output `asked` is
    $|w|/u_{max}$.
    """

    signal_units: ClassVar[Mapping[str, Unit]] = {
        "u": "m/s",
        "integral": "m/s",
        "error": SameUnit("measured"),
        "filtered": SameUnit("measured"),
        "asked": "1",
    }
    measured: str = eqx.field(static=True)
    wanted: str = eqx.field(static=True)
    kp: Scalar = eqx.field(converter=si("(m/s)/N, 1/s", at_least=0.0))
    ki: Scalar = eqx.field(converter=si("(m/s)/(N s), 1/s^2", at_least=0.0), default=0)
    kd: Scalar = eqx.field(converter=si("(m/s)/(N/s), 1", at_least=0.0), default=0.0)
    limit: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e6)
    deck: str | None = eqx.field(static=True, default=None)
    wanted_rate: str | None = eqx.field(static=True, default=None)
    engaged: str | None = eqx.field(static=True, default=None)
    anti_windup: Scalar = eqx.field(converter=si("1", at_least=0.0), default=1.0)
    filter_time: Scalar = eqx.field(converter=si("s", above=0.0), default=0.05)
    width: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e-3)

    def initial_state(self) -> WinchPIDState:
        return WinchPIDState(integral=jnp.zeros(()), filtered=jnp.zeros(()))

    def __call__(
        self, t: Scalar, state: WinchPIDState, world: World, signals: Signals
    ) -> Response:
        del t, world
        error = scalar(signals, self.measured) - scalar(signals, self.wanted)
        slope = (error - state.filtered) / self.filter_time
        w = self.kp * error + state.integral + self.kd * slope
        if self.deck is not None:
            w = w + scalar(signals, self.deck)
        if self.wanted_rate is not None:
            w = w - scalar(signals, self.wanted_rate)
        u = clip(w, -self.limit, self.limit, self.width)
        follow = self.anti_windup * self.ki / jnp.where(self.kp > 0, self.kp, 1.0)
        build_up = self.ki * error + follow * (u - w)
        if self.engaged is not None:
            build_up = scalar(signals, self.engaged) * build_up
        rate = WinchPIDState(integral=build_up, filtered=slope)
        asked = jnp.abs(w) / self.limit
        return Response(rate, outputs={"u": u, "error": error, "asked": asked})
