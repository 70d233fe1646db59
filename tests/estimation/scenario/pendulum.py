"""A pendulum with friction, simulated by SciPy alone, and its scenario."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.integrate


TRUE = {"rod.I_BC[1][1]": 0.1, "bearing.viscous": 0.12, "bearing.coulomb": 0.15}
DELAY, OFFSET = 0.02, 0.03  # s, rad, of the sensor
GRAVITY_MOMENT, WIDTH = 9.81 * 0.5, 0.05
NOISE = 2e-3  # rad
STARTS = (0.9, -0.5, 1.2)

SCENARIO = """
title = "Pendulum"
[simulation]
t1 = 4.0
solver = "rk4"
dt = 0.01
[[body]]
name = "rod"
joint = { type = "revolute", axis = [0, -1, 0], name = "hinge" }
mass = 1.0
com = [0, 0, -0.5]
inertia = [0.05, 0.05, 0.001]
any_inertia = true
[part.bearing]
type = "JointFriction"
joint = "hinge"
viscous = 0.05
coulomb = 0.05
width = 0.05
[part.motor]
type = "JointActuator"
joints = ["hinge"]
command = "torque"
[input]
torque = [0.0]
[identify]
records = ["swing0.csv", "swing1.csv"]
[identify.free]
"bearing.viscous" = {}
"bearing.coulomb" = {}
"rod.I_BC[1][1]" = "positive"
[identify.channel.angle]
signal = "hinge.q"
unit = "deg"
offset = true
delay = true
[identify.input.torque]
column = "torque"
"""


def torque(t: Any) -> Any:
    return 1.5 * np.sin(2.1 * t) + 1.0 * np.sin(5.3 * t + 0.4)


def angles(t: np.ndarray, q0: float) -> np.ndarray:
    """Angles at some times, by the equation of motion written out."""
    inertia = TRUE["rod.I_BC[1][1]"] + 0.25

    def rate(t: float, y: np.ndarray) -> list[float]:
        friction = TRUE["bearing.viscous"] * y[1]
        friction += TRUE["bearing.coulomb"] * np.tanh(y[1] / WIDTH)
        moment = torque(t) - GRAVITY_MOMENT * np.sin(y[0]) - friction
        return [y[1], moment / inertia]

    how = {"rtol": 1e-9, "atol": 1e-10, "dense_output": True}
    run = scipy.integrate.solve_ivp(rate, (0.0, t[-1]), [q0, 0.0], **how)
    return run.sol(np.maximum(t - DELAY, 0.0))[0]


def write_records(
    folder: Path,
    *,
    seed: int = 0,
    rows: int = 400,
    spoiled: bool = True,
    **columns: Any,
) -> None:
    """Write records with noise and offset, and if spoiled with gaps and outliers.

    `columns` are functions of angle (rad) and torque for others in their place.
    """
    rng, t = np.random.default_rng(seed), 0.01 * np.arange(rows)
    for k, q0 in enumerate(STARTS):
        x = angles(t, q0) + OFFSET + NOISE * rng.normal(size=rows)
        if spoiled:
            far = rng.random(rows) < 0.01
            x = x + far * rng.normal(size=rows) * 0.5
            x[rows // 3 : rows // 3 + 12] = np.nan
        given = {"t": t, "angle": np.rad2deg(x), "torque": torque(t)}
        given |= {name: f(x, torque(t)) for name, f in columns.items()}
        lines = [",".join(given)]
        cell = lambda value: "" if np.isnan(value) else f"{value:.8f}"
        lines += [",".join(map(cell, row)) for row in zip(*given.values(), strict=True)]
        (folder / f"swing{k}.csv").write_text("\n".join(lines) + "\n")


def write_scenario(folder: Path, *changes: tuple[str, str], more: str = "") -> Path:
    """Write the scenario with some texts replaced."""
    text = SCENARIO
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "pendulum.toml"
    path.write_text(text + more)
    return path
