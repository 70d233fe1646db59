"""A nonlinear pendulum seen from the side, compared with SciPy's least squares."""

import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares

import djdyn
from djdyn.multibody.joints import Revolute
from djdyn.multibody.mechanism import Body, Mechanism
from estimation import MarkerSet, StateModel, moving_horizon, window_estimate
from tests.gradients import quick_jit


DT, N, NOISE, DRIVE = 0.1, 12, 0.02, 0.5
ROD = Body("rod", "world", Revolute((0.0, 1.0, 0.0)), 1.0, (0.0, 0.0, -1.0))
SYSTEM = djdyn.System(Mechanism((ROD,)))
MODEL = StateModel(
    SYSTEM, MarkerSet.of({"bob": ("rod", (0, 0, -1))}), [[0.0], [DRIVE]], NOISE
)
X0, SPREAD, TRUE = np.array([1.0, 0.0]), np.array([0.7, 1.0]), np.array([1.6, -1.0])
KNOWN = {"y0": SYSTEM.initial_state(X0[:1], X0[1:]), "P0": jnp.diag(SPREAD**2)}


def step(x: np.ndarray, w: float) -> np.ndarray:
    """Return a Runge-Kutta step of a point pendulum, then an impulse."""
    f = lambda x: np.array([x[1], -9.81 * np.sin(x[0])])
    a = f(x)
    b = f(x + DT / 2 * a)
    c = f(x + DT / 2 * b)
    d = f(x + DT * c)
    return x + DT / 6 * (a + 2 * b + 2 * c + d) + [0.0, DRIVE * np.sqrt(DT) * w]


def course(x0: np.ndarray, w: np.ndarray) -> np.ndarray:
    xs = [x0]
    for knock in w:
        xs.append(step(xs[-1], knock))
    return np.array(xs)


def bob(xs: np.ndarray) -> np.ndarray:
    a = xs[:, 0]
    return np.stack([-np.sin(a), 0 * a, -np.cos(a)], -1)[:, None]


RNG = np.random.default_rng(3)
XS = course(TRUE, RNG.normal(size=N - 1))
Z = bob(XS) + NOISE * RNG.normal(size=(N, 1, 3))
SEEN = RNG.random((N, 1)) < 0.8
TIMES = DT * np.arange(N)


def test_likeliest_course_is_that_of_scipy():
    """The start is wrong by one deviation, and only the speed is driven by noise."""

    def residuals(unknown):
        xs = course(X0 + SPREAD * unknown[:2], unknown[2:])
        return np.concatenate([unknown, ((Z - bob(xs)) / NOISE)[SEEN].ravel()])

    theirs = least_squares(residuals, np.zeros(N + 1), xtol=1e-14, ftol=1e-14).x
    xs = course(X0 + SPREAD * theirs[:2], theirs[2:])
    estimate = quick_jit(lambda z: window_estimate(MODEL, TIMES, z, SEEN, **KNOWN))
    found = estimate(jnp.asarray(Z))
    assert np.all(found.ok)
    assert np.allclose(found.y.q[:, 0], xs[:, 0], atol=1e-6)
    assert np.allclose(found.y.v[:, 0], xs[:, 1], atol=1e-5)


def test_a_horizon_follows_a_pendulum():
    """A window of five samples is as accurate as one marker allows."""
    follow = quick_jit(
        lambda z: moving_horizon(MODEL, TIMES, z, SEEN, **KNOWN, window=5)
    )
    found = follow(jnp.asarray(Z))
    assert np.all(found.ok)
    assert np.abs(found.y.q[3:, 0] - XS[3:, 0]).max() < 3 * NOISE
