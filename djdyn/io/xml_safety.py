"""Care with XML: entities, depth, sizes, and files that it refers to."""

import contextlib
import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from xml.parsers import expat

from ..files import read_text
from .safety import careful_reader, check_inside
from .unsupported import import_mujoco


MAX_DEPTH = 200  # elements inside of each other
MAX_ELEMENTS = 200_000
MAX_COPIES = 10_000  # of what is inside of elements with a count
MAX_COUNT = 1e7  # other things that the numbers of one element ask for
MAX_ENTRY = 1e6  # letters of an attribute
FOLDERS = ("meshdir", "texturedir", "assetdir")
COUNTS = ("ncol", "nrow", "width", "height", "gridsize", "cellcount")
MEMORY = ("memory", "njmax", "nconmax", "nstack", "nkey", "nuserdata")
WHOLE = re.compile(r"\d+")


class _References:
    """What one XML text has, gathered element by element."""

    def __init__(self) -> None:
        self.elements = 0
        self.copies = [1.0]  # of each element that is open, and of the text
        self.files: list[tuple[str, str]] = []  # what refers, and to what
        self.folders: list[str] = [""]
        self.includes: list[str] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Check an element and note what it refers to."""
        words = WHOLE.findall(attributes.get("count", ""))
        copies = math.prod(max(1.0, float(x[:300])) for x in words)
        self.copies.append(self.copies[-1] * copies)
        self.elements += 1
        if self.copies[-1] > MAX_COPIES:
            raise ValueError(
                f"<{tag} count>: asks for {self.copies[-1]:.3g} copies, more than "
                f"{MAX_COPIES}"
            )
        if len(self.copies) > MAX_DEPTH or self.elements > MAX_ELEMENTS:
            raise ValueError(
                f"<{tag}>: more than {MAX_DEPTH} elements inside of each other, or "
                f"{MAX_ELEMENTS} in all"
            )
        for key, value in attributes.items():
            where = f"<{tag} {key}>"
            if len(value) > MAX_ENTRY:
                raise ValueError(f"{where}: more than {MAX_ENTRY:g} letters")
            if key.startswith("file") and key != "filename":  # URDF shapes are not read
                self.files.append((where, value))
            elif key in FOLDERS:
                self.folders.append(value)
                self.files.append((where, value))
        if tag == "include":
            self.includes.append(attributes.get("file", ""))
        _check_counts(tag, attributes)

    def end(self, tag: str) -> None:
        """Leave an element."""
        del tag
        self.copies.pop()


def _check_counts(tag: str, attributes: Mapping[str, str]) -> None:
    """Raise if the numbers of an element ask for too many things."""
    keys = (*COUNTS, *(("size",) if tag in ("numeric", "text") else ()))
    if tag == "size":
        keys = (*MEMORY, *(key for key in attributes if key.startswith("nuser_")))
    given = [key for key in keys if key in attributes]
    words = (x for key in given for x in WHOLE.findall(attributes[key]))
    asked = math.prod(max(1.0, float(x[:300])) for x in words)
    units = "KMGTPE"
    for suffix in attributes.get("memory", "")[-1:] if tag == "size" else "":
        asked *= 1024.0 ** (units.find(suffix.upper()) + 1) / 1024.0
    if asked > MAX_COUNT:
        raise ValueError(
            f"<{tag}>: {', '.join(given)} ask for {asked:.3g} things, more than "
            f"{MAX_COUNT:g}"
        )


def _gather(text: str) -> _References:
    """Return what a text refers to; raise if it declares entities or asks too much."""
    found = _References()
    parser = expat.ParserCreate("utf-8")

    def refuse_doctype(*_: Any) -> None:
        raise ValueError("a document type and entities are not read: take them out")

    parser.StartDoctypeDeclHandler = refuse_doctype
    parser.EntityDeclHandler = refuse_doctype
    parser.StartElementHandler = found.start
    parser.EndElementHandler = found.end
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise ValueError(f"the file is not well-formed XML: {error}") from None
    return found


def check_xml(text: str, start: Path, folder: Path) -> None:
    """Raise unless an XML text is safe to read, and so is all that it includes.

    **Arguments:**

    - `start`: where its references start from.
    - `folder`: what they must not leave.
    """
    waiting, seen, folders = [(text, start)], set(), {""}
    files: list[tuple[str, str, Path]] = []
    while waiting:
        text, here = waiting.pop()
        found = _gather(text)
        folders |= set(found.folders)
        files += [(where, file, here) for where, file in found.files]
        for where, file, base in files:  # before any is opened
            for above in folders:
                for origin in (start, base):
                    check_inside(origin / above / file, folder, f"{where} {file!r}")
        for file in found.includes:
            for path in {(start / file).resolve(), (here / file).resolve()} - seen:
                seen.add(path)
                if path.is_file():
                    waiting.append((read_text(path), path.parent))


P = ParamSpec("P")
T = TypeVar("T")


def careful_xml(read: Callable[P, T]) -> Callable[P, T]:
    """Return a reader of XML that is safe, and has errors of one sentence."""

    @functools.wraps(read)
    def quiet(*args: P.args, **kwargs: P.kwargs) -> T:
        with _without_log():
            return read(*args, **kwargs)

    return careful_reader(check_xml)(quiet)


@contextlib.contextmanager
def _without_log() -> Iterator[None]:
    """Keep MuJoCo from writing its warnings to a file in the working directory."""
    try:
        mujoco = import_mujoco()
    except ImportError:  # the reader says so
        yield
        return
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)
