r"""Laws of the normal force, from depth and its rate.

Every law is $F = E'(\delta) + D(\delta, \dot\delta)$ and never pulls. Its elastic part
comes from an energy $E$, which is what a contact stores; what $F$ does beyond it is
heat, also when a contact separates before it has sprung back.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..smooth import Field, ramp, ramp_area, step, step_area
from ..typing import Scalar, check_values, known, si


NEWTON_STEPS = 12


class AbstractNormalLaw(eqx.Module):
    """A law of the normal force between two surfaces."""

    def __check_init__(self):
        check_values(self)

    @abc.abstractmethod
    def energy(self, depth: Scalar) -> Scalar:
        """Return the energy stored at a depth, J."""

    @abc.abstractmethod
    def force(self, depth: Scalar, rate: Scalar) -> Scalar:
        """Return the force at a depth and its rate, at least zero, N."""

    @abc.abstractmethod
    def expected_depth(self, mass: Scalar, speed: Scalar) -> Scalar:
        """Return the depth at which the spring stops a mass at a speed, m."""

    @abc.abstractmethod
    def reach(self) -> Scalar:
        """Return the largest gap at which the force is not zero, m."""


class KelvinVoigt(AbstractNormalLaw):
    r"""Kelvin–Voigt spring and damper.

    $F = \max(0, k\delta + c\dot\delta)$ where $\delta > 0$. The damper comes in over
    the first `width` of depth, within which the spring is rounded too.
    """

    stiffness: Scalar = eqx.field(converter=si("N/m", above=0.0))
    damping: Scalar = eqx.field(converter=si("N s/m", at_least=0.0), default=0.0)
    width: Scalar = eqx.field(converter=si("m", above=0.0), default=1e-6)

    def energy(self, depth: Scalar) -> Scalar:
        return self.stiffness * ramp_area(depth, self.width)

    def force(self, depth: Scalar, rate: Scalar) -> Scalar:
        spring = self.stiffness * ramp(depth, self.width)
        damper = self.damping * rate * step(depth, self.width)
        return jnp.maximum(spring + damper, 0.0)

    def expected_depth(self, mass: Scalar, speed: Scalar) -> Scalar:
        return speed * jnp.sqrt(mass / self.stiffness)

    def reach(self) -> Scalar:
        return self.width


class HuntCrossley(AbstractNormalLaw):
    r"""Hunt–Crossley force, $F = k\,\delta^n\,(1 + D\dot\delta)$, at least zero.

    Source: Hunt and Crossley, *Coefficient of restitution interpreted as damping in
    vibroimpact*, 1975.

    Hertz' law without dissipation. Within `width` of first contact the depth is rounded
    twice smoothly, so that the force has no kink there.
    """

    stiffness: Scalar = eqx.field(converter=si("N/m^n", above=0.0))
    dissipation: Scalar = eqx.field(converter=si("s/m", at_least=0.0), default=0.0)
    exponent: Scalar = eqx.field(converter=si("1", at_least=1.0), default=1.5)
    width: Scalar = eqx.field(converter=si("m", above=0.0), default=1e-9)

    def energy(self, depth: Scalar) -> Scalar:
        n, w = self.exponent, self.width
        return self.stiffness * step_area(depth + w, 2 * w) ** (n + 1) / (n + 1)

    def force(self, depth: Scalar, rate: Scalar) -> Scalar:
        w = self.width
        slope, deep = step(depth + w, 2 * w), step_area(depth + w, 2 * w)
        spring = self.stiffness * slope * deep**self.exponent
        return spring * jnp.maximum(1 + self.dissipation * rate, 0.0)

    def expected_depth(self, mass: Scalar, speed: Scalar) -> Scalar:
        n = self.exponent
        return ((n + 1) * mass * speed**2 / (2 * self.stiffness)) ** (1 / (n + 1))

    def reach(self) -> Scalar:
        return self.width


def hertz_stiffness(E: tuple[Any, Any], nu: tuple[Any, Any], radius: Any) -> Any:
    r"""Return the Hertz stiffness of two spheres, $k = \tfrac43 E^*\sqrt R$, N/m^1.5.

    $1/E^* = \sum(1-\nu_i^2)/E_i$ and $1/R = \sum 1/R_i$.
    """
    soft = sum((1 - n**2) / e for e, n in zip(E, nu, strict=True))
    return 4 / 3 * radius**0.5 / soft


def restitution(s: Any) -> Any:
    r"""Return the coefficient of restitution of the Hunt–Crossley law.

    At $s = D v$, with $v$ the speed of impact, it is the root $e$ of
    $s(1+e) = \ln\frac{1+s}{1-es}$, for any stiffness, exponent and mass, free of other
    forces.
    """
    s = jnp.asarray(s, float)
    small = s < 1e-6
    some = jnp.where(small, 1.0, s)
    e = lambda y: -jnp.expm1(y) / some
    y = _newton(lambda y: _balance(e(y), some, y), -jnp.log1p(some))
    return jnp.where(small, 1 - 2 / 3 * s, e(y))


def dissipation(e: Any, speed: Any, law: str = "exact") -> Any:
    r"""Return the $D$ that gives a coefficient of restitution `e` at an impact `speed`.

    **Arguments:**

    - `law`: `"exact"` inverts `restitution`; the others are estimates from the
      literature: `"hunt-crossley"` $3(1-e)/2v$, `"lankarani-nikravesh"`
      $3(1-e^2)/4v$, `"flores"` $8(1-e)/5ev$.
    """
    if known(e) and not np.all((np.asarray(e) > 0) & (np.asarray(e) <= 1)):
        raise ValueError(f"a coefficient of restitution is above 0, at most 1, not {e}")
    e = jnp.asarray(e, float)
    laws = {
        "exact": lambda: _exact(e),
        "hunt-crossley": lambda: 1.5 * (1 - e),
        "lankarani-nikravesh": lambda: 0.75 * (1 - e**2),
        "flores": lambda: 8 * (1 - e) / (5 * e),
    }
    if law not in laws:
        raise ValueError(f"unknown law {law!r}: choose from {', '.join(laws)}")
    return laws[law]() / speed


def _balance(e: Field, s: Field, y: Field) -> Field:
    """Return the residual of `restitution`'s equation, with y = log(1 - e s)."""
    return s * (1 + e) - jnp.log1p(s) + y


def _exact(e: Field) -> Field:
    """Return the s = D v that gives the coefficient of restitution `e`."""
    near_one = lambda e: 1.5 * (1 - e) / (1 - e + e**2)  # to second order in 1 - e
    small = e > 1 - 1e-6
    some = jnp.where(small, 0.5, e)
    s = lambda y: -jnp.expm1(y) / some
    near_zero = jnp.log1p(1 / some) - (1 + some) / some
    start = jnp.where(some < 0.6, near_zero, jnp.log1p(-some * near_one(some)))
    y = _newton(lambda y: _balance(some, s(y), y), start)
    return jnp.where(small, near_one(e), s(y))


def _newton(f: Callable[[Field], Field], x: Field) -> Field:
    """Return a root by Newton's method; the last step carries its derivatives."""
    slope = lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))
    for _ in range(NEWTON_STEPS):
        value, rate = jax.lax.stop_gradient(slope(jax.lax.stop_gradient(x)))
        x = x - value / rate
    x = jax.lax.stop_gradient(x)
    return x - f(x) / jax.lax.stop_gradient(slope(x)[1])
