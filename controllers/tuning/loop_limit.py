"""The modulus margin and the stability of loops, as constraints of a tuning."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from djdyn import State, System, with_parameters

from ..linear.linearise import signal_of
from ..linear.margins import moduli, opened
from .options import RobustnessMargins
from .scenarios import Scenarios


MODULUS_MARGIN, SPECTRAL_ABSCISSA = "modulus margin", "spectral abscissa"
REFERENCE_TIME = 1.0  # s, makes the spectral abscissa a number without a unit


class LoopLimit(eqx.Module):
    """Loops opened about one state of each scenario, and the margin they must keep.

    Without `states` they are opened about the states that runs have at `t`, s.
    `entries` counts the numbers of all `signals`; `delay`, s, is in every loop.
    """

    states: State | None
    t: float = eqx.field(static=True)
    signals: tuple[str, ...] = eqx.field(static=True)
    entries: int = eqx.field(static=True)
    delay: float = eqx.field(static=True)
    modulus: float = eqx.field(static=True)

    def multipliers(self, count: int) -> dict[str, Float[Array, "scenarios n"]]:
        """Return zero Lagrange multipliers for so many scenarios."""
        return {
            MODULUS_MARGIN: jnp.zeros((count, self.entries)),
            SPECTRAL_ABSCISSA: jnp.zeros((count, 1)),
        }

    def excess(
        self, system: System, parameters: dict[str, Array], states: State
    ) -> dict[str, Float[Array, "scenarios n"]]:
        """Return by how much each scenario exceeds the limits, relative to them."""

        def distances(values: dict[str, Array], y: State) -> tuple[Array, Array]:
            here = with_parameters(system, values)
            loops = opened(here, y, self.signals, self.t)
            return moduli(loops.with_delay(self.delay))

        distance, spectral_abscissa = jax.vmap(distances)(parameters, states)
        unstable = REFERENCE_TIME * spectral_abscissa[:, None]
        # Once a loop is unstable its distance from minus one grows again: subtracting
        # the spectral abscissa outweighs that.
        near = distance - jnp.maximum(unstable, 0.0)
        return {MODULUS_MARGIN: 1 - near / self.modulus, SPECTRAL_ABSCISSA: unstable}


def loop_limit(
    system: System, scenarios: Scenarios, robustness: RobustnessMargins | None
) -> LoopLimit | None:
    """Return the limit on the loops of all scenarios, if a modulus is asked for."""
    if robustness is None or robustness.modulus is None:
        return None
    signals, operating_point = robustness.signals, robustness.operating_point
    sent = system.at(0.0, system.initial_state()).signals
    entries = sum(signal_of(sent, name).size for name in signals)
    states = None
    if callable(operating_point):
        each = [
            operating_point(scenarios.put(system, k)) for k in range(len(scenarios))
        ]
        states = jax.tree.map(lambda *x: jnp.stack(x), *each)
    return LoopLimit(
        states, robustness.time, signals, entries, robustness.delay, robustness.modulus
    )
