"""Parameters and the replay of the study `cube-toss`."""

from typing import Any

import jax.numpy as jnp
import numpy as np

import djdyn

from ...harness.study import Study
from ...harness.toss_report import Kind, report_toss, rotations
from ...harness.tosses import Tosses
from .model import HALF, Unknowns, errors, physical, predict


KINDS = (
    Kind(
        "position_percent",
        "%",
        "mean over a toss, of the cube's width",
        ("position error", "% of width"),
    ),
    Kind("rotation_deg", "deg", "mean over a toss", ("rotation error", "deg")),
)
QUANTITIES = (
    ("position", "m", ("x", "y", "z")),
    ("quaternion", "1", ("qw", "qx", "qy", "qz")),
)


def numbers(system: djdyn.System, x: Unknowns) -> dict[str, float]:
    """Return the fitted parameters in common units."""
    found = physical(system, x)
    axes = (("x", 0), ("y", 1), ("z", 2))
    one = lambda path, *at: float(found[path][at])
    corners = djdyn.get_parameters(system, "floor.shape.vertices")
    moved = jnp.linalg.norm(found["floor.shape.vertices"] - corners, axis=1)
    return {
        "friction": one("floor.friction.mu"),
        "dissipation, s/m": one("floor.normal.dissipation"),
        "stiffness, N/m": one("floor.normal.stiffness"),
        **{f"mass centre {k}, mm": 1e3 * one("cube.p_BC", i) for k, i in axes},
        **{f"inertia {k}, g m2": 1e3 * one("cube.I_BC", i, i) for k, i in axes},
        "ground, mm": 1e3 * one("ground.X_BF.p", 2),
        "gravity, m/s2": -one("gravity_W", 2),
        "age of velocities, frames": 0.5 + float(x.lag),
        "corners moved by, mm": 1e3 * float(jnp.mean(moved)),
    }


def report_median_toss(
    study: Study, system: djdyn.System, x: Unknowns, tosses: Tosses
) -> None:
    """Plot the toss with the median error, measured and simulated."""
    position, _ = errors(system, x, tosses)
    k = int(np.argsort(position)[len(position) // 2])
    one = tosses.lanes(np.array([k]))
    frames = int(jnp.sum(one.there))
    q = np.asarray(predict(system, x, one.start, frames, one.dt))[0]
    seen, t = np.asarray(one.poses)[0, :frames], np.arange(frames) * one.dt

    def boxes(scene: Any, name: str, path: np.ndarray, opacity: float) -> None:
        R = rotations(path[:, 3:])
        scene.box(name, [2 * HALF] * 3, R, path[:, :3], opacity=opacity)

    report_toss(study, t, q, seen, QUANTITIES, boxes)
