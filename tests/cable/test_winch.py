"""Line that is paid out and pulled in."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import djdyn
from djdyn.cable import Cable, CableProperties, FixedEnd, FreeEnd, PointMass, Sheave
from djdyn.multibody.time_functions import Harmonic, Interpolated
from djdyn.system.equilibrium import equilibrium
from experiments.studies.cable.model import ground, hoist, payload


def test_pendulum_of_growing_length():
    """Beside a payload on a massless spring whose length is fed at a rate U."""
    U, L0, angle, end, m, EA, c = 1.0, 5.0, 0.3, 4.0, 100.0, 2e5, 200.0
    system = hoist(m, L0, CableProperties(0.01, EA, axial_damping=c), mesh=2)
    down, l0 = jnp.array([np.sin(angle), 0, -np.cos(angle)]), 5.025
    y = system.initial_state(
        q={"load": [*(l0 * down)[:2], l0 * down[2] + L0, 1.0, 0, 0, 0]},
        v={"load": [0, 0, 0, *(U * down)]},
    )
    line = {**y.parts["line"], "r": l0 / 2 * down[None], "v": U * down[None]}
    y = djdyn.State(y.q, y.v, {"line": line})
    run = djdyn.simulate(
        system, end, y, inputs={"rate": U}, saveat=9, rtol=1e-6, atol=1e-7
    )
    p = np.asarray(run.y.q[:, :3]) - [0, 0, L0]

    def rhs(t, y):
        q, v, L = y[:2], y[2:], L0 + U * t
        far = np.hypot(*q)
        rate = q @ v / far / L - far * U / L**2
        pull = EA * (far / L - 1) + c * rate
        return [*v, *(-pull * q / far / m - [0, 9.81])]

    down = np.asarray(down)[[0, 2]]
    start = [*(l0 * down), *(U * down)]
    exact = solve_ivp(rhs, (0, end), start, rtol=1e-9, t_eval=run.t).y[:2].T
    assert np.allclose(p[:, [0, 2]], exact, atol=2e-3)
    assert np.isclose(run.y.parts["line"]["paid"][-1, 1], U * end)


def test_out_to_five_times_and_back():
    """Mass, energy and the ledger, over a payout from 4 to 20 m and back."""
    rope = CableProperties(0.5, 1e5, axial_damping=200.0)
    system = hoist(50.0, 4.0, rope)
    y = equilibrium(system)
    rate = Harmonic(16 / 10 * np.pi / 2, 2 * np.pi / 20)  # out in 10 s, back in 10 s
    run = djdyn.simulate(
        system,
        20.0,
        y,
        inputs={"rate": rate},
        ledger=True,
        saveat=41,
        rtol=1e-7,
        atol=1e-9,
    )
    length = np.asarray(run.signal("line.length"))
    assert np.isclose(length.max(), 20.0) and np.isclose(length[-1], 4.0)
    energy = np.asarray(run.energy())
    assert np.max(np.abs(djdyn.energy_balance(system, run))) < 1e-4 * np.ptp(energy)
    assert np.ptp(energy) > 0.9 * 50 * 9.81 * 16
    assert np.isclose(energy[-1], energy[0], atol=0.01 * np.ptp(energy))
    tension = np.asarray(run.signal("line.head_tension"))
    braking = 16 * np.pi**2 / 200  # m/s^2, at the lowest point
    assert np.isclose(tension[20], (50 + 0.5 * 20) * (9.81 + braking), rtol=0.01)


@pytest.mark.validation
def test_ramp_of_the_rate():
    """CAB-9: tension between static and static + 2 m a while the winch speeds up."""
    system, a = hoist(100.0, 20.0, CableProperties(0.5, 1e6)), 0.5
    y = equilibrium(system)
    rate = Interpolated([0.0, 2.0, 4.0], [0.0, -2 * a, -2 * a])
    run = djdyn.simulate(
        system,
        3.0,
        y,
        inputs={"rate": rate},
        saveat=301,
        rtol=1e-6,
        atol=1e-8,
        jumps=[2.0],
    )
    tension = np.asarray(run.signal("line.head_tension"))
    static, most = (100 + 10) * 9.81, (100 + 10) * (9.81 + 2 * a)
    during = tension[run.t < 2.0]
    assert np.isclose(tension[0], static, rtol=1e-3)
    assert during.max() < most * 1.005
    assert np.isclose(during[20:].mean(), static + 110 * a, rtol=0.01)


def test_pulled_in_below_the_least_length():
    system = hoist(50.0, 4.0, CableProperties(0.5, 1e4, axial_damping=50.0), mesh=2)
    short = eqx.tree_at(
        lambda s: s.parts["line"].min_length,
        system,
        jnp.array(3.0),
        is_leaf=lambda x: x is None,
    )
    with pytest.raises(djdyn.SimulationError, match="3 m of line are out") as caught:
        djdyn.simulate(
            short, 3.0, inputs={"rate": -0.5}, saveat=31, rtol=1e-5, atol=1e-6
        )
    assert np.isclose(caught.value.trajectory.stopped[0], 2.0, atol=1e-3)


def test_capstan():
    """CAB-8: sliding steadily, the tensions' ratio is exp(mu theta)."""
    sheave = Sheave("a", "b", friction=0.2, inertia=3.0)
    world = djdyn.forward_kinematics(payload(1.0, 1.0, 1.0), jnp.zeros(7))
    for angle in (0.0, 0.7, np.pi):
        for way in (1.0, -1.0):
            given = {
                "a.head_tension": jnp.array(100.0),
                "b.head_tension": 100 * jnp.exp(way * 0.2 * angle),
                "a.head_slope": jnp.array([0.0, 0.0, 1.1]),
                "b.head_slope": jnp.array([np.sin(angle), 0.0, -np.cos(angle)]),
            }
            state = {"rate": jnp.array(0.1 * way)}
            found = sheave(jnp.array(0.0), state, world, given)
            assert np.isclose(found.outputs["angle"], angle, atol=1e-12)
            assert np.isclose(found.rate["rate"], 0.0, atol=1e-12)


@pytest.mark.slow
def test_two_weights_over_a_sheave():
    r"""Atwood's machine with a capstan's grip, and its ledger.

    Light line: $m_1 (g + a) e^{\mu\pi} = m_2 (g - a)$ once it slides; the wheel adds
    its inertia between the two.
    """
    m, wheel, mu, g, L, U = (2.0, 5.0), 0.5, 0.1, 9.81, 8.0, 0.2
    rope, mesh = CableProperties(0.005, 2e4, axial_damping=200.0), (0.0, 0.5, 1.0)
    top = lambda way: FixedEnd([0, 0, 0], payout=way + "sheave.rate")
    hang = lambda m, way: Cable(
        rope, L, FreeEnd(), top(way), mesh=mesh, masses=(PointMass(0.0, m),)
    )
    parts = {"a": hang(m[0], "-"), "b": hang(m[1], "")}
    parts["sheave"] = Sheave("a", "b", mu, wheel, width=0.02)
    system = djdyn.System(ground(), parts)
    y = system.initial_state()
    spans = {
        k: {**y.parts[k], "v": jnp.full((2, 3), 0.0).at[:, 2].set(way * U)}
        for k, way in (("a", 1.0), ("b", -1.0))
    }
    spans["sheave"] = {"rate": jnp.array(U)}
    y = djdyn.State(y.q, y.v, spans)
    run = djdyn.simulate(system, 1.6, y, ledger=True, saveat=41, rtol=1e-6, atol=1e-8)
    grip = np.exp(mu * np.pi)
    mean = np.tanh(mu * np.pi / 2)  # of (T1 + T2), what the grip takes

    def rhs(a):
        T1, T2 = m[0] * (g + a), m[1] * (g - a)
        return T2 - T1 - (T1 + T2) * mean - wheel * a

    a = rhs(0.0) / (rhs(0.0) - rhs(1.0))
    rate = np.asarray(run.y.parts["sheave"]["rate"])
    assert np.isclose(np.polyfit(run.t[20:], rate[20:], 1)[0], a, rtol=0.01)
    light = (m[1] - m[0] * grip) / (m[1] + m[0] * grip) * g
    assert a < light  # the wheel holds back
    out = np.asarray(run.signal("a.length") + run.signal("b.length"))
    assert np.allclose(out, 2 * L, atol=1e-9)
    turned_over = m[1] * g * float(run.signal("b.length")[-1] - L)
    assert np.max(np.abs(djdyn.energy_balance(system, run))) < 1e-6 * turned_over
