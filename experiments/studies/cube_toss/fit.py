"""What is not known about the cube, from its tosses by gradient."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

import djdyn

from ..arm_id.peer import timed
from .model import Unknowns, miss, predict
from .records import HALF, Tosses


SPREAD = {  # what is thought likely beforehand, as standard deviations
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
FRAMES = 100  # of a toss that are fitted: by then most cubes lie still
BATCH = 64
STEPS = 80


def cost(x: Unknowns, system: djdyn.System, tosses: Tosses) -> Float[Array, ""]:
    """Mean error over whole tosses, in 10 % and 14 degrees, and how unlikely `x` is."""
    q = predict(system, x, tosses.start, tosses.poses.shape[1], tosses.dt)
    away, sine = miss(q, tosses)
    rounded = lambda square, width: jnp.sqrt(square + width**2) - width
    both = rounded(away, 1e-3) / (0.2 * HALF)
    both = both + rounded(4 * sine, 0.02) / np.deg2rad(14.0)
    fit = jnp.mean(both, where=tosses.there)
    far = [jnp.sum((getattr(x, k) / s) ** 2) for k, s in SPREAD.items()]
    return fit + sum(far) / (2 * len(tosses))


_cost, _slope = eqx.filter_jit(cost), eqx.filter_jit(jax.grad(cost))


def fit(
    system: djdyn.System, tosses: Tosses, steps: int = STEPS, batch: int = BATCH
) -> Unknowns:
    """Adam on random batches of tosses."""
    rng = np.random.default_rng(0)
    x, batch = Unknowns.zeros(), min(batch, len(tosses))
    rate = optax.cosine_decay_schedule(0.1, steps, 0.03)
    adam = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate, 0.8, 0.95))
    state, left = adam.init(eqx.filter(x, eqx.is_array)), np.arange(0)
    for _ in range(steps):
        if len(left) < batch:
            left = rng.permutation(len(tosses))
        some, left = tosses.lanes(left[:batch]), left[batch:]
        gradient = _slope(x, system, some)
        with jax.numpy_dtype_promotion("standard"):  # optax mixes types
            update, state = adam.update(gradient, state)
        x = eqx.apply_updates(x, update)
    return x


def price(system: djdyn.System, tosses: Tosses) -> float:
    """The CPU time that a gradient takes, by that of a simulation."""
    calls = [lambda f=f: f(Unknowns.zeros(), system, tosses) for f in (_cost, _slope)]
    least = lambda call: min(
        timed(lambda: jax.block_until_ready(call())).seconds for _ in range(10)
    )
    simulation, gradient = map(least, calls)
    return gradient / simulation
