"""PID control of joints."""

from collections.abc import Mapping
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from djdyn.multibody.kinematics import World
from djdyn.parts.base import AbstractSignalPart, Response, Signals
from djdyn.parts.joint import names
from djdyn.parts.units import JointUnit, Unit
from djdyn.smooth import magnitude
from djdyn.typing import Scalar, si


Gain = Float[Array, "*#n"]  # one for all joints, or one each


class PIDState(eqx.Module):
    """State of a `JointPID`."""

    integral: Float[Array, " n"]  # N m, the integral term
    filtered: Float[Array, " m"]  # rad/s, the filtered speed; empty in position mode


class JointPID(AbstractSignalPart):
    r"""PID control of the position or speed of single-speed joints; output `u`, forces.

    With $e = q_t - q$ in mode `"position"` and $e = v_t - v$ in mode `"velocity"`,

    $$w = K_p e + I + K_d\,\dot e,\qquad
      u = \operatorname{clip}\bigl(w,\ \pm\min(u_{max},\ P/|v|)\bigr),\qquad
      \dot I = K_i e + a\,(K_i/K_p)(u - w) ,$$

    so the integral does not wind up while the drive is at its force limit or power
    cap: at the default `anti_windup` $a=1$ it follows in the integral time $K_p/K_i$.
    In position mode $\dot e = v_t - v$, the target's rate $v_t$ being zero unless
    signal `rate` gives it. In velocity mode $\dot e = -\dot v$ is taken through a
    filter of time `filter_time`. (Roy, Steinke and Nicoll, *Ship Mechanical Systems
    API*, 2014, eqs 67 to 70, with the absolute values that eq. 70 lacks.)
    """

    joints: tuple[str, ...] = eqx.field(static=True, converter=names)
    target: str = eqx.field(static=True)
    kp: Gain = eqx.field(converter=si("N m/rad, N/m", at_least=0.0))
    kd: Gain = eqx.field(converter=si("N m s/rad, N s/m", at_least=0.0), default=0.0)
    ki: Gain = eqx.field(
        converter=si("N m/(rad s), N/(m s)", at_least=0.0), default=0.0
    )
    rate: str | None = eqx.field(static=True, default=None)
    mode: Literal["position", "velocity"] = eqx.field(static=True, default="position")
    limit: Gain = eqx.field(converter=si("N m, N", above=0.0), default=1e12)
    power: Gain = eqx.field(converter=si("W", above=0.0), default=1e12)
    anti_windup: Gain = eqx.field(converter=si("1", at_least=0.0), default=1.0)
    filter_time: Scalar = eqx.field(converter=si("s", above=0.0), default=0.01)
    speed_width: Scalar = eqx.field(converter=si("rad/s, m/s", above=0.0), default=1e-6)

    def __check_init__(self):
        if self.mode not in ("position", "velocity"):
            raise ValueError(f"mode is position or velocity, not {self.mode!r}")

    @property
    def signal_units(self) -> Mapping[str, Unit]:
        """Units of signals; `error` is a speed in velocity mode."""
        error = JointUnit.COORDINATE if self.mode == "position" else JointUnit.SPEED
        force = JointUnit.FORCE
        return {
            "u": force,
            "integral": force,
            "filtered": JointUnit.SPEED,
            "error": error,
        }

    def initial_state(self) -> PIDState:
        zero = jnp.zeros(len(self.joints))
        filtered = zero if self.mode == "velocity" else jnp.zeros(0)
        return PIDState(integral=zero, filtered=filtered)

    def _wanted(self, signals: Signals, name: str) -> Float[Array, " n"]:
        value = jnp.atleast_1d(signals[name])
        if value.shape != (len(self.joints),):
            raise ValueError(
                f"signal {name!r} has shape {value.shape}, expected one value for each"
                f" of the joints {', '.join(self.joints)}"
            )
        return value

    def __call__(
        self, t: Scalar, state: PIDState, world: World, signals: Signals
    ) -> Response:
        del t
        q, v = (
            jnp.concatenate(x) for x in zip(*map(world.joint, self.joints), strict=True)
        )
        target = self._wanted(signals, self.target)
        if self.mode == "position":
            error, acceleration = target - q, state.filtered  # empty in this mode
            error_rate = (self._wanted(signals, self.rate) if self.rate else 0.0) - v
        else:
            acceleration = (v - state.filtered) / self.filter_time
            error, error_rate = target - v, -acceleration
        w = self.kp * error + state.integral + self.kd * error_rate
        most = jnp.minimum(self.limit, self.power / magnitude(v, self.speed_width))
        u = jnp.clip(w, -most, most)
        follow = self.anti_windup * self.ki / jnp.where(self.kp > 0, self.kp, 1.0)
        build_up = self.ki * error + follow * (u - w)
        rate = PIDState(integral=build_up, filtered=acceleration)
        return Response(rate, outputs={"u": u, "error": error})
