"""Files that a MoorDyn deck names or stands beside."""

from pathlib import Path

from .moordyn import Deck


def find_file(deck: Deck, name: str) -> Path:
    """Return a file of the deck, beside it or in a folder above."""
    if deck.folder is None:
        raise ValueError(f"the deck names a file, {name}: read the deck from its file")
    for folder in (deck.folder, *deck.folder.absolute().parents):
        if (folder / name).is_file():
            return folder / name
    raise ValueError(f"the deck's file {name} is neither in {deck.folder} nor above it")


def read_rows(file: Path, skip: int) -> list[list[float]]:
    """Return the numbers of a file, row by row, after some rows of text."""
    rows = []
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        if number > skip and line.strip():
            try:
                rows.append([float(word) for word in line.split()])
            except ValueError:
                raise ValueError(f"{file.name}, line {number}: not numbers") from None
    return rows
