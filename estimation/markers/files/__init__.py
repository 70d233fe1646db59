"""Marker files, whose format follows from the ending of their names.

Start with `read_markers` and `write_markers` below. The formats are `csv_table`, `trc`,
`c3d` and `ndi`; `_text` holds what they share.
"""

from pathlib import Path
from typing import Any

from ..recording import MarkerData
from ._text import lines_of
from .c3d import read_c3d as read_c3d, write_c3d as write_c3d
from .csv_table import read_csv as read_csv, write_csv as write_csv
from .ndi import read_ndi as read_ndi, write_ndi as write_ndi
from .trc import read_trc as read_trc, write_trc as write_trc


READERS = {".csv": read_csv, ".trc": read_trc, ".c3d": read_c3d}
WRITERS = {".csv": write_csv, ".trc": write_trc, ".c3d": write_c3d, ".xls": write_ndi}


def read_markers(path: str | Path, **options: Any) -> MarkerData:
    """Read a file in the format `.csv`, `.trc`, `.c3d`, or NDI First Principles.

    The last is text with any of the endings `.xls`, `.csv`, `.tsv` and `.txt`, and is
    recognised by its first line. `options` go to the reader of the format.

    **Returns:** the marker data in metres.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    suffix = path.suffix.lower()
    if suffix in (".xls", ".csv", ".tsv", ".txt"):
        first = next(iter(lines_of(path)), "")
        if first.strip('"').lower().startswith("number of frames"):
            return read_ndi(path, **options)
    if suffix not in READERS:
        known = ", ".join(READERS)
        raise ValueError(
            f"{path.name} is neither {known} nor an export of NDI First Principles"
        )
    return READERS[suffix](path, **options)


def write_markers(data: MarkerData, path: str | Path) -> None:
    """Write a `.csv`, `.trc` or `.c3d` file, or `.xls` text of NDI First Principles."""
    suffix = Path(path).suffix.lower()
    if suffix not in WRITERS:
        known = ", ".join(WRITERS)
        raise ValueError(f"marker files are {known}, not {Path(path).name!r}")
    WRITERS[suffix](data, path)
