"""Care with files from outside: what is checked before a file is handed to its reader.

`careful_reader` goes around the function that reads: its errors are one sentence that
names the file. `references_within` says which files a file may refer to.
"""

import contextlib
import contextvars
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ..files import one_line, read_text


P = ParamSpec("P")
T = TypeVar("T")
DATA_ERRORS = (
    ValueError,
    ArithmeticError,
    LookupError,
    RuntimeError,  # of compiled libraries, and recursion
    MemoryError,
)
OUTSIDE = (
    "the command allows it by --allow-outside, read_scenario by allow_outside=True, "
    "and other readers in the context of djdyn.io.safety.references_within(None)"
)
EVERYWHERE = Path(os.path.abspath(os.sep))
_folder: contextvars.ContextVar[Path | None] = contextvars.ContextVar(
    "folder", default=None
)


@contextlib.contextmanager
def references_within(folder: str | os.PathLike | None) -> Iterator[None]:
    """Let files refer to the files of this folder alone; None lets them refer to any.

    Outside of this context, files may refer to those in their own folder and below.
    """
    token = _folder.set(EVERYWHERE if folder is None else Path(folder))
    try:
        yield
    finally:
        _folder.reset(token)


def check_reference(path: Path, folder: Path) -> None:
    """Raise unless a file of this folder may refer to another."""
    check_inside(path, _folder.get() or folder, repr(path.name))


def check_inside(path: Path, folder: Path, what: str) -> None:
    """Raise unless a file is in a folder or below, wherever links lead."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{what} leaves the folder; {OUTSIDE}")


def as_path(source: Any) -> Path | None:
    """Return the path if the source is one, and not a text or something read before."""
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("<")):
        return None
    return Path(source) if isinstance(source, str | os.PathLike) else None


def careful_reader(
    check: Callable[[str, Path, Path], None] | None = None,
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator for functions that read a file, or its text.

    **Arguments:**

    - `check`: is given the text, the folder that its references start from, and the
      folder that they must not leave, and raises if the text must not be read.
    """

    def decorate(read: Callable[P, T]) -> Callable[P, T]:
        first = next(iter(inspect.signature(read).parameters))

        @functools.wraps(read)
        def careful(*args: P.args, **kwargs: P.kwargs) -> T:
            source: Any = args[0] if args else kwargs.get(first)
            path = as_path(source)
            try:
                if path is not None:
                    text, start = read_text(path), path.parent
                else:
                    text, start = source, Path.cwd()
                if check is not None and isinstance(text, str):
                    check(text, start, _folder.get() or start)
                return read(*args, **kwargs)
            except Exception as error:
                compiled = type(error).__module__.startswith("mujoco")
                if isinstance(error, DATA_ERRORS) or compiled:
                    raise ValueError(_sentence(path, error)) from error
                raise

        return careful

    return decorate


def _sentence(path: Path | None, error: Exception) -> str:
    """Return what an error says, with the name of the file before it."""
    said = one_line(error)
    if isinstance(error, MemoryError):
        said = "it asks for more memory than there is"
    elif isinstance(error, RecursionError):
        said = "it is nested too deeply"
    elif isinstance(error, LookupError):
        said = f"what is looked up is not there: {said}"
    name = "" if path is None else one_line(path.name)
    return said if not name or said.startswith(f"{name}:") else f"{name}: {said}"
