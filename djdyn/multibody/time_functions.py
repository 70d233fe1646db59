"""Functions of time as data: references, excitations, a ship's deck.

Modules, not lambdas: their numbers are parameters and they can be written to a file.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..typing import Scalar, known, si
from .spatial import Pose, rotation_rpy


class AbstractTimeFunction(eqx.Module):
    @abc.abstractmethod
    def __call__(self, t: Scalar) -> Float[Array, "*n"]:
        """The value at `t`."""


class Constant(AbstractTimeFunction):
    """Always `value`."""

    value: Float[Array, "*n"] = eqx.field(converter=si(""))

    def __call__(self, t: Scalar) -> Float[Array, "*n"]:
        del t
        return self.value


class Harmonic(AbstractTimeFunction):
    r"""$m + a\sin(\omega t + \varphi)$, component by component."""

    amplitude: Float[Array, "*n"] = eqx.field(converter=si(""))
    frequency: Float[Array, "*#n"] = eqx.field(converter=si("rad/s"))
    phase: Float[Array, "*#n"] = eqx.field(converter=si("rad"), default=0.0)
    mean: Float[Array, "*#n"] = eqx.field(converter=si(""), default=0.0)

    def __call__(self, t: Scalar) -> Float[Array, "*n"]:
        angle = self.frequency * t + self.phase
        return self.mean + self.amplitude * jnp.sin(angle)


class HarmonicSum(AbstractTimeFunction):
    r"""$m + \sum_k a_k\cos(\omega_k t + \varphi_k)$, such as an irregular sea."""

    amplitude: Float[Array, " k"] = eqx.field(converter=si(""))
    frequency: Float[Array, " k"] = eqx.field(converter=si("rad/s"))
    phase: Float[Array, " k"] = eqx.field(converter=si("rad"))
    mean: Scalar = eqx.field(converter=si(""), default=0.0)

    def __call__(self, t: Scalar) -> Scalar:
        angle = self.frequency * t + self.phase
        return self.mean + jnp.sum(self.amplitude * jnp.cos(angle))


class Interpolated(AbstractTimeFunction):
    """Straight lines between `values` at `times`, constant beyond the ends."""

    times: Float[Array, " k"] = eqx.field(converter=si("s"))
    values: Float[Array, "k *n"] = eqx.field(converter=si(""))

    def __check_init__(self):
        if self.times.ndim != 1 or self.values.shape[:1] != self.times.shape:
            raise ValueError(
                f"interpolation needs one value a time, got {self.times.shape} times "
                f"and {self.values.shape} values"
            )
        if known(self.times) and np.any(np.diff(self.times) <= 0):
            raise ValueError("the times of an interpolation must increase")

    def __call__(self, t: Scalar) -> Float[Array, "*n"]:
        flat = self.values.reshape(len(self.times), -1)
        columns = [jnp.interp(t, self.times, flat[:, i]) for i in range(flat.shape[1])]
        return jnp.stack(columns).reshape(self.values.shape[1:])


class Moves(AbstractTimeFunction):
    r"""Point-to-point moves, each a quintic of time, at rest in between.

    From the last point to `points[k]` over `start[k]` to `end[k]`, along
    $h(s) = 10s^3 - 15s^4 + 6s^5$: rate and acceleration are continuous.
    """

    first: Float[Array, " n"] = eqx.field(converter=si(""))
    points: Float[Array, "k n"] = eqx.field(converter=si(""))
    start: Float[Array, " k"] = eqx.field(converter=si("s"))
    end: Float[Array, " k"] = eqx.field(converter=si("s"))

    def __check_init__(self):
        k, n = len(self.start), len(self.first)
        if self.points.shape != (k, n) or self.end.shape != (k,):
            raise ValueError(
                f"moves need {k} points of {n} values and {k} end times, got "
                f"{self.points.shape} and {self.end.shape}"
            )
        start, end = self.start, self.end
        if known(start, end) and np.any(np.asarray(end) <= np.asarray(start)):
            raise ValueError("a move must end after it starts")

    @property
    def breaks(self) -> Float[Array, " m"]:
        """Times at which a derivative jumps."""
        return jnp.sort(jnp.concatenate([self.start, self.end]))

    def __call__(self, t: Scalar) -> Float[Array, " n"]:
        s = jnp.clip((t - self.start) / (self.end - self.start), 0.0, 1.0)
        h = s**3 * (10 - 15 * s + 6 * s**2)
        before = jnp.concatenate([self.first[None], self.points[:-1]])
        return self.first + h @ (self.points - before)


class DeckMotion(eqx.Module):
    """Harmonic motion of a deck about a mean place, for a `Prescribed` joint.

    The six amplitudes are surge, sway, heave (m), roll, pitch, yaw (rad).
    """

    amplitude: Float[Array, "6"] = eqx.field(converter=si("m, rad"))
    frequency: Float[Array, "6"] = eqx.field(converter=si("rad/s"))
    phase: Float[Array, "6"] = eqx.field(converter=si("rad"), default=(0.0,) * 6)
    mean: Float[Array, "6"] = eqx.field(converter=si("m, rad"), default=(0.0,) * 6)

    def __call__(self, t: Scalar) -> Pose:
        x = self.mean + self.amplitude * jnp.sin(self.frequency * t + self.phase)
        return Pose(rotation_rpy(x[3], x[4], x[5]), x[:3])


class SteadyMotion(eqx.Module):
    """A frame that moves at constant velocity from `position`, not turning."""

    velocity: Float[Array, "3"] = eqx.field(converter=si("m/s"))
    position: Float[Array, "3"] = eqx.field(converter=si("m"), default=(0.0, 0.0, 0.0))

    def __call__(self, t: Scalar) -> Pose:
        return Pose(jnp.eye(3, dtype=t.dtype), self.position + self.velocity * t)


class Heave(eqx.Module):
    """A frame that goes up and down from `position`, by a function of time."""

    height: AbstractTimeFunction
    position: Float[Array, "3"] = eqx.field(converter=si("m"), default=(0.0, 0.0, 0.0))

    def __call__(self, t: Scalar) -> Pose:
        up = jnp.asarray([0.0, 0.0, 1.0], t.dtype)
        return Pose(jnp.eye(3, dtype=t.dtype), self.position + self.height(t) * up)


class GuidedMotion(eqx.Module):
    r"""A deck led from one place to another, each with its rate and acceleration.

    Rows of `start` and `end` are place, rate and acceleration of surge, sway, heave
    (m), roll, pitch, yaw (rad). In between runs the quintic that meets all six rows, so
    successive pieces join in place, rate and acceleration.
    """

    start: Float[Array, "3 6"] = eqx.field(converter=si("m, rad"))
    end: Float[Array, "3 6"] = eqx.field(converter=si("m, rad"))
    since: Scalar = eqx.field(converter=si("s"), default=0.0)
    duration: Scalar = eqx.field(converter=si("s", above=0.0), default=1.0)

    def __call__(self, t: Scalar) -> Pose:
        h = self.duration
        s, scale = (t - self.since) / h, jnp.stack([jnp.ones_like(h), h, h**2])
        x0, v0, a0 = scale[:, None] * self.start
        x1, v1, a1 = scale[:, None] * self.end
        far, fast, hard = x1 - x0 - v0 - a0 / 2, v1 - v0 - a0, a1 - a0
        cubic = 10 * far - 4 * fast + hard / 2
        quartic = -15 * far + 7 * fast - hard
        quintic = 6 * far - 3 * fast + hard / 2
        high = cubic + s * (quartic + s * quintic)
        x = x0 + s * (v0 + s * (a0 / 2 + s * high))
        return Pose(rotation_rpy(x[3], x[4], x[5]), x[:3])
