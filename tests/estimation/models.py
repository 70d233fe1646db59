"""Small models with known answers."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from djdyn.typing import si


class Decay(eqx.Module):
    """An exponential decay, `height * exp(-rate * t) + floor`."""

    height: Array = eqx.field(converter=si("m"), default=1.0)
    rate: Array = eqx.field(converter=si("1/s", above=0.0), default=1.0)
    floor: Array = eqx.field(converter=si("m"), default=0.0)


def decay(model: Decay, times: np.ndarray) -> Array:
    t = jnp.asarray(times)
    return model.height * jnp.exp(-model.rate * t) + model.floor


def decay_from(model: Decay, times: np.ndarray, start: dict[str, Array]) -> Array:
    return start["height"] * jnp.exp(-model.rate * jnp.asarray(times)) + model.floor


class Line(eqx.Module):
    """A line `a + b t`, with an offset that only adds to `a`."""

    a: Array = eqx.field(converter=si("m"), default=0.0)
    b: Array = eqx.field(converter=si("m/s"), default=0.0)
    offset: Array = eqx.field(converter=si("m"), default=0.0)


def line(model: Line, times: np.ndarray) -> Array:
    return model.a + model.offset + model.b * jnp.asarray(times)


TIMES = np.linspace(0.0, 4.0, 81)
TRUE = np.array([2.0, 1.3, 0.5])  # height, rate, floor


def record(seed: int = 0, sigma: float = 0.02, true: np.ndarray = TRUE) -> np.ndarray:
    clean = true[0] * np.exp(-true[1] * TIMES) + true[2]
    return clean + sigma * np.random.default_rng(seed).standard_normal(len(TIMES))
