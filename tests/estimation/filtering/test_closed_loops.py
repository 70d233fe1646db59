"""State models of machines with closed loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.multibody.assembly import gaps
from djdyn.system.manifold import dimension
from estimation.filtering import StateModel, kalman_filter

from ...multibody.loops import four_bar


def crank(now) -> jax.Array:
    return now.y.q[:1]


def test_a_filter_keeps_loops_closed():
    """Measurements of the crank correct the other joints with it."""
    system = djdyn.System(four_bar(djdyn.Projection()))
    drive = 0.01 * jnp.eye(dimension(system))
    model = StateModel(system, crank, drive, 0.01)
    y0 = system.initial_state(q={"crank": 1.0})
    times = jnp.linspace(0.0, 0.1, 6)
    P0 = 0.01 * jnp.eye(dimension(system))
    found = kalman_filter(model, times, jnp.full((6, 1), 1.1), y0=y0, P0=P0)
    y = jax.tree.map(lambda x: x[-1], found.predicted.y)
    gap, _ = gaps(system.mechanism, y.q, y.v, jnp.zeros(()))
    assert abs(float(y.q[0]) - 1.0) > 0.02 and np.abs(gap).max() < 1e-3
    other = djdyn.System(four_bar(djdyn.Multipliers()))
    with pytest.raises(ValueError, match="needs a closure that projects states"):
        StateModel(other, crank, drive, 0.01)
