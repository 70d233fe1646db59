"""Tables of measurements from files: CSV and other text, netCDF, Parquet, markers."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from djdyn.files import one_line, read_text
from djdyn.simulation.series import load_dataset

from ..markers.files import read_markers
from .table import MeasurementTable
from .units import to_si


TIME_NAMES = ("time", "t", "timestamp", "time_s", "seconds")
MARKER_FILES = (".trc", ".c3d", ".xls")
TEXT_FILES = (".csv", ".tsv", ".txt", ".dat")
MAX_ROWS, MAX_COLUMNS = 5_000_000, 2_000
MAX_BYTES = 500_000_000
HEAD = re.compile(r"^(?P<name>.*?)\s*[\[(](?P<unit>[^\])]*)[\])]\s*$")


def read_table(
    path: str | Path, time: str | None = None, time_unit: str = "", group: str = ""
) -> MeasurementTable:
    """Read a table of measurements.

    Text files (`.csv`, `.tsv`, `.txt`) have a row of names, with units in brackets if
    there are any: `angle [deg]`. Columns are separated by commas, semicolons or tabs;
    lines that begin with `#` are comments; empty cells are missing. NetCDF (`.nc`) and
    Parquet (`.parquet`) files have units as attributes, or none. Markers (`.trc`,
    `.c3d`, NDI text) become three columns each, `label.x` to `label.z`, in metres.

    **Arguments:**

    - `time`: the column of times; by default one that is called so.
    - `time_unit`: its unit, in place of that of the file, or seconds.
    - `group`: the group of a netCDF file.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no file {path.name}")
    try:
        return _read(path, time, time_unit, group)
    except ImportError:
        raise
    except MemoryError:
        raise ValueError(f"{path.name} asks for more memory than there is") from None
    except Exception as error:  # damaged files: whatever the libraries make of them
        said = one_line(error)
        named = said if path.name in said else f"{path.name}: {said}"
        raise ValueError(named) from None


def _read(path: Path, time: str | None, time_unit: str, group: str) -> MeasurementTable:
    """Read a table in the format of the file's ending."""
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(
            f"{path.name} has {path.stat().st_size / 1e6:.3g} MB and may have "
            f"{MAX_BYTES / 1e6:.3g}"
        )
    suffix = path.suffix.lower()
    if suffix in MARKER_FILES or (suffix in TEXT_FILES and _is_ndi(path)):
        return _markers(path)
    if suffix in TEXT_FILES:
        columns, units = _text(path)
    elif suffix in (".nc", ".npz"):
        columns, units = _series(path, group)
    elif suffix == ".parquet":
        columns, units = _parquet(path)
    else:
        known = ", ".join((*TEXT_FILES, ".nc", ".npz", ".parquet", *MARKER_FILES))
        raise ValueError(f"{path.name}: tables are {known}")
    return _table(path, columns, units, time, time_unit)


def _table(
    path: Path,
    columns: dict[str, np.ndarray],
    units: dict[str, str],
    time: str | None,
    time_unit: str,
) -> MeasurementTable:
    """Return the table of columns, one of which is time."""
    if time is None:
        near = [k for k in columns if k.lower() in TIME_NAMES]
        if not near:
            there = ", ".join(list(columns)[:30])
            raise ValueError(
                f"{path.name} has no column called time or t: name it of {there}"
            )
        time = near[0]
    if time not in columns:
        there = ", ".join(list(columns)[:30])
        raise ValueError(f"{path.name} has no column {time!r}; it has {there}")
    t = to_si(columns.pop(time), time_unit or units.get(time) or "s", "s")
    if len(t) < 4:
        raise ValueError(f"{path.name} has {len(t)} rows, which is no record")
    back = np.flatnonzero(~(np.diff(t) > 0))
    if len(back):
        row = int(back[0]) + 1
        raise ValueError(
            f"{path.name}: time does not run forward in {len(back)} of {len(t)} rows, "
            f"first at row {row + 1}: {t[row]:.6g} s after {t[row - 1]:.6g} s"
        )
    if not columns:
        raise ValueError(f"{path.name} has no column beside {time!r}")
    return MeasurementTable(t, columns, units, path.name)


def _is_ndi(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(40).strip(b'\xef\xbb\xbf" ').lower().startswith(b"number of f")


def _markers(path: Path) -> MeasurementTable:
    data = read_markers(path)
    places, axes = data.with_gaps, "xyz"
    columns = {
        f"{label}.{axis}": places[:, i, j]
        for i, label in enumerate(data.labels)
        for j, axis in enumerate(axes)
    }
    back = np.flatnonzero(~(np.diff(data.times) > 0))
    if len(back) or len(data) < 4:
        raise ValueError(f"{path.name}: time does not run forward, or hardly any rows")
    return MeasurementTable(data.times, columns, dict.fromkeys(columns, "m"), path.name)


def _text(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the columns of a text file, and the units of their heads."""
    import pandas as pd

    lines = read_text(path, MAX_BYTES).splitlines()
    head = next((line for line in lines if line.strip() and line.strip()[0] != "#"), "")
    if not head:
        raise ValueError(f"{path.name} is empty")
    mark = max("\t;,", key=head.count) if any(map(head.count, "\t;,")) else r"\s+"
    decimal = "," if mark == ";" else "."
    try:
        frame = pd.read_csv(
            path, sep=mark, decimal=decimal, comment="#", skipinitialspace=True,
            encoding="utf-8-sig", nrows=MAX_ROWS,
        )  # fmt: skip
    except (ValueError, OverflowError) as error:  # pandas' parser errors among them
        raise ValueError(f"{path.name} is no table: {error}") from None
    _check_size(path, frame.shape)
    columns, units = {}, {}
    for head in frame.columns:
        name, unit = str(head).strip(), ""
        if match := HEAD.match(name):
            name, unit = match["name"] or name, match["unit"].strip()
        if re.fullmatch(r"-?[\d.]+(e-?\d+)?", name, re.IGNORECASE):
            raise ValueError(f"{path.name} has no row of names: it begins with {name}")
        if name in columns:
            raise ValueError(f"{path.name} has two columns {name!r}")
        columns[name], units[name] = _numbers(path, name, frame[head]), unit
    return columns, units


def _numbers(path: Path, name: str, cells: Any) -> np.ndarray:
    """Return a column as numbers; refuse text, and name its first cell."""
    import pandas as pd

    values = np.array(pd.to_numeric(cells, errors="coerce"), float)
    text = np.flatnonzero(np.isnan(values) & np.array(cells.notna()))
    if len(text):
        row = int(text[0])
        said = str(cells.iloc[row])[:40]
        raise ValueError(
            f"{path.name}: {name!r} has {said!r} in row {row + 2}, no number"
        )
    values[~np.isfinite(values)] = np.nan
    return values


def _series(path: Path, group: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the columns of labelled series, entry by entry."""
    data = load_dataset(path, group) if group else load_dataset(path)
    columns, units = {}, {}
    for name in [*data.coords, *data.data_vars]:
        values = data[name]
        if values.dims[:1] != ("time",) or values.dtype.kind not in "iuf":
            continue
        flat = values.values.reshape(len(values), -1).astype(float)
        for i, column in enumerate(flat.T):
            label = str(name) if flat.shape[1] == 1 else f"{name}[{i}]"
            columns[label] = column
            units[label] = str(values.attrs.get("units", ""))
    if not columns:
        raise ValueError(
            f"{path.name} has no series over time"
            + ("" if group else "; name its group if it has some")
        )
    _check_size(path, (len(next(iter(columns.values()))), len(columns)))
    return columns, units


def _parquet(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError("Parquet files need: pip install 'djdyn[formats]'") from None
    try:
        about = pq.read_metadata(path)
        _check_size(path, (about.num_rows, about.num_columns))
        frame = pq.read_table(path).to_pandas()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path.name} is no Parquet file: {error}") from None
    columns = {str(k): _numbers(path, str(k), frame[k]) for k in frame.columns}
    return columns, {}


def _check_size(path: Path, shape: tuple[int, int]) -> None:
    rows, columns = shape
    if rows > MAX_ROWS - 1 or columns > MAX_COLUMNS:
        raise ValueError(
            f"{path.name} has {rows} rows and {columns} columns, and may have "
            f"{MAX_ROWS - 1} and {MAX_COLUMNS}"
        )
