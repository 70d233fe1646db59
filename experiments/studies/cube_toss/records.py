"""Measured tosses, read from a file."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from djdyn.files import read_arrays


HALF = 0.0524  # m, half the cube's width


class Tosses(eqx.Module):
    """Tosses, padded to the number of frames of the longest.

    A state of the cube is position, quaternion, velocity (a backward difference) and
    angular velocity in the cube's axes; its first numbers are the pose.
    """

    start: Float[Array, "n s"]
    poses: Float[Array, "n k p"]
    there: Bool[Array, "n k"]
    dt: float = eqx.field(static=True)

    @staticmethod
    def of(states: list[np.ndarray], dt: float, pose: int = 7) -> "Tosses":
        """Return tosses from the states of their frames, which begin with the pose."""
        most = max(map(len, states))
        pad = lambda s: np.pad(s[:, :pose], ((0, most - len(s)), (0, 0)), mode="edge")
        there = np.arange(most) < np.array([len(s) for s in states])[:, None]
        first = np.stack([s[0] for s in states])
        poses = np.stack([pad(s) for s in states])
        return Tosses(jnp.asarray(first), jnp.asarray(poses), jnp.asarray(there), dt)

    def __len__(self) -> int:
        return len(self.start)

    def lanes(self, which: Any) -> "Tosses":
        """Return some of the tosses."""
        some = self.start[which], self.poses[which], self.there[which]
        return Tosses(*some, self.dt)

    def cut(self, frames: int) -> "Tosses":
        """Return the first frames of all tosses."""
        return Tosses(
            self.start, self.poses[:, :frames], self.there[:, :frames], self.dt
        )


def read(path: Any, columns: Sequence[int] = range(13), pose: int = 7) -> Tosses:
    """Read tosses from an `.npz` file with `states`, `lengths` and `dt`.

    `columns` are those of the file in the order of a state: position, quaternion, what
    else is of the pose, and speeds.
    """
    what = "a file of tosses (states, lengths and dt as .npz)"
    try:
        file = read_arrays(str(path), what)
        states, dt = np.asarray(file["states"], float), float(file["dt"])
        lengths = np.asarray(file["lengths"])
    except (LookupError, TypeError) as error:
        raise ValueError(f"{path} is not {what}: {error}") from None
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or lengths.size == 0:
        raise ValueError(f"{path}: lengths are whole numbers of frames, one a toss")
    if states.ndim != 2 or states.shape[1] != len(columns) or lengths.sum() != len(states):
        raise ValueError(
            f"{path}: {lengths.sum()} frames of {len(columns)} numbers are announced, states has "
            f"the shape {states.shape}"
        )
    if lengths.min() < 2 or not 0 < dt < np.inf:
        raise ValueError(f"{path}: a toss has at least 2 frames, and dt is above 0")
    if not np.isfinite(states).all():
        raise ValueError(
            f"{path}: state {int(np.argmin(np.isfinite(states).all(1)))} is not finite"
        )
    states, first = states[:, list(columns)], columns[3]
    if not np.allclose(np.linalg.norm(states[:, 3:7], axis=1), 1, atol=1e-3):
        said = f"columns {first} to {first + 3} are no quaternions of length 1"
        raise ValueError(f"{path}: {said}")
    return Tosses.of(np.split(states, np.cumsum(lengths)[:-1]), dt, pose)
