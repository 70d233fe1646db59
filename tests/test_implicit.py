"""Linearly implicit steps: order, stiffness, lines as chains, gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.cable import Cable, DrivenEnd, PinnedEnd, Rope
from djdyn.implicit import eliminate, substitute
from djdyn.parts import JointFriction, JointSpring
from djdyn.timefunctions import Harmonic

from .gradients import assert_gradient


def spring(stiffness: float, viscous: float) -> djdyn.System:
    """A slider of 1 kg without weight."""
    body = djdyn.Body(
        "mass", "world", djdyn.Prismatic((1, 0, 0)), 1.0, (0, 0, 0), np.eye(3)
    )
    parts = {
        "spring": JointSpring("mass", stiffness),
        "friction": JointFriction("mass", viscous=viscous),
    }
    return djdyn.System(djdyn.Mechanism((body,)), parts)


def test_elimination():
    rng = np.random.default_rng(0)
    W, b = np.eye(6) + 0.3 * rng.normal(size=(6, 6)), rng.normal(size=6)
    found = jax.jit(lambda W, b: substitute(eliminate(W), b))(W, b)
    assert np.allclose(found, np.linalg.solve(W, b), rtol=1e-12)


def test_second_order_on_a_damped_oscillation():
    """Closed form of x'' + 2x' + 26x = 0 from one: exp(-t)(cos 5t + sin(5t)/5)."""
    system, errors = spring(26.0, 2.0), []
    y0 = system.initial_state(q={"mass": [1.0]})
    exact = np.exp(-1.0) * (np.cos(5.0) + np.sin(5.0) / 5)
    for dt in (0.02, 0.01):
        end = djdyn.simulate(system, 1.0, y0, solver="ros2", dt=dt, saveat=[1.0])
        errors.append(abs(float(end.y.q[0, 0]) - exact))
    assert errors[1] < 1e-3
    assert 1.8 < np.log2(errors[0] / errors[1]) < 2.2


def test_stiff_decay_is_damped_out():
    """A pole at -1e6 1/s, in steps of 10 ms."""
    system = spring(1e6, 1e6)
    y0 = system.initial_state(q={"mass": [1.0]}, v={"mass": [5.0]})
    end = djdyn.simulate(system, 0.1, y0, solver="ros2", dt=0.01, saveat=[0.1])
    slow = np.exp(-0.1)  # the other pole: x' = -x
    assert np.isclose(float(end.y.q[0, 0]), slow, rtol=1e-4)


# A load on a stiff line whose upper end heaves, 50 times faster than the load bounces.
LENGTH, DT = 20.0, 0.01


def hoist() -> djdyn.System:
    load = djdyn.Body(
        "load", "world", djdyn.Free(), 200.0, (0, 0, -0.5), 20.0 * np.eye(3)
    )
    heave = Harmonic([0.02, 0.0, 0.1], 2.0, 0.0)
    line = Cable(
        Rope(0.5, 4e6), LENGTH, tail=PinnedEnd("load"), head=DrivenEnd(heave), mesh=5
    )
    return djdyn.System(djdyn.Mechanism((load,)), {"line": line})


@pytest.fixture(scope="module")
def lift() -> tuple[djdyn.System, djdyn.State]:
    system = hoist()
    q = jnp.array([0.0, 0.0, -LENGTH, 1.0, 0.0, 0.0, 0.0])
    return system, djdyn.equilibrium(system, system.initial_state(q=q))


def tension(trajectory) -> np.ndarray:
    return np.asarray(trajectory.signal("line.head_tension"))


def test_lines_at_long_steps(lift):
    """Against adaptive steps; explicit ones of this length blow up."""
    system, y0 = lift
    saves = np.linspace(0.0, 2.0, 41)
    wanted = djdyn.simulate(system, 2.0, y0, saveat=saves, rtol=1e-9, atol=1e-9)
    errors = []
    for dt in (DT, DT / 2):
        how = {"solver": "ros2", "dt": dt, "saveat": saves}
        found = djdyn.simulate(system, 2.0, y0, **how)
        gap = tension(found) - tension(wanted)
        errors.append(np.max(np.abs(gap)) / np.ptp(tension(wanted)))
        assert np.max(np.abs(found.y.q - wanted.y.q)) < 2e-3
    assert errors[1] < 0.03
    assert errors[0] / errors[1] > 3


def test_kernels_take_the_same_steps(lift):
    system, y0 = lift
    batch = jax.tree.map(lambda x: jnp.stack([x, x + 1e-3]), y0)
    how = {"solver": "ros2", "dt": DT, "saveat": [0.2]}
    ends = [
        djdyn.rollout(system, 0.2, batch, backend=b, **how).y for b in ("kernel", "xla")
    ]
    alone = djdyn.simulate(system, 0.2, y0, **how).y
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
    jax.tree.map(close, *ends)
    jax.tree.map(close, jax.tree.map(lambda x: x[0], ends[0]), alone)


@pytest.mark.slow
def test_gradients(lift):
    """To what the line is made of, exactly those of the steps that were taken."""
    system, y0 = lift
    where = lambda s: (s.parts["line"].rope.EA, s.parts["line"].rope.linear_density)

    def loss(logs):
        sized = [jnp.exp(x) * v for x, v in zip(logs, where(system), strict=True)]
        here = eqx.tree_at(where, system, tuple(sized))
        start = jax.tree.map(lambda x: x[None], y0)
        how = {"solver": "ros2", "dt": DT, "saveat": np.array([0.2])}
        end = djdyn.rollout(here, 0.2, start, **how)
        return 1e2 * jnp.sum(end.y.v**2) + jnp.sum(end.y.q**2)

    assert_gradient(loss, [jnp.zeros(()), jnp.zeros(())], rtol=1e-6)
