"""Cost terms: values by hand, and gradients by differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import controllers as c
from controllers.tuning.rainflow import cycles


T = jnp.linspace(0.0, 2.0, 41)


def response(w: jnp.ndarray) -> jnp.ndarray:
    """Return two decaying oscillations."""
    a = jnp.exp(-w[0] * T) * jnp.cos(w[1] * T)
    return jnp.stack([a, w[2] * jnp.sin(T * w[1]) * a + 0.1], 1)


W = jnp.array([1.3, 5.0, 0.7])
TERMS = {
    "mean square": c.MeanSquare("x", scale=0.5),
    "root mean square": c.RootMeanSquare("x", scale=0.5),
    "roughness": c.MeanSquareRate("x"),
    "mean": c.Mean("x"),
    "peak": c.Peak("x"),
    "overshoot": c.Overshoot("x"),
    "settling": c.Settling("x", scale=0.15),
    "load range": c.DamageEquivalentLoad("x", exponent=4.0),
}


@pytest.mark.parametrize("name", TERMS)
def test_slopes_are_those_of_differences(name):
    term = TERMS[name]
    value = jax.jit(lambda w: term.measure(T, response(w) / term.scale))
    h = 1e-6
    steps = h * np.eye(3)
    wanted = [(value(W + d) - value(W - d)) / (2 * h) for d in steps]
    assert np.allclose(jax.grad(value)(W), wanted, rtol=1e-5, atol=1e-8)
    assert np.allclose(jax.jacfwd(value)(W), wanted, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", TERMS)
def test_slopes_at_rest_are_finite(name):
    term = TERMS[name]
    value = lambda a: term.measure(T, a * jnp.ones((len(T), 2)))
    for a in (0.0, 1.0):
        slopes = jax.vmap(jax.value_and_grad(value))(jnp.array([a, a]))
        assert np.all(np.isfinite(slopes))


def test_values_by_hand():
    ramp = T[:, None]
    assert np.isclose(c.MeanSquare("x").measure(T, ramp), 4 / 3, rtol=1e-3)
    root = c.RootMeanSquare("x").measure(T, jnp.stack([ramp[:, 0], T], 1))
    assert np.isclose(root, np.sqrt(8 / 3), rtol=1e-3)
    assert np.isclose(c.MeanSquareRate("x").measure(T, ramp), 1.0)
    assert np.isclose(c.Mean("x").measure(T, ramp), 1.0)
    assert np.isclose(c.Peak("x").measure(T, -ramp), 2.0)
    fall = 1.0 - ramp
    assert np.isclose(c.Overshoot("x").measure(T, fall), 1.0)
    assert np.isclose(c.Settling("x", 1.0).measure(T, 10 * fall + 5), 2.0)
    decay = jnp.exp(-3 * ramp)
    assert np.isclose(c.Settling("x", 1.0).measure(T, 20 * decay), np.log(20) / 3, 2e-3)
    assert c.Settling("x", 1.0).measure(T, 0.5 * decay) == 0


def test_cycles_of_the_standard():
    """ASTM E1049, figure 6: ranges and their counts."""
    x = jnp.array([-2.0, 1, -3, 5, -1, 3, -4, 4, -2])
    first, last, count = (np.asarray(y) for y in jax.jit(cycles)(x))
    ranges = np.abs(x[first] - x[last])
    found = {r: count[ranges == r].sum() for r in np.unique(ranges[count > 0])}
    assert found == {3: 0.5, 4: 1.5, 6: 0.5, 8: 1.0, 9: 0.5}
    # Points on the way, and those that repeat, count for nothing.
    between = jnp.stack([x[:-1], x[:-1], (x[:-1] + x[1:]) / 2], 1).ravel()
    fine = jnp.append(between, x[-1])
    whole = lambda x: c.DamageEquivalentLoad("x").measure(
        jnp.arange(float(len(x))), x[:, None]
    )
    assert np.isclose(whole(fine), whole(x))


def test_a_single_swing_is_its_own_range():
    swing = jnp.sin(2 * jnp.pi * jnp.linspace(0, 1, 41))[:, None]
    halves = c.DamageEquivalentLoad("x", exponent=3.0).measure(T, swing)
    wanted = (0.5 * (1 + 2**3 + 1)) ** (1 / 3)
    assert np.isclose(halves, wanted)
    assert c.DamageEquivalentLoad("x").measure(T, 0 * swing) == 0
