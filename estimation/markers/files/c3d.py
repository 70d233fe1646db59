"""Marker files in C3D format, by `ezc3d` (needs the extra `markers`)."""

from pathlib import Path
from typing import Any

import numpy as np

from ..recording import MarkerData
from ._text import assemble, frames_of, metres


def _ezc3d() -> Any:
    try:
        import ezc3d
    except ImportError:
        raise ValueError("C3D files need ezc3d: pip install 'djdyn[markers]'") from None
    return ezc3d


def read_c3d(path: str | Path, *, axes: str | Any | None = None) -> MarkerData:
    """Read the points of a C3D file; those with a negative residual are hidden.

    Time is zero at the first frame that was recorded, which may have been cut off.

    **Returns:** the marker data in metres.
    """
    path, ezc3d = Path(path), _ezc3d()
    try:
        file = ezc3d.c3d(str(path))
    except (OSError, RuntimeError, ValueError, IndexError) as error:
        raise ValueError(f"{path.name}: {error}") from error
    point, header = file["parameters"]["POINT"], file["header"]["points"]
    blocks = [name for name in point if name.startswith("LABELS")]
    labels = [label.strip() for name in blocks for label in point[name]["value"]]
    if "UNITS" not in point or not point["UNITS"]["value"]:
        raise ValueError(f"{path.name}: POINT:UNITS is missing")
    unit = metres(point["UNITS"]["value"][0], f"{path.name}, POINT:UNITS")
    rate = float(point["RATE"]["value"][0])
    if not rate > 0:
        raise ValueError(f"{path.name}: POINT:RATE is {rate:g} Hz")
    raw = file["data"]["points"][:3].transpose(2, 1, 0)
    residuals = file["data"]["meta_points"]["residuals"][0].T
    raw = np.where((residuals < 0)[..., None], np.nan, raw)
    if len(labels) != raw.shape[1]:
        raise ValueError(f"{path.name}: {len(labels)} labels for {raw.shape[1]} points")
    times = (header["first_frame"] + np.arange(len(raw))) / rate
    return assemble(times, labels, raw, unit, axes)


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
