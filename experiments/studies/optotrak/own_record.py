"""A user's own records of the rig: read, checked, and cut at the release."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from estimation import MarkerData, StaticMean, read_markers, register, static_mean
from estimation.identification.record import estimate_noise

from .model import SET


OUT_OF_SHAPE = 5e-3  # m, farther away than this a marker is not where it should be
LEAST_NOISE = 2e-5  # m, however smooth a record
HELD = 0.2  # s at the start of a record, of which the place before the release is taken
MOVED = 8.0  # standard deviations of the noise from that place: it was released
BEFORE, SPAN = 0.1, 5.0  # s before and after the release that are fitted
LEAST_SPAN, LEAST_RATE = 1.0, 50.0  # s, Hz


@dataclasses.dataclass(frozen=True)
class OwnRecord:
    """A record of the released rod, its noise, m, and when it was released, s.

    `raw` is as it was read, `data` cut and repaired; `faults` says what was wrong.
    """

    raw: MarkerData
    data: MarkerData
    noise: Float[np.ndarray, "4 3"]
    release: float
    faults: tuple[str, ...]


def read_rig(path: str, options: dict[str, Any]) -> MarkerData:
    """Read markers of the rig, in ground axes: x down, from the bowl's centre.

    **Arguments:**

    - `options`: `labels` of the file's markers 1 to 4, and its `axes`.
    """
    labels = options["labels"]
    if isinstance(labels, str):
        labels = labels.replace(",", " ").split()
    names = [str(label) for label in np.atleast_1d(np.asarray(labels)).tolist()]
    if len(names) != len(SET.labels):
        raise ValueError(f"labels are those of four markers, got {', '.join(names)}")
    axes = options["axes"]
    found = read_markers(path, **({"axes": axes} if axes else {})).select(names)
    return MarkerData(found.times, SET.labels, found.positions, found.visible)


def repaired(data: MarkerData, name: str) -> tuple[MarkerData, tuple[str, ...]]:
    """Return the data with labels exchanged back and stray markers hidden.

    **Returns:** also what was wrong, in sentences.
    """
    said = data.check(SET.rigid, OUT_OF_SHAPE)
    back = data.unswapped(SET.rigid, OUT_OF_SHAPE)
    offsets = jnp.asarray(SET.offsets)
    lay = lambda p, seen: register(p, offsets, seen, reject=OUT_OF_SHAPE)
    found = jax.jit(jax.vmap(lay))(
        jnp.asarray(back.positions), jnp.asarray(back.visible)
    )
    kept = back.visible & np.asarray(found.used)
    stray = np.sum(back.visible & ~kept, 0)
    if np.sum(np.any(kept, 1)) < 0.5 * np.sum(np.any(data.visible, 1)) or np.mean(
        np.sum(kept, 1) >= 3
    ) < 0.5 * np.mean(np.sum(data.visible, 1) >= 3):
        raise ValueError(
            f"{name}: the markers do not have the shape of this rig's; give the labels "
            "of markers 1 to 4 as labels=..., and the file's axes"
        )
    more = tuple(
        f"marker {label!r} is out of place in {count} samples, which are left out"
        for label, count in zip(SET.labels, stray.tolist(), strict=True)
        if count
    )
    positions = np.where(kept[..., None], back.positions, 0.0)
    return MarkerData(back.times, back.labels, positions, kept), (*said, *more)


def read_static(path: str, options: dict[str, Any]) -> tuple[StaticMean, tuple]:
    """Read a static trial; return mean places of its markers, and its faults."""
    data, faults = repaired(read_rig(path, options), path)
    mean = static_mean(data)
    if np.max(mean.deviations) > 1e-3:
        raise ValueError(
            f"{path}: markers move by {1e3 * np.max(mean.deviations):.2g} mm (standard "
            "deviation), so that this is no static trial"
        )
    return mean, faults


def read_motion(path: str, options: dict[str, Any]) -> OwnRecord:
    """Read a dynamic trial, and find when the rod was released."""
    raw = read_rig(path, options)
    data, faults = repaired(raw, path)
    if data.rate < LEAST_RATE:
        raise ValueError(f"{path}: {data.rate:.3g} samples a second are too few")
    noise = np.maximum(estimate_noise(data), LEAST_NOISE)
    start = release_time(data, noise, path)
    cut = data.between(start - BEFORE, start + SPAN)
    if cut.times[-1] - start < LEAST_SPAN:
        raise ValueError(f"{path}: less than {LEAST_SPAN:g} s were recorded in motion")
    if np.max(np.diff(cut.times)) > 1.5 / cut.rate:
        raise ValueError(f"{path}: samples are not evenly spaced in time")
    return OwnRecord(raw, cut, noise, start, faults)


def release_time(data: MarkerData, noise: Float[np.ndarray, "4 3"], name: str) -> float:
    """Return about when the rod left the place where it was held, s."""
    held = data.times < data.times[0] + HELD
    place = np.nanmedian(data.with_gaps[held], 0)
    if not np.all(np.isfinite(place)):
        raise ValueError(f"{name}: a marker is hidden in the first {HELD:g} s")
    off = np.abs(data.with_gaps - place) / noise
    away = np.nanmax(np.where(data.visible[..., None], off, 0.0), (1, 2)) > MOVED
    for_good = np.flatnonzero(away[:-2] & away[1:-1] & away[2:])  # no single spikes
    if not len(for_good):
        raise ValueError(f"{name}: the rod never moves")
    if held[for_good[0]]:
        raise ValueError(
            f"{name}: the rod is not held in the first {HELD:g} s; cut the record so "
            "that it begins before the release"
        )
    return float(data.times[for_good[0]])
