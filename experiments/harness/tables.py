"""Reference data of the studies."""

import csv
from importlib import resources

import numpy as np


def read(name: str) -> list[dict[str, str]]:
    """Read the rows of a table `study/file`; lines that begin with # are comments."""
    study, file = name.split("/")
    folder = resources.files("experiments").joinpath("studies", study, "data")
    text = folder.joinpath(file).read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def columns(rows: list[dict[str, str]], *names: str) -> np.ndarray:
    """Return the numbers of some columns as an array."""
    return np.array([[float(row[name]) for name in names] for row in rows])
