"""True parameters of starter scenarios, and how their records are measured."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from djdyn.multibody.time_functions import Harmonic, HarmonicSum, Moves


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of synthetic measurements: noise and offset are in its unit."""

    unit: str
    noise: float = 0.0
    offset: float = 0.0


@dataclasses.dataclass(frozen=True)
class Run:
    """How a record begins, and what drives the machine in it."""

    inputs: Mapping[str, Any]
    q: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Starter:
    """A starter scenario: its true parameters, and how its records are made.

    `columns` are those of its files, `runs` by file; a row is measured every `period`,
    s, until `span`, s. `files` are written beside the scenario.
    """

    true: Mapping[str, float]
    columns: Mapping[str, Column]
    runs: Mapping[str, Run]
    span: float
    period: float
    files: tuple[str, ...] = ()


def moves(
    *points: float, first: float = 0.0, every: float = 2.0, within: float = 0.5
) -> Moves:
    """Return moves from `first` to points, each within some time, s."""
    start = 0.3 + every * np.arange(len(points))
    return Moves([first], [[x] for x in points], start, start + within)  # pyright: ignore


def shaking(force: float, frequency: float) -> HarmonicSum:
    """Return a force, N, at a frequency, rad/s, and two lower ones."""
    shares = jnp.array([1.0, 0.7, 0.4])
    return HarmonicSum(force * shares, frequency * shares, [0.0, 1.0, 2.0])  # pyright: ignore


STARTERS = {
    "pendulum": Starter(
        true={"bearing.viscous": 0.12, "bearing.coulomb": 0.15, "rod.p_BC[2]": -0.45},
        columns={
            "encoder": Column("deg", noise=0.1, offset=2.0),
            "motor": Column("N m", noise=0.02),
            "set_point": Column("deg"),
        },
        runs={
            "swing1.csv": Run(
                {"angle_wanted": moves(0.9, -0.6, within=1.0)}, {"hinge": 0.3}
            ),
            "swing2.csv": Run(
                {"angle_wanted": moves(-1.2, 0.4, within=1.0)}, {"hinge": -0.5}
            ),
        },
        span=4.0,
        period=0.01,
    ),
    "crane": Starter(
        true={
            "wheels.viscous": 90.0, "wheels.coulomb": 45.0, "load.mass": 160.0,
            "load.p_BC[2]": -4.6,
        },
        columns={
            "laser": Column("mm", noise=2.0),
            "inclinometer": Column("deg", noise=0.05, offset=0.8),
            "set_point": Column("m"),
        },
        runs={
            "move1.csv": Run({"place_wanted": moves(2.5)}, {"rope": 0.05}),
            "move2.csv": Run({"place_wanted": moves(-2.0, 1.0, every=3.0)}),
        },
        span=6.0,
        period=0.02,
    ),
    "robot": Starter(
        true={
            "shoulder:friction.viscous": 0.9, "elbow:friction.viscous": 0.3,
            "lower.mass": 1.3,
        },
        columns={
            "encoder1": Column("deg", noise=0.1),
            "encoder2": Column("deg", noise=0.1, offset=-1.5),
            "command1": Column("deg"),
            "command2": Column("deg"),
        },
        runs={
            "moves1.csv": Run(
                {"lift": Harmonic(0.6, 3.0, mean=0.4),
                 "bend": Harmonic(0.7, 5.0, mean=-0.8)},
            ),
            "moves2.csv": Run(
                {"lift": Harmonic(-0.5, 6.0, mean=0.2),
                 "bend": Harmonic(0.8, 2.5, mean=-0.4)},
                {"shoulder": 0.1, "elbow": -0.3},
            ),
        },
        span=3.0,
        period=0.01,
        files=("robot.xml",),
    ),
    "hydraulic-arm": Starter(
        true={
            "oil.valve.gain": 6.5e-7, "oil.lift.friction.viscous": 8000.0,
            "boom.mass": 470.0,
        },
        columns={
            "encoder": Column("deg", noise=0.05, offset=1.2),
            "pressure_a": Column("bar", noise=0.2),
            "pressure_b": Column("bar", noise=0.2),
            "set_point": Column("deg"),
        },
        runs={
            "lift1.csv": Run({"angle_wanted": moves(0.4, 0.1, every=1.3)}),
            "lift2.csv": Run({"angle_wanted": moves(-0.1, 0.2, every=1.3)}),
        },
        span=3.0,
        period=0.01,
    ),
    "cable-winch": Starter(
        true={"line.rope.EA": 1.4e6, "winch.gain": 6.0, "load.mass": 650.0},
        columns={
            "laser": Column("mm", noise=2.0, offset=150.0),
            "load_cell": Column("kN", noise=0.03),
            "set_point": Column("m"),
        },
        runs={
            "hoist1.csv": Run({"height_wanted": moves(3.5, 2.5, first=1.95)}),
            "hoist2.csv": Run({"height_wanted": moves(1.0, 2.0, first=1.95)}),
        },
        span=4.0,
        period=0.02,
    ),
    "point-contact": Starter(
        true={
            "rub.viscous": 5.0, "support.stiffness": 260.0, "support.damping": 3.0,
            "rod.p_BC[0]": -0.28,
        },
        columns={
            "top": Column("mm", noise=0.05),
            "low": Column("mm", noise=0.05, offset=3.0),
            "load_cell": Column("N"),
        },
        runs={
            "shake1.csv": Run({"push": shaking(3.0, 20.0)}),
            "shake2.csv": Run({"push": shaking(3.0, 33.0)}),
        },
        span=2.0,
        period=0.01,
    ),
}  # fmt: skip
