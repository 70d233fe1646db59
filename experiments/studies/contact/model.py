"""Bodies over planes, shared by the contact cases."""

from typing import Any

import numpy as np

import djdyn

from ...harness.energy import energy_residual
from ...harness.study import Study


G = 9.81  # m/s^2
DOWN = (0.0, 0.0, -G)


def over(
    part: djdyn.AbstractPart,
    mass: float,
    inertia: Any = 1.0,
    *,
    top: float = 0.0,
    gravity: Any = DOWN,
    joint: Any = None,
) -> djdyn.System:
    """Return a body `b`, free unless a joint is given, over a frame `bed`."""
    I_BC = np.asarray(inertia) * np.eye(3)
    body = djdyn.Body("b", "world", joint or djdyn.Free(), mass, I_BC=I_BC)
    bed = djdyn.Frame("bed", "world", djdyn.translation((0.0, 0.0, top)))
    mechanism = djdyn.Mechanism((body,), (bed,), gravity_W=gravity)
    return djdyn.System(mechanism, {"touch": part})


def at(
    system: djdyn.System, z: float, v: Any = (0, 0, 0), w: Any = (0, 0, 0)
) -> djdyn.State:
    """Return the upright body at height `z`, with velocity `v` and spin `w`."""
    return system.initial_state(q={"b": [0, 0, z, 1, 0, 0, 0]}, v={"b": [*w, *v]})


def ledger(
    study: Study,
    name: str,
    run: djdyn.Trajectory,
    at_most: float,
    scale: float | None = None,
) -> None:
    """Report the energy residual of a contact case."""
    metric = f"contact.{name}.ledger"
    energy_residual(study, metric, run, at_most=at_most, scale=scale)
