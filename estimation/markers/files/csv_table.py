"""Marker files in CSV format: times, and the coordinates of every marker."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from djdyn.typing import Number

from ..recording import MarkerData
from ._text import (
    UNITS,
    assemble,
    careful,
    cell_of,
    delimiter_of,
    lines_of,
    metres,
    numbers,
)


TIME = re.compile(r"(?:t|time)(?:[ _]*[\[(]?(ms|s|sec|seconds?)[\])]?)?", re.I)
COORDINATE = re.compile(
    r"(?P<label>.+?)[ ._:]?(?P<axis>[xyz])"
    rf"(?:[ _]*[\[(]?(?P<unit>{'|'.join(UNITS)})[\])]?)?",
    re.I,
)


@careful
def read_csv(
    path: str | Path,
    *,
    units: str | None = None,
    axes: str | Any | None = None,
    rate: Number | None = None,
) -> MarkerData:
    """Read columns such as `time`, `tip.x`, `tip_y [mm]`, `tip z`; ignore others.

    Lines that begin with `#` are comments.

    **Arguments:**

    - `units`: units of columns whose headings name none.
    - `axes`: the file's axes in the world's order, `"x -z y"`, or a rotation `R_WF`.
    - `rate`: samples per second, if there is no column of time.

    **Returns:** the marker data in metres.
    """
    path = Path(path)
    lines = lines_of(path)
    first = next(
        (k for k, x in enumerate(lines, 1) if x.strip() and not x.startswith("#")), 0
    )
    if not first:
        raise ValueError(f"{path.name}: the file is empty")
    delimiter = delimiter_of(lines[first - 1])
    heads = [head.strip().strip('"') for head in lines[first - 1].split(delimiter)]
    where = f"{path.name}, line {first}"
    columns, scale = _columns(heads, units, where)
    table = numbers(path, lines, first + 1, len(heads), delimiter)
    at = np.array(list(columns.values()))
    raw = table[:, at] * np.array([scale[label] for label in columns])[:, None]
    return assemble(_times(table, heads, rate, where), tuple(columns), raw, 1.0, axes)


def _columns(
    heads: list[str], units: str | None, where: str
) -> tuple[dict[str, list[int]], dict[str, float]]:
    """Return columns of x, y and z, and metres per unit, by label."""
    found: dict[str, dict[str, tuple[int, str | None]]] = {}
    for column, head in enumerate(heads):
        match = COORDINATE.fullmatch(head)
        if not match or TIME.fullmatch(head):
            continue
        axis, axes = match["axis"].lower(), found.setdefault(match["label"], {})
        if axis in axes:
            raise ValueError(f"{where}: two columns are {axis} of {match['label']!r}")
        axes[axis] = (column, match["unit"])
    columns, scale = {}, {}
    for label, axes in found.items():
        for axis in "xyz":
            if axis not in axes:
                raise ValueError(f"{where}: no column is {axis} of marker {label!r}")
        stated = {unit for _, unit in axes.values()}
        unit = stated.pop() or units
        if stated or unit is None:
            raise ValueError(
                f"{where}: marker {label!r} needs one unit; give units='mm'"
            )
        columns[label] = [axes[axis][0] for axis in "xyz"]
        scale[label] = metres(unit, where)
    if not columns:
        raise ValueError(f"{where}: no columns such as 'tip.x', 'tip.y', 'tip.z'")
    return columns, scale


def _times(
    table: np.ndarray, heads: list[str], rate: Number | None, where: str
) -> np.ndarray:
    matches = [TIME.fullmatch(head) for head in heads]
    for column, match in enumerate(matches):
        if match:
            return table[:, column] * (1e-3 if match[1] == "ms" else 1.0)
    if rate is None:
        raise ValueError(f"{where}: no column is called 'time'; give the rate")
    return np.arange(len(table)) / rate


def write_csv(data: MarkerData, path: str | Path) -> None:
    """Write a CSV file in seconds and metres; hidden markers are blank."""
    heads = [f"{label}.{axis} [m]" for label in data.labels for axis in "xyz"]
    rows = np.column_stack([data.times, data.with_gaps.reshape(len(data), -1)])
    text = [",".join(["time [s]", *heads])]
    text += [",".join(map(cell_of, row)) for row in rows]
    Path(path).write_text("\n".join(text) + "\n")
