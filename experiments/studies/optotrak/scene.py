"""Marker series with labels, and the 3-D replay of the rod."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
import xarray as xr

import djdyn
from djdyn.view import Scene

from ...harness import tables
from .model import CONSTANTS, SET, SPRINGS


def labelled(t: Any, **seen: Any) -> xr.Dataset:
    """Return marker positions (m) as a data set with labels."""
    axes = ("time", "marker", "axis")
    data = {k: (axes, np.asarray(x), {"units": "m"}) for k, x in seen.items()}
    where = {"time": np.asarray(t), "marker": list(SET.labels), "axis": list("xyz")}
    return xr.Dataset(data, where)


UP = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]])  # x down to z up


@eqx.filter_jit
def _rod(mechanism: djdyn.Mechanism, q: jax.Array) -> djdyn.Pose:
    return jax.vmap(lambda q: djdyn.frame_pose(mechanism, q, "rod"))(q)


def replay(run: djdyn.Trajectory) -> Scene:
    """Return the replay of rod, ball, bowl, springs and markers."""
    X = _rod(run.system.mechanism, run.y.q)
    R, p = UP @ np.asarray(X.R), np.asarray(X.p) @ UP.T
    moved = lambda points: np.einsum("tij,mj->tmi", R, points) + p[:, None]
    scene = Scene(run.t)
    upright = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    length, RA, RB = 0.32, CONSTANTS["RA"], CONSTANTS["RB"]
    scene.capsule("rod", 0.0032, length, R, p, offset=(upright, (length / 2, 0.0, 0.0)))
    scene.sphere("ball", RB, R, p)
    for turn in np.linspace(0.0, np.pi, 6, endpoint=False):
        a = np.linspace(-np.pi / 2, np.pi / 2, 25)
        arc = np.stack([np.sin(a) * np.cos(turn), np.sin(a) * np.sin(turn), -np.cos(a)])
        scene.polyline("bowl", RA * arc.T, size=0.001)
    ends = {k: [f"{k}_{i}_m" for i in "xyz"] for k in ("ground", "body")}
    ground, body = (tables.columns(SPRINGS, *names) for names in ends.values())
    both = (moved(x).swapaxes(0, 1) for x in (body, body * [1.0, 0.0, 0.0]))
    for post, end, hub in zip(ground @ UP.T, *both, strict=True):
        line = np.stack([np.broadcast_to(post, end.shape), end], 1)
        scene.polyline("springs", line, size=0.002)
        scene.polyline("holders", np.stack([end, hub], 1), size=0.003)
    scene.points("markers", moved(np.asarray(SET.offsets)), size=0.012)
    return scene
