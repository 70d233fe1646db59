"""Faults of measured channels: spikes, stuck sensors, gaps and clocks."""

from collections.abc import Collection

import numpy as np
from jaxtyping import Bool, Float

from .table import MeasurementTable


Values = Float[np.ndarray, " n"]
SPIKE_DEVIATIONS = 8.0  # of what a value differs from the curve through its neighbours
MAX_SPIKE_SHARE = 0.05  # more are not spikes but motion that is sampled too slowly
DEVIATIONS_PER_MAD = 1.4826  # of a normal distribution
STUCK_ROWS = 8  # equal values in a row, where others hardly ever repeat
MAX_PASSES = 30


def find_spikes(values: Values) -> Bool[np.ndarray, " n"]:
    """Find single values far off the cubic through two neighbours on either side.

    The worst are taken out first, because a spike also spoils its neighbours' curves.
    A channel with more than a twentieth of spikes has none: it is only rough.
    """
    x, spikes = np.array(values, float), np.zeros(len(values), bool)
    if len(x) < 9:
        return spikes
    for _ in range(MAX_PASSES):
        off = np.zeros(len(x))
        off[2:-2] = x[2:-2] - (4 * (x[1:-3] + x[3:-1]) - x[:-4] - x[4:]) / 6
        off = np.where(np.isfinite(off), np.abs(off), 0.0)
        some = off[off > 0]
        if not len(some):
            break
        limit = SPIKE_DEVIATIONS * DEVIATIONS_PER_MAD * np.median(some)
        around = np.lib.stride_tricks.sliding_window_view(np.pad(off, 2), 5).max(1)
        new = (off > limit) & (off == around)
        if not new.any():
            break
        spikes |= new
        known = np.isfinite(x) & ~spikes  # what was taken out is bridged
        x[spikes] = np.interp(np.flatnonzero(spikes), np.flatnonzero(known), x[known])
    return spikes if spikes.mean() <= MAX_SPIKE_SHARE else np.zeros(len(x), bool)


def find_stuck(values: Values) -> Bool[np.ndarray, " n"]:
    """Find runs of equal values in a channel that hardly ever repeats a value.

    Quantised channels repeat values all the time: there, only runs that are ten times
    as long as the usual ones count.
    """
    x = np.asarray(values, float)
    same = np.concatenate([[False], (np.diff(x) == 0)])
    runs, found = [], np.zeros(len(x), bool)
    start = 0
    for i in range(1, len(x) + 1):
        if i == len(x) or not same[i]:
            runs.append((start, i))
            start = i
    lengths = np.array([b - a for a, b in runs])
    usual = np.quantile(lengths, 0.9)
    for (a, b), n in zip(runs, lengths, strict=True):
        if n >= max(STUCK_ROWS, 10 * usual) and n < len(x):
            found[a:b] = True
    return found


def table_faults(table: MeasurementTable, steady: Collection[str] = ()) -> list[str]:
    """Return what is odd about clock and columns of a table, a sentence each.

    Columns named in `steady`, such as set points, may keep a value.
    """
    said, steps = [], np.diff(table.times)
    usual = float(np.median(steps))
    gaps = np.flatnonzero(steps > 2.5 * usual)
    if len(gaps):
        k = int(gaps[np.argmax(steps[gaps])])
        said.append(
            f"{table.source}: {len(gaps)} gaps in time, the longest {steps[k]:.3g} s "
            f"after {table.times[k]:.4g} s"
        )
    jitter = np.std(steps[steps < 2.5 * usual]) / usual
    if jitter > 0.05:
        said.append(
            f"{table.source}: times are uneven by {jitter:.0%} of {1e3 * usual:.3g} ms"
        )
    for name, x in table.columns.items():
        missing, stuck = np.isnan(x).mean(), find_stuck(x)
        if missing == 1:
            said.append(f"{table.source}: {name!r} was never measured")
            continue
        if missing > 0:
            said.append(f"{table.source}: {name!r} is missing in {missing:.1%} of rows")
        if np.nanmax(x) == np.nanmin(x):
            said.append(
                f"{table.source}: {name!r} is {x[~np.isnan(x)][0]:g} throughout"
            )
        elif stuck.any() and name not in steady:
            first = table.times[np.argmax(stuck)]
            said.append(
                f"{table.source}: {name!r} is stuck in {stuck.sum()} rows, first at "
                f"{first:.4g} s"
            )
    return said
