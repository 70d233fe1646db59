"""BFGS beside SciPy's, in valleys and at kinks."""

import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest
import scipy.optimize

from djdyn.optimize.bfgs import BFGS
from djdyn.optimize.box_qp import solve_box_qp


def rosenbrock(y, _=None):
    return jnp.sum(100 * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2)


def kinked(y, _=None):
    """Lewis and Overton's: the valley's floor is a kink, and leads to (1, 1)."""
    return 8 * jnp.abs(y[0] ** 2 - y[1]) + (1 - y[0]) ** 2


def descended(fn, y0, tol=1e-9, max_steps=512):
    with jax.numpy_dtype_promotion("standard"):  # optimistix mixes types
        return optx.minimise(fn, BFGS(tol, tol), y0, max_steps=max_steps, throw=False)


@pytest.mark.parametrize("start", [(-1.2, 1.0), (0.2, -0.2, 1.0, 0.9)])
def test_a_valley_takes_about_as_many_gradients_as_scipy_needs(start):
    y0 = jnp.array(start)
    unit = jnp.linalg.norm(jax.grad(rosenbrock)(y0)) / 0.3  # a sensible first step
    fn = lambda y, _=None: rosenbrock(y) / unit
    found, slope = descended(fn, y0), jax.jit(jax.grad(fn))
    known = scipy.optimize.minimize(jax.jit(fn), y0, jac=slope, method="BFGS", tol=1e-9)
    assert jnp.allclose(found.value, 1.0, atol=1e-6) and np.allclose(known.x, 1.0)
    assert found.stats["num_steps"] < 1.5 * known.nfev


def test_the_least_value_lies_at_a_kink():
    found = descended(kinked, jnp.array([-0.8, 0.2]), max_steps=300)
    assert kinked(found.value) < 1e-6
    assert jnp.allclose(found.value, 1.0, atol=1e-3)


def test_a_least_value_is_told_at_once():
    found = descended(rosenbrock, jnp.ones(3))
    assert found.stats["num_steps"] <= 2 and jnp.array_equal(found.value, jnp.ones(3))


def test_the_search_turns_back_from_a_cost_that_diverged():
    """The cost beyond one is a constant without slope, as where all runs diverge."""
    cliff = lambda y, _: jnp.where(y[0] < 1, jnp.cosh(3 * (y[0] - 0.9)), 1e8)
    found = descended(cliff, jnp.array([-1.0]))
    assert jnp.allclose(found.value, 0.9, atol=1e-4)


def test_a_search_goes_as_far_as_a_jump():
    """The slope before a jump never becomes flat, so the Wolfe condition fails."""
    step = lambda y, _: (y[0] - 2) ** 2 + 50.0 * (y[0] > 1)
    found = descended(step, jnp.array([-1.0]))
    assert 0.99 < found.value[0] <= 1 and found.stats["num_steps"] < 100


@pytest.mark.parametrize("seed", range(5))
def test_within_bounds_a_quadratic_is_least_where_scipy_finds_it(seed):
    rng = np.random.default_rng(seed)
    A, g = rng.normal(size=(8, 8)), 3 * rng.normal(size=8)
    B, low, high = A @ A.T + 0.1 * np.eye(8), -rng.random(8), rng.random(8)
    low[0], high[1], low[2] = -np.inf, np.inf, 0.0
    p = solve_box_qp(*map(jnp.asarray, (B, g, low, high)))
    value = lambda p: g @ p + p @ B @ p / 2
    known = scipy.optimize.minimize(
        value, np.zeros(8), jac=lambda p: g + B @ p, method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)), options={"ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    assert np.allclose(p, known.x, atol=1e-5)
    assert value(p) <= known.fun + 1e-10


def test_bounds_are_kept_and_found():
    """Rosenbrock's valley, whose bottom lies outside."""
    y0, seen = jnp.array([-1.2, 0.2]), []
    options = {"lower": jnp.array([-1.5, -1.0]), "upper": jnp.array([2.0, 0.5])}

    def fn(y, _):
        jax.debug.callback(lambda y: seen.append(np.asarray(y)), y)
        return rosenbrock(y)

    with jax.numpy_dtype_promotion("standard"):
        found = optx.minimise(fn, BFGS(1e-9, 1e-9), y0, options=options, throw=False)
    x = scipy.optimize.minimize_scalar(lambda x: rosenbrock(jnp.array([x, 0.5]))).x
    assert jnp.allclose(found.value, jnp.array([x, 0.5]), atol=1e-6)
    assert np.all(np.array(seen) >= np.asarray(options["lower"]))
    assert np.all(np.array(seen) <= np.asarray(options["upper"]))
    assert found.stats["num_steps"] < 40


def test_a_wall_that_is_known_does_not_slow_what_is_soft():
    """A penalty a thousand times as stiff as the rest, exceeded at the start."""
    goal, stiff = jnp.linspace(0.1, 0.2, 8), jnp.linspace(1.0, 4.0, 8)
    excess = lambda y: jnp.maximum(0.0, y @ jnp.ones(8) / jnp.sqrt(8.0) + 0.5)
    wall = lambda y: 500 * excess(y) ** 2
    turns = jnp.array([1.0, -1.0] * 4)
    fn = lambda y, _: stiff @ (y - goal * turns) ** 2 + wall(y)
    y0 = jnp.zeros(8)
    known = {"penalties": jax.value_and_grad(wall)(y0)}
    evaluations = []
    for options in ({}, known):
        with jax.numpy_dtype_promotion("standard"):
            found = optx.minimise(
                fn, BFGS(1e-9, 1e-9), y0, options=options, throw=False
            )
        evaluations.append(found.stats["num_steps"])
        best = scipy.optimize.minimize(lambda y: fn(y, None), y0, tol=1e-12)
        assert jnp.allclose(found.value, best.x, atol=1e-4)
    assert evaluations[1] < evaluations[0] / 2
