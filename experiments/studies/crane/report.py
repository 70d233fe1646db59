"""Plots and replay of the offshore crane."""

from typing import Any

import numpy as np
from jaxtyping import Array

import djdyn
from djdyn.view import Scene

from ...harness import tables
from ...harness.study import Study
from .model import DEG


LOADS = ("moment x", "moment y", "force x", "force y", "force z")


def figures(
    study: Study, name: str, trajectory: djdyn.Trajectory, found: dict[str, Any]
) -> None:
    """Plot joint angles, vessel motion and bearing loads of a scenario."""
    time, q = ("time", "s", trajectory.t), trajectory.y.q * DEG
    wanted = found["wanted"] * DEG
    title = f"Scenario {name} ({'with' if name == 'A' else 'without'} gravity)"
    study.report.plot(
        f"{title}: crane joints",
        time,
        ("angle", "deg"),
        {"slew": q[:, 3], "luff": q[:, 4], "knuckle": q[:, 5]},
        dict(zip(("slew", "luff", "knuckle"), wanted.T, strict=True)),
    )
    study.report.plot(
        f"{title}: vessel",
        time,
        ("angle", "deg"),
        {"roll": q[:, 0], "pitch": q[:, 1], "yaw": q[:, 2]},
    )
    known = tables.read(f"crane/scenario_{name}.csv")
    known = [row for row in known if float(row["t_s"]) <= float(trajectory.t[-1])][::2]
    t_known = tables.columns(known, "t_s")[:, 0]
    for key, tail, frame in (
        ("loads", "", "king (frame 2)"),
        ("loads_vessel", "_f1", "vessel (frame 1)"),
    ):
        for what, unit, which in (("moment", "N m", (0, 1)), ("force", "N", (2, 3, 4))):
            symbol = unit.replace(" ", "")
            reference = {
                LOADS[k]: (
                    t_known,
                    tables.columns(known, f"rho{k + 1}{tail}_{symbol}")[:, 0],
                )
                for k in which
            }
            study.report.plot(
                f"{title}: {what}s on the king, in the axes of the {frame}",
                time,
                (what, unit),
                {LOADS[k]: found[key][:, k] for k in which},
                reference,
            )


def scene(t: Array, found: dict[str, Any]) -> Scene:
    """Return the replay, with the force that the vessel exerts on the king."""
    replay = Scene(np.asarray(t))
    R, p = np.asarray(found["X_WB"].R), np.asarray(found["X_WB"].p)
    sizes = {
        "vessel": ((9.0, 4.0, 1.2), (0.0, 0.0, 4.4)),
        "king": ((0.9, 0.9, 2.0), (0.0, 0.0, 1.0)),
        "inner": ((2.0, 0.45, 0.45), (1.0, 0.0, 0.0)),
        "outer": ((2.0, 0.3, 0.3), (1.0, 0.0, 0.0)),
    }
    for b, (body, (size, centre)) in enumerate(sizes.items(), start=1):
        offset, opacity = (np.eye(3), np.array(centre)), 1.0 if b == 1 else 0.6
        replay.box(body, size, R[:, b], p[:, b], offset=offset, opacity=opacity)
    force_W = np.einsum("tij,tj->ti", R[:, 2], np.asarray(found["loads"][:, 2:]))
    replay.arrow("force on the king", p[:, 2], force_W, scale=2e-4, unit="N")
    return replay
