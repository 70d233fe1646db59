"""Machines with published or worked-out answers, each a function to a `Mechanism`."""

import csv
from pathlib import Path

import numpy as np

from djdyn.multibody.joints import Prismatic, Revolute, Universal
from djdyn.multibody.mechanism import Body, Mechanism
from djdyn.multibody.spatial import translation


DATA = Path(__file__).parent / "data"


def table(name: str) -> list[dict[str, str]]:
    """Rows of a file in `tests/data`, without its comments."""
    lines = (DATA / name).read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def wagon_pendulum() -> Mechanism:
    """A wagon with an inverted pendulum; its two springs are left to the caller.

    Example 3.6 of Rokseth's master's thesis (NTNU, 2014). The angle is from upright,
    positive towards the wagon's direction.
    """
    return Mechanism(
        (
            Body("wagon", "world", Prismatic((1.0, 0.0, 0.0)), 2.0),
            Body("pendulum", "wagon", Revolute((0.0, 1.0, 0.0)), 1.0, (0.0, 0.0, 0.3)),
        )
    )


WAGON_SPRINGS = np.array([3.0, 0.5])  # N/m, N m/rad


def rod(name: str, parent: str, offset: float) -> Body:
    """One metre and one kilogram along x, turning about y."""
    return Body(
        name,
        parent,
        Revolute((0.0, 1.0, 0.0)),
        1.0,
        (0.5, 0.0, 0.0),
        np.diag([0.0, 1 / 12, 1 / 12]),
        translation([offset, 0.0, 0.0]),
    )


def double_pendulum() -> Mechanism:
    """Two uniform rods, horizontal at zero."""
    return Mechanism((rod("upper", "world", 0.0), rod("lower", "upper", 1.0)))


def slider_on_arm() -> Mechanism:
    """A kilogram sliding on an arm that turns about the vertical."""
    return Mechanism(
        (
            Body("hub", "world", Revolute(), 2.0, I_BC=np.diag([0.06, 0.06, 0.1])),
            Body(
                "slider",
                "hub",
                Prismatic((1.0, 0.0, 0.0)),
                1.0,
                I_BC=np.diag([0.006, 0.006, 0.01]),
            ),
        )
    )


def harvester() -> Mechanism:
    """A forest machine's manipulator: pillar, two booms, cross link and head."""
    y, z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    rows = (
        ("pillar", Revolute(z), (0.0, 0.0, 1.5), 400.0, (0.0, 0.0, 0.4), (40, 40, 20)),
        ("main", Revolute(y), (0.0, 0.0, 0.8), 500.0, (2.0, 0.0, 0.0), (10, 680, 680)),
        ("outer", Revolute(y), (4.0, 0.0, 0.0), 300.0, (1.75, 0.0, 0.0), (5, 310, 310)),
        ("cross", Universal(y, z), (3.5, 0.0, 0.0), 50.0, (0.0, 0.0, -0.25), (2, 2, 1)),
        (
            "head",
            Revolute(y),
            (0.0, 0.0, -0.5),
            900.0,
            (0.0, 0.0, -0.6),
            (150, 120, 100),
        ),
    )
    bodies, parent = [], "world"
    for name, joint, at, mass, centre, moments in rows:
        bodies.append(
            Body(
                name,
                parent,
                joint,
                mass,
                centre,
                np.diag(np.array(moments, dtype=float)),
                translation(at),
            )
        )
        parent = name
    return Mechanism(tuple(bodies))
