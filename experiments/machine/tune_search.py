"""Unknowns, search and loops of a table `tune`."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import numpy as np

import djdyn
from controllers import (
    AbstractSquares,
    AbstractTerm,
    RobustnessMargins,
    SearchOptions,
)
from djdyn import Box, FreeParameter, Positive, Sigmoid
from djdyn.io.scenario import Scenario
from djdyn.io.scenario_table import TablePlace
from djdyn.optimize.multistart import METHODS, is_least_squares, solver_for
from djdyn.system.transforms import Unbounded

from .tune_scenarios import check_distinct, flat_paths, whole_number
from .tune_terms import signal_size


SEARCH = tuple(field.name for field in dataclasses.fields(SearchOptions))
OUTER_ITERATIONS = 5  # where limits or a modulus margin are to be kept


def read_search(
    place: TablePlace, table: Any, cost: Mapping[str, AbstractTerm], kept: bool
) -> SearchOptions:
    """Return the options of the search, checked with the terms of the cost."""
    place.keys_of(table, SEARCH)
    method = table.get("method", "bfgs")
    if not isinstance(method, str) or method not in METHODS:
        raise (place / "method").error(f"is {', '.join(METHODS)}, not {method!r}")
    for key in ("max_steps", "num_starts", "outer_iterations"):
        whole_number(place / key, table.get(key, 1), 1, 10_000)
    for key in ("tolerance", "penalty", "spread"):
        if not (place / key).numbers(table.get(key, 1.0), ()) > 0:
            raise (place / key).error(f"must be positive, got {table[key]}")
    if is_least_squares(solver_for(method, 1e-6)):
        if table.get("risk", "mean") != "mean":
            raise (place / "risk").error(f"method {method!r} minimises the mean")
        for name, term in cost.items():
            if not isinstance(term, AbstractSquares):
                raise (place / "method").error(
                    f"{method!r} needs sums of squares, and {name!r} is none"
                )
    default = {"outer_iterations": OUTER_ITERATIONS if kept else 1}
    return place.build(SearchOptions, default | {**table})


def read_free(
    place: TablePlace, table: Any, system: djdyn.System, search: SearchOptions
) -> tuple[FreeParameter, ...]:
    """Return the free parameters, with transforms that keep them in their domains."""
    nested = lambda x: x and all(isinstance(y, Mapping | str) for y in x.values())
    free = []
    for path, given in flat_paths(table, lambda x: not nested(x)):
        here = place / path
        with here.guard():
            value = np.asarray(djdyn.get_parameters(system, path))
        if isinstance(given, Mapping):
            here.keys_of(given, ("bounds",), ("bounds",))
            low, high = _read_bounds(here / "bounds", given["bounds"], value)
            kind = Box if search.method == "bfgs" else Sigmoid
            free.append(FreeParameter(path, kind(low, high)))
            far, hint = (low, high), ""
        elif given in ("positive", "any"):
            positive = given == "positive"
            if positive and not np.all(value > 0):
                raise here.error(f"starts at {value}, which is not positive")
            free.append(FreeParameter(path, Positive() if positive else Unbounded()))
            hint = ": give bounds" if positive else ': give bounds or "positive"'
            least = 1e-12 if positive else -1e6
            far = (np.full(value.shape, least * (1 + np.max(np.abs(value)))),)
        else:
            raise here.error(
                f'is {{ bounds = [low, high] }}, "positive" or "any", not {given!r}'
            )
        for end in far:
            try:
                djdyn.with_parameters(system, {path: end})
            except ValueError as error:
                raise here.error(f"{error}{hint}") from None
    if not free:
        raise place.error("no free parameter is named")
    check_distinct(place, system, [f.path for f in free])
    return tuple(free)


def _read_bounds(
    place: TablePlace, pair: Any, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of a parameter, between which its value lies."""
    if not isinstance(pair, list) or len(pair) != 2:
        raise place.error(f"expected [low, high], got {pair!r}")
    low, high = (
        np.broadcast_to(place.numbers(x, (), value.shape), value.shape) for x in pair
    )
    if not np.all(low < high):
        raise place.error(f"low must be below high, got {pair!r}")
    if not np.all((low <= value) & (value <= high)):
        raise place.error(f"the file's value {value} is not between {pair!r}")
    return low, high


def read_loop(
    place: TablePlace, table: Any, scenario: Scenario, t1: float
) -> RobustnessMargins | None:
    """Return where loops are linearised, and the margins that they keep."""
    if table is None:
        return None
    place.keys_of(table, ("signal", "time", "delay", "modulus"))
    time = float((place / "time").numbers(table.get("time", t1), ()))
    if not 0 <= time <= t1:
        raise (place / "time").error(f"runs go from 0 to {t1:g} s, got {time:g}")
    names = table.get("signal", [])
    listed = names if isinstance(names, list) else [names]
    signals = eqx.filter_eval_shape(
        lambda: scenario.system.at(0.0, scenario.initial_state).signals
    )
    for name in listed:
        signal_size(place / "signal", name, signals)
        if name not in signals:
            raise (place / "signal").error(f"names a whole signal, not {name!r}")
    for key in ("delay", "modulus"):
        if key in table and not listed:
            raise (place / key).error("needs the signal where the loop is opened")
    how = scenario.simulation
    late = 1.5 if how.get("control_delay") else 0.5
    usual = late * how.get("control_period", 0.0)
    delay = float((place / "delay").numbers(table.get("delay", usual), ()))
    if delay < 0:
        raise (place / "delay").error(f"must not be negative, got {delay:g}")
    modulus = None
    if "modulus" in table:
        modulus = float((place / "modulus").numbers(table["modulus"], ()))
        if not 0 < modulus < 1:
            raise (place / "modulus").error(f"is between 0 and 1, got {modulus:g}")
    return RobustnessMargins(time, tuple(listed) or None, delay, modulus)
