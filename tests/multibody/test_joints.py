"""Each joint's pose, subspace and kinematic equation tell the same story."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from djdyn.multibody.joints import Prescribed, drift, prescribed_motion
from djdyn.multibody.spatial import Pose, rotation_rpy

from .trees import (
    Cartesian,
    Cylindrical,
    Fixed,
    Free,
    Planar,
    PlanarPointContact,
    PointContact,
    Prismatic,
    Revolute,
    RollPitchYaw,
    Spherical,
    Universal,
    random_joint,
)


CENTRED = (
    Revolute,
    Prismatic,
    Cylindrical,
    Cartesian,
    Universal,
    RollPitchYaw,
    Spherical,
    Planar,
    Free,
)
KINDS = (*CENTRED, PointContact, PlanarPointContact)
T0 = jnp.zeros(())


def case(kind):
    rng = np.random.default_rng(0)
    joint = random_joint(rng, kind)
    q, v = rng.uniform(-1, 1, joint.nq), rng.normal(size=joint.nv)
    return joint, jnp.asarray(q), jnp.asarray(v)


def body_twist(X: Pose, X_dot: Pose):
    R_T = np.asarray(X.R).T
    W = R_T @ np.asarray(X_dot.R)
    np.testing.assert_allclose(W, -W.T, atol=1e-14)
    return np.array([W[2, 1], W[0, 2], W[1, 0], *(R_T @ np.asarray(X_dot.p))])


@pytest.mark.parametrize("kind", KINDS)
def test_twist_is_the_derivative_of_the_pose(kind):
    """Also with a quaternion that is not of unit length."""
    joint, q, v = case(kind)

    @jax.jit
    def both(q):
        place = lambda q: joint.pose(q, T0)
        return v @ joint.subspace(q), jax.jvp(place, (q,), (joint.q_dot(q, v),))

    twist, (X, X_dot) = both(q)
    np.testing.assert_allclose(twist, body_twist(X, X_dot), atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_drift_is_the_twist_rate_at_constant_speeds(kind):
    joint, q, v = case(kind)
    h, q_dot = 1e-5, joint.q_dot(q, v)
    twist = jax.jit(lambda q: v @ joint.subspace(q))
    expected = (twist(q + h * q_dot) - twist(q - h * q_dot)) / (2 * h)
    found = jax.jit(drift)(joint, q, v)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("kind", [Fixed, *CENTRED])
def test_undisplaced_joint_is_the_identity(kind):
    joint, _, _ = case(kind)
    X = joint.pose(joint.q0(), T0)
    assert joint.q0().shape == (joint.nq,)
    assert joint.subspace(joint.q0()).shape == (joint.nv, 6)
    np.testing.assert_allclose(X.R, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(X.p, 0.0, atol=1e-15)


def test_roll_pitch_yaw_turns_as_a_ship_does():
    q = jnp.array([0.1, -0.2, 0.3])
    np.testing.assert_allclose(RollPitchYaw().pose(q, T0).R, rotation_rpy(*q))


def test_universal_turns_about_the_parents_axis_first():
    joint = Universal((0.0, 0.0, 1.0), (0.0, 1.0, 0.0))
    X = joint.pose(jnp.array([np.pi / 2, np.pi / 2]), T0)
    np.testing.assert_allclose(X.R @ jnp.array([0.0, 0.0, 1.0]), [0, 1, 0], atol=1e-15)


def test_axes_are_made_of_unit_length():
    np.testing.assert_allclose(Revolute((0.0, 3.0, 4.0)).axis, [0.0, 0.6, 0.8])
    np.testing.assert_allclose(Prismatic([0, 2, 0]).axis, [0.0, 1.0, 0.0])


@pytest.mark.parametrize("kind", [Revolute, Prismatic, Cylindrical, Universal])
def test_zero_axis_is_refused(kind):
    with pytest.raises(ValueError, match="axis must not be zero"):
        kind((0.0, 0.0, 0.0))


class Turntable(eqx.Module):
    """Accelerating about z while rising."""

    alpha: jax.Array

    def __call__(self, t):
        zero = jnp.zeros_like(t)
        R = rotation_rpy(zero, zero, self.alpha * t**2 / 2)
        return Pose(R, jnp.stack([zero, zero, t**3]))


def test_prescribed_motion_has_its_twist_and_the_rate_of_it():
    t, alpha = jnp.asarray(2.0), jnp.asarray(0.3)
    X, twist, rate = jax.jit(prescribed_motion)(Prescribed(Turntable(alpha)), t)
    np.testing.assert_allclose(X.p, [0.0, 0.0, 8.0])
    np.testing.assert_allclose(twist, [0, 0, 0.6, 0, 0, 12.0], atol=1e-15)
    np.testing.assert_allclose(rate, [0, 0, 0.3, 0, 0, 12.0], atol=1e-14)


def test_prescribed_motion_has_gradients():
    t = jnp.asarray(2.0)
    spin = lambda alpha: prescribed_motion(Prescribed(Turntable(alpha)), t)[2][2]
    slope = jax.jit(jax.grad(spin))(jnp.asarray(0.3))
    np.testing.assert_allclose(slope, 1.0, rtol=1e-14)
