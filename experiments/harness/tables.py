"""The reference figures that come with the studies."""

import csv
from importlib import resources

import numpy as np


def read(name: str) -> list[dict[str, str]]:
    """Rows of a table `study/file`, by column; lines that begin with # are comments."""
    study, file = name.split("/")
    folder = resources.files("experiments").joinpath("studies", study, "data")
    text = folder.joinpath(file).read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def columns(rows: list[dict[str, str]], *names: str) -> np.ndarray:
    """Numbers of some columns, one row each."""
    return np.array([[float(row[name]) for name in names] for row in rows])
