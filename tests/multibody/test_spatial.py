"""Rotations, quaternions, poses and spatial vectors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.spatial.transform import Rotation

from djdyn.multibody import spatial
from djdyn.multibody.spatial import (
    Pose,
    cross,
    cross_wrench,
    identity_pose,
    motion_matrix,
    pose_rpy,
    quat_exp,
    quat_from_rotation,
    quat_log,
    quat_multiply,
    quat_rate,
    quat_to_rotation,
    rotation_about,
    rotation_rpy,
    shift_twist,
    shift_wrench,
    skew,
    spatial_inertia,
    translation,
)

from ..gradients import assert_gradient
from .trees import random_inertia, random_pose


numbers = st.floats(-3.0, 3.0, allow_nan=False)
vectors = st.tuples(numbers, numbers, numbers).map(np.array)
angles = st.floats(-np.pi, np.pi)
to_rotation = jax.jit(quat_to_rotation)
from_rotation = jax.jit(quat_from_rotation)
exp, log = jax.jit(quat_exp), jax.jit(quat_log)
multiply = jax.jit(quat_multiply)
from_rpy = jax.jit(lambda x: rotation_rpy(x[0], x[1], x[2]))


def scipy_rotation(q) -> np.ndarray:
    return Rotation.from_quat(np.asarray(q), scalar_first=True).as_matrix()


@pytest.mark.validation
def test_rotation_and_rate_of_euler_parameters():
    """Two printed cases; a wrong sign or a missing factor two would show in both."""
    half = to_rotation(jnp.full(4, 0.5))
    np.testing.assert_allclose(half, [[0, 0, 1], [1, 0, 0], [0, 1, 0]], atol=1e-15)
    q = jnp.array([0.8, 0.2, -0.4, 0.4])
    R = [[0.36, -0.80, -0.48], [0.48, 0.60, -0.64], [0.80, 0.0, 0.60]]
    np.testing.assert_allclose(to_rotation(q), R, atol=1e-15)
    q_dot = quat_rate(q, jnp.array([0.3, -1.2, 0.7]))
    np.testing.assert_allclose(q_dot, [-0.41, 0.22, -0.49, 0.22], atol=1e-15)
    np.testing.assert_allclose(q @ q_dot, 0.0, atol=1e-15)


@given(vectors)
def test_exponential_is_the_rotation_of_its_vector(x):
    q = exp(jnp.asarray(x))
    np.testing.assert_allclose(q @ q, 1.0, rtol=1e-14)
    expected = Rotation.from_rotvec(x).as_matrix()
    np.testing.assert_allclose(to_rotation(q), expected, atol=1e-14)


@given(vectors)
def test_logarithm_undoes_the_exponential(x):
    length = np.linalg.norm(x)
    x = x * min(1.0, 3.1 / max(length, 1e-300))  # within half a turn
    np.testing.assert_allclose(log(exp(jnp.asarray(x))), x, atol=1e-13)
    np.testing.assert_allclose(log(-exp(jnp.asarray(x))), x, atol=1e-13)


@given(vectors)
def test_quaternion_from_rotation_undoes_rotation(x):
    R = Rotation.from_rotvec(x).as_matrix()
    q = from_rotation(jnp.asarray(R))
    np.testing.assert_allclose(to_rotation(q), R, atol=1e-14)


@pytest.mark.parametrize("axis", np.eye(3))
def test_quaternion_from_half_a_turn(axis):
    """Where the trace is smallest and the scalar part is zero."""
    q = from_rotation(jnp.asarray(2 * np.outer(axis, axis) - np.eye(3)))
    np.testing.assert_allclose(np.abs(q), [0.0, *axis], atol=1e-15)


@given(vectors, vectors)
def test_product_of_quaternions_is_that_of_rotations(x, y):
    a, b = exp(jnp.asarray(x)), exp(jnp.asarray(y))
    expected = scipy_rotation(a) @ scipy_rotation(b)
    np.testing.assert_allclose(to_rotation(multiply(a, b)), expected, atol=1e-14)


def test_length_of_a_quaternion_does_not_matter():
    q = jnp.array([0.8, 0.2, -0.4, 0.4])
    np.testing.assert_allclose(to_rotation(3 * q), to_rotation(q), atol=1e-15)
    np.testing.assert_allclose(log(3 * q), log(q), rtol=1e-15)


@given(angles, angles, angles)
def test_roll_pitch_yaw_are_about_fixed_x_y_z(roll, pitch, yaw):
    R = from_rpy(jnp.array([roll, pitch, yaw]))
    expected = Rotation.from_euler("xyz", [roll, pitch, yaw]).as_matrix()
    np.testing.assert_allclose(R, expected, atol=1e-14)


@given(st.sampled_from("xyz"), angles)
def test_rotation_about_an_axis(axis, angle):
    found = getattr(spatial, f"rotation_{axis}")(jnp.asarray(angle))
    expected = Rotation.from_euler(axis, angle).as_matrix()
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_quaternion_rate_is_the_derivative_of_the_exponential():
    q, w = quat_exp(jnp.array([0.3, -0.4, 0.9])), jnp.array([0.5, 0.2, -0.7])
    ahead = lambda t: quat_multiply(q, quat_exp(w * t))
    rate = jax.jit(jax.jacfwd(ahead))(jnp.zeros(()))
    np.testing.assert_allclose(quat_rate(q, w), rate, atol=1e-15)


# Gradients at the special points ------------------------------------------------------


def test_exponential_and_logarithm_have_their_gradients_at_zero():
    slope = jax.jit(jax.jacfwd(quat_exp))(jnp.zeros(3))
    np.testing.assert_allclose(slope, 0.5 * np.eye(4, 3, -1), atol=1e-15)
    back = jax.jit(jax.jacrev(quat_log))(jnp.array([1.0, 0.0, 0.0, 0.0]))
    np.testing.assert_allclose(back, 2 * np.eye(3, 4, 1), atol=1e-15)
    again = jax.jit(jax.hessian(lambda x: quat_exp(x)[0]))(jnp.zeros(3))
    np.testing.assert_allclose(again, -np.eye(3) / 4, atol=1e-15)


@pytest.mark.parametrize("size", [0.0, 1.9e-4, 2.1e-4, 3.0])
def test_exponential_and_logarithm_have_gradients(size):
    """On both sides of the switch from series to closed form."""
    x = size * jnp.array([0.6, 0.0, 0.8])
    weights = jnp.array([0.3, -1.1, 0.7, 0.4])
    assert_gradient(lambda x: weights @ quat_exp(x), x, rtol=1e-6)
    assert_gradient(lambda q: weights[1:] @ quat_log(q), quat_exp(x), rtol=1e-6)


@pytest.mark.parametrize(
    "vector", [(0.0, 0.0, 0.0), (np.pi, 0.0, 0.0), (0.0, 2.5, 1.0), (0.5, -0.3, 0.1)]
)
def test_quaternion_from_rotation_has_gradients(vector):
    weights = jnp.array([0.3, -1.1, 0.7, 0.4])
    R = quat_to_rotation(quat_exp(jnp.array(vector)))
    assert_gradient(lambda R: weights @ quat_from_rotation(R), R)


def test_rotation_of_a_quaternion_has_gradients_at_the_identity():
    weights = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3)))
    q = jnp.array([1.0, 0.0, 0.0, 0.0])
    turned = lambda q: jnp.sum(weights * quat_to_rotation(q))
    assert_gradient(turned, q, h=1e-5, rtol=1e-6)


def test_rotations_by_angle_have_gradients_at_zero():
    axis, eye = jnp.array([0.6, 0.0, 0.8]), np.eye(3)
    slope = jax.jit(jax.jacfwd(lambda a: rotation_about(axis, a)))(jnp.zeros(()))
    np.testing.assert_allclose(slope @ eye, skew(axis), atol=1e-15)


# Poses, twists, wrenches --------------------------------------------------------------


def test_poses_compose_and_invert():
    rng = np.random.default_rng(0)
    X, Y, p = random_pose(rng), random_pose(rng), jnp.asarray(rng.normal(size=3))
    np.testing.assert_allclose((X @ Y).act(p), X.act(Y.act(p)), atol=1e-15)
    np.testing.assert_allclose((X.inverse @ X).act(p), p, atol=1e-14)
    np.testing.assert_allclose((identity_pose() @ X).act(p), X.act(p), atol=1e-15)
    np.testing.assert_allclose(translation([1, 2, 3]).act(p), p + np.arange(1.0, 4.0))
    turned = pose_rpy([1.0, 0.0, 0.0], [0.0, 0.0, np.pi / 2])
    np.testing.assert_allclose(
        turned.act(jnp.array([1.0, 0, 0])), [1, 1, 0], atol=1e-15
    )


def test_many_poses_at_once():
    rng = np.random.default_rng(1)
    X, Y = ([random_pose(rng) for _ in range(4)] for _ in range(2))
    stacked = lambda poses: jax.tree.map(lambda *x: jnp.stack(x), *poses)
    both = stacked(X) @ stacked(Y)
    for i in range(4):
        np.testing.assert_allclose(both.p[i], (X[i] @ Y[i]).p, atol=1e-15)
        np.testing.assert_allclose(both.R[i], (X[i] @ Y[i]).R, atol=1e-15)
    np.testing.assert_allclose(
        stacked(X).inverse.p, [x.inverse.p for x in X], atol=1e-15
    )


def test_cross_and_skew():
    a, b = jnp.asarray(np.random.default_rng(2).normal(size=(2, 5, 3)))
    np.testing.assert_allclose(cross(a, b), np.cross(a, b), atol=1e-15)
    np.testing.assert_allclose(
        skew(a) @ b[..., None], cross(a, b)[..., None], atol=1e-15
    )


def test_power_is_the_same_at_every_point():
    V, F = jnp.asarray(np.random.default_rng(3).normal(size=(2, 6)))
    r = jnp.array([0.3, -0.2, 0.9])  # from here to where the wrench acts
    np.testing.assert_allclose(
        shift_twist(V, r) @ F, V @ shift_wrench(F, r), rtol=1e-13
    )


def test_motion_matrix_moves_a_twist_to_another_frame():
    rng = np.random.default_rng(4)
    X_AB, V_B = random_pose(rng), jnp.asarray(rng.normal(size=6))
    w, v = X_AB.R @ V_B[:3], X_AB.R @ V_B[3:]
    expected = shift_twist(jnp.concatenate([w, v]), -X_AB.p)
    np.testing.assert_allclose(motion_matrix(X_AB) @ V_B, expected, atol=1e-14)


def test_spatial_inertia_gives_energy_and_momentum_of_the_centre():
    rng = np.random.default_rng(5)
    mass, c, I = (jnp.asarray(x) for x in random_inertia(rng))
    V = jnp.asarray(rng.normal(size=6))
    w, v_C = V[:3], V[3:] + jnp.cross(V[:3], c)
    h = spatial_inertia(mass, c, I) @ V
    np.testing.assert_allclose(V @ h, mass * v_C @ v_C + w @ I @ w, rtol=1e-13)
    np.testing.assert_allclose(h[3:], mass * v_C, rtol=1e-13)
    np.testing.assert_allclose(h[:3], I @ w + mass * jnp.cross(c, v_C), rtol=1e-12)


def test_cross_wrench_takes_no_power():
    V, h = jnp.asarray(np.random.default_rng(6).normal(size=(2, 6)))
    np.testing.assert_allclose(V @ cross_wrench(V, h), 0.0, atol=1e-14)


def test_a_pose_keeps_its_unit_and_makes_floats():
    X = Pose(np.eye(3, dtype=int), (1, 2, 3))
    assert X.p.dtype == X.R.dtype == jnp.zeros(()).dtype
