"""Files that are written whole or not at all, and read whole or refused.

A process may be killed and a disk may fill up while a file is written: what was there
before must survive. Nothing in a file is executed.
"""

import contextlib
import stat
import tokenize
import uuid
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np


MAX_TEXT = 16_000_000  # bytes of a text that is parsed as a whole
MAX_SENTENCE = 600  # letters of a message

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


def one_line(reason: object, most: int = MAX_SENTENCE) -> str:
    """Return what an error says as one line that a terminal can show.

    Text of the user may stand in it: letters that do not print are spelled out, and
    the middle of what is longer than `most` is left out.
    """
    text = " ".join(str(reason).split())
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    tail = most // 3
    return text if len(text) <= most else f"{text[: most - tail]} ... {text[-tail:]}"


def read_text(path: str | Path, most: int = MAX_TEXT) -> str:
    """Return the text of a file in UTF-8, with or without a byte order mark.

    Raise a `ValueError` that names the file if it is no such text or larger than `most`
    bytes, and an `OSError` if it cannot be opened. A device or a pipe is no file.
    """
    path = Path(path)
    if "\0" in str(path):
        raise ValueError(f"{one_line(path.name)}: a file's name holds no zero byte")
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        what = "a folder" if stat.S_ISDIR(about.st_mode) else "no ordinary file"
        raise ValueError(f"{path.name}: this is {what}")
    if about.st_size > most:
        raise ValueError(
            f"{path.name}: the file has {about.st_size / 1e6:.3g} MB and may have "
            f"{most / 1e6:.3g}"
        )
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path.name}: the file is not UTF-8 text: {error.reason} at byte "
            f"{error.start}"
        ) from None
