r"""Terms of a cost, and limits that are constraints.

A term evaluates one quantity over a simulation, in units of `scale`, to one number. The
quantity, its `probe`, is a signal by name or a function of an `Instant`. If scales are
the largest acceptable values, terms can be added (Bryson and Ho, *Applied Optimal
Control*, 1975).
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
from djdyn.smooth import norm
from djdyn.system.instant import Instant
from djdyn.typing import Scalar, check_values, si

from .rainflow import cycles


Probe = str | Callable[[Instant], Array]
Times = Float[Array, " n"]
Series = Float[Array, "n k"]


class Reaction(eqx.Module):
    """Probe of the load that a joint transmits to its body, in the body's axes.

    `components` selects from moments x, y, z (0 to 2) and forces x, y, z (3 to 5).
    """

    joint: str = eqx.field(static=True)
    components: tuple[int, ...] = eqx.field(static=True, default=(0, 1, 2, 3, 4, 5))

    def __call__(self, now: Instant) -> Array:
        return now.reaction(self.joint)[np.array(self.components)]


class PowerDrawn(eqx.Module):
    """Probe of the power that a part draws, W; power flowing back is not credited."""

    part: str = eqx.field(static=True)

    def __call__(self, now: Instant) -> Array:
        state = now.y.parts[self.part]
        given = (now.world.t, state, now.world, now.signals)
        return jnp.maximum(now.system.parts[self.part].power_in(*given), 0.0)


class ParameterValue(eqx.Module):
    """Probe of a parameter of the system, such as the size of a drive, to price it."""

    path: str = eqx.field(static=True)

    def __call__(self, now: Instant) -> Array:
        return get_parameters(now.system, self.path)


def look(probe: Probe, now: Instant) -> Float[Array, " k"]:
    """Return the value of a probe at an instant, as a flat array."""
    if not isinstance(probe, str):
        return jnp.ravel(probe(now))
    if probe not in now.signals:
        there = ", ".join(now.signals)
        raise ValueError(f"unknown signal {probe!r}; there are {there}")
    return jnp.ravel(now.signals[probe])


def _shares(t: Times) -> Times:
    """Return the weights of a mean over time, by the trapezoidal rule."""
    steps = jnp.diff(t)
    return (jnp.pad(steps, (1, 0)) + jnp.pad(steps, (0, 1))) / (2 * (t[-1] - t[0]))


class AbstractTerm(eqx.Module):
    """A term of the cost: one number from a probe's series in units of `scale`."""

    probe: eqx.AbstractVar[Any]
    scale: eqx.AbstractVar[Array]

    def __check_init__(self):
        check_values(self)

    @abc.abstractmethod
    def measure(self, t: Times, x: Series) -> Scalar:
        """Return the term of a whole simulation."""


class AbstractSquares(AbstractTerm):
    """A term that is a sum of squares, as Gauss-Newton methods need."""

    @abc.abstractmethod
    def residuals(self, t: Times, x: Series) -> Float[Array, "m k"]:
        """Return the residuals whose squares are summed."""

    def measure(self, t: Times, x: Series) -> Scalar:
        return jnp.sum(self.residuals(t, x) ** 2)


class MeanSquare(AbstractSquares):
    """Mean square over time, such as of a tracking error or an effort."""

    probe: Probe = eqx.field(static=True)
    scale: Scalar = eqx.field(converter=si("", above=0.0), default=1.0)

    def residuals(self, t: Times, x: Series) -> Float[Array, "m k"]:
        return jnp.sqrt(_shares(t))[:, None] * x


class RootMeanSquare(AbstractTerm):
    """Root mean square over time: an error in its own unit, to add to prices."""

    probe: Probe = eqx.field(static=True)
    scale: Scalar = eqx.field(converter=si("", above=0.0), default=1.0)

    def measure(self, t: Times, x: Series) -> Scalar:
        return norm(jnp.ravel(jnp.sqrt(_shares(t))[:, None] * x))


class MeanSquareRate(AbstractSquares):
    """Mean square of the rate of change, 1/s2, such as of a command."""

    probe: Probe = eqx.field(static=True)
    scale: Scalar = eqx.field(converter=si("", above=0.0), default=1.0)

    def residuals(self, t: Times, x: Series) -> Float[Array, "m k"]:
        steps = jnp.diff(t)
        return jnp.diff(x, axis=0) / jnp.sqrt(steps * (t[-1] - t[0]))[:, None]


class Mean(AbstractTerm):
    """Mean over time, such as of `PowerDrawn` or of a `ParameterValue` with a price."""

    probe: Probe = eqx.field(static=True)
    scale: Scalar = eqx.field(converter=si("", above=0.0), default=1.0)

    def measure(self, t: Times, x: Series) -> Scalar:
        return _shares(t) @ jnp.sum(x, 1)


class Peak(AbstractTerm):
    """Largest norm over time, such as of a `Reaction` or a pressure."""

    probe: Probe = eqx.field(static=True)
    scale: Scalar = eqx.field(converter=si("", above=0.0), default=1.0)

    def measure(self, t: Times, x: Series) -> Scalar:
        return jnp.max(norm(x))


class Overshoot(AbstractTerm):
    """Overshoot of an error beyond zero, such as after a step; the worst entry."""

    probe: Probe = eqx.field(static=True)
    scale: Scalar = eqx.field(converter=si("", above=0.0), default=1.0)

    def measure(self, t: Times, x: Series) -> Scalar:
        beyond = -jnp.sign(x[:1]) * x
        return jnp.max(jnp.maximum(beyond, 0.0))


class Settling(AbstractTerm):
    """Settling time, s, after which an error stays within `scale`."""

    probe: Probe = eqx.field(static=True)
    scale: Scalar = eqx.field(converter=si("", above=0.0))

    def measure(self, t: Times, x: Series) -> Scalar:
        size = jnp.max(jnp.abs(x), 1)
        last = jnp.max(jnp.where(size > 1, jnp.arange(len(t)), -1))
        k = jnp.clip(last, 0, len(t) - 2)
        # Linear interpolation between samples gives the time a gradient.
        fall = size[k] - size[k + 1]
        share = (size[k] - 1) / jnp.where(fall > 0, fall, 1.0)
        came = t[k] + jnp.clip(share, 0.0, 1.0) * (t[k + 1] - t[k])
        inside = jnp.where(last < 0, 0.0, came - t[0])
        return jnp.where(last == len(t) - 1, t[-1] - t[0], inside)


class DamageEquivalentLoad(AbstractTerm):
    r"""Range of one cycle that does the same damage, $(\sum_i r_i^m)^{1/m}$.

    Ranges $r_i$ are counted by rainflow; `exponent` $m$ is that of the S-N curve, such
    as 3 for welded and 5 for plain steel. Entries are counted separately and their
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
    """Constraint that a probe stays between bounds at all times, in all entries."""

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
        """Return how far the bounds are exceeded, relative to them; negative within."""
        ends = [abs(b) for b in (self.low, self.high) if np.isfinite(b)]
        size = max(ends) or 1.0
        return jnp.max(jnp.maximum(self.low - x, x - self.high), 1) / size
