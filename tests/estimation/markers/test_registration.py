"""Registration of rigid bodies, compared with SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from djdyn.multibody.spatial import quat_exp, quat_to_rotation
from estimation import frame_from_four, frame_from_three, register
from tests.gradients import assert_gradient


RNG = np.random.default_rng(0)
fit = jax.jit(register)


def clouds(m: int, noise: float = 0.0):
    """Return points of B and their images in A."""
    R, p = Rotation.random(rng=RNG).as_matrix(), RNG.normal(size=3)
    p_B = RNG.normal(size=(m, 3))
    return R, p, p_B, p_B @ R.T + p + noise * RNG.normal(size=(m, 3))


@pytest.mark.parametrize("m", [3, 4, 20])
def test_weighted_fit_is_that_of_scipy(m):
    for noise in (0.0, 0.1):
        R, p, p_B, p_A = clouds(m, noise)
        w = RNG.uniform(0.1, 1.0, m)
        found = fit(jnp.asarray(p_A), jnp.asarray(p_B), jnp.asarray(w))
        a, b = np.average(p_A, 0, w), np.average(p_B, 0, w)
        theirs, distance = Rotation.align_vectors(p_A - a, p_B - b, w)
        assert found.ok and np.allclose(found.X_AB.R, theirs.as_matrix(), atol=1e-10)
        assert np.allclose(found.X_AB.p, a - theirs.apply(b), atol=1e-10)
        mine = np.sqrt(np.sum(w * found.residuals**2))
        assert np.isclose(mine, distance, atol=1e-7)
        if not noise:
            assert np.allclose(found.X_AB.R, R) and np.allclose(found.X_AB.p, p)


def test_hidden_points_weigh_nothing():
    _, _, p_B, p_A = clouds(6, 0.1)
    seen = np.array([1, 1, 0, 1, 1, 0], bool)
    some = fit(jnp.asarray(p_A), jnp.asarray(p_B), jnp.asarray(seen))
    few = fit(jnp.asarray(p_A[seen]), jnp.asarray(p_B[seen]))
    assert np.allclose(some.X_AB.R, few.X_AB.R, atol=1e-12)
    assert np.array_equal(some.used, seen)
    for alone in (np.arange(6) < 2, np.zeros(6, bool)):
        found = fit(jnp.asarray(p_A), jnp.asarray(p_B), jnp.asarray(alone))
        assert not found.ok and np.all(np.isfinite(found.X_AB.R))
    line = np.outer(np.arange(4.0), [1.0, 2.0, 3.0])
    assert not fit(jnp.asarray(line), jnp.asarray(line)).ok


def test_outliers_are_rejected():
    """Any one point may be wrong, or two of six."""
    robust = jax.jit(lambda a, b: register(a, b, reject=0.01))
    for m, wrong in [(4, (i,)) for i in range(4)] + [(6, (0, 3)), (6, (1, 2))]:
        R, p, p_B, p_A = clouds(m, 1e-4)
        p_A[list(wrong)] += RNG.normal(size=(len(wrong), 3))
        found = robust(jnp.asarray(p_A), jnp.asarray(p_B))
        assert np.array_equal(found.used, ~np.isin(np.arange(m), wrong))
        assert found.ok and np.allclose(found.X_AB.p, p, atol=1e-2)
        assert np.allclose(found.X_AB.R, R, atol=1e-2)


SQUARE = jnp.array([[1.0, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0]])


@pytest.mark.parametrize("cloud", ["square", "cube", "random"])
def test_derivatives_are_those_of_the_solution(cloud):
    """Derivatives hold also where two or three singular values are equal."""
    corners = jnp.concatenate([SQUARE + jnp.array([[0, 0, z]]) for z in (-1.0, 1.0)])
    _, _, p_B, p_A = clouds(5, 0.05)
    if cloud != "random":
        p_B = SQUARE if cloud == "square" else corners
        p_A = p_B @ quat_to_rotation(quat_exp(jnp.array([0.3, -0.2, 1.0]))).T
    probe = jnp.asarray(RNG.normal(size=(3, 3)))

    def loss(points):
        X_AB = register(points["A"], points["B"]).X_AB
        return jnp.sum(probe * X_AB.R) + X_AB.p @ probe[0]

    points = {"A": jnp.asarray(p_A), "B": jnp.asarray(p_B)}
    assert_gradient(loss, points, modes_rtol=1e-10)


def test_many_samples_at_once():
    _, _, p_B, p_A = clouds(4, 0.1)
    many = jnp.stack([jnp.asarray(p_A)] * 3)
    found = jax.jit(jax.vmap(register, in_axes=(0, None)))(many, jnp.asarray(p_B))
    one = fit(jnp.asarray(p_A), jnp.asarray(p_B))
    assert np.allclose(found.X_AB.R[2], one.X_AB.R, atol=1e-12)


def test_frame_of_three_markers():
    """The third point is on the y axis, the second at negative x, with z = 0."""
    p1, p2, p3 = jnp.asarray(RNG.normal(size=(3, 3)))
    X_AF = frame_from_three(p1, p2, p3)
    assert np.allclose(X_AF.R @ X_AF.R.T, np.eye(3)) and np.linalg.det(X_AF.R) > 0
    second, third = (X_AF.inverse.act(p) for p in (p2, p3))
    assert np.allclose(third, [0, np.linalg.norm(p3 - p1), 0])
    assert second[0] < 0 and np.isclose(second[2], 0)


def test_two_pairs_make_the_frame_that_placed_them():
    """Also where the second pair is not quite square to the first."""
    rng = np.random.default_rng(4)
    R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    R = R * np.linalg.det(R)
    p = rng.normal(size=3)
    pairs = np.array(
        [[0, -0.1, 0], [0, 0.1, 0], [0.02, 0.03, -0.05], [0.02, 0.05, 0.2]]
    )
    X_AF = frame_from_four(*jnp.asarray(pairs @ R.T + p))
    np.testing.assert_allclose(X_AF.R, R, atol=1e-12)
    np.testing.assert_allclose(X_AF.p, p, atol=1e-12)
