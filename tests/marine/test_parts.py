"""Every marine part: its ledger, and its gradients, also in water that carries it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn

from ..gradients import quick_jit
from ..parts.test_parts import ledgers
from .machine import machine, state


def test_ledgers_close_in_waves_current_and_wind():
    system = machine()
    y, t = state(system), jnp.asarray(1.3)
    found = quick_jit(lambda y, t: ledgers(system, t, y))(y, t)
    for name, (gained, expected, loss) in found.items():
        assert jnp.allclose(gained, expected, rtol=1e-9, atol=1e-9), name
        assert loss >= 0, name


def carried(system: djdyn.System) -> djdyn.State:
    """A state in which nothing moves through the water, and nothing stretches."""
    y, u = system.initial_state(), system.parts["drag"].fluid.currents[0]
    v = y.v
    for joint in ("vehicle", "load", "hook"):
        end = system.mechanism.v_slice(joint).stop
        v = v.at[end - 3 : end].set(u)
    line = {**y.parts["line"], "v": y.parts["line"]["v"] + u[None]}
    return djdyn.State(y.q, v, {**y.parts, "line": line})


@pytest.mark.slow
@pytest.mark.parametrize("still", [False, True])
def test_gradients_to_every_coefficient(still):
    """In reverse, forward, and by differences, along one random direction."""
    system = machine(waves=not still)
    y0 = carried(system) if still else state(system)
    theta, rest = eqx.partition((system, y0), eqx.is_inexact_array)
    rng = np.random.default_rng(0)
    draw = lambda x: jnp.asarray(rng.normal(size=x.shape))
    d, w = jax.tree.map(draw, theta), jax.tree.map(draw, theta[1])
    if still:  # a move of the state would leave the place that is looked at
        d = (d[0], jax.tree.map(jnp.zeros_like, d[1]))

    @jax.jit
    def rate(theta):
        system, y = eqx.combine(theta, rest)
        return system.derivative(1.3, y)

    weigh = lambda rate: sum(jax.tree.leaves(jax.tree.map(jnp.vdot, w, rate)))
    gradient = quick_jit(jax.grad(lambda theta: weigh(rate(theta))))(theta)
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(gradient))
    forward = quick_jit(lambda theta: jax.jvp(rate, (theta,), (d,))[1])(theta)
    reverse = sum(jax.tree.leaves(jax.tree.map(jnp.vdot, gradient, d)))
    np.testing.assert_allclose(weigh(forward), reverse, rtol=1e-9)
    # At kinks such as that of |u| u the difference is off by as much as its step.
    h, rtol = (1e-8, 2e-4) if still else (1e-6, 1e-5)
    move = lambda s: jax.tree.map(lambda x, dx: x + s * dx, theta, d)
    up, down = rate(move(h)), rate(move(-h))
    for x, a, b in zip(*map(jax.tree.leaves, (forward, up, down)), strict=True):
        slope = np.asarray(a - b) / (2 * h)
        size = np.max(np.abs(x), initial=1.0)
        np.testing.assert_allclose(slope, x, rtol=rtol, atol=rtol * size)
