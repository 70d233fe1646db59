"""Synthetic tosses of two hinged blocks, by MuJoCo."""

import numpy as np

from ...harness.tosses import Record
from .peer import SUBSTEPS, rollout


RATE = 148.0  # Hz
NOISE = {"position": 3e-4, "turn": 3e-3}  # m, rad
TRUTH = {
    "mu": 0.25, "stiffness": 8e4, "damping": 500.0, "viscous": 1.5e-3, "coulomb": 1e-3
}  # fmt: skip


def synthesise(count: int, frames: int) -> Record:
    """Return random tosses of the blocks `TRUTH`, with noise."""
    rng = np.random.default_rng(1)
    draw = lambda *scale: rng.normal(size=(count, len(scale))) * np.array(scale)
    turns = draw(1.0, 1.0, 1.0, 1.0)
    start = np.concatenate(
        [
            draw(0.05, 0.05, 0.01) + np.array([0.0, 0.0, 0.2]),
            turns / np.linalg.norm(turns, axis=1, keepdims=True),
            rng.uniform(-np.pi, np.pi, (count, 1)),
            draw(2.0, 2.0, 2.0),
            draw(0.3, 0.3, 0.1),
            draw(2.0),
        ],
        1,
    )
    states = rollout(1 / RATE / SUBSTEPS, start, frames)(*TRUTH.values())
    states[..., 11:14] += 9.81 / RATE / 2 * np.eye(3)[2]  # backward differences
    states[..., :3] += NOISE["position"] * rng.normal(size=states[..., :3].shape)
    states[..., 3:7] += NOISE["turn"] / 2 * rng.normal(size=states[..., 3:7].shape)
    states[..., 3:7] /= np.linalg.norm(states[..., 3:7], axis=-1, keepdims=True)
    states[..., 7] += NOISE["turn"] * rng.normal(size=states[..., 7].shape)
    return Record(list(states), 1 / RATE, np.zeros(count))
