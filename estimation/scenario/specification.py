"""The table `identify` of a scenario file, checked and named."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from djdyn.io.scenario import Scenario
from djdyn.io.scenario_limits import shown
from djdyn.io.scenario_table import TablePlace
from djdyn.multibody.mechanism import Body
from djdyn.optimize.multistart import METHODS
from djdyn.system.parameters import FreeParameter, get_parameters, parameter_field
from djdyn.system.transforms import (
    AbstractTransform,
    PhysicalInertia,
    Positive,
    Sigmoid,
    Unbounded,
)

from ..identification.losses import Cauchy, Huber, SoftL1, Squares
from ..identification.priors import AbstractPrior, LogNormal, Normal


LOSSES = {"squares": Squares, "huber": Huber, "soft_l1": SoftL1, "cauchy": Cauchy}
AXES = ("x", "y", "z")
DEFAULT_DELAY_DEVIATION = 0.05  # s, of the prior of a delay
SETTINGS = {  # of the search, with their defaults
    "method": "lm", "loss": "squares", "starts": 1, "decades": 1.0, "seed": 0,
    "growing_windows": [], "max_steps": 100, "tolerance": 1e-6, "limit": 1.0,
    "allow_unidentifiable": False,
}  # fmt: skip
KEYS = ("records", "time", "time_unit", "segment", "rate", "low_pass", "outliers",
        "start", "hold_out", "max_delay", "plausibility", "free", "channel", "marker",
        "input", *SETTINGS)  # fmt: skip
SENSOR = ("offset", "delay", "gain")


@dataclasses.dataclass(frozen=True)
class Sensor:
    """What lies between a quantity and its column: the first values of its sensor.

    `free` of them are unknown, `each` of these in every record anew, and `deviations`
    are those of priors.
    """

    offset: float
    delay: float
    gain: float
    free: tuple[str, ...]
    each: tuple[str, ...]
    deviations: tuple[tuple[str, float], ...]


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


@dataclasses.dataclass(frozen=True)
class RecordFile:
    """A file of measurements, the part of it that counts, and where it starts."""

    path: Path
    name: str
    segment: tuple[float, float] | None
    hold_out: bool
    group: str
    q: dict[str, Any]
    v: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Specification:
    """What `identify` asks for."""

    place: TablePlace
    records: tuple[RecordFile, ...]
    time: str | None
    time_unit: str
    rate: float | None
    low_pass: float | None
    keep_outliers: bool
    start: tuple[str, ...]
    hold_out: float
    max_delay: float
    plausibility: bool
    free: tuple[FreeParameter, ...]
    priors: dict[str, AbstractPrior]
    channels: tuple[Channel, ...]
    inputs: tuple[MeasuredColumn, ...]
    settings: dict[str, Any]


def read_specification(
    scenario: Scenario, data: Sequence[str | Path] = ()
) -> Specification:
    """Return what a scenario's table `identify` asks for.

    `data` are files of measurements in place of its `records`.
    """
    if "identify" not in scenario.tables:
        raise ValueError(
            f"{scenario.path.name} has no section [identify], which says what was "
            "measured and what is unknown"
        )
    place, table = scenario.tables["identify"]
    needed = ("free",) if data else ("free", "records")
    place.keys_of(table, KEYS, needed)
    free, priors = _free(place / "free", table["free"], scenario)
    channels = _channels(place, table)
    inputs = _inputs(place / "input", table.get("input", {}), scenario)
    segment = _segment(place / "segment", table.get("segment"))
    listed = [str(x) for x in data] if data else table["records"]
    records = _records(
        place / "records", listed, scenario.path.parent, segment, bool(data)
    )
    number = lambda key, default: _number(place / key, table.get(key, default))
    outliers = table.get("outliers", "remove")
    if outliers not in ("remove", "keep"):
        raise (place / "outliers").error(f"is remove or keep, not {shown(outliers)}")
    hold_out = number("hold_out", 0.1)
    if not 0 <= hold_out < 1:
        raise (place / "hold_out").error(f"is a fraction from 0 to 1, got {hold_out:g}")
    for kind, some in (("channel", channels), ("input", inputs)):
        for one in some:
            shared = [k for k in one.sensor.free if k not in one.sensor.each]
            free += tuple(FreeParameter(f"{kind}.{one.name}.{k}") for k in shared)
            priors |= _sensor_priors(one, kind)
    return Specification(
        place, records, _text(place, table, "time") or None,
        _text(place, table, "time_unit"),
        None if "rate" not in table else number("rate", None),
        None if "low_pass" not in table else number("low_pass", None),
        outliers == "keep", _start(place / "start", table.get("start"), scenario),
        hold_out, number("max_delay", 0.1), _flag(place, table, "plausibility", True),
        free, priors, channels, inputs, _settings(place, table),
    )  # fmt: skip


# Single values ------------------------------------------------------------------------


def _number(place: TablePlace, value: Any) -> float:
    return float(place.numbers(value, ()))


def _text(
    place: TablePlace, table: Mapping[str, Any], key: str, default: str = ""
) -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise (place / key).error(f"expected text, got {shown(value)}")
    return value


def _flag(place: TablePlace, table: Mapping[str, Any], key: str, default: bool) -> bool:
    value = table.get(key, default)
    if not isinstance(value, bool):
        raise (place / key).error(f"is true or false, not {shown(value)}")
    return value


def _segment(place: TablePlace, value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    t0, t1 = place.numbers(value, (2,))
    if not t1 > t0:
        raise place.error(f"ends after it starts, got {t0:g} to {t1:g} s")
    return float(t0), float(t1)


def _settings(place: TablePlace, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the search."""
    found: dict[str, Any] = {}
    for key, default in SETTINGS.items():
        value, spot = table.get(key, default), place / key
        if isinstance(default, bool):
            found[key] = _flag(place, table, key, default)
        elif isinstance(default, int):
            found[key] = int(_number(spot, value))
            if found[key] != value or not 0 <= value <= 10_000:
                raise spot.error(f"is a whole number to 10000, not {shown(value)}")
        elif isinstance(default, float):
            found[key] = _number(spot, value)
        elif isinstance(default, list):
            found[key] = [float(x) for x in spot.numbers(value)]
        else:
            choices = METHODS if key == "method" else LOSSES
            if value not in tuple(choices):
                raise spot.error(f"is {', '.join(choices)}, not {shown(value)}")
            found[key] = value
    return found


# Tables -------------------------------------------------------------------------------


def _free(
    place: TablePlace, table: Any, scenario: Scenario
) -> tuple[tuple[FreeParameter, ...], dict[str, AbstractPrior]]:
    """Return the unknown parameters with their domains, and their priors."""
    if isinstance(table, list):
        table = dict.fromkeys(map(str, table), {})
    place.keys_of(table, table if isinstance(table, Mapping) else ())
    if not table:
        raise place.error("no parameter is named")
    free, priors = [], {}
    for path, about in table.items():
        spot = place / path
        about = {"domain": about} if isinstance(about, str) else about
        spot.keys_of(about, ("domain", "bounds", "prior"))
        with spot.guard():
            transform = _transform(spot, path, about, scenario)
        free.append(FreeParameter(f"system.{path}", transform))
        if "prior" in about:
            priors[f"system.{path}"] = _prior(spot / "prior", about["prior"])
    return tuple(free), priors


def _transform(
    place: TablePlace, path: str, about: Mapping[str, Any], scenario: Scenario
) -> AbstractTransform:
    """Return the domain that is asked for, or else that of the parameter's field."""
    kinds = {"any": Unbounded(), "positive": Positive(), "inertia": PhysicalInertia()}
    if about.get("domain") == "inertia":
        get_parameters(scenario.system, f"{path}.mass")
        return kinds["inertia"]
    value = np.asarray(get_parameters(scenario.system, path))
    body, _, entry = path.partition(".I_BC[")
    if entry and not _body(scenario, body).any_inertia:
        raise ValueError(
            f"an entry of an inertia alone may leave all bodies that exist: give body "
            f"{body!r} any_inertia = true, or free the whole body, "
            f'"{body}" = "inertia"'
        )
    if "bounds" in about:
        low, high = (place / "bounds").numbers(about["bounds"], (2,))
        if "domain" in about or not np.all((low < value) & (value < high)):
            raise place.error(
                f"bounds go without a domain and about the first value, {value}"
            )
        return Sigmoid(low, high)
    domain = about.get("domain")
    if domain is None:
        field = parameter_field(scenario.system, path)
        bounded = field.above == 0 or field.at_least == 0
        domain = "positive" if bounded and np.all(value > 0) else "any"
    if domain not in tuple(kinds):
        raise (place / "domain").error(f"is {', '.join(kinds)}, not {shown(domain)}")
    if domain == "positive" and not np.all(value > 0):
        raise place.error(f"its first value must be positive, got {value}")
    return kinds[domain]


def _body(scenario: Scenario, name: str) -> Body:
    m = scenario.system.mechanism
    return m.bodies[m.index(name) - 1]


def _prior(place: TablePlace, table: Any) -> AbstractPrior:
    """Return a normal or log-normal distribution."""
    kinds = {("deviation", "mean"): Normal, ("median", "spread"): LogNormal}
    place.keys_of(table, ("mean", "deviation", "median", "spread"))
    keys = tuple(sorted(table))
    if keys not in kinds:
        raise place.error("has mean and deviation, or median and spread")
    values = [
        place.numbers(table[k])
        for k in ("mean", "deviation", "median", "spread")
        if k in table
    ]
    if not np.all(values[1] > 0) or (keys[0] == "median" and not np.all(values[0] > 0)):
        raise place.error("its deviation, spread and median must be positive")
    return kinds[keys](*values)


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
            values[key] = _number(spot / "start", about.get("start", values[key]))
            if _flag(spot, about, "each", False):
                each.append(key)
            if "deviation" in about:
                deviations[key] = _number(spot / "deviation", about["deviation"])
                if not deviations[key] > 0:
                    raise (spot / "deviation").error("must be positive")
        else:
            values[key] = _number(spot, about)
    if "delay" in free:
        deviations.setdefault("delay", DEFAULT_DELAY_DEVIATION)
    return Sensor(
        **values,
        free=tuple(free),
        each=tuple(each),
        deviations=tuple(deviations.items()),
    )


def _sensor_priors(
    one: Channel | MeasuredColumn, kind: str
) -> dict[str, AbstractPrior]:
    sensor = one.sensor
    return {
        f"{kind}.{one.name}.{key}": Normal(getattr(sensor, key), deviation)
        for key, deviation in sensor.deviations
    }


def _channels(place: TablePlace, table: Mapping[str, Any]) -> tuple[Channel, ...]:
    """Return all channels: columns, and three of each marker."""
    found = []
    for name, about in _named(place / "channel", table.get("channel", {})):
        spot = place / "channel" / name
        spot.keys_of(
            about, ("column", "signal", "frame", "axis", "unit", "noise", *SENSOR)
        )
        if ("signal" in about) == ("frame" in about) or ("frame" in about) != (
            "axis" in about
        ):
            raise spot.error("is a signal, or a frame and an axis")
        signal, frame = _text(spot, about, "signal"), _text(spot, about, "frame")
        entry = None
        if frame:
            if about["axis"] not in AXES:
                raise (spot / "axis").error(f"is x, y or z, not {shown(about['axis'])}")
            entry = AXES.index(about["axis"])
        elif match := re.fullmatch(r"(.+)\[(\d+)\]", signal):
            signal, entry = match[1], int(match[2])
        found.append(_channel(spot, name, about, signal, frame, entry))
    for name, about in _named(place / "marker", table.get("marker", {})):
        spot = place / "marker" / name
        spot.keys_of(about, ("label", "frame", "noise", "delay"), ("frame",))
        label = _text(spot, about, "label", name)
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
        noise = _number(spot / "noise", about["noise"])
        if not noise > 0:
            raise (spot / "noise").error(f"must be positive, got {noise:g}")
    if "." in name.split(".")[0] or not re.fullmatch(r"[\w.-]+", name):
        raise spot.error("a channel's name has letters, digits, _ and -")
    return Channel(
        name, _text(spot, about, "column", name), signal, frame, entry,
        _text(spot, about, "unit"), noise, _sensor(spot, about),
    )  # fmt: skip


def _inputs(
    place: TablePlace, table: Any, scenario: Scenario
) -> tuple[MeasuredColumn, ...]:
    """Return the inputs that are driven by measured columns."""
    found, known = [], scenario.system.inputs
    for name, about in _named(place, table):
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
        unit, hold = _text(spot, about, "unit"), _flag(spot, about, "hold", False)
        found.append(
            MeasuredColumn(name, tuple(columns), unit, hold, _sensor(spot, about))
        )
    return tuple(found)


def _named(place: TablePlace, table: Any) -> list[tuple[str, Mapping[str, Any]]]:
    place.keys_of(table, table if isinstance(table, Mapping) else ())
    for name, about in table.items():
        if not isinstance(about, Mapping):
            raise (place / name).error("expected a table")
    return list(table.items())


def _start(place: TablePlace, value: Any, scenario: Scenario) -> tuple[str, ...]:
    """Return the joints whose initial place and speed are unknown."""
    m = scenario.system.mechanism
    moving = [k for k in m.joint_names if m.q0()[m.v_slice(k)].size]
    joints = moving if value is None else value
    if not isinstance(joints, list) or any(k not in moving for k in joints):
        there = ", ".join(moving)
        raise place.error(f"is a list of joints of {there}, not {shown(value)}")
    return tuple(joints)


def _records(
    place: TablePlace, listed: Any, folder: Path, segment: Any, outside: bool
) -> tuple[RecordFile, ...]:
    """Return the files of measurements, beside the scenario unless named otherwise."""
    if not isinstance(listed, list) or not listed:
        raise place.error(f"is a list of files, not {shown(listed)}")
    found: list[RecordFile] = []
    for item in listed:
        about = {"file": item} if isinstance(item, str) else item
        place.keys_of(
            about, ("file", "name", "segment", "hold_out", "group", "q", "v"), ("file",)
        )
        path = Path(_text(place, about, "file"))
        path = path if outside else folder / path
        if not path.is_file():
            raise place.error(f"there is no file {path.name}")
        name = _text(place, about, "name", path.stem)
        if any(name == other.name for other in found):
            name = f"{name}-{len(found) + 1}"
        own = (
            _segment(place / "segment", about["segment"])
            if "segment" in about
            else segment
        )
        hold_out, group = (
            _flag(place, about, "hold_out", False),
            _text(place, about, "group"),
        )
        q, v = (dict(_named_numbers(place / k, about.get(k, {}))) for k in "qv")
        found.append(RecordFile(path, name, own, hold_out, group, q, v))
    if all(one.hold_out for one in found):
        raise place.error("all records are held out, and none is left to fit")
    return tuple(found)


def _named_numbers(place: TablePlace, table: Any) -> list[tuple[str, np.ndarray]]:
    place.keys_of(table, table if isinstance(table, Mapping) else ())
    return [(k, (place / k).numbers(x)) for k, x in table.items()]
