"""Terms and limits of a table `tune`, and the quantities that they look at."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

import controllers
import djdyn
from controllers import AbstractTerm, Limit, ParameterValue, PowerDrawn, Reaction
from djdyn.io.scenario_table import TablePlace
from djdyn.system.instant import Instant
from djdyn.system.units import signal_unit


PROBES = {kind.__name__: kind for kind in (Reaction, PowerDrawn, ParameterValue)}
TERMS: dict[str, type[AbstractTerm]] = {
    kind.__name__: kind
    for kind in (
        controllers.MeanSquare,
        controllers.RootMeanSquare,
        controllers.MeanSquareRate,
        controllers.Mean,
        controllers.Peak,
        controllers.Overshoot,
        controllers.Settling,
        controllers.DamageEquivalentLoad,
    )
}
KEYS = ("signal", "minus", "probe")
ENTRY = re.compile(r"(.+)\[(\d+)\]")


class SignalValue(eqx.Module):
    """Probe of a signal such as `"pid.u"` or `"pid.u[1]"`, perhaps less another."""

    signal: str = eqx.field(static=True)
    minus: str | None = eqx.field(static=True, default=None)

    def __call__(self, now: Instant) -> Array:
        value = _value(now.signals, self.signal)
        return value if self.minus is None else value - _value(now.signals, self.minus)


def _value(signals: Mapping[str, Array], name: str) -> Array:
    """Return a signal, or one entry of it, as a flat array."""
    entry = ENTRY.fullmatch(name)
    if name in signals or not entry:
        return jnp.ravel(signals[name])
    return jnp.ravel(signals[entry[1]])[int(entry[2])][None]


def read_term(
    place: TablePlace, table: Any, system: djdyn.System, signals: Mapping[str, Any]
) -> tuple[AbstractTerm, str]:
    """Return a term of the cost, and the unit of what it looks at."""
    place.keys_of(table, table if isinstance(table, Mapping) else (), ("type",))
    kind = TERMS.get(table["type"]) if isinstance(table["type"], str) else None
    if kind is not None:
        own = [f.name for f in dataclasses.fields(kind) if f.name != "probe"]
        place.keys_of(table, ("type", *KEYS, *own))
        for key in {*own} & {*table}:
            (place / key).numbers(table[key], ())
    probe, unit = read_probe(place, table, system, signals)
    rest = {k: x for k, x in table.items() if k not in KEYS}
    return place.choose(TERMS, rest | {"probe": probe}), unit


def read_limit(
    place: TablePlace, table: Any, system: djdyn.System, signals: Mapping[str, Any]
) -> tuple[Limit, str]:
    """Return a limit, and the unit of what it looks at."""
    place.keys_of(table, (*KEYS, "low", "high"))
    probe, unit = read_probe(place, table, system, signals)
    if not {"low", "high"} & {*table}:
        raise place.error("give low, high or both")
    ends = ("low", "high")
    given = {k: float((place / k).numbers(table[k], ())) for k in ends if k in table}
    if len(given) == 2 and not given["low"] < given["high"]:
        raise (place / "low").error(f"must be below high = {given['high']:g}")
    return Limit(probe, **given), unit


def read_probe(
    place: TablePlace,
    table: Mapping[str, Any],
    system: djdyn.System,
    signals: Mapping[str, Any],
) -> tuple[Any, str]:
    """Return what the keys `signal` and `minus`, or `probe`, name, and its unit."""
    if ("signal" in table) == ("probe" in table):
        raise place.error("give a signal or a probe, and not both")
    if "minus" in table and "signal" not in table:
        raise (place / "minus").error("only a signal has something subtracted")
    if "probe" in table:
        return _read_probe(place / "probe", table["probe"], system)
    names = [key for key in ("signal", "minus") if key in table]
    sizes = [signal_size(place / key, table[key], signals) for key in names]
    if len({*sizes}) > 1:
        raise (place / "minus").error(
            f"{table['minus']!r} has {sizes[1]} entries and {table['signal']!r} "
            f"has {sizes[0]}"
        )
    entry = ENTRY.fullmatch(table["signal"])
    owner = entry[1] if entry and table["signal"] not in signals else table["signal"]
    return SignalValue(*(table[key] for key in names)), signal_unit(system, owner)


def signal_size(place: TablePlace, name: Any, signals: Mapping[str, Any]) -> int:
    """Return how many numbers a signal, or an entry of one, has."""
    if not isinstance(name, str):
        raise place.error(f"expected the name of a signal, got {name!r}")
    if name in signals:
        return signals[name].size
    entry = ENTRY.fullmatch(name)
    if not entry or entry[1] not in signals:
        there = ", ".join(signals)
        raise place.error(f"unknown signal {name!r}; there are {there}")
    if int(entry[2]) >= (size := signals[entry[1]].size):
        raise place.error(f"{entry[1]!r} has {size} entries, counted from 0")
    return 1


def _read_probe(place: TablePlace, table: Any, system: djdyn.System) -> tuple[Any, str]:
    """Return a probe other than a signal, and its unit."""
    if isinstance(table, Mapping) and "components" in table:
        chosen = table["components"]
        listed = isinstance(chosen, list) and len(chosen) > 0
        if not (listed and all(type(x) is int and 0 <= x < 6 for x in chosen)):
            raise (place / "components").error(
                f"is a list of numbers from 0 (moment about x) to 5 (force along z), "
                f"not {chosen!r}"
            )
        table = {**table, "components": tuple(chosen)}
    probe = place.choose(PROBES, table)
    if isinstance(probe, Reaction):
        with (place / "joint").guard():
            system.mechanism.joint_index(probe.joint)
        units = {"N m" if c < 3 else "N" for c in probe.components}
        return probe, ", ".join(sorted(units))
    if isinstance(probe, ParameterValue):
        with (place / "path").guard():
            djdyn.get_parameters(system, probe.path)
        units = djdyn.parameters(system).units
        return probe, units.get(probe.path.partition("[")[0], "")
    if probe.part not in system.parts:
        there = ", ".join(system.parts)
        raise (place / "part").error(f"unknown part {probe.part!r}; there are {there}")
    return probe, "W"
