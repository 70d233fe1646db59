"""Rotary motors, pumps, and pipes with inertia."""

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from ..multibody.kinematics import World
from ..parts.loads import JointLoad
from ..typing import Scalar, si
from .component import AbstractRigid, AbstractValve, Conditions, Effect, States
from .oil import Oil


class Motor(AbstractValve):
    r"""An ideal motor on a joint, driven by oil from `a` to `b`.

    $\tau = V_p(p_a - p_b)$ and $q = V_p\,\omega$ at the mean density of the oil between
    its ports, so that nothing is lost. If the oil conserves volume, its energy of
    compression counts as lost, or as drawn from outside.
    """

    signal_units: ClassVar[Mapping[str, str]] = {"torque": "N m", "flow": "m^3/s"}
    ports: ClassVar[tuple[str, ...]] = ("a", "b")
    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    displacement: Scalar = eqx.field(converter=si("m^3/rad", above=0.0))

    def initial_state(self) -> States:
        return {}

    def act(self, state: States, now: Conditions) -> Effect:
        del state
        p_a, p_b = now[self.a], now[self.b]
        _, v = now.world.joint(self.joint)
        torque = self.displacement * (p_a - p_b)
        swept = self.displacement * v.reshape(())
        q = swept * now.oil.mean_relative_density(p_a, p_b)
        loss, source = _lost_compression(now, q, p_a, p_b)
        return Effect(
            {self.a: -q, self.b: q},
            loss,
            source,
            loads=(JointLoad(self.joint, torque[None]),),
            outputs={"torque": torque, "flow": q},
        )


def _lost_compression(
    now: Conditions, q: Scalar, p1: Scalar, p2: Scalar
) -> tuple[Scalar, Scalar]:
    """Return the power lost and drawn by compression if the oil conserves volume, W."""
    if now.oil.conserves == "mass":
        return jnp.zeros(()), jnp.zeros(())
    kept = now.oil.surplus(q, p1, p2)
    return jnp.maximum(kept, 0.0), jnp.maximum(-kept, 0.0)


class Pump(AbstractValve):
    r"""A pressure-compensated pump with a limited flow.

    $$q = q_{max}\operatorname{clip}\bigl((p_{set} - \Delta p)/p_{droop},\ 0, 1\bigr),$$

    from `inlet` to `outlet`. Its shaft draws the power that the oil gains.
    """

    signal_units: ClassVar[Mapping[str, str]] = {"flow": "m^3/s", "power": "W"}
    ports: ClassVar[tuple[str, ...]] = ("inlet", "outlet")
    inlet: str = eqx.field(static=True)
    outlet: str = eqx.field(static=True)
    limit: Scalar = eqx.field(converter=si("m^3/s", above=0.0))
    setting: Scalar = eqx.field(converter=si("Pa", above=0.0))
    droop: Scalar = eqx.field(converter=si("Pa", above=0.0), default=5e5)

    def initial_state(self) -> States:
        return {}

    def act(self, state: States, now: Conditions) -> Effect:
        del state
        rise = now.drop(self.outlet, self.inlet)
        q = self.limit * jnp.clip((self.setting - rise) / self.droop, 0.0, 1.0)
        power = -now.power_drop(q, self.inlet, self.outlet)
        flows = {self.inlet: -q, self.outlet: q}
        return Effect(flows, jnp.zeros(()), power, outputs={"flow": q, "power": power})


class Pipe(AbstractRigid):
    r"""A pipe: inertia of the oil and laminar friction.

    $$\frac{\rho L}{A}\,\dot q = h_1 - h_2 - R\,q ,$$

    with pressures instead of enthalpies if the oil conserves volume. The state is the
    flow in litres a second, `l_per_s`. Its oil's compliance stands at the nodes: a
    chain of `Pipe` and `Volume` is a line with waves.
    """

    signal_units: ClassVar[Mapping[str, str]] = {"l_per_s": "l/s"}
    ports: ClassVar[tuple[str, ...]] = ("inlet", "outlet")
    inlet: str = eqx.field(static=True)
    outlet: str = eqx.field(static=True)
    length: Scalar = eqx.field(converter=si("m", above=0.0))
    area: Scalar = eqx.field(converter=si("m^2", above=0.0))
    resistance: Scalar = eqx.field(converter=si("Pa s/m^3", at_least=0.0), default=0.0)
    flow: Scalar = eqx.field(converter=si("m^3/s"), default=0.0)

    def inertance(self, oil: Oil) -> Scalar:
        """Return the inertance $\\rho L/A$, Pa s^2/m^3."""
        return oil.density * self.length / self.area

    def initial_state(self) -> States:
        return {"l_per_s": 1e3 * self.flow}

    def act(self, state: States, now: Conditions) -> Effect:
        q = 1e-3 * state["l_per_s"]
        p1, p2 = now[self.inlet], now[self.outlet]
        push = (p1 - p2) / now.oil.mean_relative_density(p1, p2)
        loss, source = _lost_compression(now, q, p1, p2)
        rate = (push - self.resistance * q) / self.inertance(now.oil)
        return Effect(
            {self.inlet: -q, self.outlet: q},
            loss + self.resistance * q**2,
            source,
            {"l_per_s": 1e3 * rate},
        )

    def energy(self, state: States, world: World, oil: Oil) -> Scalar:
        del world
        return self.inertance(oil) * (1e-3 * state["l_per_s"]) ** 2 / 2
