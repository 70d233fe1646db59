"""Orifices, metering edges and leakage gaps."""

import equinox as eqx
import jax.numpy as jnp

from ..smooth import eased_ramp, signed_sqrt
from ..typing import Scalar, si
from .component import AbstractPassage, Conditions


LAMINAR_TRANSITION = 1e5  # Pa: default pressure drop below which flow is laminar


class Orifice(AbstractPassage):
    r"""A sharp-edged orifice.

    $$q = C_d A\,\sqrt{2/\rho}\,\operatorname{sign}(\Delta p)\sqrt{|\Delta p|}$$

    Below `transition` the flow turns laminar, linear in the drop, joined in value and
    slope. With `command` the area is multiplied by a signal, between zero and one.
    """

    inlet: str = eqx.field(static=True)
    outlet: str = eqx.field(static=True)
    area: Scalar = eqx.field(converter=si("m^2", at_least=0.0))
    discharge: Scalar = eqx.field(converter=si("1", at_least=0.0), default=0.6)
    transition: Scalar = eqx.field(
        converter=si("Pa", above=0.0), default=LAMINAR_TRANSITION
    )
    command: str | None = eqx.field(static=True, default=None)

    def flow(self, now: Conditions) -> Scalar:
        u = 1.0 if self.command is None else now.command(self.command).clip(0.0, 1.0)
        gain = u * self.discharge * self.area * jnp.sqrt(2 / now.oil.density)
        return gain * signed_sqrt(now.drop(self.inlet, self.outlet), self.transition)


class MeteringEdge(AbstractPassage):
    r"""A metering edge by catalogue data, $q = C\,u\sqrt{\min(\Delta p, \Delta p_c)}$.

    $C$ follows from the nominal flow as $Q_N/\sqrt{\Delta p_N}$; the opening $u$ from
    zero to one is a signal, or full. A pressure compensator holds the drop over the
    edge at $\Delta p_c$ (`compensation`), so that the load does not change the flow.
    """

    inlet: str = eqx.field(static=True)
    outlet: str = eqx.field(static=True)
    gain: Scalar = eqx.field(converter=si("m^3/(s Pa^0.5)", at_least=0.0))
    command: str | None = eqx.field(static=True, default=None)
    compensation: Scalar = eqx.field(converter=si("Pa", above=0.0), default=1e12)
    transition: Scalar = eqx.field(
        converter=si("Pa", above=0.0), default=LAMINAR_TRANSITION
    )

    def flow(self, now: Conditions) -> Scalar:
        u = 1.0 if self.command is None else now.command(self.command).clip(0.0, 1.0)
        drop = now.drop(self.inlet, self.outlet)
        drop = drop - eased_ramp(drop - self.compensation, self.transition)
        return self.gain * u * signed_sqrt(drop, self.transition)


class Leakage(AbstractPassage):
    r"""Laminar leakage through a narrow gap, $q = G\,\Delta p$."""

    inlet: str = eqx.field(static=True)
    outlet: str = eqx.field(static=True)
    conductance: Scalar = eqx.field(converter=si("m^3/(s Pa)", at_least=0.0))

    def flow(self, now: Conditions) -> Scalar:
        return self.conductance * now.drop(self.inlet, self.outlet)
