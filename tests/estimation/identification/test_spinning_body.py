"""Filters of a tumbling free body with markers: orientations on their manifold."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

import djdyn
from djdyn.multibody.joints import Free
from djdyn.multibody.mechanism import Body, Mechanism
from djdyn.system.manifold import difference, retract
from estimation import (
    MarkerSet,
    StateModel,
    kalman_filter,
    moving_horizon,
    smooth,
    tangent,
)
from tests.gradients import assert_gradient, quick_jit


BODY = Body("box", "world", Free(), 1.0, I_BC=np.diag([0.01, 0.02, 0.025]))
SYSTEM = djdyn.System(Mechanism((BODY,), gravity_W=(0.0, 0.0, 0.0)))
CORNERS = [(0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1), (-0.1, -0.1, 0.0)]
MARKERS = MarkerSet.of({str(i): ("box", p) for i, p in enumerate(CORNERS)})
DRIVE = jnp.diag(tangent(SYSTEM, v={"box": [0.3, 0.3, 0.3, 0.1, 0.1, 0.1]}))[:, 6:]
MODEL = StateModel(SYSTEM, MARKERS, DRIVE, 5e-3)
SPREAD = tangent(SYSTEM, q={"box": [0.2] * 3 + [0.05] * 3}, v=0.5)
P0 = jnp.diag(SPREAD**2)
MEAN = SYSTEM.initial_state(v=[2.0, 6.0, 1.0, 0.0, 0.1, 0.0])
TIMES = jnp.arange(30.0) / 50
LANES = 40


def simulated(key):
    """Return a true trajectory with process noise, and noisy measurements."""
    keys = jax.random.split(key, 4)
    start = SPREAD * jax.random.normal(keys[0], (12,))
    w = jnp.sqrt(1 / 50) * jax.random.normal(keys[1], (30, 6)) @ DRIVE.T

    def turn(y, row):
        t, w = row
        z = MODEL.output(t, y)
        return retract(SYSTEM, MODEL.step(t, y, jnp.asarray(1 / 50)), w), (y, z)

    first = retract(SYSTEM, MEAN, start)
    _, (y, z) = jax.lax.scan(turn, first, (TIMES, w))
    noise = 5e-3 * jax.random.normal(keys[2], z.shape)
    seen = jax.random.uniform(keys[3], (30, 4)) < 0.8
    return y, (z + noise).reshape(30, 4, 3), seen


def nees(truth, found):
    """Return normalised estimation errors squared."""
    e = jax.vmap(lambda a, b: difference(SYSTEM, a, b))(found.y, truth)
    return jnp.einsum("ni,ni->n", e, jnp.linalg.solve(found.P, e[..., None])[..., 0])


KEYS = jax.random.split(jax.random.key(1), LANES)


@pytest.fixture(scope="module")
def courses():
    return quick_jit(jax.vmap(simulated))(KEYS)


@pytest.mark.parametrize(
    "method", ["extended", pytest.param("unscented", marks=pytest.mark.slow)]
)
def test_errors_are_as_large_as_the_filter_says(courses, method):
    """A batch of tumbling bodies, with a fifth of the markers hidden."""

    def judge(truth, z, seen):
        found = kalman_filter(MODEL, TIMES, z, seen, y0=MEAN, P0=P0, method=method)
        back = smooth(MODEL, found)
        return (
            nees(truth, found.filtered),
            nees(truth, back),
            found.nis,
            jnp.sum(seen, -1),
        )

    filtered, smoothed, nis, seen = quick_jit(jax.vmap(judge))(*courses)
    low, high = (chi2.ppf(p, 12 * LANES) / LANES for p in (1e-4, 1 - 1e-4))
    for errors in (filtered, smoothed):
        mean = np.asarray(errors).mean(0)[[0, 5, 15, 29]]
        assert np.all((low < mean) & (mean < high)), mean
    count = 3 * int(np.sum(seen))
    assert chi2.ppf(1e-4, count) < np.sum(nis) < chi2.ppf(1 - 1e-4, count)


@pytest.mark.slow
def test_a_horizon_follows_a_tumbling_body(courses):
    """It is as accurate as the filter, and both beat the noise of the markers."""
    truth, z, seen = jax.tree.map(lambda x: x[0], courses)
    known = {"y0": MEAN, "P0": P0}
    follow = lambda z: moving_horizon(MODEL, TIMES, z, seen, **known, window=5)
    filtered = quick_jit(lambda z: kalman_filter(MODEL, TIMES, z, seen, **known))(z)
    found = quick_jit(follow)(z)
    error = lambda y: jax.vmap(lambda a, b: difference(SYSTEM, a, b))(truth, y)[5:]
    rms = [np.sqrt(np.mean(error(y) ** 2, 0)) for y in (found.y, filtered.filtered.y)]
    assert np.all(found.ok) and np.all(rms[0] < 1.3 * rms[1])
    assert np.all(rms[0][:3] < 5e-3 / 0.1) and np.all(rms[0][3:6] < 5e-3)


@pytest.mark.slow
def test_derivatives_of_a_filter_at_rest_unturned():
    """Derivatives are finite where the body has not turned and errors are zero."""
    y0 = SYSTEM.initial_state()
    z = jnp.broadcast_to(MODEL.output(jnp.zeros(()), y0)[None], (2, 12))

    def loss(theta):
        found = kalman_filter(MODEL, TIMES[:2], theta, y0=y0, P0=P0)
        return found.filtered.y.q[-1] @ jnp.arange(7.0) + found.log_likelihood

    assert_gradient(loss, z, h=1e-5, rtol=1e-6, modes_rtol=1e-9, jit=quick_jit)
