"""Splines on a mesh, beside SciPy's."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from djdyn.cable import graded
from djdyn.cable.spline import Mesh


X = graded(10, 1.5)
R = np.random.default_rng(0).normal(size=(11, 3))


def test_natural_spline():
    mesh, spline = Mesh(X), CubicSpline(X, R, bc_type="natural")
    m = mesh.curvatures(jnp.array(R), (None, None))
    assert np.allclose(m, spline(X, 2), rtol=1e-10, atol=1e-9)
    assert np.allclose(mesh.slopes(jnp.array(R), m), spline(X, 1), rtol=1e-12)
    for x in (0.0, 0.3, X[3], 0.97, 1.0):
        for order, value in enumerate(mesh.at(jnp.array(R), m, jnp.array(x))):
            assert np.allclose(value, spline(x, order), rtol=1e-9, atol=1e-9)
        hats = mesh.hats(jnp.array(x))
        assert np.allclose([jnp.sum(hats), hats @ np.array(X)], [1.0, x])


def test_weights_integrate_splines():
    spline = CubicSpline(X, R, bc_type="natural")
    assert np.allclose(Mesh(X).weights @ R, spline.integrate(0, 1), rtol=1e-12)
    assert np.isclose(np.sum(Mesh(X, (True, True)).weights), 1.0)


@pytest.mark.parametrize("clamped", [(True, True), (True, False), (False, True)])
def test_clamps_give_directions_and_leave_the_length_of_the_slope(clamped):
    mesh, t = Mesh(X, clamped), jnp.array([[0.0, 0.0, 1.0], [0.6, 0.0, 0.8]])
    tangents = tuple(t[i] if clamped[i] else None for i in (0, 1))
    m = mesh.curvatures(jnp.array(R), tangents)
    slopes = mesh.slopes(jnp.array(R), m)
    for i, node in ((0, 0), (1, -1)):
        if clamped[i]:
            across = slopes[node] - (slopes[node] @ t[i]) * t[i]
            assert np.allclose([*across, m[node] @ t[i]], 0.0, atol=1e-11)
        else:
            assert np.allclose(m[node], 0.0)
