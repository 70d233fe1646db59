"""Reads a C3D file by `ezc3d` in a process of its own: damage can crash the library.

Run as a script with the file's name; writes the arrays to standard output as `.npz`.
"""

import io
import sys

import numpy as np


def arrays(path: str) -> dict[str, np.ndarray]:
    """Return what markers need of a C3D file, by name."""
    import ezc3d

    file = ezc3d.c3d(path)
    point, header = file["parameters"]["POINT"], file["header"]["points"]
    blocks = [name for name in point if name.startswith("LABELS")]
    labels = [label.strip() for name in blocks for label in point[name]["value"]]
    if "UNITS" not in point or not point["UNITS"]["value"]:
        raise ValueError("POINT:UNITS is missing")
    return {
        "labels": np.array(labels, dtype=str),
        "unit": np.array(str(point["UNITS"]["value"][0])),
        "rate": np.array(float(point["RATE"]["value"][0])),
        "first_frame": np.array(int(header["first_frame"])),
        "points": np.asarray(file["data"]["points"][:3], float),
        "residuals": np.asarray(file["data"]["meta_points"]["residuals"][0], float),
    }


if __name__ == "__main__":
    try:
        found = arrays(sys.argv[1])
        buffer = io.BytesIO()
        np.savez(buffer, **found)  # pyright: ignore[reportArgumentType]
    except Exception as error:
        sys.stderr.write(f"\n{error}")
        sys.exit(1)
    sys.stdout.buffer.write(buffer.getvalue())
