"""Measured columns over time, and what is done to them before a fit."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.signal
from jaxtyping import Float

from djdyn.typing import Number


FILTER_ORDER = (
    4  # of the Butterworth filter; run forwards and backwards it counts twice
)


@dataclasses.dataclass(frozen=True)
class MeasurementTable:
    """Columns of numbers by name, each measured at the same times; NaN where it is not.

    `units` are those of the columns as far as the file gives them; `source` is its
    name.
    """

    times: Float[np.ndarray, " n"]
    columns: Mapping[str, Float[np.ndarray, " n"]]
    units: Mapping[str, str]
    source: str = "table"

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, name: str) -> Float[np.ndarray, " n"]:
        if name not in self.columns:
            there = ", ".join(list(self.columns)[:30])
            raise ValueError(f"{self.source} has no column {name!r}; it has {there}")
        return self.columns[name]

    @property
    def period(self) -> float:
        """Median time from one row to the next, s."""
        return float(np.median(np.diff(self.times)))

    def _with(self, times: np.ndarray, columns: Mapping) -> "MeasurementTable":
        return dataclasses.replace(self, times=times, columns=dict(columns))

    def between(self, t0: Number, t1: Number) -> "MeasurementTable":
        """Return the rows from `t0` to `t1`, s."""
        rows = (self.times >= t0) & (self.times <= t1)
        if rows.sum() < 2:
            raise ValueError(
                f"{self.source} has {rows.sum()} rows from {t0:g} to {t1:g} s; it goes "
                f"from {self.times[0]:g} to {self.times[-1]:g} s"
            )
        return self._with(
            self.times[rows], {k: x[rows] for k, x in self.columns.items()}
        )

    def resample(self, rate: Number) -> "MeasurementTable":
        """Return the columns at evenly spaced times, by straight lines between rows.

        A value beside a gap is missing. Filter first what is faster than half of
        `rate`, or it turns up as something slower.
        """
        count = int((self.times[-1] - self.times[0]) * rate + 1e-9) + 1
        return self.at(self.times[0] + np.arange(count) / rate)

    def at(self, times: Float[np.ndarray, " n"]) -> "MeasurementTable":
        """Return the columns at given times, by straight lines between rows.

        A value beside a gap or outside the table is missing.
        """
        far = 1.5 * max(self.period, float(np.median(np.diff(times))))
        return self._with(
            times,
            {k: _between(self.times, x, times, far) for k, x in self.columns.items()},
        )

    def low_pass(self, cutoff: Number) -> "MeasurementTable":
        """Return the columns without what is faster than `cutoff`, Hz, and no delay.

        A Butterworth filter runs forwards and backwards. Neighbouring values then have
        errors in common: to a fit they say no more than the raw ones did, so the noise
        to give it is that of the raw record.
        """
        rate = 1 / self.period
        if not 0 < cutoff < rate / 2:
            raise ValueError(
                f"{self.source} has {rate:g} rows a second: a filter lets through less "
                f"than {rate / 2:g} Hz, not {cutoff:g} Hz"
            )
        sos: Any = scipy.signal.butter(FILTER_ORDER, cutoff, fs=rate, output="sos")
        even = np.abs(np.diff(self.times) - self.period).max() < 0.5 * self.period
        if not even:
            raise ValueError(
                f"{self.source}: resample before filtering, times are uneven"
            )
        return self._with(
            self.times, {k: _filtered(sos, x) for k, x in self.columns.items()}
        )


def _between(
    t: np.ndarray, x: np.ndarray, wanted: np.ndarray, far: float
) -> np.ndarray:
    """Return straight lines between known values; NaN where the next is `far` away."""
    known = np.isfinite(x)
    if known.sum() < 2:
        return np.full(np.shape(wanted), np.nan)
    t, x = t[known], x[known]
    right = np.clip(np.searchsorted(t, wanted), 1, len(t) - 1)
    near = np.minimum(np.abs(wanted - t[right - 1]), np.abs(wanted - t[right]))
    whole = (t[right] - t[right - 1] <= far) | (near < 1e-9 * far)
    inside = (wanted >= t[0]) & (wanted <= t[-1] + 1e-9 * far)
    return np.where(whole & inside, np.interp(wanted, t, x), np.nan)


def _filtered(sos: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return a filtered column; gaps are bridged for the filter and stay gaps."""
    known, rows = np.isfinite(x), np.arange(len(x))
    if known.sum() < 3 * (2 * len(sos) + 1):
        return x
    bridged = np.interp(rows, rows[known], x[known])
    return np.where(known, scipy.signal.sosfiltfilt(sos, bridged), np.nan)
