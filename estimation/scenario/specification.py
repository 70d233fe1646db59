"""The table `identify` of a scenario file, checked and named."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from djdyn.io.scenario import Scenario
from djdyn.io.scenario_limits import shown
from djdyn.io.scenario_table import TablePlace
from djdyn.optimize.multistart import METHODS
from djdyn.system.parameters import FreeParameter

from ..identification.losses import Cauchy, Huber, SoftL1, Squares
from ..identification.priors import AbstractPrior
from .columns import (
    Channel,
    MeasuredColumn,
    read_channels,
    read_inputs,
    sensor_priors,
)
from .files import RecordFile, read_records
from .unknowns import read_free, read_start
from .values import read_flag, read_number, read_segment, read_text


LOSSES = {"squares": Squares, "huber": Huber, "soft_l1": SoftL1, "cauchy": Cauchy}
SETTINGS = {  # of the search, with their defaults
    "method": "lm", "loss": "squares", "starts": 1, "decades": 1.0, "seed": 0,
    "growing_windows": [], "max_steps": 100, "tolerance": 1e-6, "limit": 1.0,
    "allow_unidentifiable": False,
}  # fmt: skip
KEYS = ("records", "time", "time_unit", "segment", "rate", "low_pass", "outliers",
        "start", "hold_out", "max_delay", "plausibility", "free", "channel", "marker",
        "input", *SETTINGS)  # fmt: skip


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
    scenario: Scenario, data: Sequence[str | Path] = (), allow_outside: bool = False
) -> Specification:
    """Return what a scenario's table `identify` asks for.

    `data` are files of measurements in place of its `records`, which must lie in the
    scenario's folder or below unless `allow_outside`.
    """
    if "identify" not in scenario.tables:
        raise ValueError(
            f"{scenario.path.name} has no section [identify], which says what was "
            "measured and what is unknown"
        )
    place, table = scenario.tables["identify"]
    needed = ("free",) if data else ("free", "records")
    place.keys_of(table, KEYS, needed)
    free, priors = read_free(place / "free", table["free"], scenario)
    channels = read_channels(place, table)
    inputs = read_inputs(place / "input", table.get("input", {}), scenario)
    segment = read_segment(place / "segment", table.get("segment"))
    listed = [str(x) for x in data] if data else table["records"]
    outside = allow_outside or bool(data)
    folder = Path() if data else scenario.path.parent
    records = read_records(place / "records", listed, folder, segment, outside)
    number = lambda key, default: read_number(place / key, table.get(key, default))
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
            priors |= sensor_priors(one, kind)
    return Specification(
        place, records, read_text(place, table, "time") or None,
        read_text(place, table, "time_unit"),
        None if "rate" not in table else number("rate", None),
        None if "low_pass" not in table else number("low_pass", None),
        outliers == "keep", read_start(place / "start", table.get("start"), scenario),
        hold_out, number("max_delay", 0.1),
        read_flag(place, table, "plausibility", True), free, priors, channels, inputs,
        _settings(place, table),
    )  # fmt: skip


def _settings(place: TablePlace, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the search."""
    found: dict[str, Any] = {}
    for key, default in SETTINGS.items():
        value, spot = table.get(key, default), place / key
        if isinstance(default, bool):
            found[key] = read_flag(place, table, key, default)
        elif isinstance(default, int):
            found[key] = int(read_number(spot, value))
            if found[key] != value or not 0 <= value <= 10_000:
                raise spot.error(f"is a whole number to 10000, not {shown(value)}")
        elif isinstance(default, float):
            found[key] = read_number(spot, value)
        elif isinstance(default, list):
            found[key] = [float(x) for x in spot.numbers(value)]
        else:
            choices = METHODS if key == "method" else LOSSES
            if value not in tuple(choices):
                raise spot.error(f"is {', '.join(choices)}, not {shown(value)}")
            found[key] = value
    return found
