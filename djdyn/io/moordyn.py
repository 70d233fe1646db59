"""MoorDyn v2 input decks, as plain numbers in SI units."""

import dataclasses
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from .safety import careful_reader
from .unsupported import refuse


SWITCHES = {  # options that are unsupported unless they are off
    "waves": ("WAVEKIN", "CURRENTS"),
    "friction": ("FRICCOEFF", "FRICTIONCOEFFICIENT"),
}
KINDS = ("curve", "friction", "rod", "section", "turbine", "waves")
SECTIONS = ("LINE TYPES", "BODIES", "POINTS", "LINES", "OPTIONS")
ALIASES = {
    **{"LINE DICTIONARY": "LINE TYPES", "LINE LIST": "LINES"},
    **{f"BODY {x}": "BODIES" for x in ("LIST", "PROPERTIES")},
    **{f"POINT {x}": "POINTS" for x in ("LIST", "PROPERTIES")},
}
LEFT_OUT = ("OUTPUTS", "OUTPUT", "NEED THIS LINE", "END")  # say what to print, no more
ATTACHMENTS = {
    "fixed": ("FIXED", "FIX", "ANCHOR"),
    "coupled": ("COUPLED", "CPLD", "VESSEL", "VES"),
    "free": ("FREE", "POINT", "CONNECT"),
}
OPTIONS = {  # by any of their names, in lower case
    "gravity": ("g", "gravity"),
    "density": ("rho", "rhow", "wtrdnsty"),
    "depth": ("wtrdpth",),
    "time_step": ("dtm",),
    "bed_stiffness": ("kbot", "kb"),
    "bed_damping": ("cbot", "cb"),
}


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
class DeckBody:
    """A rigid body; angles are in radians, `CdA` and `Ca` as many as were given."""

    id: int
    kind: str  # fixed, coupled or free
    position: tuple[float, ...]
    roll_pitch_yaw: tuple[float, ...]
    mass: float
    centre: tuple[float, ...]
    inertia: tuple[float, ...]
    volume: float
    CdA: tuple[float, ...]
    Ca: tuple[float, ...]


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


@dataclasses.dataclass(frozen=True)
class DeckLine:
    """A line from point `start` to point `end`."""

    id: int
    type: str
    start: int
    end: int
    length: float
    segments: int


@dataclasses.dataclass(frozen=True)
class Deck:
    """All of a deck; `options` holds every option as it was written."""

    line_types: dict[str, LineType]
    bodies: dict[int, DeckBody]
    points: dict[int, DeckPoint]
    lines: dict[int, DeckLine]
    options: dict[str, str]
    gravity: float = 9.8
    density: float = 1025.0
    depth: float = 0.0
    time_step: float = 0.001
    bed_stiffness: float = 3e6
    bed_damping: float = 3e5


class _Row:
    """A line of a deck, cut into words, that knows where it stands."""

    def __init__(self, number: int, section: str, text: str):
        self.at, self.section, self.text = number, section, text
        self.words = text.split()

    def error(self, reason: str) -> ValueError:
        return ValueError(f"line {self.at} ({self.section}): {reason}")

    def numbers(self, column: int, *counts: int) -> tuple[float, ...]:
        """The numbers of a column, of which there may be these counts."""
        word = self.words[column]
        try:
            values = tuple(float(x) for x in word.split("|"))
        except ValueError:
            raise self.error(f"expected a number, got {word!r}") from None
        if len(values) not in counts or not all(map(math.isfinite, values)):
            raise self.error(
                f"expected {' or '.join(map(str, counts))} numbers: {word!r}"
            )
        return values

    def number(self, column: int) -> float:
        return self.numbers(column, 1)[0]

    def whole(self, column: int) -> int:
        value = self.number(column)
        if value != round(value):
            raise self.error(f"expected a whole number, got {self.words[column]!r}")
        return int(value)

    def need(self, count: int) -> None:
        if len(self.words) < count:
            raise self.error(f"expected {count} columns, got {len(self.words)}")

    def attachment(self, column: int) -> tuple[str, int | None]:
        word = self.words[column].upper()
        for kind, names in ATTACHMENTS.items():
            if word in names:
                return kind, None
        if on := re.fullmatch(r"BODY(\d+)", word):
            return "body", int(on[1])
        raise self.error(f"unknown attachment {self.words[column]!r}")


def _rows(text: str) -> Iterator[_Row]:
    """The rows of all sections, without the two lines of column names."""
    section, skip = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(r"\s*-{3}", line):
            section = re.sub(r"\s+", " ", line.strip().strip("-").strip()).upper()
            section = ALIASES.get(section, "" if "MOORDYN" in section else section)
            skip = 0 if section == "OPTIONS" else 2
        elif skip:
            skip -= 1
        elif section and line.split("#")[0].strip():
            yield _Row(number, section, line.split("#")[0])


def _unsupported(row: _Row) -> tuple[str, str] | None:
    """Kind and name of what a row asks for and a deck of ours does not hold."""
    words = [word.upper() for word in row.words]
    if row.section not in (*SECTIONS, *LEFT_OUT):
        return "section", row.section
    if row.section == "LINE TYPES":
        bent = [
            w for w in row.words[1:] if "|" in w or re.search("[a-df-z]", w.lower())
        ]
        return ("curve", f"line type {row.words[0]} ({bent[0]})") if bent else None
    if row.section in ("POINTS", "BODIES") and "TURBINE" in row.text.upper():
        return "turbine", f"{row.section.lower()} {row.words[0]}"
    if row.section == "LINES" and any(w.startswith("R") for w in words[2:4]):
        return "rod", f"line {row.words[0]}"
    if row.section == "OPTIONS" and words[0] not in ("0", "0.0", "NONE"):
        for kind, names in SWITCHES.items():
            if words[1:2] and words[1] in names:
                return kind, row.words[1]
    return None


def _line_type(row: _Row) -> LineType:
    row.need(10)
    curves = (row.numbers(i, 1, 2, 3) for i in range(1, 10))
    d, mass, EA, BA, *rest = (curve[0] for curve in curves)
    if min(d, mass, EA) <= 0:
        raise row.error("diameter, mass and EA must be positive")
    damped = (BA, None) if BA >= 0 else (None, -BA)
    return LineType(row.words[0], d, mass, EA, *damped, *rest)


def _body(row: _Row) -> DeckBody:
    row.need(14)
    place = tuple(row.number(i) for i in range(2, 5))
    angles = tuple(math.radians(row.number(i)) for i in range(5, 8))
    centre, inertia = row.numbers(9, 1, 3), row.numbers(10, 1, 3)
    if len(centre) == 1:  # on the z axis
        centre = (0.0, 0.0, *centre)
    inertia = inertia * 3 if len(inertia) == 1 else inertia
    kind, _ = row.attachment(1)
    drag, added = row.numbers(12, 1, 2, 3, 6), row.numbers(13, 1, 2, 3, 6)
    mass, volume = row.number(8), row.number(11)
    id = row.whole(0)
    return DeckBody(id, kind, place, angles, mass, centre, inertia, volume, drag, added)


def _point(row: _Row) -> DeckPoint:
    row.need(9)
    place = tuple(row.number(i) for i in range(2, 5))
    rest = (row.number(i) for i in range(5, 9))
    return DeckPoint(row.whole(0), *row.attachment(1), place, *rest)


def _line(row: _Row) -> DeckLine:
    row.need(6)
    length, segments = row.number(4), row.whole(5)
    if length <= 0 or segments < 1:
        raise row.error("a line has a positive length and at least one segment")
    ends = row.whole(2), row.whole(3)
    return DeckLine(row.whole(0), row.words[1], *ends, length, segments)


@careful_reader()
def read_moordyn(source: str | Path, ignore: Sequence[str] = ()) -> Deck:
    """Return a deck of MoorDyn v2 read from a file, or from its text.

    Line types, bodies, points, lines and options are read; what asks for output is
    passed over. Everything else in the deck is named in one error.

    **Arguments:**

    - `ignore`: kinds of things to leave out, as the error names them; of a `curve` the
      first number is kept.
    """
    written = "\n" in str(source)
    text = str(source) if written else Path(source).read_text()
    rows = list(_rows(text))
    faults = [_unsupported(row) for row in rows]
    refuse([fault for fault in faults if fault], ignore, KINDS, "Deck")
    tables: dict[str, dict] = {name: {} for name in SECTIONS}
    options, numbers = {}, {}
    makers = {
        "LINE TYPES": _line_type,
        "BODIES": _body,
        "POINTS": _point,
        "LINES": _line,
    }
    for row, fault in zip(rows, faults, strict=True):
        if fault and fault[0] in ("rod", "turbine"):
            continue
        if row.section in makers:
            found = makers[row.section](row)
            key = found.name if isinstance(found, LineType) else found.id
            if key in tables[row.section]:
                raise row.error(f"a second {key!r}")
            tables[row.section][key] = found
        elif row.section == "OPTIONS":
            row.need(2)
            options[row.words[1]] = row.words[0]
            for field, names in OPTIONS.items():
                if row.words[1].lower() in names:
                    numbers[field] = row.number(0)
    types, bodies, points, lines, _ = (tables[name] for name in SECTIONS)
    for line in lines.values():
        if line.type not in types:
            there = ", ".join(types) or "none"
            raise ValueError(
                f"line {line.id} is of unknown type {line.type!r}; there are {there}"
            )
        for end in (line.start, line.end):
            if end not in points:
                raise ValueError(f"line {line.id} ends at unknown point {end}")
    for point in points.values():
        if point.body is not None and point.body not in bodies:
            raise ValueError(f"point {point.id} is on unknown body {point.body}")
    return Deck(types, bodies, points, lines, options, **numbers)
