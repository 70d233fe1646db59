"""Fit of the cube's unknown parameters to its tosses, by gradient."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn

from ...harness.tosses import Tosses, descend, distances, rounded
from ..arm_id.peer import timed
from .model import HALF, Unknowns, predict


PRIOR_DEVIATION = {
    "stiffness": 1.0,
    "dissipation": 1.0,
    "mu": 1.0,
    "centre": 1.0,
    "inertia": 0.2,
    "ground": 0.3,
    "gravity": 0.03,
    "lag": 1.0,
    "corners": 0.05,
}
FRAMES = 100  # fitted frames of a toss; later most cubes are at rest
BATCH = 64
STEPS = 80


def cost(
    x: Unknowns, system: djdyn.System, tosses: Tosses, count: int = BATCH
) -> Float[Array, ""]:
    """Return the mean error over tosses, in 10 % and 14 degrees, with the prior.

    The prior has the weight that belongs to a fit of `count` tosses.
    """
    q = predict(system, x, tosses.start, tosses.poses.shape[1], tosses.dt)
    away, sine = distances(q, tosses.poses)
    both = rounded(away, 1e-3) / (0.2 * HALF)
    both = both + rounded(4 * sine, 0.02) / np.deg2rad(14.0)
    fit = jnp.mean(both, where=tosses.there)
    far = [jnp.sum((getattr(x, k) / s) ** 2) for k, s in PRIOR_DEVIATION.items()]
    return fit + sum(far) / (2 * count)


_cost, _slope = eqx.filter_jit(cost), eqx.filter_jit(jax.grad(cost))


def fit(
    system: djdyn.System, tosses: Tosses, steps: int = STEPS, batch: int = BATCH
) -> Unknowns:
    """Fit with Adam on random batches of tosses."""
    count = min(BATCH, len(tosses))
    slope = lambda x, some: _slope(x, system, some, jnp.asarray(count))
    return descend(slope, Unknowns.zeros(), tosses, steps, batch)


def gradient_cost(system: djdyn.System, tosses: Tosses) -> float:
    """Return the CPU time of a gradient over that of a simulation."""
    calls = [lambda f=f: f(Unknowns.zeros(), system, tosses) for f in (_cost, _slope)]
    least = lambda call: min(
        timed(lambda: jax.block_until_ready(call())).seconds for _ in range(10)
    )
    simulation, gradient = map(least, calls)
    return gradient / simulation
