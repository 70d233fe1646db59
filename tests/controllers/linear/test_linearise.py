"""Linearised systems and their regulators, compared with closed forms and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.signal

import djdyn
from controllers import linearise, lqr
from djdyn.parts import FrameSensor, JointSpring
from experiments.studies.swing_up.study import build


Q, R = np.diag([1.0, 10.0, 1.0, 1.0]), np.array([[0.1]])


@pytest.fixture(scope="module")
def wagon() -> djdyn.System:
    """A pendulum on a wagon on springs, upright; the push is an input."""
    return build(cart=FrameSensor("wagon"))


@pytest.fixture(scope="module")
def linear(wagon):
    return linearise(wagon)


def test_the_wagon_by_hand(linear):
    m1, m2, L, k1, tip = 2.0, 1.0, 0.3, 3.0, 1.0 * 9.81 * 0.3 - 0.5
    A = np.zeros((4, 4))
    A[:2, 2:] = np.eye(2)
    A[2, :2] = -k1 / m1, -tip / (m1 * L)
    A[3, :2] = k1 / (m1 * L), (m1 + m2) * tip / (m1 * m2 * L**2)
    B = np.array([[0, 0, 1 / m1, -1 / (m1 * L)]]).T
    assert np.allclose(linear.A, A, atol=1e-12)
    assert np.allclose(linear.B, B, atol=1e-12)
    assert np.allclose(linear.C, np.eye(4)) and not linear.stable()


def test_regulators_are_those_of_riccati(linear):
    P = scipy.linalg.solve_continuous_are(linear.A, linear.B, Q, R)
    K = lqr(linear, np.diagonal(Q), R)
    assert np.allclose(K, np.linalg.solve(R, linear.B.T @ P), rtol=1e-8)
    assert np.all(np.linalg.eigvals(linear.A - linear.B @ K).real < 0)

    sampled = linear.discretise(0.05)
    matrices = tuple(np.asarray(x) for x in (linear.A, linear.B, linear.C, linear.D))
    A, B, *_ = scipy.signal.cont2discrete(matrices, 0.05)
    assert np.allclose(sampled.A, A) and np.allclose(sampled.B, B)
    P = scipy.linalg.solve_discrete_are(A, B, Q, R)
    K = lqr(sampled, Q, R)
    assert np.allclose(K, np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A), rtol=1e-8)
    assert not sampled.stable()


def hung() -> djdyn.System:
    """A bob on a rod of 0.7 m, and two geared slides on a spring."""
    bodies = (
        djdyn.Body("bob", "world", djdyn.Cartesian(), 2.0),
        djdyn.Body("a", "world", djdyn.Prismatic((1, 0, 0)), 1.0),
        djdyn.Body("b", "world", djdyn.Prismatic((1, 0, 0)), 3.0),
    )
    loops = (
        djdyn.Loop("rod", "world", "bob", djdyn.Distance(0.7)),
        djdyn.LinearCoupling("gear", {"a": 1.0, "b": -2.0}),
    )
    mechanism = djdyn.Mechanism(bodies, loops=loops)
    return djdyn.System(mechanism, {"spring": JointSpring("a", 20.0)})


def test_closed_loops_leave_independent_states():
    """Frequencies by hand; `directions` keep the loops closed."""
    system = hung()
    y = system.initial_state(q={"bob": [0.0, 0.0, -0.7]})
    linear = linearise(system, y)
    assert linear.A.shape == (6, 6) and linear.directions.shape == (10, 6)
    swing, slide = np.sqrt(9.81 / 0.7), np.sqrt(20.0 / (1 + 3 / 4))
    found = np.sort(np.abs(np.imag(linear.poles())))
    np.testing.assert_allclose(found, [*[slide] * 2, *[swing] * 4], rtol=1e-8)
    np.testing.assert_allclose(linear.directions[2], 0.0, atol=1e-12)
    a, b = linear.directions[3], linear.directions[4]
    np.testing.assert_allclose(a, 2 * b, atol=1e-12)
    with pytest.raises(ValueError, match="outside of jit and grad"):
        jax.eval_shape(lambda y: linearise(system, y).A, y)


def test_the_regulated_wagon_has_margins(linear):
    """LQR bears half to twice the gain and 60 degrees (Safonov and Athans, 1977)."""
    import control

    K = np.asarray(lqr(linear, Q, R))
    A, B = np.asarray(linear.A), np.asarray(linear.B)
    response = control.ss(A, B, K, np.zeros((1, 1)))
    w = np.geomspace(1e-2, 1e3, 2000)
    away = np.abs(1 + response(1j * w))
    assert away.min() > 1 - 1e-9
    assert np.allclose(control.poles(linear.to_control()), linear.poles())


def test_a_ball_joint_has_three_directions():
    """A bob on a ball joint swings in two planes, and turns freely about its rod."""
    I = np.diag([0.02, 0.02, 0.01])
    bob = djdyn.Body("bob", "world", djdyn.Spherical(), 1.0, (0, 0, -0.5), I)
    system = djdyn.System(djdyn.Mechanism((bob,)))
    w = np.sqrt(9.81 * 0.5 / (0.02 + 0.25))
    poles = np.sort(np.abs(linearise(system).poles()))
    assert np.allclose(poles, [0, 0, w, w, w, w], atol=1e-6)


def test_signals_as_outputs_and_what_is_refused(wagon, linear):
    seen = linearise(wagon, outputs=["cart.velocity"], inputs={"push": [2.0]})
    C = jnp.zeros((3, 4)).at[0, 2].set(1.0)
    assert jnp.array_equal(seen.C, C) and not jnp.any(seen.D)
    with pytest.raises(ValueError, match="unknown input 'pull'; there are push"):
        linearise(wagon, inputs={"pull": 1.0})
    with pytest.raises(ValueError, match=r"unknown signal 'drive\.u'"):
        linearise(wagon, outputs=["drive.u"])
    with pytest.raises(ValueError, match="Q has shape"):
        lqr(linear, np.eye(3), R)
