"""Irregular seas as functions of time."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..multibody.time_functions import HarmonicSum
from ..typing import Numbers, known


LOWEST, HIGHEST, GRID = 0.4, 10.0, 4096  # of the peak frequency; and points between


def shape(x: Float[Array, " n"], peakedness: Numbers) -> Float[Array, " n"]:
    r"""JONSWAP over $x=\omega/\omega_p$, not normalised.

    $$x^{-5}\exp\bigl(-\tfrac54x^{-4}\bigr)\,
      \gamma^{\exp\left(-(x-1)^2/2\sigma^2\right)},\qquad
      \sigma = 0.07\ (x\le1),\ 0.09\ (x>1) .$$
    """
    sigma = jnp.where(x <= 1, 0.07, 0.09)
    near = jnp.exp(-((x - 1) ** 2) / (2 * sigma**2))
    return x**-5 * jnp.exp(-1.25 * x**-4) * jnp.asarray(peakedness, x.dtype) ** near


def _cumulative(peakedness: Numbers) -> tuple[Array, Array, Array]:
    """Frequencies over the peak's, share of the energy below each, and all of it."""
    x = jnp.geomspace(LOWEST, HIGHEST, GRID)
    s = shape(x, peakedness)
    pieces = (s[1:] + s[:-1]) / 2 * jnp.diff(x)
    below = jnp.concatenate([jnp.zeros(1), jnp.cumsum(pieces)])
    return x, below / below[-1], below[-1]


def jonswap_spectrum(
    frequency: Float[Array, " n"],
    height: Numbers,
    period: Numbers,
    peakedness: Numbers = 3.3,
) -> Float[Array, " n"]:
    """Energy over frequency, m^2 s, whose integral is `height**2 / 16`."""
    peak = 2 * jnp.pi / jnp.asarray(period, float)
    total = _cumulative(peakedness)[2] * peak
    energy = jnp.asarray(height, float) ** 2 / 16
    return energy * shape(frequency / peak, peakedness) / total


def jonswap(
    height: Numbers,
    period: Numbers,
    peakedness: Numbers = 3.3,
    *,
    seed: Any = 0,
    components: int = 100,
    bins: str = "energy",
    jitter: bool = True,
) -> HarmonicSum:
    """An irregular sea's elevation over time, of a JONSWAP spectrum.

    Phases are random, amplitudes are not: each component has the energy of its bin, so
    the variance is `height**2 / 16` for every seed. To batch, `vmap` over any of the
    numbers and over seeds.

    **Arguments:**

    - `height`, `period`, `peakedness`: significant height (m), peak period (s), gamma.
    - `seed`: an integer, or a key of `jax.random`.
    - `bins`: of equal energy, or equally wide between 0.4 and 10 peak frequencies.
    - `jitter`: frequencies at random within their bins. Without it they are at the
      middle, and a sea of equally wide bins repeats itself after a few minutes.
    """
    if bins not in ("energy", "frequency"):
        raise ValueError(f"bins are of equal energy or frequency, not {bins!r}")
    if components < 1:
        raise ValueError(f"a sea has at least one component, not {components}")
    for what, value, least in (
        ("significant height", height, 0.0),
        ("peak period", period, 1e-9),
        ("peakedness", peakedness, 1.0),
    ):
        if known(value) and not jnp.all(jnp.asarray(value) >= least):
            raise ValueError(f"a sea's {what} must be at least {least:g}, got {value}")
    typed = hasattr(seed, "dtype") and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key)
    turn, place = jax.random.split(seed if typed else jax.random.key(seed))
    phase = 2 * jnp.pi * jax.random.uniform(turn, (components,))
    within = jax.random.uniform(place, (components,)) if jitter else 0.5
    x, below, _ = _cumulative(peakedness)
    index = jnp.arange(components, dtype=float)
    if bins == "energy":
        share = jnp.full(components, 1 / components)
        at = jnp.interp((index + within) / components, below, x)
    else:
        width = (HIGHEST - LOWEST) / components
        edges = LOWEST + width * jnp.arange(components + 1, dtype=float)
        share = jnp.diff(jnp.interp(edges, x, below))
        at = LOWEST + width * (index + within)
    frequency = 2 * jnp.pi / jnp.asarray(period, float) * at
    amplitude = jnp.asarray(height, float) / 4 * jnp.sqrt(2 * share)
    return HarmonicSum(amplitude, frequency, phase)
