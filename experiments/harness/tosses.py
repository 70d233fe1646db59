"""Recorded tosses: reading, fits by gradient, and searches without one."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float
from scipy.optimize import minimize

from djdyn.files import read_arrays


X = TypeVar("X")
Errors = Callable[[np.ndarray], tuple[Any, ...]]


class Tosses(eqx.Module):
    """Tosses, padded to the number of frames of the longest.

    A state is a pose and speeds; a pose begins with position and quaternion.
    """

    start: Float[Array, "n s"]
    poses: Float[Array, "n k p"]
    there: Bool[Array, "n k"]
    dt: float = eqx.field(static=True)

    @staticmethod
    def of(states: Sequence[np.ndarray], dt: float, pose: int = 7) -> "Tosses":
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


class Record(NamedTuple):
    """States of the frames of tosses, and the numbers of the tosses."""

    states: list[np.ndarray]
    dt: float
    number: np.ndarray  # 0 for all where the file has none

    def lanes(self, which: Any) -> "Record":
        """Return some of the tosses."""
        some = np.arange(len(self.states))[which]
        return Record([self.states[k] for k in some], self.dt, self.number[some])


def read_record(path: Any, columns: Sequence[int]) -> Record:
    """Read an `.npz` file with `states`, `lengths`, `dt` and perhaps `toss_id`.

    `columns` are those of the file in the order of a state: position, quaternion, what
    else is of the pose, and speeds.
    """
    what = "a file of tosses (states, lengths and dt as .npz)"
    try:
        file = read_arrays(str(path), what)
        states, dt = np.asarray(file["states"], float), float(file["dt"])
        lengths = np.asarray(file["lengths"])
        number = np.asarray(file.get("toss_id", np.zeros(lengths.shape)), float)
    except (LookupError, TypeError) as error:
        raise ValueError(f"{path} is not {what}: {error}") from None
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or lengths.size == 0:
        raise ValueError(f"{path}: lengths are whole numbers of frames, one a toss")
    width = len(columns)
    if states.ndim != 2 or states.shape[1] != width or lengths.sum() != len(states):
        raise ValueError(
            f"{path}: {lengths.sum()} frames of {width} numbers are announced, states "
            f"has the shape {states.shape}"
        )
    if lengths.min() < 2 or not 0 < dt < np.inf:
        raise ValueError(f"{path}: a toss has at least 2 frames, and dt is above 0")
    if number.shape != lengths.shape:
        raise ValueError(f"{path}: toss_id is one number a toss")
    if not np.isfinite(states).all():
        raise ValueError(
            f"{path}: state {int(np.argmin(np.isfinite(states).all(1)))} is not finite"
        )
    states, first = states[:, list(columns)], columns[3]
    if not np.allclose(np.linalg.norm(states[:, 3:7], axis=1), 1, atol=1e-3):
        said = f"columns {first} to {first + 3} are no quaternions of length 1"
        raise ValueError(f"{path}: {said}")
    return Record(np.split(states, np.cumsum(lengths)[:-1]), dt, number)


def distances(
    q: Float[Array, "n k p"], seen: Float[Array, "n k p"]
) -> tuple[Float[Array, "n k"], Float[Array, "n k"]]:
    """Return squared distance (m^2) and squared sine of half the angle of two poses."""
    away = jnp.sum((q[..., :3] - seen[..., :3]) ** 2, -1)
    a = q[..., 3:7] / jnp.sqrt(jnp.sum(q[..., 3:7] ** 2, -1, keepdims=True))
    cosine = jnp.sum(a * seen[..., 3:7], -1)
    return away, jnp.maximum(1 - cosine**2, 0.0)


def degrees(sine_squared: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return angles from squared sines of their halves."""
    return jnp.rad2deg(2 * jnp.arcsin(jnp.sqrt(jnp.minimum(sine_squared, 1.0))))


def rounded(square: Float[Array, "..."], width: float) -> Float[Array, "..."]:
    """Return a root that is smooth at zero."""
    return jnp.sqrt(square + width**2) - width


def descend(
    slope: Callable[[X, Tosses], X],
    x: X,
    tosses: Tosses,
    steps: int,
    batch: int,
    rate: float = 0.1,
) -> X:
    """Return unknowns after steps of Adam on random batches of tosses."""
    rng, batch = np.random.default_rng(0), min(batch, len(tosses))
    decay = optax.cosine_decay_schedule(rate, steps, 0.03)
    adam = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(decay, 0.8, 0.95))
    state, left = adam.init(eqx.filter(x, eqx.is_array)), np.arange(0)
    for _ in range(steps):
        if len(left) < batch:
            left = rng.permutation(len(tosses))
        some, left = tosses.lanes(left[:batch]), left[batch:]
        gradient = slope(x, some)
        with jax.numpy_dtype_promotion("standard"):  # optax mixes types
            update, state = adam.update(gradient, state)
        x = eqx.apply_updates(x, update)
    return x


class PeerResult(NamedTuple):
    """Parameters, errors and cost of another program's tuning."""

    parameters: np.ndarray
    errors: tuple[tuple[np.ndarray, ...], ...]  # of other tosses: set by set, by kind
    simulations: int


def search(
    error_function: Callable[[Tosses], Errors],
    training: Tosses,
    others: Sequence[Tosses],
    start: Sequence[float],
    scales: Sequence[float],
) -> PeerResult:
    """Minimise the weighted sum of mean errors by Nelder–Mead over logarithms."""
    errors = error_function(training)
    cost = lambda x: np.mean(errors(x), 1) @ (1 / np.asarray(scales))
    how = {"xatol": 0.01, "fatol": 1e-3}
    found = minimize(cost, np.log(start), method="Nelder-Mead", options=how)
    seen = tuple(error_function(some)(found.x) for some in others)
    return PeerResult(np.exp(found.x), seen, found.nfev * len(training))
