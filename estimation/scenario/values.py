"""Values of the table `identify`: texts, flags, numbers and tables by name."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from djdyn.io.scenario_limits import shown
from djdyn.io.scenario_table import TablePlace


def read_number(place: TablePlace, value: Any) -> float:
    """Return one number."""
    return float(place.numbers(value, ()))


def read_text(
    place: TablePlace, table: Mapping[str, Any], key: str, default: str = ""
) -> str:
    """Return a text."""
    value = table.get(key, default)
    if not isinstance(value, str):
        raise (place / key).error(f"expected text, got {shown(value)}")
    return value


def read_flag(
    place: TablePlace, table: Mapping[str, Any], key: str, default: bool
) -> bool:
    """Return true or false."""
    value = table.get(key, default)
    if not isinstance(value, bool):
        raise (place / key).error(f"is true or false, not {shown(value)}")
    return value


def read_segment(place: TablePlace, value: Any) -> tuple[float, float] | None:
    """Return the times between which rows count, s."""
    if value is None:
        return None
    t0, t1 = place.numbers(value, (2,))
    if not t1 > t0:
        raise place.error(f"ends after it starts, got {t0:g} to {t1:g} s")
    return float(t0), float(t1)


def named_tables(place: TablePlace, table: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """Return tables by name."""
    place.keys_of(table, table if isinstance(table, Mapping) else ())
    for name, about in table.items():
        if not isinstance(about, Mapping):
            raise (place / name).error("expected a table")
    return list(table.items())


def named_numbers(place: TablePlace, table: Any) -> list[tuple[str, np.ndarray]]:
    """Return numbers by name."""
    place.keys_of(table, table if isinstance(table, Mapping) else ())
    return [(k, (place / k).numbers(x)) for k, x in table.items()]
