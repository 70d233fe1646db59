r"""Control of an arm on a base that moves: joints, and the end effector."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float

from djdyn.multibody import dynamics
from djdyn.multibody.kinematics import World, forward_kinematics
from djdyn.multibody.mechanism import Mechanism
from djdyn.parts.base import AbstractPart, AbstractSignalPart, Response, Signals
from djdyn.parts.joint import names
from djdyn.parts.units import JointUnit, Unit
from djdyn.parts.winch import scalar
from djdyn.smooth import clip
from djdyn.typing import Scalar, si


Each = Float[Array, "*#n"]  # one for all joints, or one each


def _speeds(mechanism: Mechanism, joints: tuple[str, ...]) -> np.ndarray:
    """Return where the joints' speeds are in `v`; each joint has one."""
    rows = []
    for joint in joints:
        where = mechanism.v_slice(joint)
        if where.stop - where.start != 1:
            raise ValueError(f"joint {joint!r} of the arm has not one speed")
        rows.append(int(where.start))
    return np.array(rows)


class ArmPID(AbstractSignalPart):
    r"""PID control of an arm's joints with feed-forward from a model; output `u`.

    With $e = q_d - q$ and outputs `value`, `rate` and `acceleration` of the part
    `reference`,

    $$u = \tau_{ff} + K_pe + K_d\dot e + I,\qquad \dot I = K_ie .$$

    The feed-forward is the inverse dynamics of the whole machine at the measured
    coordinates and at the arm's reference speeds and accelerations. The base is taken
    as at rest (`base` `"still"`) or as moving steadily with its measured speeds
    (`"moving"`).

    **Arguments:**

    - `known`: parts without state whose loads the controller counts on, such as the
      buoyancy of the links.
    - `payload`, `tool`, `holding`: a mass whose weight the controller expects at the
      frame `tool`, while the signal `holding` is one.
    - `model`: the controller's model of the machine; by default the machine itself.
    """

    joints: tuple[str, ...] = eqx.field(static=True, converter=names)
    reference: str = eqx.field(static=True)
    kp: Each = eqx.field(converter=si("N m/rad, N/m", at_least=0.0))
    kd: Each = eqx.field(converter=si("N m s/rad, N s/m", at_least=0.0))
    ki: Each = eqx.field(
        converter=si("N m/(rad s), N/(m s)", at_least=0.0), default=0.0
    )
    base: Literal["still", "moving"] = eqx.field(static=True, default="still")
    known: tuple[AbstractPart, ...] = ()
    payload: Scalar = eqx.field(converter=si("kg", at_least=0.0), default=0.0)
    tool: str | None = eqx.field(static=True, default=None)
    holding: str | None = eqx.field(static=True, default=None)
    model: Mechanism | None = None

    def __check_init__(self):
        if self.base not in ("still", "moving"):
            raise ValueError(f"base is still or moving, not {self.base!r}")

    @property
    def signal_units(self) -> Mapping[str, Unit]:
        """Units of signals: forces of joints, and their errors."""
        force, error = JointUnit.FORCE, JointUnit.COORDINATE
        return {"u": force, "integral": force, "error": error, "feed_forward": force}

    def initial_state(self) -> dict[str, Array]:
        return {"integral": jnp.zeros(len(self.joints))}

    def _feed_forward(
        self, world: World, signals: Signals, rows: np.ndarray, rate: Array, a: Array
    ) -> Array:
        eye = jnp.asarray(np.eye(world.mechanism.nv)[:, rows], world.v.dtype)
        v = eye @ rate
        if self.base == "moving":
            v = v + world.v - eye @ world.v[rows]
        mechanism = world.mechanism if self.model is None else self.model
        here = forward_kinematics(mechanism, world.q, v, world.t)
        F_WB = jnp.zeros_like(here.V_WB)
        for part in self.known:
            for load in part(world.t, part.initial_state(), here, signals).loads:
                F_WB = F_WB + load.wrenches(here)  # pyright: ignore
        tau = dynamics.inverse(here, eye @ a, F_WB)[rows]
        if self.tool is not None:
            hold = jnp.ones(()) if self.holding is None else None
            hold = scalar(signals, self.holding) if hold is None else hold  # pyright: ignore
            weight = hold * self.payload * here.gravity_W
            tau = tau - here.jacobian(self.tool)[3:, rows].T @ weight
        return tau

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        del t
        of = lambda what: jnp.atleast_1d(signals[f"{self.reference}.{what}"])
        rows, n = _speeds(world.mechanism, self.joints), len(self.joints)
        q_d, v_d, a_d = of("value"), of("rate"), of("acceleration")
        if q_d.shape != (n,):
            raise ValueError(
                f"the reference {self.reference!r} has {q_d.shape} values for {n} "
                "joints"
            )
        q = jnp.concatenate([world.joint(joint)[0] for joint in self.joints])
        error, error_rate = q_d - q, v_d - world.v[rows]
        ahead = self._feed_forward(world, signals, rows, v_d, a_d)
        u = ahead + self.kp * error + self.kd * error_rate + state["integral"]
        outputs = {"u": u, "error": error, "feed_forward": ahead}
        return Response({"integral": self.ki * error}, outputs=outputs)


class EndEffectorControl(AbstractSignalPart):
    r"""References of joints that move an end effector along a path in the world.

    With $J$ the Jacobian of the frame `tool` by the joints, $v_b$ what the base adds to
    its velocity and $x_d$ the signal `target`,

    $$\dot q_d = J^+\bigl(\dot x_d + K(x_d - x) - v_b\bigr)
      + (1 - J^+J)\,k\,(q_p - q_d),\qquad
      J^+ = J^\top(JJ^\top + \lambda^2)^{-1} .$$

    The joints that the position does not need go to the posture $q_p$. The damping
    $\lambda$ keeps rates finite at singular positions. Outputs `value` ($q_d$), `rate`
    and `acceleration` (zero), for an `ArmPID`, and `error`.

    **Arguments:**

    - `rate`: the signal $\dot x_d$, zero without one.
    - `gain`, `posture_gain`: $K$ and $k$.
    - `rate_limit`: of the joints, with corners rounded within a thousandth of it.
    """

    joints: tuple[str, ...] = eqx.field(static=True, converter=names)
    tool: str = eqx.field(static=True)
    target: str = eqx.field(static=True)
    start: Float[Array, " n"] = eqx.field(converter=si("rad, m"))
    gain: Scalar = eqx.field(converter=si("1/s", at_least=0.0), default=1.0)
    posture: Each = eqx.field(converter=si("rad, m"), default=0.0)
    posture_gain: Scalar = eqx.field(converter=si("1/s", at_least=0.0), default=0.0)
    damping: Scalar = eqx.field(converter=si("m", above=0.0), default=0.01)
    rate: str | None = eqx.field(static=True, default=None)
    rate_limit: Each = eqx.field(converter=si("rad/s, m/s", above=0.0), default=1e3)
    signal_units: ClassVar[Mapping[str, Unit]] = {"error": "m"}

    def initial_state(self) -> dict[str, Array]:
        return {"path": self.start}

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t
        rows, target = _speeds(world.mechanism, self.joints), signals[self.target]
        if target.shape != (3,):
            raise ValueError(f"signal {self.target!r} is no place: {target.shape}")
        p_W, v_W = world.point(self.tool)
        J = world.jacobian(self.tool)[3:, rows]
        base = v_W - J @ world.v[rows]
        wanted = self.gain * (target - p_W) - base
        if self.rate is not None:
            wanted = wanted + signals[self.rate]
        soft = self.damping**2 * jnp.eye(3, dtype=J.dtype)
        low = jnp.linalg.cholesky(J @ J.T + soft)
        inverse = lambda x: J.T @ cho_solve((low, True), x)
        idle = self.posture_gain * (self.posture - state["path"])
        rate = inverse(wanted) + idle - inverse(J @ idle)
        most = self.rate_limit
        rate = clip(rate, -most, most, 1e-3 * most)
        outputs = {"value": state["path"], "rate": rate}
        outputs |= {"acceleration": jnp.zeros_like(rate), "error": target - p_W}
        return Response({"path": rate}, outputs=outputs)
