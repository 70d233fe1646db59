"""The table in the recorded frame, which is tilted against it and differs by session.

Blocks at rest on a face show the table's normal in the recorded frame: in the
published tosses it is off the vertical by 2.4 degrees until toss 323 and by less than
0.1 after. Gravity is along the normal. Recorded heights are such that the lowest corner
of a toss's last frame is at zero, so that a tilted table's height differs by toss.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.spatial.transform import Rotation

import djdyn

from ...harness.toss_report import rotations
from ...harness.tosses import Record, Tosses
from .model import POSE, VELOCITY, Unknowns, corners, predict


FACE = 0.99  # least cosine between the vertical and the axis of a block on a face
PASSES = 2  # simulations that find the place of rest
UP = np.array([0.0, 0.0, 1.0])


class Table(NamedTuple):
    """Normals of the table in the recorded frames of two sessions."""

    first: float  # number of the first toss of the second session
    normals: Float[np.ndarray, "2 3"]

    def upright(self, number: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 3 3"]:
        """Return the smallest rotations that make the normal vertical, a toss each."""
        axes = np.cross(self.normals, UP)
        sine = np.linalg.norm(axes, axis=1, keepdims=True)
        turns = axes * np.arcsin(sine) / np.maximum(sine, 1e-12)
        return Rotation.from_rotvec(turns).as_matrix()[1 * (number >= self.first)]


def find_table(record: Record) -> Table:
    """Return the table's normals, and the toss at which they change.

    The change is where it leaves the least mean deviation from the medians.
    """
    ends = np.stack([s[-1] for s in record.states])
    normal = rotations(ends[:, 3:7])[:, :, 2]
    normal = normal * np.where(normal[:, 2:] < 0, -1.0, 1.0)
    lies = normal[:, 2] > FACE
    normal, number = normal[lies], record.number[lies]

    def medians(first: float) -> np.ndarray:
        parts = normal[number < first], normal[number >= first]
        return np.stack([np.median(n, 0) if len(n) else UP for n in parts])

    def scatter(first: float) -> float:
        return np.abs(normal - medians(first)[1 * (number >= first)]).sum()

    first = min(np.unique(number), key=scatter, default=0.0)
    both = medians(first)
    return Table(first, both / np.linalg.norm(both, axis=1, keepdims=True))


def turned(
    state: Float[np.ndarray, "k s"], R: Float[np.ndarray, "3 3"]
) -> Float[np.ndarray, "k s"]:
    """Return the states of a toss in a frame in which the given one is turned by R."""
    turn, state = Rotation.from_matrix(R), state.copy()
    both = turn * Rotation.from_quat(np.roll(state[:, 3:7], -1, 1))
    state[:, 3:7] = np.roll(both.as_quat(), 1, 1)
    for some in (slice(0, 3), VELOCITY):
        state[:, some] = state[:, some] @ R.T
    return state


def raised(
    states: list[np.ndarray], height: Float[np.ndarray, " n"]
) -> list[np.ndarray]:
    """Return tosses that are moved up."""
    return [s + h * np.eye(s.shape[1])[2] for s, h in zip(states, height, strict=True)]


_corners = eqx.filter_jit(jax.vmap(corners))


def lowest(
    poses: Float[np.ndarray, "n 8"], up: Float[np.ndarray, "n 3"]
) -> Float[np.ndarray, " n"]:
    """Return the heights of the lowest corners along a direction."""
    points = np.asarray(_corners(jnp.asarray(poses)))
    return np.einsum("nci,ni->nc", points, up).min(1)


def level_by_ends(record: Record, table: Table) -> list[np.ndarray]:
    """Return states above the table, on which their last frames are: to be fitted."""
    R = table.upright(record.number)
    states = [turned(s, r) for s, r in zip(record.states, R, strict=True)]
    ends = np.stack([s[-1, :POSE] for s in states])
    return raised(states, -lowest(ends, np.broadcast_to(UP, (len(R), 3))))


def level(system: djdyn.System, record: Record, table: Table) -> Tosses:
    """Return tosses above the table, for simulations from their first frames.

    The table's height is taken from simulated ends, by first guesses of all parameters:
    no frame after the first is used.
    """
    R = table.upright(record.number)
    states = [turned(s, r) for s, r in zip(record.states, R, strict=True)]
    up, height = R[:, :, 2], np.zeros(len(R))  # `up` is the recorded vertical
    frames = max(map(len, states))
    simulate = eqx.filter_jit(predict)
    for _ in range(PASSES):
        start = jnp.asarray(np.stack([s[0] for s in raised(states, -height)]))
        q = simulate(system, Unknowns.zeros(), start, frames, record.dt)
        end = np.array(q[:, -1])
        end[:, 2] += height
        height = height - lowest(end, up) / up[:, 2]
    return Tosses.of(raised(states, -height), record.dt, POSE)
