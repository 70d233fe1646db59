"""Forward mode, reverse mode and differences agree for any count of steps."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from djdyn.simulation.solvers.registry import Integrator


def pendulum(t, y, p):
    return jnp.stack([y[1], -14.7 * jnp.sin(y[0]) - 3 * p * y[1]]) + 0 * t


def drift(t, y, p):
    return p * jnp.stack([jnp.ones(()), -jnp.ones(())]) + 0 * y + 0 * t


def mean_square(field, p, t1, saves, **options):
    """Mean square of the first state, and its derivative by `p` in one mode."""
    settings = {"solver": "tsit5", "dt": None, "rtol": 1e-6, "atol": 1e-6}
    integrator = Integrator(**{**settings, "max_steps": 4096, **options})
    times = jnp.linspace(0.0, t1, saves)
    steps = integrator.steps(0.0, t1)
    y0 = jnp.array([1.0, 0.0])
    sol = integrator.run(field, 0.0, t1, y0, p, times, steps, None, False)
    return jnp.mean(sol.ys[0][:, 0] ** 2)


def both_modes(field, t1, saves, p=0.1, **options):
    value = lambda mode: (
        lambda p: mean_square(field, p, t1, saves, adjoint=mode, **options)
    )
    reverse = jax.jit(jax.grad(value("reverse")))(p)
    forward = jax.jit(lambda p: jax.jvp(value("forward"), (p,), (1.0,))[1])(p)
    return float(reverse), float(forward)


slow = lambda *values: pytest.param(*values, marks=pytest.mark.slow)
COUNTS = [1, 7, 60, 300, 1000]
MORE = [2, 3, 10, 30, 90, 150, 157, 512, 800]


@pytest.mark.parametrize("count", [*COUNTS, *map(slow, MORE)])
def test_fixed_steps_that_end_at_saves(count):
    saves = count // 10 + 1 if count % 10 == 0 else count + 1
    options = {"solver": "rk4", "dt": 0.01}
    reverse, forward = both_modes(pendulum, count * 0.01, saves, **options)
    assert reverse == pytest.approx(forward, rel=1e-11)
    value = jax.jit(
        lambda p: mean_square(
            pendulum, p, count * 0.01, saves, adjoint="forward", **options
        )
    )
    difference = float(value(0.1 + 1e-5) - value(0.1 - 1e-5)) / 2e-5
    assert reverse == pytest.approx(difference, rel=1e-6, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(8))
def test_many_counts_of_fixed_steps(first):
    for count in np.random.default_rng(first).choice(1000, 12, replace=False) + 1:
        saves = int(np.random.default_rng(count).integers(2, count + 2))
        options = {"solver": "rk4", "dt": 0.01}
        reverse, forward = both_modes(pendulum, count * 0.01, saves, **options)
        assert reverse == pytest.approx(forward, rel=1e-11), (count, saves)


@pytest.mark.parametrize("solver", ["tsit5", slow("dopri8"), "rodas4"])
def test_every_solver_with_fixed_steps(solver):
    options = {"solver": solver, "dt": 0.01}
    reverse, forward = both_modes(pendulum, 1.5, 11, **options)
    assert reverse == pytest.approx(forward, rel=1e-9)


@pytest.mark.parametrize("solver", ["kvaerno3", "kvaerno5"])
def test_adaptive_solvers_refuse_a_step(solver):
    with pytest.raises(ValueError, match="adaptive"):
        Integrator(solver, 0.01, 1e-6, 1e-6, 10, "reverse")


ALL = list(
    itertools.product((pendulum, drift), (16, 151), ("tsit5", "kvaerno5", "rodas4"))
)
QUICK = [(pendulum, 151, "tsit5"), (drift, 16, "kvaerno5"), (drift, 151, "rodas4")]


@pytest.mark.parametrize(
    "field, saves, solver", [x if x in QUICK else slow(*x) for x in ALL]
)
def test_adaptive_steps(field, saves, solver):
    """Steps of a drift grow tenfold without error, onto round times."""
    reverse, forward = both_modes(field, 1.5, saves, p=1.0, solver=solver)
    assert reverse == pytest.approx(forward, rel=1e-9)
