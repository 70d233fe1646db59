"""Guidance: smooth references from joysticks and targets."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from djdyn.multibody.kinematics import World
from djdyn.parts.base import AbstractSignalPart, Response, Signals
from djdyn.smooth import step
from djdyn.typing import known, si


Each = Float[Array, "*#n"]  # one for all joints, or one each


class Joystick(AbstractSignalPart):
    r"""A target that joysticks move at given rates, within limits.

    $\dot q_r = S\,i$ for joysticks $i$ within ±1. The rate falls to zero over `width`
    before `lower` + `margin` and `upper` - `margin`, so nothing winds up at a stop. The
    output `value` is $q_r$, which begins at `start`.
    """

    stick: str = eqx.field(static=True)
    rates: Each = eqx.field(converter=si("rad/s, m/s", at_least=0.0))
    start: Float[Array, " n"] = eqx.field(converter=si("rad, m"))
    lower: Each = eqx.field(converter=si("rad, m"), default=-1e9)
    upper: Each = eqx.field(converter=si("rad, m"), default=1e9)
    margin: Each = eqx.field(converter=si("rad, m", at_least=0.0), default=0.0)
    width: Each = eqx.field(converter=si("rad, m", above=0.0), default=1e-4)

    def __check_init__(self):
        low, high = self.lower + self.margin, self.upper - self.margin
        if known(low, high) and np.any(np.asarray(low) > np.asarray(high)):
            raise ValueError(f"the lower limit {low} is above the upper limit {high}")

    def initial_state(self) -> dict[str, Array]:
        return {"target": self.start}

    def __call__(self, t, state: dict, world: World, signals: Signals) -> Response:
        del t, world
        q, push = state["target"], self.rates * jnp.clip(signals[self.stick], -1.0, 1.0)
        if push.shape != q.shape:
            raise ValueError(
                f"signal {self.stick!r} moves {push.shape} targets, but the start has "
                f"{q.shape}"
            )
        room = jnp.where(
            push > 0, self.upper - self.margin - q, q - self.lower - self.margin
        )
        rate = push * step(room, self.width)
        return Response({"target": rate}, outputs={"value": q, "rate": rate})


class ReferenceModel(AbstractSignalPart):
    r"""A third-order reference model of a target, with a limit on its rate.

    $$\dot x = \operatorname{clip}\bigl(\omega(q_r - x),\ \pm\dot q_{max}\bigr),\qquad
      \ddot q_d = \omega^2(x - q_d) - 2\zeta\omega\,\dot q_d ;$$

    without a limit

    $$q_d^{(3)} + (2\zeta+1)\omega\,\ddot q_d + (2\zeta+1)\omega^2\dot q_d
      + \omega^3 q_d = \omega^3 q_r .$$

    For $\zeta \ge 1$ the reference is never faster than
    `rate_limit`. Outputs `value`, `rate`, `acceleration` and `jerk`.
    """

    target: str = eqx.field(static=True)
    start: Float[Array, " n"] = eqx.field(converter=si("rad, m"))
    frequency: Each = eqx.field(converter=si("rad/s", above=0.0), default=10.0)
    damping: Each = eqx.field(converter=si("1", at_least=0.0), default=1.0)
    rate_limit: Each = eqx.field(converter=si("rad/s, m/s", above=0.0), default=1e9)

    def initial_state(self) -> dict[str, Array]:
        return {
            "shaped": self.start,
            "path": self.start,
            "path_rate": jnp.zeros_like(self.start),
        }

    def __call__(self, t, state: dict, world: World, signals: Signals) -> Response:
        del t, world
        x, q, v = state["shaped"], state["path"], state["path_rate"]
        w, target = self.frequency, jnp.atleast_1d(signals[self.target])
        if target.shape != q.shape:
            raise ValueError(
                f"signal {self.target!r} has shape {target.shape}, but the start has "
                f"{q.shape}"
            )
        x_dot = jnp.clip(w * (target - x), -self.rate_limit, self.rate_limit)
        a = w**2 * (x - q) - 2 * self.damping * w * v
        jerk = w**2 * (x_dot - v) - 2 * self.damping * w * a
        return Response(
            {"shaped": x_dot, "path": v, "path_rate": a},
            outputs={"value": q, "rate": v, "acceleration": a, "jerk": jerk},
        )
