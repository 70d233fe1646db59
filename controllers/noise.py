"""Noise of sensors, as a sum of tones: it is smooth, and the same in every run."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from djdyn._types import Scalar
from djdyn._units import si
from djdyn.kinematics import World
from djdyn.part import AbstractSignalPart, Response, Signals


TONES = 40


class Noisy(AbstractSignalPart):
    """A signal, and its rate, with noise of many tones; outputs `value` and `rate`.

    For a measurement, or for a target: an error formed with a noisy target is as noisy
    as one formed with a noisy measurement.
    """

    signal: str = eqx.field(static=True)
    rate: str | None = eqx.field(static=True)
    deviation: Float[Array, "*#n"] = eqx.field(converter=si("", at_least=0.0))
    frequency: Float[Array, " k"] = eqx.field(converter=si("rad/s"))
    phase: Float[Array, "k n"] = eqx.field(converter=si("rad"))

    def initial_state(self) -> dict:
        return {}

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        del world
        angle = self.frequency[:, None] * t + self.phase
        size = jnp.sqrt(2 / len(self.frequency)) * self.deviation
        value = signals[self.signal] + size * jnp.sum(jnp.cos(angle), 0)
        known = signals[self.rate] if self.rate else 0.0
        swing = -jnp.sum(self.frequency[:, None] * jnp.sin(angle), 0)
        return Response(state, outputs={"value": value, "rate": known + size * swing})


def multisine(
    signal: str,
    rate: str | None = None,
    *,
    size: int = 1,
    deviation: float,
    bandwidth: float = 50.0,
    seed: int = 0,
) -> Noisy:
    """Noise of random phases up to `bandwidth`, Hz, on each of `size` entries.

    (Pintelon and Schoukens, *System Identification: A Frequency Domain Approach*, 2012,
    chapter 2.)
    """
    tones = 2 * jnp.pi * bandwidth * (jnp.arange(0.5, TONES) / TONES)
    phase = 2 * jnp.pi * jax.random.uniform(jax.random.key(seed), (TONES, size))
    return Noisy(signal, rate, deviation, tones, phase)
