"""Check, relief and counterbalance valves, and the servo valve."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..smooth import eased_ramp, signed_sqrt, step
from ..typing import Scalar, known, si
from .component import AbstractPassage, AbstractValve, Conditions, Effect, States
from .orifice import LAMINAR_TRANSITION


class CheckValve(AbstractPassage):
    """A check valve from inlet to outlet.

    It is shut below the pressure drop `cracking`, and fully open `opening` above it.
    """

    inlet: str = eqx.field(static=True)
    outlet: str = eqx.field(static=True)
    gain: Scalar = eqx.field(converter=si("m^3/(s Pa^0.5)", at_least=0.0))
    cracking: Scalar = eqx.field(converter=si("Pa", at_least=0.0), default=0.0)
    opening: Scalar = eqx.field(converter=si("Pa", above=0.0), default=1e5)
    transition: Scalar = eqx.field(
        converter=si("Pa", above=0.0), default=LAMINAR_TRANSITION
    )

    def flow(self, now: Conditions) -> Scalar:
        drop = now.drop(self.inlet, self.outlet)
        u = step(drop - self.cracking, self.opening)
        return u * self.gain * signed_sqrt(drop, self.transition)


class ReliefValve(AbstractPassage):
    r"""A relief valve, $q = G\max(0,\ \Delta p - p_{set})$, smoothed over `width`."""

    inlet: str = eqx.field(static=True)
    outlet: str = eqx.field(static=True)
    setting: Scalar = eqx.field(converter=si("Pa", at_least=0.0))
    conductance: Scalar = eqx.field(converter=si("m^3/(s Pa)", at_least=0.0))
    width: Scalar = eqx.field(converter=si("Pa", above=0.0), default=1e4)

    def flow(self, now: Conditions) -> Scalar:
        drop = now.drop(self.inlet, self.outlet)
        return self.conductance * eased_ramp(drop - self.setting, self.width)


class Counterbalance(AbstractPassage):
    r"""A counterbalance valve: holds a load at its `inlet`, opened by load and pilot.

    $$u = \operatorname{clip}\Bigl(
        \frac{p_{in} + R\,p_{pilot} - p_{set}}{\Delta p},\ 0,\ 1\Bigr);$$

    Oil towards the load passes freely, through a check valve that is fully open at
    `transition`.
    """

    pilots: ClassVar[tuple[str, ...]] = ("pilot",)
    inlet: str = eqx.field(static=True)
    outlet: str = eqx.field(static=True)
    pilot: str = eqx.field(static=True)
    gain: Scalar = eqx.field(converter=si("m^3/(s Pa^0.5)", at_least=0.0))
    setting: Scalar = eqx.field(converter=si("Pa", at_least=0.0))
    ratio: Scalar = eqx.field(converter=si("1", at_least=0.0), default=3.0)
    opening: Scalar = eqx.field(converter=si("Pa", above=0.0), default=1e6)
    transition: Scalar = eqx.field(
        converter=si("Pa", above=0.0), default=LAMINAR_TRANSITION
    )

    def flow(self, now: Conditions) -> Scalar:
        drop = now.drop(self.inlet, self.outlet)
        pushed = now[self.inlet] + self.ratio * now[self.pilot] - self.setting
        u = jnp.clip(pushed / self.opening, 0.0, 1.0)
        u = u + (1 - u) * step(-drop, self.transition)
        return u * self.gain * signed_sqrt(drop, self.transition)


class ServoValve(AbstractValve):
    r"""A 4/3 proportional valve: four metering edges on one spool.

    The signal `command`, divided by `full` and kept within ±1, is where the spool $u$
    should be; it goes there at once, by $\tau\dot u = u_c - u$, or as
    $\ddot u = \omega^2(u_c - u) - 2\zeta\omega\dot u$. For $u > 0$ oil goes from supply
    to `a` and from `b` to tank, for $u < 0$ to `b` and from `a`, by edges of

    $$q = C\,\frac{\max(0, |u| - o)}{1 - o}\sqrt{\Delta p},$$

    with $o$ the overlap (negative: underlap). An edge opens smoothly over `width`.
    """

    signal_units: ClassVar[Mapping[str, str]] = {
        "flow_a": "m^3/s",
        "flow_b": "m^3/s",
        "opening": "1",
        "spool": "1",
        "rate": "1/s",
    }
    ports: ClassVar[tuple[str, ...]] = ("supply", "tank", "a", "b")
    supply: str = eqx.field(static=True)
    tank: str = eqx.field(static=True)
    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    command: str = eqx.field(static=True)
    gain: Scalar = eqx.field(converter=si("m^3/(s Pa^0.5)", at_least=0.0))
    full: Scalar = eqx.field(converter=si("", above=0.0), default=1.0)
    overlap: Scalar = eqx.field(converter=si("1"), default=0.0)
    spool: Literal["instant", "lag", "oscillator"] = eqx.field(
        static=True, default="instant"
    )
    lag: Scalar = eqx.field(converter=si("s", above=0.0), default=0.01)
    frequency: Scalar = eqx.field(converter=si("rad/s", above=0.0), default=300.0)
    damping: Scalar = eqx.field(converter=si("1", at_least=0.0), default=0.7)
    transition: Scalar = eqx.field(
        converter=si("Pa", above=0.0), default=LAMINAR_TRANSITION
    )
    width: Scalar = eqx.field(converter=si("1", above=0.0), default=1e-6)

    def __check_init__(self):
        if self.spool not in ("instant", "lag", "oscillator"):
            raise ValueError(
                f"a spool is instant, lag or oscillator, not {self.spool!r}"
            )
        if known(self.overlap) and np.any(np.asarray(self.overlap) >= 1):
            raise ValueError(f"an overlap of {self.overlap} leaves no stroke to open")

    def initial_state(self) -> States:
        states = {"instant": (), "lag": ("spool",), "oscillator": ("spool", "rate")}
        return {name: jnp.zeros(()) for name in states[self.spool]}

    def _spool(self, state: States, now: Conditions) -> tuple[Scalar, States]:
        """Return the spool's position and the rates of its states."""
        wanted = jnp.clip(now.command(self.command) / self.full, -1.0, 1.0)
        if self.spool == "instant":
            return wanted, {}
        u = state["spool"]
        if self.spool == "lag":
            return u, {"spool": (wanted - u) / self.lag}
        w = self.frequency
        pull = w**2 * (wanted - u) - 2 * self.damping * w * state["rate"]
        return u, {"spool": state["rate"], "rate": pull}

    def act(self, state: States, now: Conditions) -> Effect:
        u, rate = self._spool(state, now)
        flows = {getattr(self, port): jnp.zeros(()) for port in self.ports}
        loss = jnp.zeros(())
        for side, inlet, outlet in (
            (1.0, self.supply, self.a),
            (1.0, self.b, self.tank),
            (-1.0, self.supply, self.b),
            (-1.0, self.a, self.tank),
        ):
            opening = eased_ramp(side * u - self.overlap, self.width) / (
                1 - self.overlap
            )
            drop = signed_sqrt(now.drop(inlet, outlet), self.transition)
            q = self.gain * opening * drop
            flows[inlet], flows[outlet] = flows[inlet] - q, flows[outlet] + q
            loss += now.power_drop(q, inlet, outlet)
        outputs = {"flow_a": flows[self.a], "flow_b": flows[self.b], "opening": u}
        return Effect(flows, loss, rate=rate, outputs=outputs)
