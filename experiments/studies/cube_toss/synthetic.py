"""Synthetic tosses of a cube with known parameters."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import djdyn

from ...harness.tosses import Tosses
from .model import Unknowns, predict


RATE = 148.0  # Hz
NOISE = {"position": 3e-4, "turn": 3e-3, "velocity": 0.01, "spin": 0.05}  # m, rad, m/s
TRUTH = eqx.tree_at(
    lambda x: (x.stiffness, x.dissipation, x.mu, x.centre, x.ground),
    Unknowns.zeros(),
    tuple(map(jnp.asarray, (0.5, -0.3, 0.4, [0.0, 0.1, 0.5], -0.1))),
)


def synthesise(system: djdyn.System, count: int, frames: int) -> Tosses:
    """Return random tosses of the cube `TRUTH`, with noise."""
    rng = np.random.default_rng(1)
    draw = lambda *scale: rng.normal(size=(count, len(scale))) * np.array(scale)
    turns = draw(1.0, 1.0, 1.0, 1.0)
    start = np.concatenate(
        [
            draw(0.1, 0.1, 0.01) + np.array([0.0, 0.0, 0.16]),
            turns / np.linalg.norm(turns, axis=1, keepdims=True),
            draw(0.5, 0.5, 0.1),
            draw(4.0, 4.0, 4.0),
        ],
        1,
    )
    q = np.asarray(
        eqx.filter_jit(predict)(system, TRUTH, jnp.asarray(start), frames, 1 / RATE)
    )
    q = q + NOISE["turn"] / 2 * rng.normal(size=q.shape) * (np.arange(7) > 2)
    q = q + NOISE["position"] * rng.normal(size=q.shape) * (np.arange(7) < 3)
    q[..., 3:] /= np.linalg.norm(q[..., 3:], axis=-1, keepdims=True)
    start[:, :7] = q[:, 0]
    start[:, 7:10] += NOISE["velocity"] * rng.normal(size=(count, 3))
    start[:, 10:] += NOISE["spin"] * rng.normal(size=(count, 3))
    there = jnp.ones((count, frames), bool)
    return Tosses(jnp.asarray(start), jnp.asarray(q), there, 1 / RATE)
