"""Marker files of NDI First Principles, exported as text (`.xls`, `.csv`, `.tsv`)."""

import re
from pathlib import Path
from typing import Any

from ..recording import MarkerData
from ._text import (
    assemble,
    careful,
    cell_of,
    delimiter_of,
    frames_of,
    lines_of,
    metres,
    number,
    numbers,
)


HEAD = re.compile(r"(.+?)[ _.]([xyz])", re.I)


@careful
def read_ndi(path: str | Path, *, axes: str | Any | None = None) -> MarkerData:
    """Read 3-D data exported as text: frames, frequency and unit, then a table.

    Time is zero at frame 1. Hidden markers are blank, or the huge negative number of
    the instrument.

    **Returns:** the marker data in metres.
    """
    path = Path(path)
    lines = lines_of(path)
    stated: dict[str, tuple[int, str]] = {}
    for count, line in enumerate(lines, start=1):
        if line.lower().startswith("frame") and ":" not in line:
            break
        if ":" in line:
            name, value = line.split(":", 1)
            stated[name.strip().strip('"').lower()] = (count, value.strip('",;\t '))
    else:
        raise ValueError(f"{path.name}: no line begins with 'Frame'")
    delimiter = delimiter_of(lines[count - 1])
    heads = lines[count - 1].rstrip("\t,; ").split(delimiter)
    labels = _labels([head.strip().strip('"') for head in heads[1:]], path, count)
    table = numbers(path, lines, count + 1, len(heads), delimiter)
    for name in ("number of frames", "frequency"):
        if name not in stated:
            raise ValueError(f"{path.name}, line {count}: no {name!r} above the table")
    values = {
        name: number(stated[name][1], f"{path.name}, line {stated[name][0]}")
        for name in ("number of frames", "frequency")
    }
    if len(table) != values["number of frames"]:
        promised = f"line {stated['number of frames'][0]} says"
        raise ValueError(
            f"{path.name}: {len(table)} frames, but {promised} "
            f"{values['number of frames']:g}"
        )
    line, unit = stated.get("units", (1, "mm"))
    scale = metres(unit, f"{path.name}, line {line}")
    times = (table[:, 0] - 1) / values["frequency"]
    raw = table[:, 1:].reshape(len(table), -1, 3)
    return assemble(times, labels, raw, scale, axes)


def _labels(heads: list[str], path: Path, count: int) -> list[str]:
    """Return the labels of columns in triples `name x`, `name y`, `name z`."""
    found = []
    for i in range(0, len(heads), 3):
        matches = [HEAD.fullmatch(head) for head in heads[i : i + 3]]
        names = {match[1] for match in matches if match}
        axes = "".join(match[2].lower() for match in matches if match)
        if axes != "xyz" or len(names) != 1:
            raise ValueError(
                f"{path.name}, line {count}: columns {heads[i : i + 3]} are not x, y "
                "and z of one marker"
            )
        found.append(names.pop())
    return found


def write_ndi(data: MarkerData, path: str | Path) -> None:
    """Write tab-separated text in millimetres; hidden markers are blank."""
    heads = [f"{label} {axis}" for label in data.labels for axis in "xyz"]
    text = [f"Number of frames: {len(data)}", f"Frequency: {data.rate:.9g}"]
    text += ["Units: mm", "", "\t".join(["Frame", *heads])]
    for frame, row in zip(frames_of(data) + 1, 1e3 * data.with_gaps, strict=True):
        text.append("\t".join([str(frame), *map(cell_of, row.ravel()), ""]))
    Path(path).write_text("\n".join(text) + "\n")
