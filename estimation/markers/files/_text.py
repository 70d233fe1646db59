"""What all formats of marker files share: units, axes, gaps, and bad lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from ..recording import MarkerData


UNITS = {
    "m": 1.0,
    "meter": 1.0,
    "metre": 1.0,
    "dm": 0.1,
    "cm": 0.01,
    "centimeter": 0.01,
    "mm": 1e-3,
    "millimeter": 1e-3,
    "um": 1e-6,
    "in": 0.0254,
    "inch": 0.0254,
    "inches": 0.0254,
    "ft": 0.3048,
    "feet": 0.3048,
}
HUGE = 1e10  # of any unit: no marker is there, but systems say so of hidden ones


def metres(unit: str, where: str) -> float:
    """Length of a unit."""
    plain = unit.strip().strip("[]()\"'").lower()
    for name in (plain, plain.removesuffix("s")):
        if name in UNITS:
            return UNITS[name]
    raise ValueError(f"{where}: unknown unit {unit!r}; there are {', '.join(UNITS)}")


def rotation(axes: str | Any | None) -> Float[np.ndarray, "3 3"]:
    """`R_WF` from the file's axes to the world's.

    `"x -z y"` says which of the file's axes are the world's x, y and z.
    """
    if axes is None:
        return np.eye(3)
    if isinstance(axes, str):
        rows, words = [], axes.split()
        for word in words:
            sign, letter = (-1.0, word[1:]) if word[0] == "-" else (1.0, word)
            rows.append([sign * (letter == axis) for axis in "xyz"])
        R = np.array(rows)
        if R.shape != (3, 3) or not np.all(np.abs(R).sum(0) == 1):
            raise ValueError(
                f"axes are a turn of 'x y z' such as 'x -z y', not {axes!r}"
            )
    else:
        R = np.asarray(axes, float)
    if R.shape != (3, 3) or not np.allclose(R @ R.T, np.eye(3), atol=1e-9):
        raise ValueError(f"axes are not those of a rotation: {axes!r}")
    if np.linalg.det(R) < 0:
        raise ValueError(f"axes {axes!r} are a mirror image, not a turn, of the file's")
    return R


def assemble(
    times: np.ndarray,
    labels: Sequence[str],
    raw: Float[np.ndarray, "n m 3"],
    unit: float,
    axes: str | Any | None,
) -> MarkerData:
    """Metres and world axes. Hidden is what is NaN, huge, or zero in all three."""
    hidden = ~np.all(np.abs(raw) < HUGE, -1) | np.all(raw == 0, -1)
    raw = np.where(hidden[..., None], np.nan, raw)
    return MarkerData.seen(times, labels, unit * raw @ rotation(axes).T)


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8-sig", errors="replace").splitlines()


def delimiter_of(line: str) -> str:
    """The likeliest of tab, semicolon and comma."""
    return max("\t;,", key=line.count)


def number(cell: str, where: str) -> float:
    """A blank is NaN."""
    try:
        return float(cell) if cell.strip() else np.nan
    except ValueError:
        raise ValueError(f"{where}: {cell.strip()!r} is not a number") from None


def numbers(
    path: Path,
    lines: Sequence[str],
    first: int,
    width: int,
    delimiter: str,
    *,
    ragged: bool = False,
) -> Float[np.ndarray, "rows width"]:
    """The rows of a table that begins at line `first`, counted from one.

    Where `ragged`, whole markers may be left out at the end of a row.
    """
    rows = []
    for count, line in enumerate(lines[first - 1 :], start=first):
        where = f"{path.name}, line {count}"
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.rstrip("\r\n").split(delimiter)
        while len(cells) > width and not cells[-1].strip():
            cells.pop()
        missing = width - len(cells)
        if missing < 0 or missing % 3 or (missing and not ragged):
            raise ValueError(f"{where}: {len(cells)} cells where {width} are expected")
        rows.append([number(cell, where) for cell in cells] + [np.nan] * missing)
        if np.isnan(rows[-1][0]):
            raise ValueError(f"{where}: the first cell is empty")
    if not rows:
        raise ValueError(f"{path.name}: no samples after line {first - 1}")
    return np.array(rows)


def frames_of(data: MarkerData) -> np.ndarray:
    """Samples counted from time zero, for formats that hold no times."""
    frames = np.round(data.times * data.rate)
    if np.any(np.abs(data.times * data.rate - frames) > 0.2):
        raise ValueError("the format holds equal steps from time zero: resample first")
    return frames.astype(int)


def cell_of(x: float) -> str:
    """Blank for NaN; enough digits for a nanometre in a room."""
    return "" if np.isnan(x) else f"{x:.12g}"
