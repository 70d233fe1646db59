"""Plans, compared with finite-horizon regulators and a bounded search by SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import djdyn
from controllers import flat_step, ilqr, receding_horizon, search_baseline
from djdyn.parts import JointActuator


N, DT, RHO = 20, 0.1, 0.1


@pytest.fixture(scope="module")
def step():
    body = djdyn.Body("slide", "world", djdyn.Prismatic((1, 0, 0)), 2.0)
    drive = {"drive": JointActuator(("slide",), "push")}
    system = djdyn.System(djdyn.Mechanism((body,)), drive, {"push": [0.0]})
    return flat_step(system, DT)[0]


A, B = np.array([[1, DT], [0, 1]]), np.array([[DT**2 / 4], [DT / 2]])
X0 = jnp.array([1.0, 0.5])


def running(x, u):
    return x @ x + RHO * (u @ u)


def final(x):
    return 10 * (x @ x)


def test_a_linear_plan_is_riccatis(step):
    P, gains = 10 * np.eye(2), []
    for _ in range(N):
        K = np.linalg.solve(RHO * np.eye(1) + B.T @ P @ B, B.T @ P @ A)
        P = np.eye(2) + A.T @ P @ (A - B @ K)
        gains.append(-K)
    plan = jax.jit(lambda x: ilqr(step, running, final, x, jnp.zeros((N, 1))))(X0)
    assert np.isclose(plan.cost, X0 @ P @ X0, rtol=1e-6)
    assert np.allclose(plan.K, gains[::-1], atol=1e-4) and plan.done


def test_inputs_stay_in_their_box(step):
    """SciPy's quasi-Newton search with bounds finds the same inputs."""
    one = lambda x: ilqr(
        step, running, final, x, jnp.zeros((N, 1)), low=-1.0, high=1.0, tolerance=1e-12
    )
    plan = jax.jit(one)(X0)

    def cost(u):
        x, total = np.asarray(X0), 0.0
        for v in u:
            total += x @ x + RHO * v**2
            x = A @ x + B[:, 0] * v
        return total + 10 * x @ x

    best = scipy.optimize.minimize(
        cost, np.zeros(N), bounds=[(-1, 1)] * N, method="L-BFGS-B",
        options={"ftol": 1e-15, "maxfun": 100000},
    )  # fmt: skip
    assert np.abs(plan.u).max() <= 1.0
    assert np.isclose(plan.cost, best.fun, rtol=1e-6)
    assert np.allclose(plan.u[:, 0], best.x, atol=1e-3)


def test_a_plan_made_anew_at_every_step_brings_it_home(step):
    plan = lambda x, u: ilqr(
        step, running, final, x, u, low=-1.0, high=1.0, iterations=5
    )
    go = lambda x: receding_horizon(step, plan, x, jnp.zeros((N, 1)), 60)
    xs, us = jax.jit(jax.vmap(go))(jnp.stack([X0, -X0]))
    assert np.allclose(xs[0], -xs[1], atol=1e-6) and np.abs(us).max() <= 1.0
    assert np.abs(xs[:, -1]).max() < 0.05


def test_a_plan_needs_inputs():
    body = djdyn.Body("slide", "world", djdyn.Prismatic((1, 0, 0)), 2.0)
    with pytest.raises(ValueError, match="needs a system with inputs"):
        flat_step(djdyn.System(djdyn.Mechanism((body,))), DT)


@pytest.mark.parametrize("method", ["CMA-ES", "Nelder-Mead", "random search"])
def test_rivals_keep_to_their_budget(method):
    if method == "CMA-ES":
        pytest.importorskip("cma")
    bowl = lambda x: np.sum((x - 0.3) ** 2, -1)
    found = search_baseline(method, bowl, 3, budget=200)
    assert len(found.history) <= 200 and found.history[0, 2] >= found.cost
    assert np.isclose(bowl(found.x), found.cost) and found.cost < 0.1
    assert found.simulations_to(found.cost) <= 200
    assert found.simulations_to(-1.0) == np.inf
    with pytest.raises(ValueError, match="method is"):
        search_baseline("gradient", bowl, 3, budget=2)
