"""Delays of sensors before a fit, by correlation of measured and predicted channels."""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import equinox as eqx
import numpy as np
import scipy.interpolate
from jaxtyping import Float

from djdyn.io.scenario import Scenario

from ..measurements.clocks import CLEAR, WEAK, Alignment, choose_lag
from .columns import Channel, sensor_priors
from .measured import Prediction
from .records import Record
from .specification import Specification
from .trials import make_trials, measured_machine


FINENESS = 4  # delays tried per row of a record
MAX_CANDIDATES = 4  # peaks from which the start of a record is guessed anew


def align(
    scenario: Scenario,
    spec: Specification,
    records: Sequence[Record],
    predict: Prediction,
) -> tuple[Specification, list[str]]:
    """Return the specification with delays found by correlation, and sentences.

    Only delays that are unknown and have neither a start nor a prior are looked for,
    from zero to `max_delay`. A delay that explains little more than none stays at zero:
    then a fit finds it from there.
    """
    said, grid = [], eqx.filter_jit(predict.grid)
    for i, channel in enumerate(spec.channels):
        if not channel.sensor.unaligned:
            continue
        period = min(float(np.median(np.diff(r.t))) for r in records)
        count = int(np.ceil(FINENESS * spec.max_delay / period)) + 1
        lags = np.linspace(0.0, spec.max_delay, max(count, 5))

        tried = functools.partial(
            _tried, scenario, spec, records, predict, grid, i, lags
        )
        found, at_zero = _best(tried, lags)
        late = 0 < found.lag < lags[-1]
        late = late and 1 - at_zero**2 > CLEAR * (1 - found.correlation**2)
        if not late or not found.correlation > WEAK:
            continue
        about = f"channel {channel.name!r}"
        said.append(f"{about} is late by about {1e3 * found.lag:.3g} ms")
        if doubt := found.doubt():
            said.append(f"{about} {doubt}: give its delay a start to choose another")
        spec = _delayed(spec, i, found.lag)
    return spec, said


def _tried(
    scenario: Scenario,
    spec: Specification,
    records: Sequence[Record],
    predict: Prediction,
    grid: Callable,
    i: int,
    lags: Float[np.ndarray, " n"],
    start: float,
) -> Float[np.ndarray, " n"]:
    """Return a channel's correlations at all lags, with the start guessed at one."""
    other = _delayed(spec, i, start)
    machine = measured_machine(scenario, other)
    trials = make_trials(scenario, other, records, predict)
    series = [np.asarray(grid(machine, t.start))[:, i] for t in trials]
    return _correlations(series, records, i, lags, predict.step)


def _best(
    tried: Callable[[float], Float[np.ndarray, " n"]], lags: Float[np.ndarray, " n"]
) -> tuple[Alignment, float]:
    """Return the best lag among peaks, each judged with the start that it implies."""
    first = tried(0.0)
    rough = choose_lag(lags, first)
    peaks = [(rough.lag, rough.correlation), *_peaks(lags, first)]
    judged: dict[int, float] = {}
    for lag, _ in sorted(peaks, key=lambda one: -one[1])[:MAX_CANDIDATES]:
        again = tried(lag)
        near = np.abs(lags - lag) <= FINENESS * (lags[1] - lags[0])
        k = int(np.argmax(np.where(near, again, -1.0)))
        judged[k] = max(judged.get(k, -1.0), float(again[k]))
    best = max(judged, key=lambda k: judged[k])
    own = tried(float(lags[best]))
    return choose_lag(lags, own), float(first[0])


def _peaks(
    lags: Float[np.ndarray, " n"], r: Float[np.ndarray, " n"]
) -> list[tuple[float, float]]:
    inner = np.flatnonzero((r[1:-1] >= r[:-2]) & (r[1:-1] > r[2:])) + 1
    return [(float(lags[k]), float(r[k])) for k in inner]


def _correlations(
    series: Sequence[np.ndarray],
    records: Sequence[Record],
    i: int,
    lags: Float[np.ndarray, " n"],
    step: float,
) -> Float[np.ndarray, " n"]:
    """Return how predictions that are delayed correlate with a channel of records."""
    products, spreads = np.zeros(len(lags)), np.zeros((2, len(lags)))
    for x, record in zip(series, records, strict=True):
        there = np.isfinite(record.values[:, i]) & (record.t >= lags[-1])
        if there.sum() < 4 or not np.isfinite(x).all():
            continue
        curve = scipy.interpolate.CubicSpline(step * np.arange(len(x)), x)
        late = curve(record.t[there][:, None] - lags[None])
        late = late - late.mean(0)
        y = record.values[there, i] - record.values[there, i].mean()
        products += y @ late
        spreads += np.stack([np.full(len(lags), y @ y), np.sum(late**2, 0)])
    scale = np.sqrt(spreads[0] * spreads[1])
    return np.where(scale > 0, products / np.where(scale > 0, scale, 1.0), 0.0)


def _delayed(spec: Specification, i: int, delay: float) -> Specification:
    """Return the specification with another first value of a channel's delay."""
    channels = list(spec.channels)
    sensor = dataclasses.replace(channels[i].sensor, delay=delay)
    channels[i] = dataclasses.replace(channels[i], sensor=sensor)
    own: Channel = channels[i]
    priors = spec.priors | sensor_priors(own, "channel")
    return dataclasses.replace(spec, channels=tuple(channels), priors=priors)
