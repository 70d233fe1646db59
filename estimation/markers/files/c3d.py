"""Marker files in C3D format, by `ezc3d` (needs the extra `markers`)."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ..recording import MarkerData
from ._text import assemble, careful, frames_of, metres


LONGEST_READ = 6.0  # s, and more for large files
READING_SPEED = 2e6  # bytes/s, at the least


def _ezc3d() -> Any:
    try:
        import ezc3d
    except ImportError:
        raise ValueError("C3D files need ezc3d: pip install 'djdyn[markers]'") from None
    return ezc3d


@careful
def read_c3d(path: str | Path, *, axes: str | Any | None = None) -> MarkerData:
    """Read the points of a C3D file; those with a negative residual are hidden.

    Time is zero at the first frame that was recorded, which may have been cut off.

    **Returns:** the marker data in metres.
    """
    path = Path(path)
    file = _arrays(path)
    labels = [str(label) for label in file["labels"]]
    unit = metres(str(file["unit"]), f"{path.name}, POINT:UNITS")
    rate = float(file["rate"])
    if not 0 < rate < np.inf:
        raise ValueError(f"{path.name}: POINT:RATE is {rate:g} Hz")
    raw = file["points"].transpose(2, 1, 0)
    raw = np.where((file["residuals"].T < 0)[..., None], np.nan, raw)
    if len(labels) != raw.shape[1]:
        raise ValueError(f"{path.name}: {len(labels)} labels for {raw.shape[1]} points")
    times = (int(file["first_frame"]) + np.arange(len(raw))) / rate
    return assemble(times, labels, raw, unit, axes)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a file; a crash of `ezc3d` is a `ValueError` too."""
    _ezc3d()
    size = path.stat().st_size if path.is_file() else 0
    limit = LONGEST_READ + size / READING_SPEED
    script = Path(__file__).with_name("_c3d_process.py")
    command = [sys.executable, str(script), str(path.absolute())]
    try:
        done = subprocess.run(command, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"{path.name}: not read within {limit:.3g} s, so it is damaged"
        ) from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").rpartition("\n")[2]
        said = (
            said if done.returncode == 1 else "it is damaged, and ezc3d crashes on it"
        )
        raise ValueError(f"{path.name}: {said}")
    with np.load(io.BytesIO(done.stdout), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def write_c3d(data: MarkerData, path: str | Path) -> None:
    """Write a C3D file in millimetres; hidden markers have residual -1."""
    frames = frames_of(data)
    if np.any(np.diff(frames) != 1):
        raise ValueError("a C3D file cannot leave out samples: resample first")
    file = _ezc3d().c3d()
    point, n, m = file["parameters"]["POINT"], len(data), len(data.labels)
    point["RATE"]["value"] = [data.rate]
    point["UNITS"]["value"] = ["mm"]
    point["LABELS"]["value"] = list(data.labels)
    points = np.ones((4, m, n))
    points[:3] = 1e3 * data.with_gaps.transpose(2, 1, 0)
    file["data"]["points"] = points
    residuals = np.where(data.visible, 0.0, -1.0).T[None]
    file["data"]["meta_points"]["residuals"] = residuals
    file["data"]["meta_points"]["camera_masks"] = np.zeros((7, m, n), bool)
    file["header"]["points"]["first_frame"] = int(frames[0])
    file.write(str(path))
