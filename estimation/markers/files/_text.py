"""Functions that all formats of marker files share: units, axes, gaps, tables."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np
from jaxtyping import Float

from djdyn.files import one_line

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
MAX_FILE = 1_000_000_000  # bytes
HIDDEN_COORDINATE = 1e10  # in any unit: larger numbers mean a hidden marker


P = ParamSpec("P")


def careful(read: Callable[P, MarkerData]) -> Callable[P, MarkerData]:
    """Return a reader whose errors are one sentence that names the file."""

    @functools.wraps(read)
    def reader(*args: P.args, **kwargs: P.kwargs) -> MarkerData:
        given: Any = args[0] if args else kwargs.get("path", "")
        path = Path(given)
        name = one_line(path.name)
        if path.exists() and not path.is_file():
            raise ValueError(f"{name}: this is no ordinary file")
        if path.exists() and path.stat().st_size > MAX_FILE:
            raise ValueError(f"{name}: the file is larger than {MAX_FILE / 1e9:g} GB")
        try:
            return read(*args, **kwargs)
        except MemoryError as error:
            raise ValueError(f"{name}: it does not fit into memory") from error
        except (ValueError, LookupError, ArithmeticError, RuntimeError) as error:
            said = one_line(error)
            said = said if said.startswith(name) else f"{name}: {said}"
            raise ValueError(said) from error

    return reader


def metres(unit: str, where: str) -> float:
    """Return the length of a unit, m."""
    plain = unit.strip().strip("[]()\"'").lower()
    for name in (plain, plain.removesuffix("s")):
        if name in UNITS:
            return UNITS[name]
    raise ValueError(f"{where}: unknown unit {unit!r}; there are {', '.join(UNITS)}")


def rotation(axes: str | Any | None) -> Float[np.ndarray, "3 3"]:
    """Return `R_WF`, the rotation from the file's axes to the world's.

    `"x -z y"` names the axes of the file that are the world's x, y and z.
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
                f"axes are a rotation of 'x y z' such as 'x -z y', not {axes!r}"
            )
    else:
        R = np.asarray(axes, float)
    if R.shape != (3, 3) or not np.allclose(R @ R.T, np.eye(3), atol=1e-9):
        raise ValueError(f"axes are not those of a rotation: {axes!r}")
    if np.linalg.det(R) < 0:
        raise ValueError(
            f"axes {axes!r} are a reflection, not a rotation, of the file's"
        )
    return R


def assemble(
    times: np.ndarray,
    labels: Sequence[str],
    raw: Float[np.ndarray, "n m 3"],
    unit: float,
    axes: str | Any | None,
) -> MarkerData:
    """Return marker data in metres and world axes.

    Markers are hidden where a coordinate is NaN or huge, or all three are zero.
    """
    hidden = ~np.all(np.abs(raw) < HIDDEN_COORDINATE, -1) | np.all(raw == 0, -1)
    raw = np.where(hidden[..., None], np.nan, raw)
    return MarkerData.seen(times, labels, unit * raw @ rotation(axes).T)


def lines_of(path: Path) -> list[str]:
    """Return the lines of a text file."""
    return path.read_text(encoding="utf-8-sig", errors="replace").splitlines()


def delimiter_of(line: str) -> str:
    """Return the most frequent of tab, semicolon and comma."""
    return max("\t;,", key=line.count)


def number(cell: str, where: str) -> float:
    """Return the number in a cell, NaN if it is blank."""
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
    """Return the rows of a table that begins at line `first`, counted from one.

    If `ragged`, whole markers may be missing at the end of a row.
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
    """Return sample numbers from time zero, for formats without times."""
    frames = np.round(data.times * data.rate)
    if np.any(np.abs(data.times * data.rate - frames) > 0.2):
        raise ValueError("the format needs equal steps from time zero: resample first")
    return frames.astype(int)


def cell_of(x: float) -> str:
    """Return a number as text, blank for NaN."""
    return "" if np.isnan(x) else f"{x:.12g}"
