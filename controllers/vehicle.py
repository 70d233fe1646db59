r"""Control of vehicles and of arms on them: reference models, PID, allocation.

Angles of a vehicle are roll, pitch and yaw with $R = R_z R_y R_x$, singular at a pitch
of ninety degrees.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from djdyn.marine.allocation import Allocation
from djdyn.multibody.kinematics import World
from djdyn.multibody.spatial import cross
from djdyn.parts.base import AbstractSignalPart, Response, Signals
from djdyn.smooth import clip
from djdyn.typing import Mat3, Scalar, Vec3, Vec6, si


Each = Float[Array, "*#n"]  # one number, or one for each entry


class SecondOrderReference(AbstractSignalPart):
    r"""A second-order reference model of a target, with saturated rates.

    $$M\ddot x + D\dot x + Kx = Kx_r,\qquad
      \dot x_d = \operatorname{clip}(\dot x, \pm v_{max}),$$

    entry by entry; the corners of the clip are rounded within `width`. The reference
    `value` moves at the clipped rate. Outputs `value`, `rate` and `acceleration`.
    """

    target: str = eqx.field(static=True)
    start: Float[Array, " n"] = eqx.field(converter=si("m, rad"))
    mass: Each = eqx.field(converter=si("kg, kg m^2", above=0.0))
    damping: Each = eqx.field(converter=si("N s/m, N m s/rad", at_least=0.0))
    stiffness: Each = eqx.field(converter=si("N/m, N m/rad", above=0.0))
    rate_limit: Each = eqx.field(converter=si("m/s, rad/s", above=0.0), default=1e9)
    width: Scalar = eqx.field(converter=si("m/s, rad/s", above=0.0), default=1e-6)

    def initial_state(self) -> dict[str, Array]:
        return {"path": self.start, "speed": jnp.zeros_like(self.start)}

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        del t, world
        x, v, target = (
            state["path"],
            state["speed"],
            jnp.atleast_1d(signals[self.target]),
        )
        if target.shape != x.shape:
            raise ValueError(
                f"signal {self.target!r} has shape {target.shape}, but the start has "
                f"{x.shape}"
            )
        a = (self.stiffness * (target - x) - self.damping * v) / self.mass
        rate = clip(v, -self.rate_limit, self.rate_limit, self.width)
        outputs = {"value": x, "rate": rate, "acceleration": a}
        return Response({"path": rate, "speed": a}, outputs=outputs)


def roll_pitch_yaw(R: Mat3) -> Vec3:
    """Return roll, pitch and yaw of a rotation, each within half a turn."""
    level = jnp.sqrt(R[0, 0] ** 2 + R[1, 0] ** 2)
    return jnp.stack(
        [
            jnp.arctan2(R[2, 1], R[2, 2]),
            jnp.arctan2(-R[2, 0], level),
            jnp.arctan2(R[1, 0], R[0, 0]),
        ]
    )


def angle_rates(angles: Vec3) -> Mat3:
    r"""Return $T$, which makes rates of roll, pitch and yaw of body rates."""
    s1, c1 = jnp.sin(angles[0]), jnp.cos(angles[0])
    t2, c2 = jnp.tan(angles[1]), jnp.cos(angles[1])
    o, one = jnp.zeros_like(s1), jnp.ones_like(s1)
    rows = ([one, s1 * t2, c1 * t2], [o, c1, -s1], [o, s1 / c2, c1 / c2])
    return jnp.stack([jnp.stack(row) for row in rows])


class VehiclePID(AbstractSignalPart):
    r"""PID control of a vehicle's place and attitude; output `u`, a wrench.

    With $x$ place and roll, pitch and yaw of `frame`, $e = x_d - x$ and the outputs
    `value` and `rate` of the part `reference`,

    $$w = K_pe + K_d\dot e + I,\qquad \dot I = K_ie + a\,(K_i/K_p)(u - w) .$$

    Forces are turned into the frame's axes, and so are torques with `torques`
    `"rotation"`, as in Rokseth's thesis (NTNU, 2014): an approximation for small roll
    and pitch. `"exact"` takes $T^\top$ of the angles' rates instead, which conserves
    power. With an `allocation`, `thrust` is what it asks of each thruster, $u$ what
    these give within their limits, and the integral does not wind up while they are at
    them (`anti_windup` $a$). Outputs: `u` (torque first, in the frame's axes), `error`,
    `effort` ($w$) and `thrust`.

    **Arguments:**

    - `kp`, `kd`, `ki`: along x, y, z, then for roll, pitch, yaw.
    - `feed_forward`: a signal, a wrench in the frame's axes that is added.
    """

    signal_units: ClassVar[Mapping[str, str]] = {"thrust": "N"}
    frame: str = eqx.field(static=True)
    reference: str = eqx.field(static=True)
    kp: Vec6 = eqx.field(converter=si("N/m, N m/rad", at_least=0.0))
    kd: Vec6 = eqx.field(converter=si("N s/m, N m s/rad", at_least=0.0))
    ki: Vec6 = eqx.field(
        converter=si("N/(m s), N m/(rad s)", at_least=0.0), default=(0.0,) * 6
    )
    allocation: Allocation | None = None
    torques: Literal["rotation", "exact"] = eqx.field(static=True, default="rotation")
    anti_windup: Scalar = eqx.field(converter=si("1", at_least=0.0), default=1.0)
    feed_forward: str | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.torques not in ("rotation", "exact"):
            raise ValueError(f"torques is rotation or exact, not {self.torques!r}")

    def initial_state(self) -> dict[str, Array]:
        return {"integral": jnp.zeros(6)}

    def _wanted(self, signals: Signals, what: str) -> Vec6:
        value = signals[f"{self.reference}.{what}"]
        if value.shape != (6,):
            raise ValueError(
                f"the reference {self.reference!r} of a vehicle has six values, place "
                f"and angles, not {value.shape}"
            )
        return value

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        del t
        X, V = world.pose(self.frame), world.twist(self.frame)
        angles = roll_pitch_yaw(X.R)
        T = angle_rates(angles)
        x = jnp.concatenate([X.p, angles])
        v = jnp.concatenate([V[3:], T @ (V[:3] @ X.R)])
        error = self._wanted(signals, "value") - x
        turned = jnp.arctan2(jnp.sin(error[3:]), jnp.cos(error[3:]))
        error = jnp.concatenate([error[:3], turned])
        error_rate = self._wanted(signals, "rate") - v
        w = self.kp * error + self.kd * error_rate + state["integral"]
        map_torques = T.T if self.torques == "exact" else X.R.T
        wrench = jnp.concatenate([map_torques @ w[3:], w[:3] @ X.R])
        if self.feed_forward is not None:
            wrench = wrench + signals[self.feed_forward]
        outputs = {"error": error, "effort": w}
        build_up, u = self.ki * error, wrench
        if self.allocation is not None:
            outputs["thrust"] = self.allocation.thrusts(wrench)
            u = self.allocation.delivered(outputs["thrust"])
            short = self._asked(u - wrench)
            back = _solve3(map_torques, short[:3])
            short = jnp.concatenate([X.R @ short[3:], back])
            kp = jnp.where(self.kp > 0, self.kp, 1.0)
            build_up = build_up + self.anti_windup * self.ki / kp * short
        outputs["u"] = u
        return Response({"integral": build_up}, outputs=outputs)

    def _asked(self, wrench: Vec6) -> Vec6:
        """A wrench without the axes that are not allocated."""
        assert self.allocation is not None
        mask = np.zeros(6)
        mask[self.allocation.rows] = 1.0
        return jnp.asarray(mask, wrench.dtype) * wrench


def _solve3(M: Mat3, b: Vec3) -> Vec3:
    """Solve a 3x3 system by Cramer's rule."""
    rows = jnp.stack([cross(M[:, i], M[:, j]) for i, j in ((1, 2), (2, 0), (0, 1))])
    return rows @ b / (rows[0] @ M[:, 0])
