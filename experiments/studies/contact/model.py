"""Bodies over planes, for the study of contact."""

from typing import Any

import numpy as np

import djdyn

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
    """A body `b`, free unless a joint is given, and a frame `bed` at a height."""
    I_BC = np.asarray(inertia) * np.eye(3)
    body = djdyn.Body("b", "world", joint or djdyn.Free(), mass, I_BC=I_BC)
    bed = djdyn.Frame("bed", "world", djdyn.translation((0.0, 0.0, top)))
    mechanism = djdyn.Mechanism((body,), (bed,), gravity_W=gravity)
    return djdyn.System(mechanism, {"touch": part})


def at(
    system: djdyn.System, z: float, v: Any = (0, 0, 0), w: Any = (0, 0, 0)
) -> djdyn.State:
    """The free body upright at a height, with the velocity `v` and turning with `w`."""
    return system.initial_state(q={"b": [0, 0, z, 1, 0, 0, 0]}, v={"b": [*w, *v]})


def books(
    study: Study, name: str, run: djdyn.Trajectory, most: float, scale: float = 0.0
) -> None:
    """A row for energy unaccounted for, relative to what came or went, or a scale."""
    scale = scale or float(np.ptp(run.energy()))
    gap = np.max(np.abs(djdyn.energy_balance(run.system, run)))
    note = f"energy unaccounted for, of {scale:.4g} J"
    study.metric(f"contact.{name}.ledger", gap / scale, at_most=most, note=note)
