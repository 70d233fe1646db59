"""Water and sea bed of a MoorDyn deck, with the files it names."""

from pathlib import Path
from typing import Any

import numpy as np

from ..marine.current_grid import CurrentGrid
from ..marine.sea_bed import SeaBed
from ..marine.water import Fluid
from .moordyn import Deck, LineType
from .moordyn_files import find_file, read_rows
from .moordyn_options import CURRENT_FILES
from .moordyn_waves import deck_waves


def deck_water(deck: Deck) -> Fluid:
    """Return the deck's water, with its current and its waves."""
    waves, mean = deck_waves(deck)
    above: dict[str, Any] = {"surface": mean, "air_density": 0.0, "waves": waves}
    if not deck.currents:
        return Fluid(deck.density, **above)
    file = find_file(deck, CURRENT_FILES[deck.currents])
    if deck.currents == 1:
        rows = [row + [0.0] * 2 for row in read_rows(file, 3)]
        z, u = zip(*sorted((row[0], tuple(row[1:4])) for row in rows), strict=True)
        return Fluid(deck.density, z, u, **above)
    grid = _dynamic(file) if deck.currents == 2 else _everywhere(file)
    return Fluid(deck.density, grid=grid, **above)


def deck_bed(deck: Deck, kind: LineType | None = None, node: float = 1.0) -> SeaBed:
    """Return the sea bed under a line's nodes, each of this length of line.

    MoorDyn's friction is a damper at each node that slips at the limit of the friction
    there; the speed at which it does is that of a node at rest on the bed.
    """
    slip = 1.0
    if kind is not None:
        dry = kind.mass - deck.density * np.pi / 4 * kind.diameter**2
        slip = max(abs(dry), 1e-3 * kind.mass) * max(deck.gravity, 1.0) * node
    law = dict(
        stiffness=deck.bed_stiffness,
        damping=deck.bed_damping,
        friction=deck.friction,
        slip_speed=slip / max(deck.friction_damping, 1e-9),
    )
    if deck.bathymetry is None:
        return SeaBed(-deck.depth, **law)
    rows = read_rows(find_file(deck, deck.bathymetry), 0)
    (nx, ny), x, y = (int(n) for n in rows[0][:2]), *rows[1:3]
    height = np.full((nx, ny), np.nan)
    for px, py, z in rows[3:]:
        i, j = (int(np.argmin(np.abs(np.array(a) - b))) for a, b in ((x, px), (y, py)))
        height[i, j] = z
    if (len(x), len(y)) != (nx, ny) or np.isnan(height).any():
        raise ValueError(
            f"{deck.bathymetry}: expected a height at each of {nx} times {ny} points"
        )
    return SeaBed(height, x=x, y=y, **law)


def _dynamic(file: Path) -> CurrentGrid:
    """Return a profile that changes in time: heights, then a row for each time."""
    z, *rows = read_rows(file, 4)
    n, found = len(z), []
    for row in rows:
        u = np.zeros(3 * n)
        u[: len(row) - 1] = row[1 : 3 * n + 1]
        found.append(u.reshape(3, n).T)
    t = [row[0] for row in rows]
    return CurrentGrid((0.0,), (0.0,), z, t, np.stack(found, 1)[None, None])


def _everywhere(file: Path) -> CurrentGrid:
    """Return a current on a grid of places and times."""
    counts, *rows = read_rows(file, 0)
    axes = [np.array(row) for row in rows[:4]]
    if [len(axis) for axis in axes] != [int(n) for n in counts]:
        raise ValueError(f"{file.name}: the axes have not {counts} points")
    u = np.zeros((*(len(axis) for axis in axes), 3))
    for row in rows[4:]:
        at = (int(np.argmin(np.abs(a - b))) for a, b in zip(axes, row, strict=False))
        u[tuple(at)] = row[4:7]
    x, y, z, t = axes
    return CurrentGrid(x, y, z, t, u)
