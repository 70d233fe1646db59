"""Limits of a scenario file: what is refused before anything is built from it."""

import datetime
import inspect
import math
import reprlib
import tomllib
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import equinox as eqx

from ..files import read_text


MAX_DEPTH = 40  # tables and lists inside of each other
MAX_COUNT = 10_000  # of what a whole number asks for
MAX_SAVES = 1_000_000  # samples of a simulation
MAX_NAME = 200  # letters
LISTS = ("body", "frame", "shape")  # sections that are lists of tables
SEEDS = ("seed",)  # whole numbers that ask for nothing
NAMES = ("name", "parent", "body")

_short = reprlib.Repr()
_short.maxlevel, _short.maxlist, _short.maxstring, _short.maxother = 3, 8, 80, 80


def shown(value: Any) -> str:
    """Return a value of the user as short text for a message."""
    return _short.repr(value)


def parse_scenario(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file; raise a `ValueError` if they are not sound."""
    try:
        data = tomllib.loads(read_text(path))
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror or error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"not a TOML file: {error}") from None
    except RecursionError:
        raise ValueError("not a TOML file: it is nested too deeply") from None
    for section, value in data.items():
        _check_value(section, value)
        if section in LISTS and not _is_list_of_tables(value):
            raise ValueError(f"{section}: expected tables in [[{section}]]")
    if not isinstance(data.get("title", ""), str):
        raise ValueError(f"title: expected text, got {shown(data['title'])}")
    return data


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(x, Mapping) for x in value)


def _check_value(where: str, value: Any, depth: int = 1) -> None:
    """Raise at what no key of a scenario means: huge numbers, NaN, dates, odd names."""
    if depth > MAX_DEPTH:
        raise ValueError(f"{where[:80]}: it is nested too deeply")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not key.isprintable() or len(key) > MAX_NAME or not key.strip():
                raise ValueError(f"{where}: {shown(key)} is no name for a key")
            if key in NAMES and isinstance(inner, str):
                _check_name(f"{where}.{key}", inner)
            _check_value(f"{where}.{key}", inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check_value(where, inner, depth + 1)
    elif isinstance(value, datetime.date | datetime.time):
        raise ValueError(f"{where}: a date or time is no value here")
    elif isinstance(value, float) and math.isnan(value):
        raise ValueError(f"{where}: numbers must be finite, got nan")
    elif isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError(f"{where}: the whole number has more than 63 bits")


def _check_name(where: str, name: str) -> None:
    if not name.strip() or not name.isprintable() or len(name) > MAX_NAME:
        raise ValueError(
            f"{where}: a name has 1 to {MAX_NAME} letters that print, not {shown(name)}"
        )


def check_field(kind: Callable[..., Any], key: str, value: Any) -> None:
    """Raise unless a value is of the type that a field or argument declares.

    What is read as arrays of numbers, or converted, is checked by what converts it.
    """
    if isinstance(value, int) and abs(value) > MAX_COUNT and key not in SEEDS:
        field = getattr(kind, "__dataclass_fields__", {}).get(key)
        declared = inspect.signature(kind).parameters[key].annotation
        if declared is int or (field is not None and declared is not float):
            raise ValueError(f"at most {MAX_COUNT} are possible, got {value}")
    field = getattr(kind, "__dataclass_fields__", {}).get(key)
    if field is not None and "converter" in field.metadata:
        return
    declared = inspect.signature(kind).parameters[key].annotation
    if not _fits(value, declared):
        name = getattr(declared, "__name__", str(declared))
        if inspect.isclass(declared) and issubclass(declared, eqx.Module):
            name = f"a table of type {name.removeprefix('Abstract')}"
        raise ValueError(f"expected {name}, got {shown(value)}")


def _fits(value: Any, declared: Any) -> bool:
    """Whether a value is of a declared type, where that can be told."""
    kind, inner = get_origin(declared) or declared, get_args(declared)
    if kind in (Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if kind is Literal:
        return value in inner
    if kind is types.NoneType:
        return value is None
    if kind is float or kind is int:
        number = isinstance(value, (int, float) if kind is float else int)
        return number and not isinstance(value, bool) and math.isfinite(value)
    if kind in (tuple, list, Sequence):
        items = isinstance(value, tuple | list)
        each = inner[:1] if len(inner) < 2 or inner[1] is Ellipsis else ()
        return items and all(_fits(x, one) for x in value for one in each)
    if kind is Callable or getattr(kind, "__name__", "") == "Callable":
        return callable(value)
    if kind in (str, bool) or (inspect.isclass(kind) and issubclass(kind, eqx.Module)):
        return isinstance(value, kind)
    return True
