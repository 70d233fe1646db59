"""Sensor noise as a sum of tones, which is smooth and the same in every run."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from djdyn.multibody.kinematics import World
from djdyn.parts.base import AbstractSignalPart, Response, Signals
from djdyn.parts.joint import names
from djdyn.parts.units import SameUnit, Unit
from djdyn.typing import Scalar, si


DEFAULT_TONES = 40


class Noisy(AbstractSignalPart):
    """A signal and its rate with multisine noise; outputs `value` and `rate`.

    The signal is a measurement or a target: an error formed with a noisy target is as
    noisy as one formed with a noisy measurement. Signals named in `others`, such as the
    target's acceleration, are passed on unchanged, under the last part of their names.
    """

    signal_units: ClassVar[Mapping[str, Unit]] = {
        "value": SameUnit("signal"),
        "rate": SameUnit("rate"),
    }
    signal: str = eqx.field(static=True)
    rate: str | None = eqx.field(static=True)
    deviation: Float[Array, "*#n"] = eqx.field(converter=si("", at_least=0.0))
    frequency: Float[Array, " k"] = eqx.field(converter=si("rad/s"))
    phase: Float[Array, "k n"] = eqx.field(converter=si("rad"))
    others: tuple[str, ...] = eqx.field(static=True, converter=names, default=())

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
        passed = {name.rpartition(".")[2]: signals[name] for name in self.others}
        noisy = {"value": value, "rate": known + size * swing}
        return Response(state, outputs=noisy | passed)


def multisine(
    signal: str,
    rate: str | None = None,
    *,
    size: int = 1,
    deviation: float,
    bandwidth: float = 50.0,
    tones: int = DEFAULT_TONES,
    seed: int = 0,
    others: Sequence[str] = (),
) -> Noisy:
    """Add random-phase multisine noise to a signal of `size` entries.

    (Pintelon and Schoukens, *System Identification: A Frequency Domain Approach*, 2012,
    chapter 2.)

    **Arguments:**

    - `signal`, `rate`: names of the signal and, if there is one, its rate.
    - `deviation`: standard deviation of the noise.
    - `bandwidth`: highest frequency, Hz, of so many `tones`.
    - `others`: signals that are passed on unchanged.

    **Returns:** the part with outputs `value` and `rate`.
    """
    frequency = 2 * jnp.pi * bandwidth * (jnp.arange(0.5, tones) / tones)
    phase = 2 * jnp.pi * jax.random.uniform(jax.random.key(seed), (tones, size))
    return Noisy(signal, rate, deviation, frequency, phase, tuple(others))
