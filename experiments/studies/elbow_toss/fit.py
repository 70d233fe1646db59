"""Fit of the blocks' unknown parameters to their tosses, by gradient.

After the first impact a toss is chaotic: errors of its first frame grow until the
gradient of a whole toss says nothing about it. Short windows are fitted instead, each
from the state that was measured at its first frame.
"""

import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn

from ...harness.tosses import Tosses, descend, rounded, search
from .model import LENGTH, POSE, Unknowns, errors, miss, physical, predict


PRIOR_DEVIATION = {
    "stiffness": 0.3, "dissipation": 1.0, "mu": 1.0, "viscous": 2.0, "coulomb": 2.0,
    "inertia": 0.7, "centre": 0.2, "hinge": 0.1, "ground": 0.3, "lag": 1.0,
}  # fmt: skip
SPAN, EVERY, LAST = 13, 5, 65  # frames of a window, between starts, before the last
STEPS, BATCH = 150, 128
POLISHED = {
    "mu": "floor1.friction.mu",
    "dissipation": "floor1.normal.dissipation",
    "viscous": "friction.viscous",
    "coulomb": "friction.coulomb",
}


def windows(states: list[np.ndarray], dt: float) -> Tosses:
    """Cut tosses into overlapping windows, each a toss from a measured state."""
    parts = [
        s[k : k + SPAN] for s in states for k in range(0, min(LAST, len(s)), EVERY)
    ]
    return Tosses.of([s for s in parts if len(s) > 1], dt, POSE)


def cost(
    x: Unknowns, system: djdyn.System, tosses: Tosses, count: Any
) -> Float[Array, ""]:
    """Return the mean error over tosses, in 10 % and 14 degrees, with the prior.

    The prior has the weight that belongs to a fit of `count` windows.
    """
    q = predict(system, x, tosses.start, tosses.poses.shape[1], tosses.dt)
    away, *sines = miss(q, tosses)
    total = rounded(away, 1e-3) / (0.1 * LENGTH)
    for sine in sines:
        total = total + rounded(4 * sine, 0.02) / np.deg2rad(14.0)
    fit = jnp.mean(total, where=tosses.there)
    far = [jnp.sum((getattr(x, k) / s) ** 2) for k, s in PRIOR_DEVIATION.items()]
    return fit + sum(far) / (2 * count)


_slope = eqx.filter_jit(jax.grad(cost))


def fit(
    system: djdyn.System, tosses: Tosses, steps: int = STEPS, batch: int = BATCH
) -> Unknowns:
    """Fit with Adam on random batches of windows."""
    count = jnp.asarray(float(len(tosses)))
    slope = lambda x, some: _slope(x, system, some, count)
    with warnings.catch_warnings():
        # Impacts last ten steps; with twenty the fit finds the same parameters.
        warnings.filterwarnings("ignore", "a gradient crosses impacts")
        return descend(slope, Unknowns.zeros(), tosses, steps, batch)


def polish(
    system: djdyn.System, x: Unknowns, tosses: Tosses, scales: tuple[float, ...]
) -> Unknowns:
    """Adjust friction, contact and hinge to whole tosses, without gradients."""
    guess = physical(system, Unknowns.zeros())
    first = np.array([float(guess[path]) for path in POLISHED.values()])
    adjusted = lambda values: eqx.tree_at(
        lambda x: [getattr(x, name) for name in POLISHED],
        x,
        list(jnp.log(jnp.asarray(values) / first)),
    )
    now = physical(system, x)
    start = [float(now[path]) for path in POLISHED.values()]
    function = lambda some: lambda logs: errors(system, adjusted(np.exp(logs)), some)
    return adjusted(search(function, tosses, (), start, scales).parameters)
