"""Clocks of several recorders: delays by cross-correlation, and files of one trial.

Two recorders start at different times. What both measured tells by how much: the lag at
which the two columns correlate best. A periodic signal correlates at many lags; that is
said.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import scipy.signal
from jaxtyping import Float

from djdyn.typing import Number

from .table import MeasurementTable


LEAST_OVERLAP = 0.5  # of the shorter column, over which two are compared
CLEAR = 2.0  # how much more variance a lag leaves unexplained that is no rival
WEAK = 0.5  # a lower correlation tells no lag
MAX_ROWS = 1_000_000  # of a column on an even grid


@dataclasses.dataclass(frozen=True)
class Alignment:
    """How late a column is, s, its correlation there, and other lags that fit as well.

    `rivals` are pairs of lag and correlation, the best one first.
    """

    lag: float
    correlation: float
    rivals: tuple[tuple[float, float], ...]

    def doubt(self) -> str:
        """Return what is doubtful about the lag; empty if nothing is."""
        if not self.correlation > WEAK:
            return (
                f"correlates with what it should follow only to {self.correlation:.2f}"
            )
        if not self.rivals:
            return ""
        others = " and ".join(f"{1e3 * at:.4g} ms" for at, _ in self.rivals[:3])
        return (
            f"fits a lag of {others} almost as well as {1e3 * self.lag:.4g} ms "
            f"(correlations {self.rivals[0][1]:.3f} and {self.correlation:.3f})"
        )


def choose_lag(
    lags: Float[np.ndarray, " n"], correlations: Float[np.ndarray, " n"]
) -> Alignment:
    """Return the lag of the highest peak, and its rivals.

    Lags are evenly spaced; a peak between them is refined by a parabola. A rival is
    another peak that leaves less than twice as much variance unexplained.
    """
    r = np.where(np.isfinite(correlations), correlations, -1.0)
    inner = np.flatnonzero((r[1:-1] >= r[:-2]) & (r[1:-1] > r[2:])) + 1
    peaks = []
    for i in inner:
        bend = r[i - 1] - 2 * r[i] + r[i + 1]
        part = 0.5 * (r[i - 1] - r[i + 1]) / bend if bend < 0 else 0.0
        peaks.append((float(lags[i] + part * (lags[1] - lags[0])), float(r[i])))
    ends = [(float(lags[i]), float(r[i])) for i in (0, -1)]
    best = max(peaks + ends, key=lambda one: one[1])
    near = float(lags[1] - lags[0])
    limit = CLEAR * max(1 - best[1] ** 2, 1e-6)
    rivals = [
        one for one in sorted(peaks, key=lambda one: -one[1])
        if one[1] > 0 and 1 - one[1] ** 2 < limit and abs(one[0] - best[0]) > 1.5 * near
    ]  # fmt: skip
    return Alignment(best[0], best[1], tuple(rivals))


def find_lag(
    reference: Float[np.ndarray, " n"],
    delayed: Float[np.ndarray, " m"],
    rate: Number,
    longest: Number | None = None,
) -> Alignment:
    """Find how late a column is behind another, in either direction.

    **Arguments:**

    - `reference`, `delayed`: samples at one rate, NaN where there is none. Lengths may
      differ; the lag is that from first sample to first sample.
    - `rate`: samples per second.
    - `longest`: the largest lag, s; by default all are tried at which the two share
      half of the shorter one.
    """
    a, b = np.asarray(reference, float), np.asarray(delayed, float)
    in_a, in_b = np.isfinite(a).astype(float), np.isfinite(b).astype(float)
    if in_a.sum() < 4 or in_b.sum() < 4 or not (np.nanstd(a) and np.nanstd(b)):
        raise ValueError("a column without change tells no lag")
    a, b = np.nan_to_num(a - np.nanmean(a)), np.nan_to_num(b - np.nanmean(b))
    over = lambda x, y: scipy.signal.correlate(y, x, method="fft")
    count = np.round(over(in_a, in_b))
    safe = np.maximum(count, 1.0)
    sum_a, sum_b = over(a, in_b), over(in_a, b)
    spread = (over(a * a, in_b) - sum_a**2 / safe) * (
        over(in_a, b * b) - sum_b**2 / safe
    )
    least = LEAST_OVERLAP * min(in_a.sum(), in_b.sum())
    known = (count >= least) & (spread > 1e-12 * spread.max())
    lags = np.arange(-(len(a) - 1), len(b)) / rate
    if longest is not None:
        known &= np.abs(lags) <= longest + 1e-9
    if known.sum() < 3:
        raise ValueError("the two columns have too few rows in common to tell a lag")
    r = (over(a, b) - sum_a * sum_b / safe) / np.sqrt(np.where(known, spread, 1.0))
    first, last = np.flatnonzero(known)[[0, -1]]
    r = np.where(known, r, np.nan)
    return choose_lag(lags[first : last + 1], r[first : last + 1])


def merge_tables(
    tables: Sequence[MeasurementTable],
    common: str | Sequence[str],
    longest: Number | None = None,
) -> tuple[MeasurementTable, list[str]]:
    """Return the columns of several recorders on the clock of the first, and doubts.

    **Arguments:**

    - `tables`: files of one trial, each with a clock of its own.
    - `common`: the column that all measured, or its name in each.
    - `longest`: the largest difference of two clocks, s.

    **Returns:** a table with the first one's times, and sentences on what was found. A
    column of the same name comes from the first table that has it.
    """
    names = [common] * len(tables) if isinstance(common, str) else list(common)
    if len(names) != len(tables):
        raise ValueError(f"{len(tables)} files need as many names of a common column")
    first, said = tables[0], []
    columns, units = dict(first.columns), dict(first.units)
    for table, name in zip(tables[1:], names[1:], strict=True):
        ahead, sentences = _clock(first, names[0], table, name, longest)
        said += sentences
        at = first.times + ahead
        if not np.any((at >= table.times[0]) & (at <= table.times[-1])):
            raise ValueError(f"{table.source} and {first.source} share no time")
        whole = table.at(at)
        for key in table.columns:
            if key not in columns:
                columns[key], units[key] = whole[key], table.units.get(key, "")
    return dataclasses.replace(first, columns=columns, units=units), said


def _clock(
    first: MeasurementTable,
    here: str,
    table: MeasurementTable,
    there: str,
    longest: Number | None,
) -> tuple[float, list[str]]:
    """Return what to add to the first's times for those of another, and sentences."""
    rate = 1 / min(first.period, table.period)
    for one in (first, table):
        if (one.times[-1] - one.times[0]) * rate > MAX_ROWS:
            raise ValueError(f"{one.source} is too long to be aligned: give a segment")
    a, b = first.resample(rate), table.resample(rate)
    try:
        found = find_lag(a[here], b[there], rate, longest)
    except ValueError as error:
        raise ValueError(f"{table.source}: column {there!r}: {error}") from None
    if not found.correlation > WEAK:
        raise ValueError(f"{table.source}: column {there!r} {found.doubt()}")
    ahead = found.lag + float(b.times[0] - a.times[0])
    said = [f"{table.source}: its clock is {ahead:+.4f} s from that of {first.source}"]
    if doubt := found.doubt():
        said.append(f"{table.source}: column {there!r} {doubt}")
    drift = _drift(a[here], b[there], rate, found.lag)
    if abs(drift) > 1 / rate:
        said.append(
            f"{table.source}: its clock drifts by {1e3 * drift:.3g} ms from the first "
            "half to the second; only the offset is corrected"
        )
    return ahead, said


def _drift(a: np.ndarray, b: np.ndarray, rate: float, lag: float) -> float:
    """Return how much later the second half is than the first, s."""
    shift = round(lag * rate)
    a, b = (a, b[shift:]) if shift >= 0 else (a[-shift:], b)
    n = min(len(a), len(b))
    halves = [slice(0, n // 2), slice(n // 2, n)]
    try:
        near = 20 / rate
        early, late = (find_lag(a[s], b[s], rate, near) for s in halves)
    except ValueError:  # one half is at rest
        return 0.0
    sure = all(not one.doubt() for one in (early, late))
    return late.lag - early.lag if sure else 0.0
