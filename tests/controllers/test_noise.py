"""Sensor noise."""

import jax
import jax.numpy as jnp
import numpy as np

import djdyn
from controllers import Reference, multisine


def test_noise_has_its_deviation_and_its_rate():
    body = djdyn.Body("slide", "world", djdyn.Prismatic((1, 0, 0)), 2.0)
    parts = {
        "path": Reference(jnp.array([0.3])),
        "seen": multisine(
            "path.value", "path.rate", deviation=2e-3, others=("slide.v",)
        ),
        "alone": multisine("slide.q", deviation=0.0),
    }
    system = djdyn.System(djdyn.Mechanism((body,)), parts)
    y = system.initial_state(q={"slide": 0.1})
    signals = jax.jit(lambda t: system.at(t, y).signals)
    at = lambda t: signals(t)["seen.value"][0]
    values = np.array([at(t) for t in np.random.default_rng(0).uniform(0, 1e4, 400)])
    assert np.isclose(np.std(values), 2e-3, rtol=0.15)
    assert np.isclose(np.mean(values), 0.3, atol=5e-4)
    h = 1e-6
    rate = signals(1.0)["seen.rate"][0]
    assert np.isclose(rate, (at(1.0 + h) - at(1.0 - h)) / (2 * h), rtol=1e-5)
    assert signals(0.7)["alone.value"][0] == 0.1
    assert signals(0.7)["seen.v"] == signals(0.7)["slide.v"]
