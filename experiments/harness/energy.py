"""Energy residual of a simulation, as a metric of a study."""

import numpy as np

import djdyn

from .study import Study


def energy_residual(
    study: Study,
    name: str,
    run: djdyn.Trajectory,
    *,
    at_most: float,
    scale: float | None = None,
) -> None:
    """Report the largest energy residual of a run, relative to an energy.

    **Arguments:**

    - `scale`: the energy in J that the residual is divided by; left out, it is the
        range of the stored energy.
    """
    scale = float(np.ptp(run.energy())) if scale is None else scale
    residual = np.max(np.abs(djdyn.energy_balance(run.system, run)))
    note = f"largest energy residual, over {scale:.4g} J"
    study.metric(name, residual / scale, at_most=at_most, note=note)
