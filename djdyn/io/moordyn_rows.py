"""Rows of a MoorDyn deck: headings by any of their spellings, words and numbers."""

import math
import re
from collections.abc import Iterator


SECTIONS = {  # a heading contains one of the names
    "LINE TYPES": ("LINE TYPES", "LINE DICTIONARY"),
    "ROD TYPES": ("ROD TYPES", "ROD DICTIONARY"),
    "BODIES": ("BODIES", "BODY LIST", "BODY PROPERTIES"),
    "RODS": ("RODS", "ROD LIST", "ROD PROPERTIES"),
    "POINTS": (
        *("POINTS", "POINT LIST", "POINT PROPERTIES"),
        *("CONNECTION PROPERTIES", "NODE PROPERTIES"),
    ),
    "LINES": ("LINES", "LINE LIST", "LINE PROPERTIES"),
    "SYROPE IC": ("SYROPE IC",),
    "FAILURE": ("FAILURE",),
    "CONTROL": ("CONTROL",),
    "EXTERNAL LOADS": ("EXTERNAL LOADS",),
    "OPTIONS": ("OPTIONS",),
    "OUTPUTS": ("OUTPUT",),
}
TABLES = ("LINE TYPES", "ROD TYPES", "BODIES", "RODS", "POINTS", "LINES")
UNSUPPORTED = {  # sections without a counterpart, and the kind of what they ask for
    "SYROPE IC": "curve",
    "FAILURE": "failure",
    "CONTROL": "control",
    "EXTERNAL LOADS": "external load",
}
ATTACHMENTS = {
    "fixed": ("FIXED", "FIX", "ANCHOR"),
    "coupled": ("COUPLED", "CPLD", "VESSEL", "VES", "FAIRLEAD"),
    "coupled pinned": ("COUPLEDPINNED", "CPLDPIN", "VESSELPINNED", "VESPIN"),
    "pinned": ("PINNED", "PIN"),
    "free": ("FREE", "POINT", "CONNECT", "CON"),
}


class Row:
    """A line of a deck, cut into words, that knows where it stands."""

    def __init__(self, number: int, section: str, text: str):
        self.at, self.section, self.text = number, section, text
        self.words = text.split()

    def error(self, reason: str) -> ValueError:
        """Return an error that names the line and its section."""
        return ValueError(f"line {self.at} ({self.section}): {reason}")

    def numbers(self, column: int, *counts: int) -> tuple[float, ...]:
        """Return the numbers of a column, of which there may be these counts."""
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
        """Return the one number of a column."""
        return self.numbers(column, 1)[0]

    def place(self, column: int) -> tuple[float, ...]:
        """Return the numbers of three columns."""
        return tuple(self.number(i) for i in range(column, column + 3))

    def whole(self, column: int) -> int:
        """Return the whole number of a column."""
        value = self.number(column)
        if value != round(value):
            raise self.error(f"expected a whole number, got {self.words[column]!r}")
        return int(value)

    def need(self, count: int) -> None:
        """Raise unless there are so many columns."""
        if len(self.words) < count:
            raise self.error(f"expected {count} columns, got {len(self.words)}")

    def attachment(self, column: int, *kinds: str) -> tuple[str, int | None]:
        """Return one of these kinds of attachment, and the body if it is on one."""
        word = self.words[column].upper()
        for kind in kinds:
            if word in ATTACHMENTS.get(kind, ()):
                return kind, None
        on = re.fullmatch(r"BODY(\d+)(PINNED|PIN)?", word)
        if on and (kind := "body pinned" if on[2] else "body") in kinds:
            return kind, int(on[1])
        raise self.error(f"unknown attachment {self.words[column]!r}")


def _section(line: str) -> str:
    """Return the section that a heading begins, or the heading's text."""
    said = re.sub(r"\s+", " ", re.sub("-{3,}", " ", line)).strip().upper()
    for section, names in SECTIONS.items():
        if any(name == said for name in names):
            return section
    for section, names in SECTIONS.items():
        if any(name in said for name in names):
            return section
    return said


def deck_rows(text: str) -> Iterator[Row]:
    """Yield the rows of all sections, without the two lines of column names.

    What stands before the first section is free text. A heading that is none of the
    format's ends the deck where it says so, and is an error elsewhere.
    """
    section, skip, seen = "", 0, set()
    for number, line in enumerate(text.splitlines(), start=1):
        if "---" in line:
            section, skip = _section(line), 0
            row = Row(number, section, line)
            if section in SECTIONS:
                if section in seen:
                    raise row.error("a second section of this name")
                seen.add(section)
                skip = 0 if section in ("OPTIONS", "OUTPUTS") else 2
                if section in UNSUPPORTED:
                    yield row
            elif seen and section not in ("NEED THIS LINE", "END", ""):
                raise row.error("unknown heading")
            else:
                section = ""
        elif skip:
            skip -= 1
        elif section and line.split("#")[0].strip():
            yield Row(number, section, line.split("#")[0])
