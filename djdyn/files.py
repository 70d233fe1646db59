"""Files that are written whole or not at all; arrays that are read whole or refused.

A process may be killed and a disk may fill up while a file is written: what was there
before must survive. Nothing in a file is executed.
"""

import contextlib
import tokenize
import uuid
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np


UNREADABLE = (  # what NumPy raises where a file is not what it should be
    OSError,
    ValueError,
    EOFError,
    LookupError,
    SyntaxError,
    NotImplementedError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a new file beside `path`, which takes its place once it is complete."""
    path = Path(path)
    new = path.with_name(f"{path.stem}.{uuid.uuid4().hex[:8]}.part{path.suffix}")
    try:
        yield new
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8")


def write_arrays(path: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays by name as `.npz`, whole or not at all."""
    named: Any = {k: np.asarray(x) for k, x in arrays.items()}
    with replacing(path) as new, open(new, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **named)


def read_arrays(path: str | Path, what: str) -> dict[str, np.ndarray]:
    """Return the arrays of an `.npz` file by name.

    Raise a `ValueError` that says that the file is not `what` if it is damaged, holds
    anything but arrays of numbers and text, or is no such file.
    """
    try:
        with open(path, "rb") as file:
            found = np.load(file, allow_pickle=False)
            if not isinstance(found, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array")
            return {name: found[name] for name in found.files}
    except (*UNREADABLE, MemoryError) as error:
        raise ValueError(f"{path} is not {what}, or is damaged: {error}") from None
