"""Parameters, the table and the replay of the study `elbow-toss`."""

from typing import Any

import jax.numpy as jnp
import numpy as np

import djdyn

from ...harness.study import Study
from ...harness.toss_report import Kind, report_toss, rotations
from ...harness.tosses import Record, Tosses
from .level import Table
from .model import ARM, HALF, HINGE, Unknowns, errors, physical, predict


KINDS = (
    Kind(
        "position_percent",
        "%",
        "mean over a toss, of a block's length",
        ("position error of block 1", "% of length"),
    ),
    Kind(
        "rotation_deg",
        "deg",
        "mean over a toss, of block 1",
        ("rotation error of block 1", "deg"),
    ),
    Kind("hinge_deg", "deg", "mean over a toss", ("hinge angle error", "deg")),
)
QUANTITIES = (
    ("position", "m", ("x", "y", "z")),
    ("quaternion", "1", ("qw", "qx", "qy", "qz")),
    ("hinge angle", "rad", ("hinge",)),
)


def numbers(system: djdyn.System, x: Unknowns) -> dict[str, float]:
    """Return the fitted parameters in common units."""
    found = physical(system, x)
    axes = (("x", 0), ("y", 1), ("z", 2))
    one = lambda path, *at: float(found[path][at])
    return {
        "friction": one("floor1.friction.mu"),
        "dissipation, s/m": one("floor1.normal.dissipation"),
        "stiffness, N/m": one("floor1.normal.stiffness"),
        "hinge viscous, mN m s": 1e3 * one("friction.viscous"),
        "hinge Coulomb, mN m": 1e3 * one("friction.coulomb"),
        **{
            f"inertia {b} {k}, g m2": 1e3 * one(f"block{b}.I_BC", i, i)
            for b in (1, 2)
            for k, i in axes
        },
        **{f"hinge {k}, mm": 1e3 * one("block2.X_PJ.p", i) for k, i in axes},
        "ground, mm": 1e3 * one("ground.X_BF.p", 2),
        "age of velocities, frames": 0.5 + float(x.lag),
    }


def describe_table(study: Study, table: Table, record: Record) -> None:
    """Tabulate the tilt of the recorded frames."""
    later = record.number >= table.first
    tilt = np.rad2deg(np.arccos(np.minimum(table.normals[:, 2], 1.0)))
    rows = [
        (f"{name} toss {table.first:g}", int(count), angle)
        for name, count, angle in zip(
            ("before", "from"), (np.sum(~later), np.sum(later)), tilt, strict=True
        )
        if count
    ]
    header = ("recorded", "fitted tosses", "table against the recorded frame, deg")
    study.report.table("Tilt of the table, from blocks at rest", header, rows)


def report_median_toss(
    study: Study, system: djdyn.System, x: Unknowns, tosses: Tosses
) -> None:
    """Plot the toss with the median error, measured and simulated."""
    position = errors(system, x, tosses)[0]
    k = int(np.argsort(position)[len(position) // 2])
    one = tosses.lanes(np.array([k]))
    frames = int(jnp.sum(one.there))
    q = np.array(predict(system, x, one.start, frames, one.dt)[0])
    seen, t = np.array(one.poses)[0, :frames], np.arange(frames) * one.dt
    q[:, 7] += 2 * np.pi * np.round((seen[0, 7] - q[0, 7]) / (2 * np.pi))
    for path in (q, seen):
        path[:, 7] = np.unwrap(path[:, 7])

    def boxes(scene: Any, name: str, path: np.ndarray, opacity: float) -> None:
        first = rotations(path[:, 3:7])
        half = np.zeros((len(path), 4))
        half[:, 0], half[:, 2] = np.cos(path[:, 7] / 2), np.sin(path[:, 7] / 2)
        second = first @ rotations(half)
        middle = path[:, :3] + first @ np.array(HINGE) + second @ np.array(ARM)
        for block, R, p in ((1, first, path[:, :3]), (2, second, middle)):
            scene.box(f"{name}, block {block}", 2 * HALF, R, p, opacity=opacity)

    report_toss(study, t, q, seen, QUANTITIES, boxes)
