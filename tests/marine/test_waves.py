"""JONSWAP seas against the published formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from djdyn.marine.waves import jonswap, jonswap_spectrum


HEIGHT, PERIOD = 3.0, 9.0
PEAK = 2 * np.pi / PERIOD


@pytest.mark.parametrize("gamma", [1.0, 3.3, 5.0])
def test_spectrum_against_the_recommended_formula(gamma):
    """DNV-RP-C205, 3.5.5: the factor 1 - 0.287 ln gamma is a fit, good to 1 %."""
    w = jnp.linspace(0.5 * PEAK, 5 * PEAK, 2000)
    sigma = np.where(w <= PEAK, 0.07, 0.09)
    near = np.exp(-(((w - PEAK) / PEAK / sigma) ** 2) / 2)
    wanted = 5 / 16 * HEIGHT**2 * PEAK**4 * w**-5 * np.exp(-1.25 * (w / PEAK) ** -4)
    wanted = wanted * (1 - 0.287 * np.log(gamma)) * gamma**near
    found = jonswap_spectrum(w, HEIGHT, PERIOD, gamma)
    assert jnp.max(jnp.abs(found - wanted)) < 0.01 * jnp.max(wanted)


@pytest.mark.parametrize("bins", ["energy", "frequency"])
@pytest.mark.parametrize("jitter", [True, False])
def test_moments(bins, jitter):
    """Variance, and the zero-crossing period of DNV-RP-C205, 3.5.5.6: a fit."""
    how = {"components": 300, "bins": bins, "jitter": jitter}
    seas = jax.vmap(lambda k: jonswap(HEIGHT, PERIOD, 3.3, seed=k, **how))(
        jnp.arange(4)
    )
    m0 = jnp.sum(seas.amplitude**2, 1) / 2
    m2 = jnp.sum((seas.amplitude * seas.frequency) ** 2, 1) / 2
    assert jnp.allclose(m0, HEIGHT**2 / 16)
    crossing = PERIOD * (
        0.6673 + 0.05037 * 3.3 - 0.006230 * 3.3**2 + 0.0003341 * 3.3**3
    )
    assert jnp.allclose(2 * np.pi * jnp.sqrt(m0 / m2), crossing, rtol=0.02)


def test_a_record_has_the_spectrum_and_does_not_repeat():
    sea = jonswap(HEIGHT, PERIOD, seed=7, components=200)
    t = jnp.arange(0.0, 4 * 3600.0, 0.5)
    x = np.asarray(jax.jit(jax.vmap(sea))(t))
    assert np.allclose(np.var(x), HEIGHT**2 / 16, rtol=0.02)
    ups = np.sum((x[1:] >= 0) & (x[:-1] < 0))
    assert np.allclose(float(t[-1]) / ups, 0.7777 * PERIOD, rtol=0.03)
    parts = x.reshape(-1, 7200)
    assert np.abs(np.corrcoef(parts) - np.eye(len(parts))).max() < 0.3


def test_batches_and_gradients_of_sea_states():
    keys = jax.random.split(jax.random.key(0), 5)
    heights = jnp.linspace(1.0, 3.0, 5)
    seas = jax.vmap(lambda k, h: jonswap(h, PERIOD, seed=k))(keys, heights)
    assert seas.amplitude.shape == (5, 100)
    value = lambda x: jonswap(x[0], x[1], x[2], seed=1)(jnp.array(20.0))
    x, h = jnp.array([2.0, 9.0, 3.3]), 1e-6
    up, down = (jax.vmap(value)(x[None] + s * h * jnp.eye(3)) for s in (1, -1))
    assert jnp.allclose(jax.grad(value)(x), (up - down) / (2 * h), rtol=1e-5, atol=1e-7)
    speed = jax.grad(jonswap(2.0, 9.0, seed=1))(jnp.array(20.0))
    sea = jonswap(2.0, 9.0, seed=1)
    angle = sea.frequency * 20.0 + sea.phase
    assert jnp.allclose(speed, -jnp.sum(sea.amplitude * sea.frequency * jnp.sin(angle)))


def test_bad_seas_are_refused():
    with pytest.raises(ValueError, match="bins are of equal energy or frequency"):
        jonswap(1.0, 8.0, bins="width")
    with pytest.raises(ValueError, match=r"peakedness must be at least 1, got 0.5"):
        jonswap(1.0, 8.0, 0.5)
