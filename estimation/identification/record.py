"""Static means, noise and time lags of recorded data."""

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from djdyn.typing import Number

from ..markers.recording import MarkerData


DEVIATIONS_PER_MAD = 1.4826  # of a normal distribution; MAD: median absolute deviation


class StaticMean(eqx.Module):
    """Mean positions of static markers, deviations of one sample, and samples used."""

    positions: Float[np.ndarray, "m 3"]
    deviations: Float[np.ndarray, "m 3"]
    counts: Int[np.ndarray, " m"]


def static_mean(data: MarkerData, reject: Number = 4.0) -> StaticMean:
    """Average a static recording, marker by marker.

    Samples more than `reject` robust standard deviations from the median are left out.
    A marker that is never seen is an error.

    **Returns:** means, deviations and sample counts of all markers.
    """
    rows = []
    for i, label in enumerate(data.labels):
        seen = data.positions[data.visible[:, i], i]
        if not len(seen):
            raise ValueError(f"marker {label!r} is never seen")
        off = np.abs(seen - np.median(seen, 0))
        near = np.all(off <= reject * DEVIATIONS_PER_MAD * np.median(off, 0), 1)
        near = near if near.any() else np.ones_like(near)
        rows.append((seen[near].mean(0), seen[near].std(0), near.sum()))
    means, deviations, counts = (np.stack(column) for column in zip(*rows, strict=True))
    return StaticMean(means, deviations, counts)


def estimate_noise(data: MarkerData) -> Float[np.ndarray, "m 3"]:
    r"""Estimate the noise of every channel from a recording of moving markers.

    Third differences of white noise have the variance $20\sigma^2$, and those of a
    motion of angular frequency $\omega$ are its amplitude times $(\omega\,dt)^3$, which
    is negligible if the record resolves the motion. Gaps and outliers are left out.

    **Returns:** standard deviations, m.
    """
    third = np.diff(data.with_gaps, 3, axis=0)
    for i, label in enumerate(data.labels):
        if np.sum(np.isfinite(third[:, i, 0])) < 10:
            raise ValueError(
                f"marker {label!r} is not seen long enough to estimate its noise"
            )
    return DEVIATIONS_PER_MAD * np.nanmedian(np.abs(third), 0) / np.sqrt(20.0)


def lag(
    reference: Float[np.ndarray, " n"],
    delayed: Float[np.ndarray, " n"],
    rate: Number,
    longest: Number,
) -> float:
    """Estimate the time lag of one channel behind another by cross-correlation.

    **Arguments:**

    - `reference`, `delayed`: samples at equal times; NaN where there is none.
    - `rate`: samples per second.
    - `longest`: the largest lag, s, in either direction.

    **Returns:** the lag, s.
    """
    most = int(np.ceil(longest * rate))
    if most >= len(reference) - 2:
        raise ValueError(
            f"lags up to {longest:g} s need a record longer than "
            f"{len(reference) / rate:g} s"
        )
    found = np.array(
        [_correlation(reference, delayed, k) for k in range(-most, most + 1)]
    )
    if not np.all(np.isfinite(found)):
        raise ValueError("a channel never changes, or the two are never seen together")
    peak = int(np.argmax(found))
    if peak in (0, 2 * most):
        raise ValueError(f"the correlation peaks at the longest lag, {longest:g} s")
    before, at, after = found[peak - 1 : peak + 2]
    part = 0.5 * (before - after) / (before - 2 * at + after)  # vertex of a parabola
    return float((peak - most + part) / rate)


def _correlation(a: np.ndarray, b: np.ndarray, shift: int) -> float:
    """Return the correlation of `a[k]` and `b[k + shift]`, where both are known."""
    a, b = (a[: len(a) - shift], b[shift:]) if shift >= 0 else (a[-shift:], b[:shift])
    both = np.isfinite(a) & np.isfinite(b)
    if both.sum() < 2 or not (np.ptp(a[both]) and np.ptp(b[both])):
        return np.nan
    a, b = a[both] - a[both].mean(), b[both] - b[both].mean()
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))
