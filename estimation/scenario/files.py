"""Files of an identification: records, and what is known of each."""

import dataclasses
from pathlib import Path
from typing import Any

from djdyn.io.safety import check_inside
from djdyn.io.scenario_limits import shown
from djdyn.io.scenario_table import TablePlace

from .values import named_numbers, read_flag, read_segment, read_text


@dataclasses.dataclass(frozen=True)
class RecordFile:
    """A file of measurements, the part of it that counts, and where it starts."""

    path: Path
    name: str
    segment: tuple[float, float] | None
    hold_out: bool
    group: str
    q: dict[str, Any]
    v: dict[str, Any]


def read_records(
    place: TablePlace, listed: Any, folder: Path, segment: Any, outside: bool
) -> tuple[RecordFile, ...]:
    """Return the files of measurements, beside the scenario unless named otherwise."""
    if not isinstance(listed, list) or not listed:
        raise place.error(f"is a list of files, not {shown(listed)}")
    found: list[RecordFile] = []
    for item in listed:
        about = {"file": item} if isinstance(item, str) else item
        place.keys_of(
            about, ("file", "name", "segment", "hold_out", "group", "q", "v"), ("file",)
        )
        path = folder / read_text(place, about, "file")
        if not outside:
            with place.guard():
                check_inside(path, folder, repr(about["file"]))
        if not path.is_file():
            raise place.error(f"there is no file {path.name}")
        name = read_text(place, about, "name", path.stem)
        if any(name == other.name for other in found):
            name = f"{name}-{len(found) + 1}"
        own = read_segment(place / "segment", about.get("segment")) or segment
        q, v = (dict(named_numbers(place / k, about.get(k, {}))) for k in "qv")
        hold_out = read_flag(place, about, "hold_out", False)
        group = read_text(place, about, "group")
        found.append(RecordFile(path, name, own, hold_out, group, q, v))
    if all(one.hold_out for one in found):
        raise place.error("all records are held out, and none is left to fit")
    return tuple(found)
