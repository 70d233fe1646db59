"""Loops, couplings and closures of a scenario file."""

from collections.abc import Callable, Mapping
from typing import Any

from ..multibody.closures import AbstractClosure
from ..multibody.loops import AbstractCoupling, Loop
from .scenario_kinds import CLOSURES, COUPLINGS, FUNCTIONS, JOINTS, LOOP_JOINTS
from .scenario_limits import shown
from .scenario_table import TablePlace


LOOP_KEYS = ("name", "parent", "child", "joint")
CLOSING: dict[str, Callable] = {**JOINTS, **LOOP_JOINTS}


def read_loop(place: TablePlace, table: Any) -> Loop:
    """A loop: two frames, and the joint between them."""
    place.keys_of(table, (*LOOP_KEYS, "motion"), LOOP_KEYS)
    _check_names(place, table, "name", "parent", "child")
    spot = TablePlace(place.file, f"loop {table['name']!r}")
    joint = (spot / "joint").choose(CLOSING, table["joint"])
    given = {key: table[key] for key in LOOP_KEYS[:3]} | {"joint": joint}
    if "motion" in table:
        given["motion"] = (spot / "motion").choose(FUNCTIONS, table["motion"])
    with spot.guard():
        return Loop(**given)


def read_coupling(place: TablePlace, table: Any) -> AbstractCoupling:
    """A coupling between joints."""
    if not isinstance(table, Mapping):
        raise place.error("expected a table")
    _check_names(place, table, "name", "joint", "driver")
    if "name" not in table:
        raise place.error("key 'name' is missing")
    spot = TablePlace(place.file, f"coupling {table['name']!r}")
    if not isinstance(table.get("ratios", {}), Mapping):
        said = f"expected a number by joint, got {shown(table['ratios'])}"
        raise (spot / "ratios").error(said)
    return spot.choose(COUPLINGS, table)


def read_closure(place: TablePlace, table: Any) -> AbstractClosure:
    """How loops are kept closed."""
    return place.choose(CLOSURES, table)


def _check_names(place: TablePlace, table: Mapping[str, Any], *keys: str) -> None:
    for key in keys:
        if not isinstance(table.get(key, ""), str):
            raise (place / key).error(f"expected a name, got {shown(table[key])}")
