"""NL2SOL beside published least values, SciPy's and Levenberg and Marquardt's."""

import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest
import scipy.optimize

from djdyn.optimize.nl2sol import NL2SOL, trust_region_damping, trust_region_step


def valley(y, _=None):
    """Rosenbrock's."""
    return jnp.concatenate([10 * (y[1:] - y[:-1] ** 2), 1 - y[:-1]])


def brown_dennis(y, _=None):
    """Residuals that stay large; the least sum of squares is 85822.2 (Moré, Garbow and
    Hillstrom, Testing unconstrained optimization software, 1981, no. 16)."""
    t = jnp.arange(1.0, 21.0) / 5
    first = y[0] + t * y[1] - jnp.exp(t)
    return first**2 + (y[2] + y[3] * jnp.sin(t) - jnp.cos(t)) ** 2


def solved(fn, y0, solver):
    with jax.numpy_dtype_promotion("standard"):  # optimistix mixes types
        return optx.least_squares(fn, solver, y0, max_steps=256, throw=False)


def test_large_residuals_are_least_where_they_are_published_to_be():
    y0 = jnp.array([25.0, 5.0, -5.0, -1.0])
    found = solved(brown_dennis, y0, NL2SOL(1e-9, 1e-9))
    assert jnp.sum(brown_dennis(found.value) ** 2) == pytest.approx(85822.2, abs=0.05)
    known = solved(brown_dennis, y0, optx.LevenbergMarquardt(1e-9, 1e-9))
    assert jnp.allclose(found.value, known.value, atol=1e-4)
    assert found.stats["num_steps"] < known.stats["num_steps"] / 2


@pytest.mark.parametrize("start", [(-1.2, 1.0), (0.2, -0.2, 1.0, 0.9)])
def test_small_residuals_take_no_more_steps_than_levenberg_and_marquardt(start):
    found, known = (
        solved(valley, jnp.array(start), solver(1e-9, 1e-9))
        for solver in (NL2SOL, optx.LevenbergMarquardt)
    )
    assert jnp.allclose(found.value, 1.0, atol=1e-8)
    assert found.stats["num_steps"] <= known.stats["num_steps"]


def test_jacobians_are_worked_out_where_steps_are_taken_alone():
    evaluations = {"residuals": 0, "Jacobian": 0}

    def count(what):
        evaluations[what] += 1

    @jax.custom_jvp
    def fn(y):
        jax.debug.callback(lambda: count("residuals"))
        return valley(y)

    @fn.defjvp
    def _(primals, tangents):
        jax.debug.callback(lambda: count("Jacobian"))
        return jax.jvp(valley, primals, tangents)

    found = solved(lambda y, _: fn(y), jnp.array([-1.2, 1.0]), NL2SOL(1e-9, 1e-9))
    jax.effects_barrier()
    assert evaluations["residuals"] == found.stats["num_steps"]
    assert 0 < evaluations["Jacobian"] < evaluations["residuals"]


@pytest.mark.parametrize("seed", range(4))
def test_steps_within_a_radius_are_the_best(seed):
    """Beside SciPy's, where the curvature is negative in some directions."""
    rng = np.random.default_rng(seed)
    A, g = rng.normal(size=(5, 5)), rng.normal(size=5)
    B, radius = A + A.T, 0.7
    p = trust_region_step(jnp.asarray(B), jnp.asarray(g), jnp.asarray(radius))
    value = lambda p: g @ p + p @ B @ p / 2
    known = scipy.optimize.minimize(
        value, 0.1 * p, jac=lambda p: g + B @ p, method="SLSQP",
        constraints={"type": "ineq", "fun": lambda p: radius**2 - p @ p},
        options={"ftol": 1e-14},
    )  # fmt: skip
    assert jnp.linalg.norm(p) <= radius * (1 + 1e-9)
    assert value(p) <= known.fun + 1e-9


def test_without_curvature_damping_is_what_the_radius_asks_for():
    g = jnp.array([3.0, 4.0])
    assert jnp.allclose(
        trust_region_damping(jnp.zeros((2, 2)), g, jnp.array(0.5)), 10.0
    )
