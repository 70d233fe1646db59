"""A ball on surfaces of changing curvature."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import djdyn
from djdyn.multibody.joints import drift
from djdyn.multibody.spatial import skew
from djdyn.parts import PointContactFriction
from tests.gradients import assert_gradient


T0, G = jnp.zeros(()), 9.81
BOWL = djdyn.PolynomialHeight(
    [[0.0, 0.0, 0.5 / 0.3], [0.0, 0.0, 0.0], [0.5 / 0.5, 0, 0]]
)
SURFACES = {  # with the radii of curvature at u = 0, along both coordinates, and down
    "ellipsoid": (
        djdyn.Ellipsoid([0.5, 0.4, 0.3]), (0.16 / 0.5, 0.09 / 0.5), [G, 0, 0],
    ),
    "torus": (djdyn.Torus(0.5, 0.2), (0.7, 0.2), [G, 0, 0]),
    "height": (djdyn.HeightSurface(BOWL), (0.5, 0.3), [0, 0, -G]),
    "outside of an ellipsoid": (
        djdyn.Ellipsoid([0.5, 0.4, 0.3], hollow=False), (-0.16 / 0.5, -0.09 / 0.5),
        [-G, 0, 0],
    ),
    "outside of a torus": (
        djdyn.Torus(0.5, 0.2, hollow=False), (-0.7, -0.2), [-G, 0, 0],
    ),
}  # fmt: skip
BALL = 0.05


def machine(name, coulomb=0.0):
    surface, _, down = SURFACES[name]
    joint = djdyn.PointContact(surface, BALL)
    body = djdyn.Body("ball", "world", joint, mass=0.7, I_BC=0.02 * jnp.eye(3))
    parts = {"rub": PointContactFriction("ball", coulomb)} if coulomb else {}
    return djdyn.System(djdyn.Mechanism((body,), gravity_W=down), parts)


def test_an_ellipsoid_of_equal_radii_is_a_sphere():
    pair = djdyn.Ellipsoid([0.4] * 3), djdyn.HollowSphere(0.4)
    round_, sphere = (djdyn.PointContact(s, BALL) for s in pair)
    q = jnp.array([0.3, -0.5, 0.2, 0.4, -0.1])
    for of in (lambda j: j.pose(q, T0), lambda j: j.subspace(q)):
        leaves = (jax.tree.leaves(of(j)) for j in (round_, sphere))
        for found, known in zip(*leaves, strict=True):
            np.testing.assert_allclose(found, known, atol=1e-14)


@pytest.mark.parametrize("name", SURFACES)
def test_contact_frames_twists_and_drifts_are_derivatives(name):
    """The ball's centre is a radius from the surface, along its normal."""
    joint = machine(name).mechanism.bodies[0].joint
    assert isinstance(joint, djdyn.PointContact)
    rng = np.random.default_rng(1)
    q, v = (jnp.asarray(0.3 * rng.normal(size=5)) for _ in range(2))

    @jax.jit
    def found(q):
        place = lambda q: joint.pose(q, T0)
        X_JA = joint.contact(q)
        along = jax.jacfwd(lambda u: joint.surface.contact(u).p)(q[:2])
        twist = v @ joint.subspace(q)
        return twist, jax.jvp(place, (q,), (v,)), X_JA, along, drift(joint, q, v)

    twist, (X, X_dot), X_JA, along, rate = found(q)
    np.testing.assert_allclose(X.R @ skew(twist[:3]), X_dot.R, atol=1e-14)
    np.testing.assert_allclose(X.R @ twist[3:], X_dot.p, atol=1e-14)
    np.testing.assert_allclose(X_JA.R.T @ X_JA.R, np.eye(3), atol=1e-14)
    assert np.linalg.det(X_JA.R) == pytest.approx(1.0)
    np.testing.assert_allclose(X_JA.R[:, 0] @ along, 0.0, atol=1e-14)
    np.testing.assert_allclose(X_JA.p - X.p, BALL * X_JA.R[:, 0], atol=1e-14)
    h = 1e-5
    ahead, behind = (found(q + s * h * v)[0] for s in (1, -1))
    np.testing.assert_allclose(rate, (ahead - behind) / (2 * h), atol=1e-8)


@pytest.mark.parametrize("name", [k for k in SURFACES if "outside" not in k])
def test_a_sliding_ball_swings_with_the_curvature_of_its_centres_path(name):
    """The frequency is the root of g over the radius of curvature less the ball's."""
    m, zero = machine(name).mechanism, jnp.zeros(5)
    M = djdyn.mass_matrix(m, zero)
    pull = lambda q: djdyn.inverse_dynamics(m, q, zero, zero)
    squares = scipy.linalg.eigh(jax.jit(jax.jacfwd(pull))(zero), M, eigvals_only=True)
    known = sorted(G / (r - BALL) for r in SURFACES[name][1])
    np.testing.assert_allclose(sorted(squares)[-2:], known, rtol=1e-10)
    np.testing.assert_allclose(sorted(squares)[:-2], 0.0, atol=1e-9)


@pytest.mark.parametrize("name", ["ellipsoid", "height", "outside of a torus"])
def test_energy_is_kept_without_friction_and_lost_with_it(name):
    q = [0.3, -0.2, 0.1, 0.3, 0.2]
    for coulomb in (0.0, 0.2):
        system = machine(name, coulomb)
        y0 = system.initial_state(q={"ball": q}, v={"ball": [0.5, 0.3, 1.0, 0.2, -0.4]})
        run = djdyn.simulate(system, 0.4, y0, saveat=9, ledger=True)
        energy = np.asarray(run.energy())
        assert np.max(np.abs(djdyn.energy_balance(system, run))) < 1e-6
        assert (energy[-1] < energy[0] - 1e-3) == bool(coulomb)


def test_gradients_to_shape_and_radius_are_those_of_differences():
    """Also at the bottom, where the tangents are square."""
    q, v = jnp.array([0.2, -0.3, 0.1, 0.4, 0.2]), jnp.array([1.0, 0.5, 2.0, -1.0, 0.3])

    def loss(x):
        at = lambda m: (
            m.bodies[0].joint.surface.radii, m.bodies[0].joint.radius)  # fmt: skip
        m = eqx.tree_at(at, machine("ellipsoid").mechanism, (x[:3], x[3]))
        there = djdyn.forward_dynamics(m, x[4:], v, jnp.zeros(5))
        return there @ jnp.array([1.0, 0.3, -0.5, 0.2, 0.7])

    for place in (q, jnp.zeros(5)):
        theta = jnp.concatenate([jnp.array([0.5, 0.4, 0.3, BALL]), place])
        assert_gradient(loss, theta, h=1e-5)


@pytest.mark.parametrize("name", ["height", "torus"])
def test_kernels_and_a_batch_take_the_same_steps(name):
    system = machine(name, 0.1)
    q = jnp.array([[0.3, -0.2, 0.1, 0.3, 0.2], [0.1, 0.2, 0.0, -0.3, 0.4]])
    y0 = jax.vmap(lambda q: system.initial_state(q={"ball": q}))(q)
    runs = [
        djdyn.rollout(
            system, 0.1, y0, solver="rk4", dt=0.005, saveat=3, backend=backend
        )
        for backend in ("kernel", "xla")
    ]
    np.testing.assert_allclose(runs[0].y.q, runs[1].y.q, atol=1e-12)
    assert np.abs(runs[0].y.q[:, -1] - q).max() > 1e-3


def test_a_ball_must_fit_and_shapes_must_be_possible():
    with pytest.raises(ValueError, match=r"does not fit a surface of 0\.18 m"):
        djdyn.PointContact(djdyn.Ellipsoid([0.5, 0.4, 0.3]), 0.2)
    with pytest.raises(ValueError, match="must be thinner than its radius"):
        djdyn.Torus(0.2, 0.3)
    with pytest.raises(ValueError, match="radii must be above 0"):
        djdyn.Ellipsoid([0.5, 0.0, 0.3])
    djdyn.PointContact(djdyn.Ellipsoid([0.5, 0.4, 0.3], hollow=False), 0.2)
