"""Marker files in TRC format (Motion Analysis), which OpenSim reads."""

from pathlib import Path
from typing import Any

import numpy as np

from ..recording import MarkerData
from ._text import assemble, careful, cell_of, lines_of, metres, number, numbers


HEADER = (
    "DataRate CameraRate NumFrames NumMarkers Units OrigDataRate OrigDataStartFrame "
    "OrigNumFrames"
).split()


@careful
def read_trc(path: str | Path, *, axes: str | Any | None = None) -> MarkerData:
    """Read a TRC file, whose header names the unit.

    OpenSim has y up; `axes="x -z y"` makes z point up.

    **Returns:** the marker data in metres.
    """
    path = Path(path)
    lines = lines_of(path)
    if not lines or not lines[0].startswith("PathFileType"):
        raise ValueError(f"{path.name}, line 1: a TRC file begins with 'PathFileType'")
    if len(lines) < 5:
        raise ValueError(f"{path.name}, line {len(lines)}: the file ends in its header")
    header = dict(zip(lines[1].split(), lines[2].split(), strict=False))
    for name in ("DataRate", "NumFrames", "NumMarkers", "Units"):
        if name not in header:
            raise ValueError(f"{path.name}, line 3: no value for {name}")
    labels = [cell.strip() for cell in lines[3].split("\t")[2:] if cell.strip()]
    wanted = number(header["NumMarkers"], f"{path.name}, line 3")
    if len(labels) != wanted:
        raise ValueError(
            f"{path.name}, line 4: {len(labels)} labels, but line 3 says {wanted:g}"
        )
    table = numbers(path, lines, 6, 2 + 3 * len(labels), "\t", ragged=True)
    wanted = number(header["NumFrames"], f"{path.name}, line 3")
    if len(table) != wanted:
        raise ValueError(
            f"{path.name}: {len(table)} frames, but line 3 says {wanted:g}"
        )
    rate = number(header["DataRate"], f"{path.name}, line 3")
    _check_rate(path, table[:, 1], rate)
    raw = table[:, 2:].reshape(len(table), -1, 3)
    return assemble(
        table[:, 1], labels, raw, metres(header["Units"], f"{path.name}, line 3"), axes
    )


def _check_rate(path: Path, times: np.ndarray, rate: float) -> None:
    """Raise if times disagree with the rate by more than rounding."""
    step = np.median(np.diff(times)) if len(times) > 1 else 1 / rate
    if not abs(step * rate - 1) < 0.2:
        raise ValueError(
            f"{path.name}: line 3 says {rate:g} Hz, but times are {step:g} s apart"
        )


def write_trc(data: MarkerData, path: str | Path) -> None:
    """Write a TRC file in millimetres; hidden markers are blank."""
    path, rate, n, m = Path(path), f"{data.rate:.9g}", len(data), len(data.labels)
    values = (rate, rate, n, m, "mm", rate, 1, n)
    text = ["\t".join(["PathFileType", "4", "(X/Y/Z)", path.name]), "\t".join(HEADER)]
    text += ["\t".join(map(str, values))]
    text += ["\t".join(["Frame#", "Time", *(f"{label}\t\t" for label in data.labels)])]
    text += ["\t\t" + "\t".join(f"{a}{i + 1}" for i in range(m) for a in "XYZ"), ""]
    for k, (t, row) in enumerate(zip(data.times, 1e3 * data.with_gaps, strict=True), 1):
        text.append("\t".join([str(k), cell_of(t), *map(cell_of, row.ravel())]))
    path.write_text("\n".join(text) + "\n")
