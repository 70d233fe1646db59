"""Columns of a record: what of the machine is measured, and what drives it."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from djdyn.io.scenario import Scenario
from djdyn.io.scenario_limits import shown
from djdyn.io.scenario_table import TablePlace

from ..identification.priors import AbstractPrior, Normal
from .values import named_tables, read_flag, read_number, read_text


AXES = ("x", "y", "z")
DEFAULT_DELAY_DEVIATION = 0.05  # s, of the prior of a delay
SENSOR = ("offset", "delay", "gain")


@dataclasses.dataclass(frozen=True)
class Sensor:
    """What lies between a quantity and its column: the first values of its sensor.

    `free` of them are unknown, `each` of these in every record anew, and `deviations`
    are those of priors. `unaligned` is true of an unknown delay of which nothing is
    said: it starts where measured and predicted channels correlate best.
    """

    offset: float
    delay: float
    gain: float
    free: tuple[str, ...]
    each: tuple[str, ...]
    deviations: tuple[tuple[str, float], ...]
    unaligned: bool = False


@dataclasses.dataclass(frozen=True)
class Channel:
    """A measured column, and what of the model it is."""

    name: str
    column: str
    signal: str
    frame: str
    entry: int | None
    unit: str
    noise: float | None
    sensor: Sensor


@dataclasses.dataclass(frozen=True)
class MeasuredColumn:
    """Measured columns that drive an input of the model."""

    name: str
    columns: tuple[str, ...]
    unit: str
    hold: bool
    sensor: Sensor


def _sensor(place: TablePlace, table: Mapping[str, Any]) -> Sensor:
    """Return offset, delay and gain: numbers, true, or tables."""
    values = {"offset": 0.0, "delay": 0.0, "gain": 1.0}
    free, each, deviations = [], [], {}
    for key in SENSOR:
        about, spot = table.get(key, values[key]), place / key
        if isinstance(about, bool):
            about = {} if about else values[key]
        if isinstance(about, Mapping):
            spot.keys_of(about, ("start", "deviation", "each"))
            free.append(key)
            values[key] = read_number(spot / "start", about.get("start", values[key]))
            if read_flag(spot, about, "each", False):
                each.append(key)
            if "deviation" in about:
                deviations[key] = read_number(spot / "deviation", about["deviation"])
                if not deviations[key] > 0:
                    raise (spot / "deviation").error("must be positive")
        else:
            values[key] = read_number(spot, about)
    said = table.get("delay")
    said = said if isinstance(said, Mapping) else {}
    unaligned = "delay" in free and not {"start", "deviation"} & {*said}
    if "delay" in free:
        deviations.setdefault("delay", DEFAULT_DELAY_DEVIATION)
    return Sensor(
        **values,
        free=tuple(free),
        each=tuple(each),
        deviations=tuple(deviations.items()),
        unaligned=unaligned,
    )


def sensor_priors(one: Channel | MeasuredColumn, kind: str) -> dict[str, AbstractPrior]:
    sensor = one.sensor
    return {
        f"{kind}.{one.name}.{key}": Normal(getattr(sensor, key), deviation)
        for key, deviation in sensor.deviations
    }


def read_channels(place: TablePlace, table: Mapping[str, Any]) -> tuple[Channel, ...]:
    """Return all channels: columns, and three of each marker."""
    found = []
    for name, about in named_tables(place / "channel", table.get("channel", {})):
        spot = place / "channel" / name
        spot.keys_of(
            about, ("column", "signal", "frame", "axis", "unit", "noise", *SENSOR)
        )
        if ("signal" in about) == ("frame" in about) or ("frame" in about) != (
            "axis" in about
        ):
            raise spot.error("is a signal, or a frame and an axis")
        signal, frame = (
            read_text(spot, about, "signal"),
            read_text(spot, about, "frame"),
        )
        entry = None
        if frame:
            if about["axis"] not in AXES:
                raise (spot / "axis").error(f"is x, y or z, not {shown(about['axis'])}")
            entry = AXES.index(about["axis"])
        elif match := re.fullmatch(r"(.+)\[(\d+)\]", signal):
            signal, entry = match[1], int(match[2])
        found.append(_channel(spot, name, about, signal, frame, entry))
    for name, about in named_tables(place / "marker", table.get("marker", {})):
        spot = place / "marker" / name
        spot.keys_of(about, ("label", "frame", "noise", "delay"), ("frame",))
        label = read_text(spot, about, "label", name)
        for i, axis in enumerate(AXES):
            one = {**about, "column": f"{label}.{axis}"}
            found.append(_channel(spot, f"{name}.{axis}", one, "", about["frame"], i))
    if not found:
        raise place.error("nothing is measured: name a channel or a marker")
    names = [c.name for c in found]
    if len({*names}) < len(names):
        raise place.error("channels and markers need different names")
    return tuple(found)


def _channel(
    spot: TablePlace, name: str, about: Mapping[str, Any], signal: str, frame: str,
    entry: int | None,
) -> Channel:  # fmt: skip
    noise = None
    if "noise" in about:
        noise = read_number(spot / "noise", about["noise"])
        if not noise > 0:
            raise (spot / "noise").error(f"must be positive, got {noise:g}")
    if "." in name.split(".")[0] or not re.fullmatch(r"[\w.-]+", name):
        raise spot.error("a channel's name has letters, digits, _ and -")
    return Channel(
        name, read_text(spot, about, "column", name), signal, frame, entry,
        read_text(spot, about, "unit"), noise, _sensor(spot, about),
    )  # fmt: skip


def read_inputs(
    place: TablePlace, table: Any, scenario: Scenario
) -> tuple[MeasuredColumn, ...]:
    """Return the inputs that are driven by measured columns."""
    found, known = [], scenario.system.inputs
    for name, about in named_tables(place, table):
        spot = place / name
        spot.keys_of(about, ("column", "unit", "hold", *SENSOR))
        if name not in known:
            raise spot.error(
                f"the machine has no such input; it has {', '.join(known)}"
            )
        given = about.get("column", name)
        columns = [given] if isinstance(given, str) else given
        size = int(np.size(np.asarray(known[name])))
        if not isinstance(columns, list) or not all(
            isinstance(c, str) for c in columns
        ):
            raise (spot / "column").error(f"is a name or a list, not {shown(given)}")
        if len(columns) != size:
            raise (spot / "column").error(f"{size} needed, {len(columns)} named")
        unit, hold = (
            read_text(spot, about, "unit"),
            read_flag(spot, about, "hold", False),
        )
        found.append(
            MeasuredColumn(name, tuple(columns), unit, hold, _sensor(spot, about))
        )
    return tuple(found)
