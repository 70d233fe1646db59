"""Lines that go slack and snap tight."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from experiments.studies.cable.model import dropped, shaken


@pytest.mark.slow
@pytest.mark.validation
def test_top_of_the_line_oscillates():
    """Ship V4: depths at 1, 2 and 3 s, the first slack and the peak of the tension."""
    run = djdyn.simulate(shaken(), 3.8, saveat=381, rtol=1e-5, atol=1e-6)
    z = np.asarray(run.y.q[:, 2]) - 20
    assert np.allclose(z[[100, 200, 300]], [-17.30, -19.99, -21.74], atol=0.02)
    tension = np.asarray(run.signal("line.tail_tension"))
    slack = tension[20:] < 50.0  # the end node has weight and inertia
    assert np.isclose(run.t[20:][slack][0], 0.74, atol=0.02)
    assert np.isclose(tension[250:].max(), 46.1e3, rtol=0.01)
    assert np.isclose(run.t[250:][tension[250:].argmax()], 3.56, atol=0.02)


@pytest.mark.slow
def test_snap():
    """CAB-10: the ledger closes through fall, snap and rebound."""
    system, y = dropped()
    run = djdyn.simulate(system, 1.5, y, ledger=True, saveat=151, rtol=1e-7, atol=1e-9)
    tension = np.asarray(run.signal("line.tail_tension"))
    assert 5 * tension[:20].max() < 20 * 9.81 < tension.max() / 3
    turned_over = 20 * 9.81  # of the order of one metre of fall, J
    assert np.max(np.abs(djdyn.energy_balance(system, run))) < 1e-5 * turned_over


@pytest.mark.slow
def test_gradient_through_a_snap():
    """Fixed steps, and a corner wide enough for them to see it."""
    system, y = dropped(0.02)
    paths = ("line.rope.EA", "line.rope.EI", "line.length")
    base = {p: djdyn.get_parameters(system, p) for p in paths}

    @jax.jit
    def end(x):
        values = {p: base[p] * x[i] for i, p in enumerate(paths)}
        model = djdyn.with_parameters(system, values)
        how = {"solver": "rk4", "dt": 1e-3, "saveat": [0.7], "adjoint": "direct"}
        return djdyn.simulate(model, 0.7, y, **how).y.q[0, 2]

    x, h = jnp.ones(3), 1e-6
    gradient = jax.jit(jax.jacfwd(end))(x)
    for i, step in enumerate(h * np.eye(3)):
        difference = (end(x + step) - end(x - step)) / (2 * h)
        assert np.isclose(gradient[i], difference, rtol=1e-5), paths[i]
