"""Linearly implicit steps: order, stiffness, lines as chains, gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.cable import Cable, CableProperties, DrivenEnd, PinnedEnd
from djdyn.multibody.time_functions import Harmonic

from ..gradients import assert_gradient


# A load on a stiff line whose upper end heaves, 50 times faster than the load bounces.
LENGTH, DT = 20.0, 0.01


def hoist() -> djdyn.System:
    load = djdyn.Body(
        "load", "world", djdyn.Free(), 200.0, (0, 0, -0.5), 20.0 * np.eye(3)
    )
    heave = Harmonic([0.02, 0.0, 0.1], 2.0, 0.0)
    line = Cable(
        CableProperties(0.5, 4e6),
        LENGTH,
        tail=PinnedEnd("load"),
        head=DrivenEnd(heave),
        mesh=5,
    )
    return djdyn.System(djdyn.Mechanism((load,)), {"line": line})


@pytest.fixture(scope="module")
def lift() -> tuple[djdyn.System, djdyn.State]:
    system = hoist()
    q = jnp.array([0.0, 0.0, -LENGTH, 1.0, 0.0, 0.0, 0.0])
    return system, djdyn.equilibrium(system, system.initial_state(q=q))


@pytest.mark.slow
def test_lines_at_long_steps(lift):
    """Against adaptive steps; explicit ones of this length blow up."""
    system, y0 = lift
    saves = np.linspace(0.0, 2.0, 41)
    wanted = djdyn.simulate(system, 2.0, y0, saveat=saves, rtol=1e-9, atol=1e-9)
    errors = []
    for dt in (DT, DT / 2):  # of a bounce of 0.2 s
        how = {"solver": "ros2", "dt": dt, "saveat": saves}
        found = djdyn.simulate(system, 2.0, y0, **how)
        errors.append(np.max(np.abs(found.y.q - wanted.y.q)))
    assert errors[1] < 1e-3  # m, where the upper end heaves by 0.1 m
    assert errors[0] / errors[1] > 3.5


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


def test_without_lines_there_is_nothing_to_do():
    body = djdyn.Body(
        "mass", "world", djdyn.Prismatic((1, 0, 0)), 1.0, (0, 0, 0), np.eye(3)
    )
    system = djdyn.System(djdyn.Mechanism((body,)))
    with pytest.raises(ValueError, match="there is none"):
        djdyn.simulate(system, 1.0, solver="ros2", dt=0.1)


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
