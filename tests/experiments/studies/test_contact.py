"""The study `contact`."""

import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from experiments.harness.study import Study
from experiments.studies.contact import study as contact, toss as toss


@pytest.mark.study
@pytest.mark.validation
def test_every_number_is_inside_its_tolerance(tmp_path):
    run = Study(contact.TITLE, "", tmp_path, stages=contact.STAGES, quick=True)
    contact.run(run)
    run.finish()
    assert [c.quantity for c in run.checks if c.passed is False] == []
    assert "contact.slope.creep_mm" in run.metrics


@pytest.mark.slow
def test_the_gradient_of_a_toss_by_default_is_right():
    """GRAD-2: within 1 %, and as differences of tight solves have it."""
    system, lanes = toss.cube(), toss.starts(2)
    at = lambda x: {
        "rtol": jnp.asarray(x),
        "atol": jnp.asarray(x),
        "max_steps": 1 << 16,
    }
    _, found = toss.slopes(system, lanes, at(1e-8))
    _, true = toss.slopes(system, lanes, at(1e-11))
    h = 1e-4
    up, down = (
        toss.slopes(djdyn.with_parameters(system, {"push": s * h}), lanes, at(1e-11))[0]
        for s in (1, -1)
    )
    assert np.allclose(found, true, rtol=1e-2)
    assert np.allclose((up - down) / (2 * h), true, rtol=1e-2)


@pytest.mark.slow
def test_a_mean_slope_has_the_sign_that_coarse_steps_lose():
    """The later a ball hits the ground, the lower it is afterwards."""
    how = {"solver": "semi_implicit", "dt": 1e-3}
    coarse = lambda system, simulate: toss.bounced(system, simulate, **how)
    exact = djdyn.gradient(coarse, toss.ball(1e-6), ["height"])
    mean = djdyn.gradient(coarse, toss.ball(1e-6), ["height"], spread=0.05)
    assert exact.gradient["height"] > 0
    assert np.isclose(mean.gradient["height"], -1.0, atol=0.05)
