"""Operator inputs of the Titan 4: which stick is held, and when."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


Rows = Sequence[tuple[int, int, float, float]]  # joint, sign, from, to (s)
TRACKING: Rows = (
    (2, 1, 0.5, 2.5), (1, 1, 1.0, 3.0), (3, -1, 3.0, 5.0),
    (4, 1, 5.0, 6.5), (5, -1, 5.0, 6.5), (6, 1, 5.0, 7.0),
)  # fmt: skip
STOP: Rows = ((2, 1, 0.5, 10.0), (3, -1, 3.0, 7.0))


class Sticks(eqx.Module):
    """Operator input: sticks held between start and end times (s)."""

    held: Float[Array, "k 6"]
    start: Float[Array, " k"]
    end: Float[Array, " k"]

    def __call__(self, t: Array) -> Array:
        on = (t >= self.start) & (t < self.end)
        return jnp.where(on, 1.0, 0.0) @ self.held


def sticks(rows: Rows = TRACKING) -> Sticks:
    """Return the input of rows of joint, sign, start and end, padded to six rows."""
    rows = [*rows, *[(1, 0, 0.0, 0.0)] * (6 - len(rows))]
    joint, sign, start, end = np.array(rows, float).T
    held = sign[:, None] * np.eye(6)[joint.astype(int) - 1]
    return Sticks(jnp.asarray(held), jnp.asarray(start), jnp.asarray(end))


def jumps(*schedules: Rows) -> np.ndarray:
    """Return the times at which sticks are moved."""
    return np.unique([t for rows in schedules for _, _, *span in rows for t in span])
