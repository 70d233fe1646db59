"""Filters and smoothers, compared with linear algebra."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

import djdyn
from djdyn import SimulationOptions
from djdyn.multibody.joints import Prismatic
from djdyn.multibody.mechanism import Body, Mechanism
from djdyn.parts import JointSpring
from estimation import (
    StateModel,
    kalman_filter,
    moving_horizon,
    smooth,
    window_estimate,
)
from tests.gradients import assert_gradient, quick_jit


MASS, STIFFNESS, DAMPING, DT, N = 2.0, 8.0, 0.6, 0.05, 40
NOISE = np.array([0.05, 0.2])  # m, m/s
DRIVE = np.diag([0.02, 0.3])


def both(now):
    return jnp.concatenate([now.y.q, now.y.v])


def oscillator(stiffness=STIFFNESS) -> djdyn.System:
    body = Body("mass", "world", Prismatic((1.0, 0.0, 0.0)), MASS)
    spring = JointSpring("mass", stiffness, DAMPING)
    return djdyn.System(Mechanism((body,)), {"spring": spring})


SYSTEM = oscillator()
MODEL = StateModel(SYSTEM, both, DRIVE, NOISE)
A = np.array([[0.0, 1.0], [-STIFFNESS / MASS, -DAMPING / MASS]]) * DT
F = np.eye(2) + A + A @ A / 2 + A @ A @ A / 6 + A @ A @ A @ A / 24  # Runge-Kutta's
X0, P0 = np.array([0.3, -0.1]), np.diag([0.1, 0.4])
Q, R = DRIVE @ DRIVE.T * DT, np.diag(NOISE**2)


def record() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return times, measurements, and which are visible: one, both or none."""
    rng, x, z = np.random.default_rng(0), X0 + np.array([0.2, 0.3]), []
    for _ in range(N):
        z.append(x + NOISE * rng.normal(size=2))
        x = F @ x + np.sqrt(DT) * DRIVE @ rng.normal(size=2)
    seen = rng.random((N, 2)) < 0.7
    seen[10:14] = False
    return DT * np.arange(N), np.array(z), seen


TIMES, Z, SEEN = record()


def known(x) -> dict:
    return {"y0": SYSTEM.initial_state(x[:1], x[1:]), "P0": jnp.asarray(P0)}


def by_hand() -> tuple[np.ndarray, np.ndarray, float]:
    """Return the Kalman filter with only the rows that were measured."""
    x, P, xs, Ps, log = X0, P0, [], [], 0.0
    for z, seen in zip(Z, SEEN, strict=True):
        H, r = np.eye(2)[seen], z[seen] - x[seen]
        S = H @ P @ H.T + R[np.ix_(seen, seen)]
        K = P @ H.T @ np.linalg.inv(S)
        log -= 0.5 * (r @ np.linalg.solve(S, r) + np.log(np.linalg.det(2 * np.pi * S)))
        x, P = x + K @ r, P - K @ H @ P
        xs.append(x)
        Ps.append(P)
        x, P = F @ x, F @ P @ F.T + Q
    return np.array(xs), np.array(Ps), log


def in_one() -> tuple[np.ndarray, np.ndarray]:
    """Return all states by one least squares: prior, motion and measurements."""
    rows, right = [], []

    def add(root, blocks, value):
        row = np.zeros((len(root), 2 * N))
        for k, block in blocks.items():
            row[:, 2 * k : 2 * k + 2] = np.linalg.solve(root, block)
        rows.append(row)
        right.append(np.linalg.solve(root, value))

    add(np.linalg.cholesky(P0), {0: np.eye(2)}, X0)
    for k in range(N - 1):
        add(np.sqrt(DT) * DRIVE, {k: -F, k + 1: np.eye(2)}, np.zeros(2))
    for k, (z, seen) in enumerate(zip(Z, SEEN, strict=True)):
        add(np.diag(NOISE[seen]), {k: np.eye(2)[seen]}, z[seen])
    M, b = np.concatenate(rows), np.concatenate(right)
    P = np.linalg.inv(M.T @ M).reshape(N, 2, N, 2)
    return (P.reshape(2 * N, 2 * N) @ M.T @ b).reshape(N, 2), P


def joined(y) -> np.ndarray:
    return np.concatenate([y.q, y.v], -1)


@pytest.mark.parametrize("method", ["extended", "unscented"])
def test_filter_of_a_linear_system(method):
    """The filter is the textbook's; values of hidden measurements do not matter."""
    z = np.where(SEEN, Z, 1e9)
    found = kalman_filter(MODEL, TIMES, z, SEEN, **known(X0), method=method)
    x, P, log = by_hand()
    assert np.allclose(joined(found.filtered.y), x, atol=1e-10)
    assert np.allclose(found.filtered.P, P, atol=1e-12)
    assert np.isclose(found.log_likelihood, log, atol=1e-8)
    z[~SEEN] = np.nan
    again = kalman_filter(MODEL, TIMES, z, SEEN, **known(X0), method=method)
    assert np.array_equal(joined(again.filtered.y), joined(found.filtered.y))


def test_covariance_settles_where_riccati_says():
    many = DT * np.arange(400)
    found = kalman_filter(MODEL, many, np.zeros((400, 2)), **known(X0))
    settled = solve_discrete_are(F.T, np.eye(2), Q, R)
    assert np.allclose(found.predicted.P[-2], settled, rtol=1e-9)


def test_smoother_is_least_squares_over_all():
    filtered = kalman_filter(MODEL, TIMES, Z, SEEN, **known(X0))
    found, (x, P) = smooth(MODEL, filtered), in_one()
    assert np.allclose(joined(found.y), x, atol=1e-10)
    diagonal = np.stack([P[k, :, k] for k in range(N)])
    assert np.allclose(found.P, diagonal, atol=1e-12)


def test_horizon_over_all_is_least_squares():
    found = window_estimate(MODEL, TIMES, Z, SEEN, **known(X0))
    assert np.all(found.ok)
    assert np.allclose(joined(found.y), in_one()[0], atol=1e-8)


def test_horizon_of_a_linear_system_is_kalmans_filter():
    """Any window gives the Kalman filter, because the arrival cost is exact."""
    follow = lambda z: moving_horizon(MODEL, TIMES, z, SEEN, **known(X0), window=3)
    found = quick_jit(follow)(jnp.asarray(Z))
    assert np.all(found.ok)
    assert np.allclose(joined(found.y), by_hand()[0], atol=1e-7)


@pytest.mark.slow
def test_likelihood_can_be_differentiated():
    """Derivatives by parameters, noises and measurements are those of differences."""

    def loss(theta):
        system = oscillator(theta["stiffness"])
        model = StateModel(system, both, theta["drive"], theta["noise"])
        found = kalman_filter(model, TIMES[:9], theta["z"], SEEN[:9], **known(X0))
        back = smooth(model, found)
        return found.log_likelihood + jnp.sum(back.y.q * back.P[:, 0, 1:])

    theta = {
        "stiffness": jnp.array(STIFFNESS),
        "drive": jnp.asarray(DRIVE),
        "noise": jnp.asarray(NOISE),
        "z": jnp.asarray(Z[:9]),
    }
    assert_gradient(loss, theta, modes_rtol=1e-9, h=1e-5, rtol=1e-6, jit=quick_jit)


@pytest.mark.slow
def test_horizon_can_be_differentiated():
    """Derivatives are those of the solution, not of the solver's steps."""

    def loss(theta):
        model = StateModel(oscillator(theta["stiffness"]), both, DRIVE, NOISE)
        how = {**known(X0), "rtol": 1e-11, "atol": 1e-11}
        y = window_estimate(model, TIMES[:5], theta["z"], SEEN[:5], **how).y
        return jnp.sum(y.q**2) + jnp.sum(y.v)

    theta = {"stiffness": jnp.array(STIFFNESS), "z": jnp.asarray(Z[:5])}
    assert_gradient(loss, theta, modes_rtol=1e-9, h=1e-3, rtol=1e-5, jit=quick_jit)


def test_bad_measurements_are_named():
    def run(model=MODEL, times=TIMES, z=Z, seen=SEEN, P=P0, **how):
        y0, how = known(X0)["y0"], {"method": "extended", **how}
        return kalman_filter(model, times, z, seen, y0=y0, P0=jnp.asarray(P), **how)

    nan = np.where(np.arange(N)[:, None] == 7, np.nan, Z)
    for said, wrong in (
        ("times of measurements must increase", {"times": TIMES[::-1]}),
        ("measurement at 0.35 s is not a number", {"z": nan, "seen": None}),
        (r"40 times with 2 numbers each .* \(40, 1\)", {"z": Z[:, :1]}),
        (r"visibility of shape \(40, 3\)", {"seen": np.ones((N, 3), bool)}),
        ("positive definite", {"P": np.diag([1.0, 0.0])}),
        (r"P0 has shape \(3, 3\)", {"P": np.eye(3)}),
        ("extended or unscented, not 'cubature'", {"method": "cubature"}),
    ):
        with pytest.raises(ValueError, match=said):
            run(**wrong)
    with pytest.raises(ValueError, match=r"drive has shape \(3, 3\)"):
        StateModel(SYSTEM, both, np.eye(3), NOISE)
    with pytest.raises(ValueError, match=r"noise must be above 0"):
        StateModel(SYSTEM, both, DRIVE, 0.0)
    for options, said in (
        (SimulationOptions(solver="kvaerno3"), "there are semi_implicit, ros2"),
        (SimulationOptions(), "its options need dt"),
        (SimulationOptions(solver="rk4", dt=0.1, jumps=[0.2]), "has no jumps"),
    ):
        with pytest.raises(ValueError, match=said):
            StateModel(SYSTEM, both, DRIVE, NOISE, options=options)
    with pytest.raises(ValueError, match="a window has 2 to 40 samples, not 1"):
        moving_horizon(MODEL, TIMES, Z, SEEN, **known(X0), window=1)


def test_steps_between_samples_are_at_most_dt():
    """A gap of one and a half samples takes two steps of half of it, as all gaps do."""
    half = SimulationOptions(solver="rk4", dt=0.75 * DT)
    model = StateModel(SYSTEM, both, DRIVE, NOISE, options=half)
    times = np.array([0.0, 1.0, 2.5]) * DT
    found = kalman_filter(model, times, Z[:3], np.zeros((3, 2), bool), **known(X0))
    x = X0
    for k, gap in enumerate(np.diff(times)):
        a = A / DT * gap / 2
        step = np.eye(2) + a + a @ a / 2 + a @ a @ a / 6 + a @ a @ a @ a / 24
        x = step @ step @ x
        y = found.predicted.y
        predicted = np.array([y.q[k, 0], y.v[k, 0]])
        np.testing.assert_allclose(predicted, x, rtol=1e-12)
