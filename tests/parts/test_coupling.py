"""Grips that close and open, and supports: momentum, energy, gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from controllers import Reference
from djdyn.multibody.spatial import quat_log, quat_multiply
from djdyn.multibody.time_functions import Moves
from djdyn.parts import Grip, Support

from ..gradients import assert_gradient


WEIGHTLESS = (0.0, 0.0, 0.0)
STEPS = {"solver": "rk4", "dt": 2e-3}


def switch(*times: float) -> Moves:
    """Closed and opened in turn, within 20 ms."""
    values = [[float((i + 1) % 2)] for i in range(len(times))]
    return Moves([0.0], values, times, [t + 0.02 for t in times])


def two(latch: bool, *times: float) -> djdyn.System:
    """Two bodies that float towards each other, and a grip between them."""
    bodies = tuple(
        djdyn.Body(name, "world", djdyn.Free(), m, (0.1, 0, 0), np.diag(I))
        for name, m, I in (("ship", 9.0, [2.0, 3, 4]), ("box", 2.0, [0.2, 0.3, 0.4]))
    )
    parts = {
        "clock": Reference(switch(*times)),
        "grip": Grip("ship", "box", "clock.value", 2e3, 80.0, 60.0, 4.0, latch),
    }
    return djdyn.System(djdyn.Mechanism(bodies, gravity_W=WEIGHTLESS), parts)


def momentum(world) -> jax.Array:
    """Linear and angular momentum about the world's origin."""
    total = jnp.zeros(6)
    for i in (1, 2):
        body = world.mechanism.bodies[i - 1]
        R, w = world.X_WB.R[i], world.V_WB[i, :3]
        c = world.X_WB.p[i] + R @ body.p_BC
        v = world.V_WB[i, 3:] + jnp.cross(w, R @ body.p_BC)
        spin = R @ body.I_BC @ R.T @ w + body.mass * jnp.cross(c, v)
        total = total + jnp.concatenate([spin, body.mass * v])
    return total


@pytest.mark.parametrize("latch", [True, False])
def test_momentum_is_kept_and_energy_booked(latch):
    """While a grip closes, holds and opens; a latch keeps the pose where it caught."""
    system = two(latch, 0.3, 1.2)
    y0 = system.initial_state(
        {"box": [0.4, 0.1, -0.2, 0.9, 0.2, -0.1, 0.3]},
        {"ship": [0.1, 0, 0, 0.2, 0, 0], "box": [0, 0.3, -0.2, -0.1, 0.1, 0]},
    )
    found = djdyn.simulate(
        system, 2.0, y0, saveat=41, ledger=True, rtol=1e-9, atol=1e-10
    )
    kept = np.asarray(found.map(lambda now: momentum(now.world)))
    assert np.abs(kept - kept[0]).max() < 1e-9
    assert np.abs(djdyn.energy_balance(system, found)).max() < 1e-6
    held = np.asarray(found.y.parts["grip"]["hold"])
    assert held[0] == 0 and abs(held[20] - 1) < 1e-6 and abs(held[-1]) < 1e-6
    loose = np.asarray(found.signal("grip.force"))
    assert np.abs(loose[-1]).max() < 1e-3 < np.abs(loose[10:20]).max()
    q = np.asarray(found.q("box"))
    turn = lambda i: np.asarray(
        quat_log(quat_multiply(
            jnp.asarray(found.q("ship")[i, 3:]) * jnp.array([1.0, -1, -1, -1]),
            jnp.asarray(q[i, 3:]),
        ))
    )  # fmt: skip
    apart = np.linalg.norm(turn(24) - turn(7))
    assert (apart < 0.15) == latch, apart


def test_the_common_velocity_of_a_catch():
    """Two masses that meet share their momentum: the textbook's inelastic impact."""
    bodies = tuple(
        djdyn.Body(name, "world", djdyn.Prismatic((1, 0, 0)), m)
        for name, m in (("a", 3.0), ("b", 1.0))
    )
    grip = Grip("a", "b", "closed", 4e3, 120.0, latch=True)
    system = djdyn.System(
        djdyn.Mechanism(bodies, gravity_W=WEIGHTLESS), {"grip": grip}, {"closed": 1.0}
    )
    y0 = system.initial_state(v={"a": [1.0], "b": [-1.0]})
    end = djdyn.simulate(system, 2.0, y0, saveat=[2.0]).y.v[-1]
    assert jnp.allclose(end, 0.5, atol=1e-6)


def test_gradient_by_the_time_of_release():
    """A stone let go from a sling: how far it is by when it was let go."""
    bodies = (
        djdyn.Body("arm", "world", djdyn.Revolute((0, -1, 0)), 5.0, (0.5, 0, 0),
                   np.diag([0.1, 1, 1])),
        djdyn.Body("stone", "world", djdyn.Cartesian(), 0.5),
    )  # fmt: skip
    tip = djdyn.Frame("tip", "arm", djdyn.translation((1.0, 0.0, 0.0)))
    parts = {
        "clock": Reference(Moves([1.0], [[0.0]], [0.2], [0.22])),
        "grip": Grip("stone", "tip", "clock.value", 2e3, 60.0, start=1.0),
    }
    system = djdyn.System(djdyn.Mechanism(bodies, (tip,)), parts)
    y0 = system.initial_state(
        {"stone": [1.0, 0, 0]}, {"arm": 4.0, "stone": [0, 0, 4.0]}
    )

    def far(x, **how):
        moved = djdyn.with_parameters(
            system, {"clock.path.start": x, "clock.path.end": x + 0.02}
        )
        return djdyn.simulate(moved, 0.5, y0, saveat=[0.5], **STEPS, **how).y.q[-1, 1]

    forward = lambda x: far(x, adjoint="forward")
    assert_gradient(far, jnp.array([0.2]), forward=forward, h=1e-4, rtol=1e-4,
                    modes_rtol=1e-8)  # fmt: skip


def test_grip_and_support_have_the_modes_of_their_springs():
    """Rokseth (2014): 70 kg on 5e5 N/m sinks by 1.3734 mm; 84.515 rad/s, 0.845."""
    body = djdyn.Body("object", "world", djdyn.Cartesian(), 70.0)
    parts = {
        "grip": Grip("world", "object", "closed", 5e5, 1e4, start=1.0),
        "pillar": Support("object", 1.0, 5e5, 1e3, 1e3),
    }
    system = djdyn.System(djdyn.Mechanism((body,)), parts, {"closed": 1.0})
    loose = djdyn.with_parameters(system, {"grip.start": 0.0, "closed": 0.0})

    @jax.jit
    def linear(system, z):
        y = eqx.tree_at(lambda y: y.q, system.initial_state(), jnp.array([0.0, 0, z]))
        A = jax.jacfwd(lambda q, v: system.derivative(
            0.0, djdyn.State(q, v, y.parts)).v, (0, 1))(y.q, y.v)  # fmt: skip
        return system.derivative(0.0, y).v, A[0][2, 2], A[1][2, 2]

    _, k, c = linear(system, 2.0)
    assert np.isclose(np.sqrt(-k), 84.515, atol=5e-4)
    assert np.isclose(-c / 2 / np.sqrt(-k), 0.845, atol=5e-4)
    a, k, c = linear(loose, 1.0 - 1.3734e-3)
    assert jnp.allclose(a, 0.0, atol=1e-9)
    assert np.isclose(-c / 2 / np.sqrt(-k), 0.0845, atol=5e-5)


def test_unknown_frames_are_named():
    body = djdyn.Body("object", "world", djdyn.Cartesian(), 70.0)
    grip = Grip("claw", "object", "closed", 5e5)
    with pytest.raises(
        ValueError, match="part 'grip': unknown frame 'claw'; there are"
    ):
        djdyn.System(djdyn.Mechanism((body,)), {"grip": grip}, {"closed": 1.0})
