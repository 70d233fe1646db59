"""Replay of the Titan 4, with the shapes of the source."""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

import djdyn
from djdyn.multibody.spatial import Pose
from djdyn.view import Scene

from ...harness import tables
from . import model as titan


@eqx.filter_jit
@eqx.filter_vmap(in_axes=(None, 0))
def _poses(arm: djdyn.Mechanism, q: Array) -> tuple[Pose, Array]:
    world = djdyn.forward_kinematics(arm, q)
    return world.X_WB, world.pose("tool").p


def scene(run: djdyn.Trajectory) -> Scene:
    """Return the replay of the arm and the path of its tool."""
    rows = tables.read("titan4/animation_geometry.csv")
    size = {row["name"]: float(row["value_m"]) for row in rows}
    X, tip = jax.tree.map(np.asarray, _poses(run.system.mechanism, run.y.q))
    replay, turn = Scene(np.asarray(run.t), ground=0.0), np.eye(3)
    along_x, along_y = turn[:, [1, 2, 0]], turn[:, [2, 0, 1]]
    at = lambda k: (X.R[:, k], X.p[:, k])
    replay.cylinder(
        "base", size["y12"], size["z12"], *at(1), offset=(turn, (0, 0, size["z12"] / 2))
    )
    for k in (2, 3):
        shape = size[f"x{k}{k + 1}"], size[f"H{k}"], size[f"B{k}"]
        centre = (turn, (size[f"xc_f{k}"], 0, 0))
        replay.box(f"link {k}", shape, *at(k), offset=centre, opacity=0.8)
    for k, radius, length, R, centre in (  # the table has no radii
        (4, 0.07, size["x45"], along_x, (size["xc_f4"], 0, 0)),
        (5, 0.06, size["y56"], along_y, (0, size["yc_f5"], 0)),
        (6, 0.04, size["z6e"], turn, (0, 0, size["zc_f6"])),
    ):
        name = "tool" if k == 6 else f"link {k}"
        replay.cylinder(name, radius, length, *at(k), offset=(R, centre))
    long, short, angle = titan.TRIANGLE
    foot = short * np.array([0.0, np.cos(angle), -np.sin(angle)])
    ends = X.p[:, 2] + X.R[:, 1] @ foot, X.p[:, 2] + long * X.R[:, 2, :, 0]
    replay.polyline("piston", np.stack(ends, 1), size=0.05)
    replay.polyline("path of the tool", tip, size=0.01)
    return replay
