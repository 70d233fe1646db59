"""The table in the recorded frame, which is tilted against it and differs by session.

Blocks at rest on a face show the table's normal in the recorded frame: it is off the
vertical by 2.4 degrees in earlier tosses and by 0.2 in later ones. Gravity is along
the normal. Heights are such that the lowest corner of a toss's last frame is at zero, so
that the height of a tilted table differs from toss to toss.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

import djdyn
from djdyn.multibody.spatial import quat_from_rotation, quat_multiply, quat_to_rotation

from ..cube_toss.records import Tosses
from .model import Unknowns, corners, predict


FACE = 0.99  # least cosine between the vertical and a face at rest
PASSES = 2  # simulations that find the place of rest
UP = np.array([0.0, 0.0, 1.0])


class Table(NamedTuple):
    """Normals of the table in the recorded frames of two sessions."""

    first: int  # number of the first toss of the second session
    normals: Float[np.ndarray, "2 3"]

    def tilt(self, number: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 3 3"]:
        """Return the rotations from the recorded frame to the level one, a toss each."""
        both = np.stack([upright(normal) for normal in self.normals])
        return both[(np.asarray(number) >= self.first).astype(int)]


def upright(normal: Float[np.ndarray, " 3"]) -> Float[np.ndarray, "3 3"]:
    """Return the smallest rotation that makes a unit vector vertical."""
    x, y, z = normal
    return np.array(
        [
            [1 - x * x / (1 + z), -x * y / (1 + z), -x],
            [-x * y / (1 + z), 1 - y * y / (1 + z), -y],
            [x, y, z],
        ]
    )


def find_table(tosses: Tosses, number: Float[np.ndarray, " n"]) -> Table:
    """Return the table's normals, and the toss between which they change.

    The change is where it leaves the least mean deviation from the medians.
    """
    ends = tosses.poses[:, -1]
    normal = np.stack([np.asarray(quat_to_rotation(q))[:, 2] for q in ends[:, 3:7]])
    normal *= np.where(normal[:, 2:] < 0, -1.0, 1.0)
    lies = normal[:, 2] > FACE
    normal, number = normal[lies], np.asarray(number)[lies]
    medians = lambda first: [
        np.median(normal[part], 0) if part.any() else UP
        for part in (number < first, number >= first)
    ]

    def scatter(first: float) -> float:
        return np.abs(normal - np.stack(medians(first))[1 * (number >= first)]).sum()

    change = min(np.unique(number), key=scatter, default=0)
    both = np.stack(medians(change))
    return Table(int(change), both / np.linalg.norm(both, axis=1, keepdims=True))


def level(
    system: djdyn.System, tosses: Tosses, number: Float[np.ndarray, " n"], table: Table
) -> Tosses:
    """Return tosses in the frame of the table, which lies at zero height.

    Its height is taken from simulated ends, by first guesses of all parameters: no frame
    after the first is used.
    """
    R = jnp.asarray(table.tilt(number))
    turn = eqx.filter_vmap(quat_from_rotation)(R)
    rotate = eqx.filter_vmap(eqx.filter_vmap(quat_multiply, in_axes=(None, 0)))
    move = lambda x: jnp.einsum("nij,n...j->n...i", R, x)
    s, k = tosses.start, tosses.poses
    quats = rotate(turn, k[..., 3:7])
    poses = jnp.concatenate([move(k[..., :3]), quats, k[..., 7:]], -1)
    first = rotate(turn, s[:, None, 3:7])[:, 0]
    # position, quaternion, hinge angle, angular velocity, velocity, hinge rate
    start = jnp.concatenate(
        [move(s[:, :3]), first, s[:, 7:11], move(s[:, 11:14]), s[:, 14:]], 1
    )
    frames, up = poses.shape[1], R[:, :, 2]
    end = eqx.filter_jit(
        lambda start: predict(system, Unknowns.zeros(), start, frames, tosses.dt)[:, -1]
    )
    height = jnp.zeros(len(tosses))
    raised = lambda x, z: x.at[..., 2].add(z.reshape(-1, *[1] * (x.ndim - 2)))
    for _ in range(PASSES):
        points = eqx.filter_vmap(corners)(end(raised(start, -height)))
        points = raised(points, height)
        lowest = jnp.min(jnp.einsum("ncj,nj->nc", points, up), 1)
        height = height - lowest / up[:, 2]
    return Tosses(raised(start, -height), raised(poses, -height), tosses.there, tosses.dt)
