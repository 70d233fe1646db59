r"""Linear (Airy) waves: elevation, velocity and acceleration anywhere at any time.

A component of amplitude $a$, frequency $\omega$ and direction $d$ has, at a height $z$
above the mean surface over a depth $h$ and with
$\theta = \omega t - k\,d\cdot x + \varphi$,

$$\eta = a\cos\theta,\qquad
  u = a\omega\frac{\cosh k(z+h)}{\sinh kh}\cos\theta\;d,\qquad
  w = -a\omega\frac{\sinh k(z+h)}{\sinh kh}\sin\theta,\qquad
  \omega^2 = gk\tanh kh .$$

Linear theory ends at the mean surface. Wheeler's stretching carries its values to the
surface of the moment, at $z' = h\,(z - \eta)/(h + \eta)$ (Wheeler, *Method for
calculating forces produced by irregular waves*, 1970); without it they are constant
above the mean surface.
"""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..smooth import ramp
from ..typing import Numbers, Scalar, Vec3, check_values, known, optional, si
from .waves import jonswap


NEWTON_STEPS = 4  # from Guo's formula, which is good to 1 %
SPREADING_POINTS = 721  # of the distribution of directions


def wave_number(
    frequency: Float[Array, "*k"], gravity: Numbers, depth: Scalar | None = None
) -> Float[Array, "*k"]:
    r"""Return $k$ of the dispersion relation $\omega^2 = gk\tanh kh$.

    By Newton's method from Guo, *Simple and explicit solution of wave dispersion
    equation* (2002). Without a depth the water is deep.
    """
    deep = frequency**2 / jnp.asarray(gravity, float)
    if depth is None:
        return deep
    x = deep * depth
    y = x * (1 - jnp.exp(-(x**1.25))) ** -0.4
    for _ in range(NEWTON_STEPS):
        t = jnp.tanh(y)
        y = y - (y * t - x) / (t + y * (1 - t * t))
    return y / depth


class LinearWaves(eqx.Module):
    """A sea as a sum of linear waves; each goes where `direction` points, from x to y.

    **Arguments:**

    - `amplitude`, `frequency`, `phase`, `direction`: of the components.
    - `depth`: of the water, deep without one.
    - `stretching`: `"wheeler"` or `"none"`; see the module.
    - `width`: of the rounding where velocities stop to grow, at the surface.
    """

    amplitude: Float[Array, " k"] = eqx.field(converter=si("m"))
    frequency: Float[Array, " k"] = eqx.field(converter=si("rad/s", above=0.0))
    phase: Float[Array, " k"] = eqx.field(converter=si("rad"))
    direction: Float[Array, " k"] = eqx.field(converter=si("rad"))
    depth: Scalar | None = eqx.field(
        converter=optional(si("m", above=0.0)), default=None
    )
    gravity: Scalar = eqx.field(converter=si("m/s^2", above=0.0), default=9.81)
    stretching: Literal["wheeler", "none"] = eqx.field(static=True, default="wheeler")
    width: Scalar = eqx.field(converter=si("m", above=0.0), default=1e-3)

    def __check_init__(self):
        check_values(self)
        shapes = {getattr(self, k).shape for k in ("frequency", "phase", "direction")}
        if self.amplitude.ndim != 1 or shapes != {self.amplitude.shape}:
            raise ValueError(
                "waves need one amplitude, frequency, phase and direction each, got "
                f"shapes {sorted({self.amplitude.shape, *shapes})}"
            )
        if self.stretching not in ("wheeler", "none"):
            raise ValueError(f"stretching is wheeler or none, not {self.stretching!r}")
        if known(self.amplitude) and not np.any(self.amplitude):
            raise ValueError("the sea has no energy: all its amplitudes are zero")

    @property
    def wave_number(self) -> Float[Array, " k"]:
        """Wave numbers of the components, rad/m."""
        return wave_number(self.frequency, self.gravity, self.depth)

    @property
    def group_speed(self) -> Float[Array, " k"]:
        """Speeds at which the energy of the components travels, m/s."""
        k = self.wave_number
        share = jnp.ones_like(k)
        if self.depth is not None:
            damped = jnp.exp(-2 * k * self.depth)
            share = 1 + 4 * k * self.depth * damped / (1 - damped * damped)
        return self.frequency / k * share / 2

    def energy_flux(self, density: Numbers = 1025.0) -> Float[Array, "2"]:
        r"""Return $\tfrac12\rho g\sum a^2 c_g d$, the mean flux over x and y, W/m."""
        each = jnp.asarray(density, float) / 2 * self.gravity * self.amplitude**2
        return (each * self.group_speed) @ self._directions()

    def _directions(self) -> Float[Array, "k 2"]:
        return jnp.stack([jnp.cos(self.direction), jnp.sin(self.direction)], 1)

    def _angles(self, p_W: Vec3, t: Scalar) -> Float[Array, " k"]:
        along = self._directions() @ p_W[:2]
        return self.frequency * t + self.phase - self.wave_number * along

    def elevation(self, p_W: Vec3, t: Scalar) -> Scalar:
        """Return the height of the surface over its mean, above or below a point."""
        return self.amplitude @ jnp.cos(self._angles(p_W, t))

    def slope(self, p_W: Vec3, t: Scalar) -> Float[Array, "2"]:
        """Return the derivative of the elevation along x and y."""
        rising = self.amplitude * self.wave_number * jnp.sin(self._angles(p_W, t))
        return rising @ self._directions()

    def _decay(self, z: Scalar, eta: Scalar) -> tuple[Array, Array]:
        """Return the horizontal and vertical motion at a height over that at mean."""
        k, h = self.wave_number, self.depth
        if self.stretching == "wheeler":
            z = z - eta if h is None else h * (z - eta) / (h + eta)
        z = -ramp(-z, self.width)  # no wave is larger above its surface
        if h is None:
            down = jnp.exp(k * z)
            return down, down
        z = jnp.maximum(z, -h)
        scale = 1 / (1 - jnp.exp(-2 * k * h))
        near, far = scale * jnp.exp(k * z), scale * jnp.exp(-k * (z + 2 * h))
        return near + far, near - far

    def velocity(self, p_W: Vec3, t: Scalar) -> Vec3:
        """Return the water's velocity at a point, `p_W[2]` above the mean surface."""
        angle = self._angles(p_W, t)
        cosine, sine = jnp.cos(angle), jnp.sin(angle)
        across, upward = self._decay(p_W[2], self.amplitude @ cosine)
        fast = self.amplitude * self.frequency
        u = (fast * across * cosine) @ self._directions()
        return jnp.concatenate([u, -(fast * upward) @ sine[:, None]])

    def acceleration(self, p_W: Vec3, t: Scalar) -> Vec3:
        """Return the water's acceleration at a point, linear in the amplitudes."""
        angle = self._angles(p_W, t)
        cosine, sine = jnp.cos(angle), jnp.sin(angle)
        across, upward = self._decay(p_W[2], self.amplitude @ cosine)
        hard = self.amplitude * self.frequency**2
        u = -(hard * across * sine) @ self._directions()
        return jnp.concatenate([u, -(hard * upward) @ cosine[:, None]])


def regular_waves(
    height: Numbers,
    period: Numbers,
    direction: Numbers = 0.0,
    *,
    phase: Numbers = 0.0,
    depth: Numbers | None = None,
    gravity: Numbers = 9.81,
    stretching: Literal["wheeler", "none"] = "wheeler",
) -> LinearWaves:
    """Return a regular wave of a height from trough to crest, and a period."""
    one = lambda x: jnp.asarray(x, float).reshape(1)
    frequency = 2 * jnp.pi / one(period)
    return LinearWaves(
        one(height) / 2, frequency, one(phase), one(direction), depth, gravity,
        stretching,
    )  # fmt: skip


def irregular_waves(
    height: Numbers,
    period: Numbers,
    peakedness: Numbers = 3.3,
    direction: Numbers = 0.0,
    *,
    spreading: Numbers | None = None,
    seed: Any = 0,
    components: int = 100,
    depth: Numbers | None = None,
    gravity: Numbers = 9.81,
    stretching: Literal["wheeler", "none"] = "wheeler",
) -> LinearWaves:
    r"""Return an irregular sea of a JONSWAP spectrum; a peakedness of one is PM's.

    Frequencies, amplitudes and phases are those of `jonswap` with the same seed, so the
    elevation at the origin is the same function of time. Directions are drawn from
    $D(\theta) \propto \cos^{2s}\tfrac12(\theta - \theta_0)$ about `direction`, one for
    each component, with the `spreading` $s$; without one the sea is long-crested.

    **Arguments:**

    - `height`, `period`, `peakedness`: significant height (m), peak period (s), gamma.
    - the others: as in `jonswap` and `LinearWaves`.
    """
    if known(height) and not np.all(np.asarray(height) > 0):
        raise ValueError(f"the sea has no energy: its significant height is {height}")
    if spreading is not None and known(spreading) and not np.all(spreading >= 0):  # pyright: ignore
        raise ValueError(f"a sea's spreading must be at least 0, got {spreading}")
    sea = jonswap(height, period, peakedness, seed=seed, components=components)
    mean = jnp.asarray(direction, float)
    headings = jnp.zeros(components) + mean
    if spreading is not None:
        typed = hasattr(seed, "dtype") and jnp.issubdtype(
            seed.dtype, jax.dtypes.prng_key
        )
        key = jax.random.fold_in(seed if typed else jax.random.key(seed), 2)
        order, place = jax.random.split(key)
        within = jax.random.uniform(place, (components,))
        ranks = jax.random.permutation(order, components).astype(float)
        headings = mean + _spread(spreading, (ranks + within) / components)
    return LinearWaves(
        sea.amplitude, sea.frequency, sea.phase, headings, depth, gravity, stretching
    )


def _spread(spreading: Numbers, share: Float[Array, " k"]) -> Float[Array, " k"]:
    """Return angles below which lie the given shares of the energy."""
    angle = jnp.linspace(-jnp.pi, jnp.pi, SPREADING_POINTS)
    inside = jnp.clip(jnp.cos(angle / 2), 1e-12, None)
    density = inside ** (2 * jnp.asarray(spreading, float))
    pieces = (density[1:] + density[:-1]) / 2
    below = jnp.concatenate([jnp.zeros(1), jnp.cumsum(pieces)])
    return jnp.interp(share, below / below[-1], angle)


def pierson_moskowitz(
    wind_speed: Numbers, direction: Numbers = 0.0, *, gravity: Numbers = 9.81, **options
) -> LinearWaves:
    r"""Return the fully developed sea of a wind at 19.5 m height.

    $S = 0.0081\,g^2\omega^{-5}\exp\bigl(-0.74\,(g/U\omega)^4\bigr)$ (Pierson and
    Moskowitz, 1964), so $H_s = 0.2092\,U^2/g$ and $\omega_p = 0.8772\,g/U$. The options
    are those of `irregular_waves`.
    """
    speed, g = jnp.asarray(wind_speed, float), jnp.asarray(gravity, float)
    if known(wind_speed) and not np.all(np.asarray(wind_speed) > 0):
        raise ValueError(f"the sea has no energy: the wind blows at {wind_speed} m/s")
    height = 4 * jnp.sqrt(0.0081 / (4 * 0.74)) * speed**2 / g
    period = 2 * jnp.pi * speed / g / (0.74 * 4 / 5) ** 0.25
    return irregular_waves(height, period, 1.0, direction, gravity=gravity, **options)
