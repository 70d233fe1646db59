"""Reads all of an HDF5 file and says nothing: damage can hang or crash the library.

Run as a script with the file's name, in a process of its own.
"""

import sys
from typing import Any


def read(name: str, item: Any) -> None:
    """Read attributes and values of a group or an array."""
    del name
    dict(item.attrs)
    if hasattr(item, "shape"):
        item[()]


if __name__ == "__main__":
    import h5py

    try:
        with h5py.File(sys.argv[1]) as file:
            read("", file)
            file.visititems(read)
    except Exception as error:
        sys.stderr.write(f"\n{' '.join(str(error).split())}")
        sys.exit(1)
