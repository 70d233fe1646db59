r"""Wind: a mean speed that grows with height, and gusts of a spectrum.

A `Wind` stands in the field `fluid` of `Drag` and `StripDrag`.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..multibody.time_functions import AbstractTimeFunction, HarmonicSum
from ..smooth import ramp
from ..typing import Numbers, Scalar, Vec3, check_values, known, si
from .flow import AbstractFlow


HIGHEST = 5.0  # Hz, of gusts


class Wind(AbstractFlow):
    r"""Air that blows horizontally, faster higher up.

    $$u(z, t) = U\,(z/z_r)^\alpha + g(t),\qquad z \ge z_0$$

    along `direction`, with $U$ the mean speed at the height $z_r$ over the ground or
    sea, which is at `ground`. Below the least height $z_0$ the speed is as there.

    **Arguments:**

    - `speed`, `height`, `exponent`: $U$, $z_r$ and $\alpha$; zero is uniform.
    - `direction`: where it blows to, from x to y.
    - `gusts`: $g$, a function of time such as `kaimal_gusts`.
    """

    speed: Scalar = eqx.field(converter=si("m/s", at_least=0.0))
    direction: Scalar = eqx.field(converter=si("rad"), default=0.0)
    exponent: Scalar = eqx.field(converter=si("1", at_least=0.0), default=0.0)
    height: Scalar = eqx.field(converter=si("m", above=0.0), default=10.0)
    gusts: AbstractTimeFunction | None = None
    density: Scalar = eqx.field(converter=si("kg/m^3", above=0.0), default=1.225)
    ground: Scalar = eqx.field(converter=si("m"), default=0.0)
    least_height: Scalar = eqx.field(converter=si("m", above=0.0), default=1.0)

    def __check_init__(self):
        check_values(self)

    @property
    def reference_density(self) -> Scalar:
        return self.density

    def around(self, p_W: Vec3, extent: Scalar | None, t: Scalar) -> Scalar:
        del p_W, extent, t
        return self.density

    def velocity(self, p_W: Vec3, t: Scalar) -> Vec3:
        least = self.least_height
        high = least + ramp(p_W[2] - self.ground - least, least / 2)
        speed = self.speed * (high / self.height) ** self.exponent
        if self.gusts is not None:
            speed = speed + self.gusts(t)
        c, s = jnp.cos(self.direction), jnp.sin(self.direction)
        return speed * jnp.stack([c, s, jnp.zeros_like(c)])


def kaimal_gusts(
    speed: Numbers,
    intensity: Numbers = 0.15,
    length: Numbers = 340.2,
    *,
    seed: Any = 0,
    components: int = 50,
) -> HarmonicSum:
    r"""Return gusts along the wind, by Kaimal's spectrum (IEC 61400-1).

    $$\frac{f\,S(f)}{\sigma^2} = \frac{4 fL/U}{(1 + 6 fL/U)^{5/3}},\qquad
      \sigma = I\,U ,$$

    whose share below $f$ is $1 - (1 + 6fL/U)^{-2/3}$. Components have equal energies
    and random phases, so the variance is $\sigma^2$ for every seed; frequencies end at
    5 Hz.

    **Arguments:**

    - `speed`, `intensity`, `length`: $U$ (m/s), $I$ and $L$ (m).
    """
    for what, value in (("mean speed", speed), ("intensity", intensity)):
        if known(value) and not np.all(np.asarray(value) > 0):
            raise ValueError(f"gusts have no energy: their {what} is {value}")
    if components < 1:
        raise ValueError(f"gusts have at least one component, not {components}")
    typed = hasattr(seed, "dtype") and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key)
    turn, place = jax.random.split(seed if typed else jax.random.key(seed))
    phase = 2 * jnp.pi * jax.random.uniform(turn, (components,))
    within = jax.random.uniform(place, (components,))
    U, L = jnp.asarray(speed, float), jnp.asarray(length, float)
    most = 1 - (1 + 6 * HIGHEST * L / U) ** (-2 / 3)
    share = most * (jnp.arange(components, dtype=float) + within) / components
    frequency = ((1 - share) ** -1.5 - 1) / 6 * U / L
    deviation = jnp.asarray(intensity, float) * U
    amplitude: Float[Array, " k"] = (
        jnp.full(components, (2 / components) ** 0.5) * deviation
    )
    return HarmonicSum(amplitude, 2 * jnp.pi * frequency, phase)
