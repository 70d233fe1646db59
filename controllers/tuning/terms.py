r"""What a tuning pays for, and what it must keep: terms of a cost, and limits.

A term looks at one thing while a simulation runs (a signal by its name, or anything
that a function makes of an `Instant`), in units of `scale`, and makes one number of it.
With scales that are the largest values one would accept, terms can be added (Bryson and
Ho, *Applied Optimal Control*, 1975).
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from djdyn import get_parameters
from djdyn._smooth import norm
from djdyn.system.system import Instant
from djdyn.typing import Scalar, check_values, si

from .rainflow import cycles


Probe = str | Callable[[Instant], Array]
Times = Float[Array, " n"]
Series = Float[Array, "n k"]


class Reaction(eqx.Module):
    """Loads that a joint transmits to its body: some of moments x, y, z, forces x, y, z
    in the body's axes."""

    joint: str = eqx.field(static=True)
    components: tuple[int, ...] = eqx.field(static=True, default=(0, 1, 2, 3, 4, 5))

    def __call__(self, now: Instant) -> Array:
        return now.reaction(self.joint)[np.array(self.components)]


class PowerDrawn(eqx.Module):
    """Power that a part draws, W; what flows back is lost."""

    part: str = eqx.field(static=True)

    def __call__(self, now: Instant) -> Array:
        state = now.y.parts[self.part]
        given = (now.world.t, state, now.world, now.signals)
        return jnp.maximum(now.system.parts[self.part].power_in(*given), 0.0)


class ParameterValue(eqx.Module):
    """A number of the system itself, such as the size of a drive, which has a price."""

    path: str = eqx.field(static=True)

    def __call__(self, now: Instant) -> Array:
        return get_parameters(now.system, self.path)


def look(probe: Probe, now: Instant) -> Float[Array, " k"]:
    if not isinstance(probe, str):
        return jnp.ravel(probe(now))
    if probe not in now.signals:
        there = ", ".join(now.signals)
        raise ValueError(f"unknown signal {probe!r}; there are {there}")
    return jnp.ravel(now.signals[probe])


def _shares(t: Times) -> Times:
    """Weights of a mean over time, by the trapezoidal rule."""
    steps = jnp.diff(t)
    return (jnp.pad(steps, (1, 0)) + jnp.pad(steps, (0, 1))) / (2 * (t[-1] - t[0]))


class AbstractTerm(eqx.Module):
    """One number for a simulation; the series it sees are in units of `scale`."""

    probe: eqx.AbstractVar[Any]
    scale: eqx.AbstractVar[Array]

    def __check_init__(self):
        check_values(self)

    @abc.abstractmethod
    def measure(self, t: Times, x: Series) -> Scalar:
        """Of a whole simulation."""


class AbstractSquares(AbstractTerm):
    """A sum of squares, so Gauss's and Newton's method knows its curvature."""

    @abc.abstractmethod
    def residuals(self, t: Times, x: Series) -> Float[Array, "m k"]:
        """Whose squares are summed."""

    def measure(self, t: Times, x: Series) -> Scalar:
        return jnp.sum(self.residuals(t, x) ** 2)


class MeanSquare(AbstractSquares):
    """Mean over time of the square: of an error in tracking, of an effort."""

    probe: Probe = eqx.field(static=True)
    scale: Scalar = eqx.field(converter=si("", above=0.0), default=1.0)

    def residuals(self, t: Times, x: Series) -> Float[Array, "m k"]:
        return jnp.sqrt(_shares(t))[:, None] * x


class RootMeanSquare(AbstractTerm):
    """The root of `MeanSquare`: an error in its own unit, to be weighed with prices."""

    probe: Probe = eqx.field(static=True)
    scale: Scalar = eqx.field(converter=si("", above=0.0), default=1.0)

    def measure(self, t: Times, x: Series) -> Scalar:
        return norm(jnp.ravel(jnp.sqrt(_shares(t))[:, None] * x))


class MeanSquareRate(AbstractSquares):
    """Mean square of the rate of change, 1/s2: of a command that should be smooth."""

    probe: Probe = eqx.field(static=True)
    scale: Scalar = eqx.field(converter=si("", above=0.0), default=1.0)

    def residuals(self, t: Times, x: Series) -> Float[Array, "m k"]:
        steps = jnp.diff(t)
        return jnp.diff(x, axis=0) / jnp.sqrt(steps * (t[-1] - t[0]))[:, None]


class Mean(AbstractTerm):
    """Mean over time of `PowerDrawn`, or of a `ParameterValue` with its price."""

    probe: Probe = eqx.field(static=True)
    scale: Scalar = eqx.field(converter=si("", above=0.0), default=1.0)

    def measure(self, t: Times, x: Series) -> Scalar:
        return _shares(t) @ jnp.sum(x, 1)


class Peak(AbstractTerm):
    """The largest length that it has at any time: of a `Reaction`, of a pressure."""

    probe: Probe = eqx.field(static=True)
    scale: Scalar = eqx.field(converter=si("", above=0.0), default=1.0)

    def measure(self, t: Times, x: Series) -> Scalar:
        return jnp.max(norm(x))


class Overshoot(AbstractTerm):
    """How far an error, such as after a step, goes beyond zero; the worst entry."""

    probe: Probe = eqx.field(static=True)
    scale: Scalar = eqx.field(converter=si("", above=0.0), default=1.0)

    def measure(self, t: Times, x: Series) -> Scalar:
        beyond = -jnp.sign(x[:1]) * x
        return jnp.max(jnp.maximum(beyond, 0.0))


class Settling(AbstractTerm):
    """The time, s, after which an error stays within `scale`."""

    probe: Probe = eqx.field(static=True)
    scale: Scalar = eqx.field(converter=si("", above=0.0))

    def measure(self, t: Times, x: Series) -> Scalar:
        size = jnp.max(jnp.abs(x), 1)
        last = jnp.max(jnp.where(size > 1, jnp.arange(len(t)), -1))
        k = jnp.clip(last, 0, len(t) - 2)
        # Straight lines between samples tell where it came in, and so have a gradient.
        fall = size[k] - size[k + 1]
        share = (size[k] - 1) / jnp.where(fall > 0, fall, 1.0)
        came = t[k] + jnp.clip(share, 0.0, 1.0) * (t[k + 1] - t[k])
        inside = jnp.where(last < 0, 0.0, came - t[0])
        return jnp.where(last == len(t) - 1, t[-1] - t[0], inside)


class DamageEquivalentLoad(AbstractTerm):
    r"""The range of a single cycle that does the same damage, $(\sum_i r_i^m)^{1/m}$.

    Ranges $r_i$ are counted by rainflow; `exponent` $m$ is that of the S-N curve, such
    as 3 for welded and 5 for plain steel. Entries are counted for themselves and their
    damage is added.
    """

    probe: Probe = eqx.field(static=True)
    scale: Scalar = eqx.field(converter=si("", above=0.0), default=1.0)
    exponent: Scalar = eqx.field(converter=si("1", at_least=1.0), default=3.0)

    def measure(self, t: Times, x: Series) -> Scalar:
        first, last, count = jax.vmap(cycles, 1, 1)(jax.lax.stop_gradient(x))
        at = lambda i: jnp.take_along_axis(x, i, 0)
        ranges = jnp.abs(at(first) - at(last))
        some = (count > 0) & (ranges > 0)
        top = jax.lax.stop_gradient(jnp.max(jnp.where(some, ranges, 0.0)))
        unit = jnp.where(top > 0, top, 1.0)
        power = jnp.where(some, ranges / unit, 1.0) ** self.exponent
        total = jnp.sum(jnp.where(some, count * power, 0.0))
        alike = jnp.where(top > 0, total, 1.0) ** (1 / self.exponent)
        return jnp.where(top > 0, unit * alike, 0.0)


class Limit(eqx.Module):
    """Bounds that a signal keeps at all times, in all entries."""

    probe: Probe = eqx.field(static=True)
    low: float = eqx.field(static=True, default=-np.inf)
    high: float = eqx.field(static=True, default=np.inf)

    def __check_init__(self):
        if not np.any(np.isfinite((self.low, self.high))):
            raise ValueError(f"a limit on {self.probe!r} has neither low nor high")
        if not self.low < self.high:
            raise ValueError(
                f"a limit on {self.probe!r} cannot be kept: no number is at least "
                f"{self.low:g} and at most {self.high:g}"
            )

    def excess(self, x: Series) -> Times:
        """How far beyond its bounds it is, of their size; negative within them."""
        ends = [abs(b) for b in (self.low, self.high) if np.isfinite(b)]
        size = max(ends) or 1.0
        return jnp.max(jnp.maximum(self.low - x, x - self.high), 1) / size
