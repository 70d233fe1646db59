"""Fit of the blocks' unknown parameters to their tosses, by gradient."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn

from ..cube_toss.fit import descend
from ..cube_toss.records import Tosses
from .model import LENGTH, Unknowns, miss, predict


PRIOR_DEVIATION = {
    "stiffness": 1.0, "dissipation": 1.0, "mu": 1.0, "viscous": 2.0, "coulomb": 2.0,
    "inertia": 0.3, "centre": 0.2, "hinge": 0.1, "ground": 0.3, "lag": 1.0,
    "mass": 0.1, "corners": 0.1,
}  # fmt: skip
FRAMES = 80  # fitted frames of a toss
STEPS, BATCH = 80, 64


def cost(x: Unknowns, system: djdyn.System, tosses: Tosses) -> Float[Array, ""]:
    """Return the mean error over tosses, in 10 % and 14 degrees, with the prior."""
    q = predict(system, x, tosses.start, tosses.poses.shape[1], tosses.dt)
    away, *sines = miss(q, tosses)
    rounded = lambda square, width: jnp.sqrt(square + width**2) - width
    total = rounded(away, 1e-3) / (0.1 * LENGTH)
    for sine in sines:
        total = total + rounded(4 * sine, 0.02) / np.deg2rad(14.0)
    fit = jnp.mean(total, where=tosses.there)
    far = [jnp.sum((getattr(x, k) / s) ** 2) for k, s in PRIOR_DEVIATION.items()]
    return fit + sum(far) / (2 * len(tosses))


_slope = eqx.filter_jit(jax.grad(cost))


def fit(
    system: djdyn.System, tosses: Tosses, steps: int = STEPS, batch: int = BATCH
) -> Unknowns:
    """Fit with Adam on random batches of tosses."""
    slope = lambda x, some: _slope(x, system, some)
    return descend(slope, Unknowns.zeros(), tosses.cut(FRAMES), steps, batch)
