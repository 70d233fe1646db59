"""MoorDyn v2 input decks, as plain numbers in SI units."""

import dataclasses
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .moordyn_options import option, unsupported_option
from .moordyn_rows import TABLES, UNSUPPORTED, Row, deck_rows
from .safety import careful_reader


KINDS = (  # of what a deck may ask for and a system does not hold
    *("control", "currents", "curve", "external load", "failure", "friction"),
    *("turbine", "vortex", "waves"),
)
SHOWN = 3  # names of a kind in an error, before the rest is counted


@dataclasses.dataclass(frozen=True)
class LineType:
    """What a line is made of; drag and added mass across and along it.

    `damping` is in N s, or a share of the critical damping of a segment where it was
    given as a negative number: then it is None, and `damping_ratio` is positive.
    """

    name: str
    diameter: float
    mass: float  # kg/m
    EA: float
    damping: float | None
    damping_ratio: float | None
    EI: float
    Cd: float
    Ca: float
    CdAx: float
    CaAx: float

    def axial_damping(self, segment: float) -> float:
        """In N s, for segments of this length."""
        if self.damping is not None:
            return self.damping
        assert self.damping_ratio is not None
        return self.damping_ratio * segment * math.sqrt(self.EA * self.mass)


@dataclasses.dataclass(frozen=True)
class RodType:
    """What a rod is made of; `CdEnd` and `CaEnd` are those of each of its ends."""

    name: str
    diameter: float
    mass: float  # kg/m
    Cd: float
    Ca: float
    CdEnd: float
    CaEnd: float


@dataclasses.dataclass(frozen=True)
class DeckBody:
    """A rigid body; angles are in radians, `CdA` and `Ca` as many as were given."""

    id: int
    kind: str  # fixed, coupled, coupled pinned or free
    position: tuple[float, ...]
    roll_pitch_yaw: tuple[float, ...]
    mass: float
    centre: tuple[float, ...]
    inertia: tuple[float, ...]
    volume: float
    CdA: tuple[float, ...]
    Ca: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class DeckRod:
    """A rigid cylinder from end A to end B, whose positions are on its body if any."""

    id: int
    type: str
    kind: str  # fixed, coupled, coupled pinned, pinned, free, body or body pinned
    body: int | None
    start: tuple[float, ...]
    end: tuple[float, ...]
    segments: int

    @property
    def length(self) -> float:
        """Distance from end A to end B, m."""
        return math.dist(self.start, self.end)


@dataclasses.dataclass(frozen=True)
class DeckPoint:
    """Where lines end; `position` is on its body where it has one."""

    id: int
    kind: str  # fixed, coupled, free or body
    body: int | None
    position: tuple[float, ...]
    mass: float
    volume: float
    CdA: float
    Ca: float
    force: tuple[float, ...] = (0.0, 0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class DeckLine:
    """A line from `start` to `end`: a point's number, or a rod's number and its end."""

    id: int
    type: str
    start: int | tuple[int, str]
    end: int | tuple[int, str]
    length: float
    segments: int


@dataclasses.dataclass(frozen=True)
class Deck:
    """All of a deck; `options` holds every option as it was written.

    `folder` is where the deck's further files are looked for. Without a depth the water
    is as deep as the lowest point.
    """

    line_types: dict[str, LineType]
    rod_types: dict[str, RodType]
    bodies: dict[int, DeckBody]
    rods: dict[int, DeckRod]
    points: dict[int, DeckPoint]
    lines: dict[int, DeckLine]
    options: dict[str, str]
    folder: Path | None = None
    gravity: float = 9.80665
    density: float = 1025.0
    depth: float = 0.0
    time_step: float = 0.001
    bed_stiffness: float = 3e6
    bed_damping: float = 3e5
    friction: float = 0.0
    friction_damping: float = 200.0
    start_time: float = 120.0
    wave_step: float = 0.25
    bathymetry: str | None = None
    waves: int = 0
    currents: int = 0


def _unsupported(row: Row, shaken: set[str]) -> tuple[str, str] | None:
    """Return kind and name of what a row asks for and a system does not hold.

    `shaken` are the types of lines with inner nodes, which vortices shake.
    """
    if row.section in UNSUPPORTED:
        return UNSUPPORTED[row.section], f"section {row.section}"
    if row.section == "OPTIONS":
        return unsupported_option(row)
    if row.section == "LINE TYPES":
        words = row.words[1:]
        bent = [w for w in words if "|" in w or re.search("[a-df-z]", w.lower())]
        if bent:
            return "curve", f"line type {row.words[0]} ({bent[0]})"
        if len(words) > 9 and row.number(10) and row.words[0] in shaken:
            return "vortex", f"line type {row.words[0]} (Cl {row.words[10]})"
    place = {"POINTS": 1, "BODIES": 1, "RODS": 2}.get(row.section, len(row.words))
    if any("TURBINE" in word.upper() for word in row.words[place : place + 1]):
        return "turbine", f"{row.section.lower()} {row.words[0]}"
    return None


def _refuse(found: Sequence[tuple[str, str]], ignore: Sequence[str]) -> None:
    """Raise unless every kind found is one to ignore."""
    for kind in ignore:
        if kind not in KINDS:
            raise ValueError(
                f"cannot ignore {kind!r}; what can be ignored is {', '.join(KINDS)}"
            )
    culprits: dict[str, list[str]] = {}
    for kind, name in found:
        if kind not in ignore and name not in culprits.setdefault(kind, []):
            culprits[kind].append(name)
    if not any(culprits.values()):
        return
    said = []
    for kind, names in culprits.items():
        more = len(names) - SHOWN
        rest = f" and {more} more" if more > 0 else ""
        said.append(f"{kind} of {', '.join(names[:SHOWN])}{rest}")
    raise ValueError(
        f"the deck has {'; '.join(said)}, which a System cannot hold: take it out, or "
        f"pass ignore={tuple(culprits)!r} to read the deck without it"
    )


def _line_type(row: Row) -> LineType:
    row.need(10)
    curves = (row.numbers(i, 1, 2, 3) for i in range(1, 10))
    d, mass, EA, BA, *rest = (curve[0] for curve in curves)
    if min(d, mass, EA) <= 0:
        raise row.error("diameter, mass and EA must be positive")
    damped = (BA, None) if BA >= 0 else (None, -BA)
    return LineType(row.words[0], d, mass, EA, *damped, *rest)


def _rod_type(row: Row) -> RodType:
    row.need(7)
    return RodType(row.words[0], *(row.number(i) for i in range(1, 7)))


def _body(row: Row) -> DeckBody:
    row.need(14)
    angles = tuple(math.radians(x) for x in row.place(5))
    centre, inertia = row.numbers(9, 1, 3), row.numbers(10, 1, 3)
    if len(centre) == 1:  # on the z axis
        centre = (0.0, 0.0, *centre)
    inertia = inertia * 3 if len(inertia) == 1 else inertia
    kind, _ = row.attachment(1, "fixed", "coupled", "coupled pinned", "free")
    drag, added = row.numbers(12, 1, 2, 3, 6), row.numbers(13, 1, 3)
    mass, volume = row.number(8), row.number(11)
    own = (mass, centre, inertia, volume, drag, added)
    return DeckBody(row.whole(0), kind, row.place(2), angles, *own)


def _rod(row: Row) -> DeckRod:
    row.need(10)
    kinds = ("fixed", "coupled", "coupled pinned", "pinned", "free")
    kind, body = row.attachment(2, *kinds, "body", "body pinned")
    ends, segments = (row.place(3), row.place(6)), row.whole(9)
    if segments < 0:
        raise row.error("a rod has no negative number of segments")
    return DeckRod(row.whole(0), row.words[1], kind, body, *ends, segments)


def _point(row: Row) -> DeckPoint:
    row.need(9)
    kind = row.attachment(1, "fixed", "coupled", "free", "body")
    last = 10 if len(row.words) >= 12 else 7  # with a force before the last two
    force = row.place(7) if last == 10 else (0.0, 0.0, 0.0)
    mass, volume, CdA, Ca = (row.number(i) for i in (5, 6, last, last + 1))
    own = (mass, volume, CdA, Ca, force)
    return DeckPoint(row.whole(0), *kind, row.place(2), *own)


def _line(row: Row) -> DeckLine:
    row.need(6)
    length, segments = row.number(4), row.whole(5)
    if length <= 0 or segments < 1:
        raise row.error("a line has a positive length and at least one segment")
    ends = _line_end(row, 2), _line_end(row, 3)
    return DeckLine(row.whole(0), row.words[1], *ends, length, segments)


def _line_end(row: Row, column: int) -> int | tuple[int, str]:
    word = row.words[column].upper()
    if rod := re.fullmatch(r"R(?:OD)?(\d+)([AB])", word):
        return int(rod[1]), rod[2]
    if point := re.fullmatch(r"(?:C|CON|P|POINT)?(\d+)", word):
        return int(point[1])
    raise row.error(f"expected a point or a rod's end, got {row.words[column]!r}")


MAKERS = (_line_type, _rod_type, _body, _rod, _point, _line)


@careful_reader()
def read_moordyn(source: str | Path, ignore: Sequence[str] = ()) -> Deck:
    """Return a deck of MoorDyn v2 read from a file, or from its text.

    Every section and every option of the format is read. What has no counterpart here
    is named in one error; a heading or an option that is not of the format is one.

    **Arguments:**

    - `ignore`: kinds of things to leave out, as the error names them; of a `curve` the
      first number is kept. Nothing else is left out.
    """
    ignore = (ignore,) if isinstance(ignore, str) else tuple(ignore)
    written = "\n" in str(source)
    folder = None if written else Path(source).parent
    text = str(source) if written else Path(source).read_text(errors="replace")
    rows = list(deck_rows(text))
    lines = [row for row in rows if row.section == "LINES" and len(row.words) > 5]
    shaken = {row.words[1] for row in lines if row.words[5] != "1"}
    faults = [_unsupported(row, shaken) for row in rows]
    _refuse([fault for fault in faults if fault], ignore)
    tables: dict[str, dict[Any, Any]] = {name: {} for name in TABLES}
    options: dict[str, str] = {}
    given: dict[str, Any] = {}
    for row, fault in zip(rows, faults, strict=True):
        if fault and fault[0] == "turbine":
            continue
        if row.section in TABLES:
            found = MAKERS[TABLES.index(row.section)](row)
            key = found.name if isinstance(found, LineType | RodType) else found.id
            if key in tables[row.section]:
                raise row.error(f"a second {key!r}")
            tables[row.section][key] = found
        elif row.section == "OPTIONS":
            options[row.words[1]] = row.words[0]
            given |= {} if fault else option(row)
    types, rod_types, bodies, rods, points, found = (tables[name] for name in TABLES)
    things = (types, rod_types, bodies, rods, points, found)
    deck = Deck(*things, options, folder, **given)
    _check(deck)
    deepest = max(
        (-p.position[2] for p in deck.points.values() if not p.body), default=0
    )
    return dataclasses.replace(deck, depth=max(deck.depth, deepest))


def _check(deck: Deck) -> None:
    """Raise unless everything that is named is there."""
    for what, things, types in (
        ("line", deck.lines, deck.line_types),
        ("rod", deck.rods, deck.rod_types),
    ):
        for thing in things.values():
            if thing.type not in types:
                raise ValueError(
                    f"{what} {thing.id} is of unknown type {thing.type!r}; there are "
                    f"{', '.join(types) or 'none'}"
                )
    for line in deck.lines.values():
        for end in (line.start, line.end):
            if isinstance(end, tuple) and end[0] not in deck.rods:
                raise ValueError(f"line {line.id} ends at unknown rod {end[0]}")
            if isinstance(end, int) and end not in deck.points:
                raise ValueError(f"line {line.id} ends at unknown point {end}")
    for what, things in (("point", deck.points), ("rod", deck.rods)):
        for thing in things.values():
            if thing.body is not None and thing.body not in deck.bodies:
                raise ValueError(f"{what} {thing.id} is on unknown body {thing.body}")
