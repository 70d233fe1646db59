"""Closed loops in rollouts, co-simulation, prints, and single precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.cable import Cable, CableProperties, PinnedEnd
from djdyn.multibody.assembly import gaps
from tests.multibody.loops import four_bar


@pytest.fixture(scope="module")
def system() -> djdyn.System:
    return djdyn.System(four_bar(djdyn.Projection()))


HOW = {"solver": "rk4", "dt": 0.01, "saveat": [0.0, 0.05, 0.1]}


def test_lanes_of_other_lengths_start_closed(system):
    """Each lane closes its own loops; one that starts open is refused by name."""
    lanes = {"end.X_BF.p[0]": jnp.array([2.4, 2.5, 2.6])}
    runs = djdyn.rollout(system, 0.1, parameters=lanes, **HOW)
    assert np.all(runs.ok)
    for i, length in enumerate(lanes["end.X_BF.p[0]"]):
        here = djdyn.with_parameters(system, {"end.X_BF.p[0]": length})
        y = runs.lane(i).y
        gap, rate = gaps(here.mechanism, y.q[-1], y.v[-1], jnp.asarray(0.1))
        assert max(np.abs(gap).max(), np.abs(rate).max()) < 1e-9
        near = here.initial_state(q=system.initial_state().q)
        np.testing.assert_allclose(y.q[0], near.q, atol=1e-9)
    y0 = system.initial_state()
    said = "lane 0 has open loops: loop 'pin' does not close: a gap of 0.0"
    with pytest.raises(ValueError, match=said):
        djdyn.rollout(system, 0.1, y0, parameters=lanes, **HOW)
    shorter = djdyn.with_parameters(system, {"end.X_BF.p[0]": 2.4})
    with pytest.raises(ValueError, match="open loops: loop 'pin' does not close"):
        djdyn.simulate(shorter, 0.1, y0, **HOW)


def test_a_loop_is_reported(system):
    """Reactions along a run and in co-simulation, in text and in HTML."""
    run = djdyn.simulate(system, 0.1, system.initial_state(), **HOW)
    found = run.reaction("pin")
    assert found.shape == (3, 6) and np.all(np.isfinite(found))
    for text in (str(system), system._repr_html_()):
        assert "loops: pin, 5 equations of rank 2, 1 degrees of freedom" in text
    options = djdyn.SimulationOptions(solver="rk4", dt=0.01)
    port = djdyn.CoSimulation(
        system, ("pin.reaction", "end.pose"), dt=0.05, options=options
    )
    state = port.start()
    state, _ = port.step(state)
    _, now = port.step(state)
    np.testing.assert_allclose(now["pin.reaction"], found[-1], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("way", [djdyn.Projection, djdyn.Multipliers])
def test_single_precision(way):
    def end():
        machine = djdyn.System(four_bar(way()))
        y0 = machine.initial_state(q={"crank": 1.0})
        assert djdyn.degrees_of_freedom(machine.mechanism, y0.q).degrees == 1
        lanes = {"crank.mass": jnp.array([1.0, 1.2])}
        return djdyn.rollout(machine, 0.1, y0, parameters=lanes, **HOW).y.q

    double = end()
    with jax.enable_x64(False):
        single = end()
        assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, double, atol=3e-5)


def test_lengths_have_gradients_from_a_start_that_is_drawn_shut(system):
    """A state made for other lengths, inside of `jit`, where it cannot be refused."""
    y0 = system.initial_state(q={"crank": 1.0}, v={"crank": 2.0})

    @jax.jit
    def angle(length):
        here = djdyn.with_parameters(system, {"end.X_BF.p[0]": length})
        run = djdyn.simulate(here, 0.1, y0, adjoint="forward", **HOW)
        gap, _ = gaps(here.mechanism, run.y.q[0], run.y.v[0], jnp.zeros(()))
        return run.y.q[-1, 2], jnp.max(jnp.abs(gap))

    slope, _ = jax.jacfwd(angle)(2.5)
    (up, gap), (down, _) = angle(2.5 + 1e-5), angle(2.5 - 1e-5)
    assert gap < 1e-12
    np.testing.assert_allclose(slope, (up - down) / 2e-5, rtol=1e-7)


@pytest.mark.slow
def test_lines_on_loops_step_implicitly():
    """A body on a loop shows an implicit line the mass that the loop leaves it."""
    line = CableProperties(0.3, 2e3, axial_damping=2.0)
    parts = {"line": Cable(line, 1.0, PinnedEnd("end"), PinnedEnd("post"), mesh=2)}
    m = four_bar(djdyn.Projection())
    post = djdyn.Frame("post", "world", djdyn.translation((2.5, 0.0, -1.0)))
    mechanism = djdyn.Mechanism(m.bodies, (*m.frames, post), loops=m.loops)
    taut = djdyn.System(mechanism, parts)
    y0 = taut.initial_state(q={"crank": 1.0})

    def end(solver, dt):
        one = jax.tree.map(lambda x: x[None], y0)
        run = djdyn.rollout(taut, 0.1, one, solver=solver, dt=dt, saveat=[0.1])
        gap, _ = gaps(mechanism, run.y.q[0, 0], run.y.v[0, 0], jnp.asarray(0.1))
        assert np.abs(gap).max() < 1e-10
        return np.asarray(run.y.v[0, 0])

    wanted = end("rk4", 1e-4)
    rough, fine = (np.abs(end("ros2", dt) - wanted).max() for dt in (1e-2, 5e-3))
    assert fine < 1e-3 * np.abs(wanted).max() and rough / fine > 3.0  # second order
