"""Trials of a double pendulum, read from CSV files and filtered."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.signal
from jaxtyping import Float


COLUMNS = ("time_s", "q1_rad", "q2_rad", "tau_measured1_Nm", "tau_measured2_Nm")
COMMANDS = ("tau_command1_Nm", "tau_command2_Nm")
STEP = 0.002  # s, of the samples after resampling
CUTOFF = 6.0  # Hz, of the filter of angles
TRIM = 0.12  # s, left out at both ends, where filters know one side only
LONGEST_GAP = 0.05  # s
LEAST_MOTION = 0.02  # rad: a joint that moves less is blocked, or its sensor is


@dataclasses.dataclass(frozen=True)
class Record:
    """A trial at equal steps: filtered motion, and torques as they were measured."""

    name: str
    t: Float[np.ndarray, " n"]
    q: Float[np.ndarray, "n 2"]
    v: Float[np.ndarray, "n 2"]
    v_dot: Float[np.ndarray, "n 2"]
    torque: Float[np.ndarray, "n 2"]
    command: Float[np.ndarray, "n 2"]

    @property
    def blocked(self) -> list[int]:
        """Joints that hardly move, counted from 1."""
        return [i + 1 for i in range(2) if np.ptp(self.q[:, i]) < LEAST_MOTION]


def read(path: Any, cutoff: float = CUTOFF) -> list[Record]:
    """Read a CSV file, or all those of a folder, in the order of their names."""
    place = Path(str(path))
    files = sorted(place.glob("*.csv")) if place.is_dir() else [place]
    if not files:
        raise ValueError(f"{place} holds no CSV file")
    return [read_file(file, cutoff) for file in files]


def read_file(path: Path, cutoff: float = CUTOFF) -> Record:
    """Read one trial."""
    try:
        table = np.genfromtxt(path, delimiter=",", names=True)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is not a CSV file of numbers: {error}") from None
    missing = set(COLUMNS + COMMANDS) - set(table.dtype.names or ())
    if missing:
        raise ValueError(f"{path} has no column {', '.join(sorted(missing))}")
    rows = np.stack([np.atleast_1d(table[name]) for name in COLUMNS + COMMANDS])
    if not np.isfinite(rows).all():
        row = int(np.argmin(np.isfinite(rows).all(0)))
        raise ValueError(f"{path}: row {row + 2} holds what is no number")
    return record(path.stem, rows[0], rows[1:3].T, rows[3:5].T, rows[5:].T, cutoff)


def record(
    name: str,
    t: Float[np.ndarray, " m"],
    q: Float[np.ndarray, "m 2"],
    torque: Float[np.ndarray, "m 2"],
    command: Float[np.ndarray, "m 2"],
    cutoff: float = CUTOFF,
) -> Record:
    """Resample a trial, filter its angles without delay, and differentiate them."""
    steps = np.diff(t)
    if len(t) < 2 or steps.min() <= 0 or steps.max() > LONGEST_GAP:
        raise ValueError(
            f"{name}: times increase by at most {LONGEST_GAP:g} s from row to row"
        )
    if t[-1] - t[0] < 1.0 + 2 * TRIM:
        raise ValueError(f"{name}: a trial lasts more than {1 + 2 * TRIM:g} s")
    even = np.arange(t[0], t[-1], STEP)
    at = lambda x: np.stack([np.interp(even, t, x[:, i]) for i in range(2)], 1)
    filtering = scipy.signal.butter(3, cutoff * 2 * STEP, output="sos")
    smooth = scipy.signal.sosfiltfilt(filtering, at(q), axis=0)
    v = np.gradient(smooth, STEP, axis=0)
    v_dot = np.gradient(v, STEP, axis=0)
    inner = slice(round(TRIM / STEP), -round(TRIM / STEP))
    columns = (even - t[0], smooth, v, v_dot, at(torque), at(command))
    return Record(name, *(x[inner] for x in columns))


@dataclasses.dataclass(frozen=True)
class Windows:
    """Pieces of trials, each simulated from its first sample: a lane each."""

    q0: Float[np.ndarray, "w 2"]
    v0: Float[np.ndarray, "w 2"]
    torque: Float[np.ndarray, "w n 2"]
    q: Float[np.ndarray, "w k 2"]


def windows(trials: Sequence[Record], span: float, save_every: float) -> Windows:
    """Cut trials into windows that do not overlap."""
    n, every = round(span / STEP), round(save_every / STEP)
    parts: list[tuple] = []
    for one in trials:
        for start in range(0, len(one.t) - n, n):
            rows = slice(start, start + n + 1)
            q = one.q[rows][::every]
            parts.append((one.q[start], one.v[start], one.torque[rows], q))
    return Windows(*(np.stack(x) for x in zip(*parts, strict=True)))
