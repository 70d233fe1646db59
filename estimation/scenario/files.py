"""Files of an identification: records, and what is known of each."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from djdyn.io.safety import check_inside
from djdyn.io.scenario_limits import shown
from djdyn.io.scenario_table import TablePlace

from .values import named_numbers, read_flag, read_number, read_segment, read_text


KEYS = ("file", "name", "segment", "hold_out", "group", "q", "v", "also", "common",
        "max_offset")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class RecordFile:
    """A file of measurements, the part of it that counts, and where it starts.

    `others` are files of further recorders of the trial, and `common` names the column
    that all measured, in each file.
    """

    path: Path
    name: str
    segment: tuple[float, float] | None
    hold_out: bool
    group: str
    q: dict[str, Any]
    v: dict[str, Any]
    others: tuple[Path, ...] = ()
    common: tuple[str, ...] = ()
    max_offset: float | None = None


def read_records(
    place: TablePlace, listed: Any, folder: Path, segment: Any, outside: bool
) -> tuple[RecordFile, ...]:
    """Return the files of measurements, beside the scenario unless named otherwise."""
    if not isinstance(listed, list) or not listed:
        raise place.error(f"is a list of files, not {shown(listed)}")
    found: list[RecordFile] = []
    for item in listed:
        about = {"file": item} if isinstance(item, str) else item
        place.keys_of(about, KEYS, ("file",))
        path = _existing(place, read_text(place, about, "file"), folder, outside)
        name = read_text(place, about, "name", path.stem)
        if any(name == other.name for other in found):
            name = f"{name}-{len(found) + 1}"
        own = read_segment(place / "segment", about.get("segment")) or segment
        q, v = (dict(named_numbers(place / k, about.get(k, {}))) for k in "qv")
        hold_out = read_flag(place, about, "hold_out", False)
        group = read_text(place, about, "group")
        others, common = _recorders(place, about, folder, outside)
        apart = None
        if "max_offset" in about:
            apart = read_number(place / "max_offset", about["max_offset"])
            if not apart > 0:
                raise (place / "max_offset").error("must be positive")
        found.append(
            RecordFile(path, name, own, hold_out, group, q, v, others, common, apart)
        )
    if all(one.hold_out for one in found):
        raise place.error("all records are held out, and none is left to fit")
    return tuple(found)


def _existing(place: TablePlace, name: str, folder: Path, outside: bool) -> Path:
    """Return the path of a file that is there."""
    path = folder / name
    if not outside:
        with place.guard():
            check_inside(path, folder, repr(name))
    if not path.is_file():
        raise place.error(f"there is no file {path.name}")
    return path


def _recorders(
    place: TablePlace, about: Mapping[str, Any], folder: Path, outside: bool
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Return files of further recorders, and the common column's name in each file."""
    also, common = about.get("also", []), about.get("common", [])
    also = [also] if isinstance(also, str) else also
    if not isinstance(also, list) or not all(isinstance(x, str) for x in also):
        raise (place / "also").error(f"is a file or a list of files, not {shown(also)}")
    if isinstance(common, str):
        common = [common] * (len(also) + 1)
    if not isinstance(common, list) or not all(isinstance(x, str) for x in common):
        raise (place / "common").error(f"is a column or a list, not {shown(common)}")
    if len(common) != (len(also) + 1 if also else 0):
        raise (place / "common").error(
            "names the column that all files have: one name, or one for each file"
        )
    paths = tuple(_existing(place, name, folder, outside) for name in also)
    return paths, tuple(common)
