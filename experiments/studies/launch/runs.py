"""Simulations of the launch study, and the series derived from them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from djdyn.system.instant import Instant

from ...harness.energy import energy_residual
from ...harness.study import Study
from .model import SPAN


DT = 1.5e-3  # s; longer steps damp the swing of the payload


def derived_series(now: Instant) -> dict[str, Array]:
    """Return body poses, points of the line, and its force on the payload."""
    line: Any = now.system.parts["line"]
    state = now.y.parts["line"]
    s = jnp.linspace(0.0, 1.0, 9) * line.length_out(state)
    points = jax.vmap(lambda x: line.at(now, "line", x)["position"])(s)
    X = now.world.X_WB
    return {
        "R": X.R,
        "p": X.p,
        "line": points,
        "pull": line.end_loads(now, "line")[0, 3:],
    }


def simulate(
    study: Study,
    name: str,
    system: djdyn.System,
    y0: djdyn.State,
    moved: float,
    span: float = SPAN,
    **how: Any,
) -> tuple[djdyn.Trajectory, dict[str, np.ndarray]]:
    """Simulate, and report the energy residual relative to the energy `moved`, J."""
    saves = 1 + round(10 * span)
    how = {"max_steps": 65536, **(how or {"solver": "ros2", "dt": DT})}
    run = djdyn.simulate(system, span, y0, saveat=saves, ledger=True, **how)
    energy_residual(study, f"launch.{name}.ledger", run, at_most=1e-3, scale=moved)
    study.series(name, run)
    return run, {k: np.asarray(x) for k, x in run.map(derived_series).items()}
