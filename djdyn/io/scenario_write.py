"""Scenario files written anew with other parameters; comments and order stay."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit

from ..files import read_text, write_text


def write_scenario(
    source: str | Path, target: str | Path, parameters: Mapping[str, Any], comment: str
) -> None:
    """Write a scenario file anew, with numbers in its section `parameters`.

    Numbers that are there already stay, unless they are replaced. Files that it names
    are named from the new place.

    **Arguments:**

    - `parameters`: values by path.
    - `comment`: what the numbers are, in front of them.
    """
    source, target = Path(source), Path(target)
    document: Any = tomlkit.parse(read_text(source))
    table = document.get("parameters")
    if table is None:
        table = tomlkit.table()
        document.add(tomlkit.nl())
        document.add("parameters", table)
    table.add(tomlkit.comment(comment))
    for path, value in parameters.items():
        _remove(table, path)
        table.add(tomlkit.key(path), np.asarray(value, float).tolist())
    machine = document.get("mechanism", {})
    for key in ("mjcf", "urdf"):
        if key in machine:
            file = source.parent.resolve() / str(machine[key])
            machine[key] = os.path.relpath(file, target.parent.resolve())
    write_text(target, tomlkit.dumps(document))


def _remove(table: Any, path: str) -> None:
    """Remove the number at a path, written as one key or as tables in tables."""
    if path in table:
        del table[path]
    head, _, rest = path.partition(".")
    if rest and isinstance(table.get(head), Mapping):
        _remove(table[head], rest)
