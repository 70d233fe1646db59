"""How the runs of the launch study are made, and what is kept of them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from djdyn.system.system import Instant

from ...harness.study import Study
from .model import SPAN


DT = 1.5e-3  # s; longer steps damp the payload's own swing


def derived_series(now: Instant) -> dict[str, Array]:
    """Places, the line, and its pull on the payload."""
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
    """A run with the books audited against the energy `moved`, J."""
    saves = 1 + round(10 * span)
    how = {"max_steps": 65536, **(how or {"solver": "ros2", "dt": DT})}
    run = djdyn.simulate(system, span, y0, saveat=saves, ledger=True, **how)
    study.metric(
        f"launch.{name}.ledger",
        np.max(np.abs(djdyn.energy_balance(system, run))) / moved,
        0.0,
        1e-3,
        note=f"energy unaccounted for, of {moved:.4g} J",
    )
    study.series(name, run)
    return run, {k: np.asarray(x) for k, x in run.map(derived_series).items()}
