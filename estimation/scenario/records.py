"""Records of a scenario: files of measurements, checked and in SI units."""

import dataclasses

import numpy as np

from djdyn.io.scenario import Scenario
from djdyn.system.units import signal_unit

from ..identification.trial import measurement_noise
from ..measurements import (
    MeasurementTable,
    find_spikes,
    find_stuck,
    merge_tables,
    read_table,
    table_faults,
    to_si,
)
from .columns import Channel
from .files import RecordFile
from .specification import Specification


@dataclasses.dataclass(frozen=True)
class Record:
    """A record as it is fitted: rows from its first on, in SI units.

    `raw` are the values as measured, before spikes were taken out and filters run.
    """

    file: RecordFile
    t: np.ndarray
    values: np.ndarray
    raw_t: np.ndarray
    raw: np.ndarray
    sigma: np.ndarray
    inputs: dict[str, tuple[np.ndarray, np.ndarray]]
    input_units: dict[str, str]
    faults: tuple[str, ...]


def read_record(scenario: Scenario, spec: Specification, file: RecordFile) -> Record:
    """Return the record in a file, checked and in SI units."""
    table, clocks = _tables(spec, file)
    table = table if file.segment is None else table.between(*file.segment)
    needed = [c.column for c in spec.channels]
    driving = [k for one in spec.inputs for k in one.columns]
    used = MeasurementTable(
        table.times - table.times[0],
        {k: table[k] for k in needed + driving},
        table.units,
        table.source,
    )
    said, known = clocks + table_faults(used, steady=driving), {}
    for channel in spec.channels:
        unit = channel.unit or table.units.get(channel.column, "")
        kind = channel_unit(scenario, channel)
        x = _converted(f"channel {channel.name!r}", used[channel.column], unit, kind)
        known[channel.name] = x
    raw = np.stack([known[c.name] for c in spec.channels], -1)
    clean = raw.copy()
    for i, channel in enumerate(spec.channels):
        if spec.keep_outliers:
            break
        for what, bad in (
            ("spikes", find_spikes(raw[:, i])),
            ("stuck", find_stuck(raw[:, i])),
        ):
            if bad.any() and not bad.all() and np.ptp(raw[~np.isnan(raw[:, i]), i]):
                clean[bad, i] = np.nan
                said.append(
                    f"{table.source}: {bad.sum()} values of {channel.name!r} are left "
                    f"out as {what}"
                )
    sigma = measurement_noise(clean, np.isfinite(clean))
    given = [c.noise for c in spec.channels]
    scales = [_noise_scale(scenario, c, table) for c in spec.channels]
    sigma = np.array(
        [
            s if n is None else n * k
            for s, n, k in zip(sigma, given, scales, strict=True)
        ]
    )
    t, values = _resampled(used.times, clean, spec, table.source)
    inputs = {}
    for one in spec.inputs:
        columns = [
            _converted(
                f"input {one.name!r}", used[k], one.unit or table.units.get(k, ""), ""
            )
            for k in one.columns
        ]
        inputs[one.name] = _whole(
            used.times, np.stack(columns, -1), one.name, table.source
        )
    return Record(
        file,
        t,
        values,
        used.times,
        raw,
        sigma,
        inputs,
        {c.name: c.unit or table.units.get(c.columns[0], "") for c in spec.inputs},
        tuple(dict.fromkeys(said)),
    )


def _tables(
    spec: Specification, file: RecordFile
) -> tuple[MeasurementTable, list[str]]:
    """Return the table of a record, of all its recorders, and what clocks tell."""
    tables = [
        read_table(path, spec.time, spec.time_unit, file.group)
        for path in (file.path, *file.others)
    ]
    if len(tables) == 1:
        return tables[0], []
    return merge_tables(tables, file.common, file.max_offset)


def channel_unit(scenario: Scenario, channel: Channel) -> str:
    """Return the unit of what a channel measures; empty where entries differ."""
    kind = "m" if channel.frame else signal_unit(scenario.system, channel.signal)
    return "" if "," in kind else kind


def _converted(what: str, x: np.ndarray, unit: str, like: str) -> np.ndarray:
    """Return values in the unit of what they measure, or in SI where it has none."""
    try:
        return to_si(x, unit, like) / unit_scale(like) if unit else x
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def unit_scale(unit: str) -> float:
    """Return the factor from a unit to SI; offsets drop out."""
    return float(np.diff(to_si(np.array([0.0, 1.0]), unit))[0]) if unit else 1.0


def _noise_scale(
    scenario: Scenario, channel: Channel, table: MeasurementTable
) -> float:
    """Return the factor from the unit of a channel's noise to that of its signal."""
    unit = channel.unit or table.units.get(channel.column, "")
    return (
        unit_scale(unit) / unit_scale(channel_unit(scenario, channel)) if unit else 1.0
    )


def _resampled(
    t: np.ndarray, values: np.ndarray, spec: Specification, source: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows filtered and resampled, where that is asked for."""
    if spec.low_pass is None and spec.rate is None:
        return t, values
    columns = {str(i): x for i, x in enumerate(values.T)}
    table = MeasurementTable(t, columns, {}, source)
    if spec.low_pass is not None:
        table = table.low_pass(spec.low_pass)
    if spec.rate is not None:
        table = table.resample(spec.rate)
    return table.times, np.stack(list(table.columns.values()), -1)


def _whole(
    t: np.ndarray, x: np.ndarray, name: str, source: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return an input without gaps; short ones are bridged by straight lines."""
    good = np.isfinite(x).all(1)
    if good.sum() < 2:
        raise ValueError(f"{source}: input {name!r} was never measured")
    columns = [np.interp(t, t[good], column[good]) for column in x.T]
    return t, np.stack(columns, -1)
