"""Poles and margins of tuned loops, in all scenarios, before and after tuning."""

from collections.abc import Sequence

import equinox as eqx
import jax
import numpy as np

from djdyn import State, System
from djdyn.optimize.problem import Flat

from ..linear.linearise import linearise
from ..linear.margins import Margins, margins
from .objective import Objective
from .options import RobustnessMargins


Operating = list[tuple[System, State]]  # each scenario at its operating point


def check_robustness(
    objective: Objective, x: Flat, robustness: RobustnessMargins | None
) -> tuple[np.ndarray | None, tuple[Margins, Margins] | None]:
    """Return the stability of an objective's loops with its first gains and with `x`.

    Where a run has diverged before its operating point, the spectral abscissa is
    infinite and there are no margins.

    **Returns:** the spectral abscissa before and after in all scenarios, 1/s, and the
    worst margins of all scenarios before and after, if a loop is named.
    """
    if robustness is None:
        return None, None
    t, both = robustness.time, [
        _operating(objective, gains, robustness) for gains in (objective.x0, x)
    ]  # fmt: skip
    abscissae = np.array([[_spectral_abscissa(*at, t) for at in some] for some in both])
    if robustness.loop is None:
        return abscissae, None
    before, after = (_worst_margins(some, robustness) for some in both)
    return abscissae, (before, after)


def _operating(
    objective: Objective, x: Flat, robustness: RobustnessMargins
) -> Operating:
    """Return the systems of all scenarios with these gains, and their states."""
    tuned, scenarios = objective.system_at(x), objective.scenarios
    systems = [scenarios.put(tuned, k) for k in range(len(scenarios))]
    if callable(robustness.operating_point):
        return [(system, robustness.operating_point(system)) for system in systems]
    states = _states_at(objective, x, robustness.time)
    of = lambda k: jax.tree.map(lambda x: x[k], states)
    return [(system, of(k)) for k, system in enumerate(systems)]


@eqx.filter_jit
def _states_at(objective: Objective, x: Flat, t: float) -> State:
    return objective.states_at(x, t)


def _spectral_abscissa(system: System, y: State, t: float) -> float:
    """Return the largest real part of a pole, 1/s."""
    if not _finite(y):
        return np.inf
    return float(np.max(np.real(linearise(system, y, t=t).poles())))


def _finite(y: State) -> bool:
    return all(np.all(np.isfinite(x)) for x in jax.tree.leaves(y))


def _worst_margins(some: Operating, robustness: RobustnessMargins) -> Margins:
    """Return the smallest margins of all scenarios, entry by entry."""
    of = lambda system, y: margins(
        system, y, robustness.signals, robustness.delay, robustness.time
    )
    return _worst([of(system, y) for system, y in some if _finite(y)])


def _worst(some: Sequence[Margins]) -> Margins:
    gains = np.array([m.gain for m in some])
    near = np.argmin(np.abs(np.log(gains)), 0)
    return Margins(
        np.take_along_axis(gains, near[None], 0)[0],
        np.min([m.phase for m in some], 0),
        np.min([m.modulus for m in some], 0),
        np.min([m.delay for m in some], 0),
        max(m.spectral_abscissa for m in some),
    )
