r"""Couplings that a signal closes and opens, and supports that act when touched."""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from ..multibody.kinematics import World
from ..multibody.spatial import (
    cross,
    quat_from_rotation,
    quat_log,
    quat_multiply,
    quat_rate,
)
from ..smooth import eased_square, step
from ..typing import Mat3, Scalar, Vec3, optional, si
from .base import AbstractPart, AbstractPassivePart, Response, Signals
from .loads import Load
from .winch import scalar


class Grip(AbstractPart):
    r"""Spring and damper that hold frame `head` H to frame `tail` T while engaged.

    The signal `engaged` is one to hold and zero to let go. With $h$ the hold, which
    follows it with the lag `switch_time`, $d$ the position of H in T and $\theta$ its
    rotation vector, the head feels

    $$f = -h\,(k\,d + c\,\dot d),\qquad
      \tau = -h\,(k_\theta\,\theta + c_\theta\,\omega) ,$$

    and the tail the opposite at the same point, so momentum is kept at every instant.
    `start` is the hold at first. A `latch` holds where it catches: $d$ and $\theta$
    then count from the relative pose that it followed, with the same lag, while it was
    open; at first they count from frames that coincide. Without a stiffness or damping
    of turning it is a ball joint.

    A grip that closes on stretched springs is given their energy, and takes it when it
    opens; the ledger books that as power from outside. To attach a cable at run time,
    pin its end to a small body and grip the object with that. Outputs: `force` and
    `torque` on the head; the state `hold`.
    """

    signal_units: ClassVar[Mapping[str, str]] = {
        "force": "N",
        "torque": "N m",
        "hold": "1",
        "offset": "m",
    }
    tail: str = eqx.field(static=True)
    head: str = eqx.field(static=True)
    engaged: str = eqx.field(static=True)
    stiffness: Scalar = eqx.field(converter=si("N/m", at_least=0.0))
    damping: Scalar = eqx.field(converter=si("N s/m", at_least=0.0), default=0.0)
    turn_stiffness: Scalar | None = eqx.field(
        converter=optional(si("N m/rad", at_least=0.0)), default=None
    )
    turn_damping: Scalar | None = eqx.field(
        converter=optional(si("N m s/rad", at_least=0.0)), default=None
    )
    latch: bool = eqx.field(static=True, default=False)
    switch_time: Scalar = eqx.field(converter=si("s", above=0.0), default=0.02)
    start: Scalar = eqx.field(converter=si("1", at_least=0.0), default=0.0)

    @property
    def turns(self) -> bool:
        """Whether it resists turning."""
        return self.turn_stiffness is not None or self.turn_damping is not None

    def initial_state(self) -> dict[str, Array]:
        state = {"hold": self.start}
        if self.latch:
            state["offset"] = jnp.zeros(3)
            if self.turns:
                state["turn"] = jnp.array([1.0, 0.0, 0.0, 0.0])
        return state

    def _apart(self, state: dict, world: World) -> tuple[Mat3, Vec3, Vec3, Vec3]:
        """Axes of the tail, head's position and velocity in it, and its rotation."""
        X_T, X_H = world.pose(self.tail), world.pose(self.head)
        V_T, V_H = world.twist(self.tail), world.twist(self.head)
        arm = X_H.p - X_T.p
        d, v = arm @ X_T.R, (V_H[3:] - V_T[3:] - cross(V_T[:3], arm)) @ X_T.R
        if self.latch:
            d = d - state["offset"]
        theta = jnp.zeros_like(d)
        if self.turns:
            q = quat_from_rotation(X_T.R.T @ X_H.R)
            if self.latch:  # from where it caught
                conjugate = jnp.asarray([1.0, -1.0, -1.0, -1.0], q.dtype)
                q = quat_multiply(state["turn"] * conjugate, q)
            theta = quat_log(q)
        return X_T.R, d, v, theta

    def _springs(self) -> tuple[Scalar, Scalar]:
        """Stiffness and damping of turning."""
        none = jnp.zeros_like(self.stiffness)
        k, c = self.turn_stiffness, self.turn_damping
        return none if k is None else k, none if c is None else c

    def _turned(self, world: World, theta: Vec3) -> tuple[Vec3, Vec3]:
        """The rotation vector in world axes, and the relative angular velocity."""
        w = world.twist(self.head)[:3] - world.twist(self.tail)[:3]
        return world.pose(self.head).R @ theta, w

    def _rates(self, state: dict, world: World, signals: Signals) -> dict[str, Array]:
        target = jnp.clip(scalar(signals, self.engaged), 0.0, 1.0)
        rate = {"hold": (target - state["hold"]) / self.switch_time}
        if self.latch:
            follow = (1 - target) / self.switch_time
            _, d, _, theta = self._apart(state, world)
            rate["offset"] = follow * d
            if self.turns:
                rate["turn"] = quat_rate(state["turn"], follow * theta)
        return rate

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        del t
        R, d, v, theta = self._apart(state, world)
        hold = state["hold"]
        f_W = -hold * (R @ (self.stiffness * d + self.damping * v))
        tau_W = jnp.zeros_like(f_W)
        if self.turns:
            k, c = self._springs()
            theta_W, w = self._turned(world, theta)
            tau_W = -hold * (k * theta_W + c * w)
        on, against = (world.mechanism.frame(f).body for f in (self.head, self.tail))
        load = Load(on, against, world.pose(self.head).p, f_W, tau_W)
        outputs = {"force": f_W, "torque": tau_W}
        return Response(self._rates(state, world, signals), (load,), outputs)

    def _stored(self, d: Vec3, theta: Vec3) -> Scalar:
        k, _ = self._springs()
        return (self.stiffness * (d @ d) + k * (theta @ theta)) / 2

    def energy(self, state: dict, world: World) -> Scalar:
        _, d, _, theta = self._apart(state, world)
        return state["hold"] * self._stored(d, theta)

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t, signals
        _, _, v, theta = self._apart(state, world)
        loss = self.damping * (v @ v)
        if self.turns:
            _, w = self._turned(world, theta)
            loss = loss + self._springs()[1] * (w @ w)
        return state["hold"] * loss

    def power_in(self, t: Scalar, state: Any, world: World, signals: Signals) -> Scalar:
        """What closing and opening put in and take out."""
        del t
        rate = self._rates(state, world, signals)
        _, d, _, theta = self._apart(state, world)
        power = rate["hold"] * self._stored(d, theta)
        if self.latch:
            target = jnp.clip(scalar(signals, self.engaged), 0.0, 1.0)
            follow = 2 * (1 - target) / self.switch_time
            power = power - state["hold"] * follow * self._stored(d, theta)
        return power


class Support(AbstractPassivePart):
    r"""A level support that carries the origin of `frame` when it comes down on it.

    With $x$ the depth below `height` and $\dot x$ its rate, it pushes up with
    $s(x/w)\max(0, kx + c\dot x)$, where the step $s$ brings the force in over the first
    `width`, and resists sliding with $s(x/w)\,c_t$ times its speed. Output: `force`.
    """

    signal_units: ClassVar[Mapping[str, str]] = {"force": "N"}
    frame: str = eqx.field(static=True)
    height: Scalar = eqx.field(converter=si("m"))
    stiffness: Scalar = eqx.field(converter=si("N/m", at_least=0.0))
    damping: Scalar = eqx.field(converter=si("N s/m", at_least=0.0), default=0.0)
    sliding: Scalar = eqx.field(converter=si("N s/m", at_least=0.0), default=0.0)
    width: Scalar = eqx.field(converter=si("m", above=0.0), default=1e-4)

    def initial_state(self) -> dict:
        return {}

    def _push(self, world: World) -> tuple[Vec3, Scalar, Vec3, Vec3]:
        """The force, its elastic share, and place and velocity of the frame."""
        p_W, v_W = world.point(self.frame)
        x, rate = jnp.maximum(self.height - p_W[2], 0.0), -v_W[2]
        touched = step(x, self.width)
        spring = touched * self.stiffness * x
        push = touched * jnp.maximum(self.stiffness * x + self.damping * rate, 0.0)
        slide = -touched * self.sliding * v_W[:2]
        return jnp.concatenate([slide, push[None]]), spring, p_W, v_W

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, signals
        f_W, _, p_W, _ = self._push(world)
        body = world.mechanism.frame(self.frame).body
        load = Load(body, "world", p_W, f_W, jnp.zeros_like(f_W))
        return Response(state, (load,), {"force": f_W})

    def energy(self, state: Any, world: World) -> Scalar:
        del state
        x = jnp.maximum(self.height - world.point(self.frame)[0][2], 0.0)
        return self.stiffness * eased_square(x, self.width)

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t, state, signals
        f_W, spring, _, v_W = self._push(world)
        return -f_W @ v_W + spring * v_W[2]
