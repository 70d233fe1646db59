"""Scenarios of a table `tune`: parameters and initial states, drawn at random."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

import controllers
import djdyn
from controllers import Scenarios
from djdyn.io.scenario import Scenario
from djdyn.io.scenario_limits import MAX_COUNT
from djdyn.io.scenario_table import TablePlace
from djdyn.system.parameters import check_lanes


DRAWN = ("parameters", "q", "v")
LAWS = ("uniform", "normal", "loguniform")


class Law(NamedTuple):
    """A distribution of numbers: bounds, or mean and standard deviation, of each."""

    kind: str
    a: np.ndarray
    b: np.ndarray

    def ppf(self, u: np.ndarray) -> np.ndarray:
        """Return the quantiles of probabilities, a row a scenario."""
        if self.kind == "normal":
            return self.a + self.b * scipy.special.ndtri(u)
        if self.kind == "loguniform":
            return self.a * (self.b / self.a) ** u
        return self.a + (self.b - self.a) * u


def whole_number(place: TablePlace, value: Any, least: int, most: int) -> int:
    """Return a whole number within bounds."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise place.error(f"is a whole number, not {value!r}")
    if not least <= value <= most:
        raise place.error(f"is from {least} to {most}, not {value}")
    return value


def flat_paths(table: Any, is_leaf: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield values by dotted path: `pid.kp = x` is the same as `"pid.kp" = x`."""
    for key, value in table.items():
        path = f"{name}.{key}" if name else key
        if isinstance(value, Mapping) and not is_leaf(value):
            yield from flat_paths(value, is_leaf, path)
        else:
            yield path, value


def numbers_at(system: djdyn.System, path: str) -> tuple[str, set[int]]:
    """Return the array that a path leads into, and which of its entries are meant."""
    base = path
    while base.endswith("]") and base not in djdyn.parameters(system):
        base = base[: base.rindex("[")]
    entry = tuple(int(i) for i in re.findall(r"\[(-?\d+)\]", path[len(base) :]))
    whole = np.asarray(djdyn.get_parameters(system, base))
    return base, {*np.ravel(np.arange(whole.size).reshape(whole.shape)[entry]).tolist()}


def check_distinct(
    place: TablePlace,
    system: djdyn.System,
    paths: Iterable[str],
    others: Iterable[str] = (),
    why: str = "give each number once",
) -> None:
    """Raise if two paths, one of them perhaps of `others`, lead to the same number."""
    known = {path: numbers_at(system, path) for path in others}
    for path in paths:
        base, entries = numbers_at(system, path)
        for other, (its_base, its_entries) in known.items():
            if base == its_base and entries & its_entries:
                raise (place / path).error(f"the same as {other!r}: {why}")
        known[path] = base, entries


def _read_law(place: TablePlace, table: Any, shape: tuple[int, ...]) -> Law:
    """Return the distribution that a table gives, of an array of this shape."""
    place.keys_of(table, LAWS)
    if len(table) != 1:
        raise place.error(f"expected one of {', '.join(LAWS)}")
    ((kind, pair),) = table.items()
    here = place / kind
    if not isinstance(pair, list) or len(pair) != 2:
        what = "[mean, deviation]" if kind == "normal" else "[low, high]"
        raise here.error(f"expected {what}, got {pair!r}")
    given = [here.numbers(x, (), shape) for x in pair]
    a, b = (np.ravel(np.broadcast_to(x, shape)) for x in given)
    if kind == "normal" and np.any(b < 0):
        raise here.error(f"the deviation is not negative, got {pair[1]!r}")
    if kind != "normal" and not np.all(a <= b):
        raise here.error(f"low is at most high, got {pair!r}")
    if kind == "loguniform" and not np.all(a > 0):
        raise here.error(f"low is above zero, got {pair[0]!r}")
    return Law(kind, a, b)


def _read_laws(
    place: TablePlace, table: Mapping[str, Any], system: djdyn.System
) -> dict[str, dict[str, Law]]:
    """Return the distributions of parameters by path, and of `q` and `v` by joint."""
    laws: dict[str, dict[str, Law]] = {key: {} for key in DRAWN}
    m = system.mechanism
    for key in DRAWN:
        given, here = table.get(key, {}), place / key
        here.keys_of(given, given if isinstance(given, Mapping) else ())
        if key == "parameters":
            leaf = lambda x: not (x and all(isinstance(y, Mapping) for y in x.values()))
            for path, law in flat_paths(given, leaf):
                with (here / path).guard():
                    shape = np.shape(djdyn.get_parameters(system, path))
                laws[key][path] = _read_law(here / path, law, shape)
            check_distinct(here, system, laws[key])
            continue
        whole, part = (m.q0(), m.q_slice) if key == "q" else (np.zeros(m.nv), m.v_slice)
        for joint, law in given.items():
            shape = whole[part(joint)].shape if joint in m.joint_names else (0,)
            if shape == (0,):
                there = ", ".join(n for n in m.joint_names if whole[part(n)].size)
                raise (here / joint).error(f"no joint that moves; there are {there}")
            laws[key][joint] = _read_law(here / joint, law, shape)
    return laws


def read_conditions(
    place: TablePlace, table: Any, scenario: Scenario, default_seed: int
) -> Scenarios:
    """Draw the scenarios that a table asks for.

    What it does not draw is as in the scenario file.
    """
    place.keys_of(table, ("count", "seed", *DRAWN), ("count",))
    count = whole_number(place / "count", table["count"], 1, MAX_COUNT)
    given = table.get("seed", default_seed)
    seed = whole_number(place / "seed", given, 0, 2**63 - 1)
    system = scenario.system
    laws = _read_laws(place, table, system)
    if not any(laws.values()):
        raise place.error(f"nothing is drawn: give {', '.join(DRAWN)}")
    with place.guard():
        drawn = controllers.sample(
            system, count, laws["parameters"], q=laws["q"], v=laws["v"], seed=seed
        )
    with (place / "parameters").guard():
        check_lanes(system, drawn.parameters)
    with place.guard():
        return Scenarios(drawn.parameters, _states(scenario, drawn, laws))


def _states(scenario: Scenario, drawn: Scenarios, laws: Any) -> djdyn.State:
    """Return initial states: those of the file, but for what is drawn."""
    system, y = scenario.system, drawn.initial_state
    assert y is not None
    m, first = system.mechanism, scenario.initial_state
    q, v = (np.tile(np.asarray(x), (len(drawn), 1)) for x in (first.q, first.v))
    for joint in laws["q"]:
        q[:, m.q_slice(joint)] = y.q[:, m.q_slice(joint)]
    for joint in laws["v"]:
        v[:, m.v_slice(joint)] = y.v[:, m.v_slice(joint)]

    def one(lanes: dict, q: Any, v: Any) -> djdyn.State:
        here = djdyn.with_parameters(system, lanes)
        return here.initial_state(q, v, scenario.start_states)

    lanes = drawn.parameters
    return jax.jit(jax.vmap(one))(lanes, jnp.asarray(q), jnp.asarray(v))
