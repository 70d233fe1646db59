"""Flexible bodies of a scenario file: a beam, or matrices of finite elements."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..multibody.flexible import (
    Beam,
    FiniteElements,
    FlexibleBody,
    Hollow,
    Piece,
    Rectangle,
    Section,
    Tube,
    read_finite_elements,
)
from .safety import check_reference
from .scenario_kinds import JOINTS
from .scenario_limits import shown
from .scenario_table import POSE, TablePlace


MODELS = {"beam", "finite_elements"}
SECTIONS = {kind.__name__: kind for kind in (Rectangle, Hollow, Tube, Section)}
MATRICES = ("mass_matrix", "stiffness_matrix")
KEYS = ("modes", "nodes", "reference", "method", "stress_stiffening", "armature")
NUMBERS = ("damping", "mass_damping", "stiffness_damping")
MOST_ELEMENTS = 500  # of a beam: its matrices are full


def flexible_body(
    place: TablePlace, table: Mapping[str, Any], folder: Path
) -> FlexibleBody:
    """Return the flexible body of a table with a `beam` or `finite_elements`."""
    place.keys_of(
        table,
        ("name", "parent", "joint", *POSE, *sorted(MODELS), *KEYS, *NUMBERS),
        ("name", "joint", "modes"),
    )
    for key in ("name", "parent"):
        if not isinstance(table.get(key, ""), str):
            raise (place / key).error(f"expected a name, got {shown(table[key])}")
    place = TablePlace(place.file, f"body {table['name']!r}")
    if MODELS <= table.keys():
        raise place.error("give beam or finite_elements, not both")
    if "beam" in table:
        model = _beam(place / "beam", table["beam"])
    else:
        model = _matrices(place / "finite_elements", table["finite_elements"], folder)
    joint = dict(table["joint"]) if isinstance(table["joint"], Mapping) else {}
    given: dict[str, Any] = {"joint_name": joint.pop("name", "")}
    given |= {k: (place / k).numbers(table[k]) for k in NUMBERS if k in table}
    if "armature" in table:
        given["armature"] = (place / "armature").numbers(table["armature"])
    given["modes"] = _counts(place / "modes", table["modes"])
    if "nodes" in table:
        spot = place / "nodes"
        spot.keys_of(table["nodes"], table["nodes"])
        given["nodes"] = {k: _nodes(spot / k, x) for k, x in table["nodes"].items()}
    if "reference" in table:
        given["reference"] = _nodes(place / "reference", table["reference"])
    for key, kind in (("method", str), ("stress_stiffening", bool)):
        if key in table:
            if not isinstance(table[key], kind):
                word = "a name" if kind is str else "true or false"
                raise (place / key).error(f"is {word}, not {shown(table[key])}")
            given[key] = table[key]
    with place.guard():
        return FlexibleBody(
            table["name"],
            table.get("parent", "world"),
            (place / "joint").choose(JOINTS, joint),
            model,
            X_PJ=place.pose(table),
            **given,
        )


def _whole(place: TablePlace, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise place.error(f"is a whole number, not {shown(value)}")
    return value


def _counts(place: TablePlace, value: Any) -> Any:
    """Numbers of modes: one, or one by family."""
    if not isinstance(value, Mapping):
        return _whole(place, value)
    return {family: _whole(place / family, n) for family, n in value.items()}


def _nodes(place: TablePlace, value: Any) -> Any:
    """Index of a node, or of several."""
    if not isinstance(value, list):
        return _whole(place, value)
    return [_whole(place, x) for x in value]


def _beam(place: TablePlace, table: Any) -> Beam:
    known = ("pieces", "E", "G", "density", "theory", "rotary_inertia")
    place.keys_of(table, known, known[:4])
    if not isinstance(table["pieces"], list) or not table["pieces"]:
        raise (place / "pieces").error("is a list of tables")
    pieces = tuple(_piece(place / "pieces", piece) for piece in table["pieces"])
    if sum(piece.elements for piece in pieces) > MOST_ELEMENTS:
        raise (place / "pieces").error(f"have more than {MOST_ELEMENTS} elements")
    given: dict[str, Any] = {
        k: (place / k).numbers(table[k], ()) for k in ("E", "G", "density")
    }
    for key, kind in (("theory", str), ("rotary_inertia", bool)):
        if key in table:
            if not isinstance(table[key], kind):
                raise (place / key).error(f"cannot be {shown(table[key])}")
            given[key] = table[key]
    with place.guard():
        return Beam(pieces, **given)


def _piece(place: TablePlace, table: Any) -> Piece:
    place.keys_of(
        table, ("length", "section", "end", "elements"), ("length", "section")
    )
    ends = {
        key: (place / key).choose(SECTIONS, table[key])
        for key in ("section", "end")
        if key in table
    }
    if "elements" in table:
        ends["elements"] = _whole(place / "elements", table["elements"])
    with place.guard():
        return Piece((place / "length").numbers(table["length"], ()), **ends)


def _matrices(place: TablePlace, table: Any, folder: Path) -> FiniteElements:
    place.keys_of(table, (*MATRICES, "positions"), (*MATRICES, "positions"))
    files = {}
    for key in (*MATRICES, "positions"):
        if key == "positions" and not isinstance(table[key], str):
            files[key] = (place / key).numbers(table[key])
            continue
        if not isinstance(table[key], str) or not table[key].isprintable():
            raise (place / key).error(f"expected a file, got {shown(table[key])}")
        files[key] = folder / table[key]
        with (place / key).guard():
            check_reference(files[key], folder)
    with place.guard():
        return read_finite_elements(**files)
