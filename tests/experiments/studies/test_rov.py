"""The studies of the ROV and of the towed body, and the pieces they stand on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.io.scenario import read_scenario
from experiments.harness.study import Study
from experiments.machine.kinds import KINDS
from experiments.studies.rov import bluerov, model, study as rov, tuning
from experiments.studies.tow import model as line, study as tow


def test_the_mass_matrix_of_the_wet_vehicle():
    """The hull's surge, heave and yaw with arm and added mass (Rokseth 2014)."""
    found = djdyn.mass_matrix(
        model.mechanism(payload=False),
        jnp.concatenate([model.mechanism(payload=False).q0()[:7], jnp.zeros(3)]),
    )
    assert jnp.allclose(found[3, 3], 5700.8) and jnp.allclose(found[5, 5], 5700.8)


def test_the_object_starts_in_the_gripper_at_rest():
    system = model.build()
    y = model.start(system)
    now = jax.jit(lambda y: system.at(0.0, y).signals["pillars.force"])(y)
    assert jnp.allclose(now[2], 70.0 * 9.81, rtol=1e-9)
    place = y.q[system.mechanism.q_slice("object")]
    assert jnp.allclose(place, jnp.array([2.622, 0.0, -0.09721]), atol=1e-5)


def test_thrusters_of_the_bluerov_push_every_way():
    H = np.asarray(bluerov.layout().matrix())
    assert np.linalg.matrix_rank(H) == 6
    tethered = bluerov.build(top=(0.0, 0.0, 30.0))
    assert "tether" in tethered.parts


def test_conditions_share_one_sea_among_all_parts():
    some = tuning.conditions(3, 0)
    seas = [some.parameters[f"{p}.fluid.waves.amplitude"] for p in tuning.MOVING]
    assert all(jnp.array_equal(x, seas[0]) for x in seas)
    assert len(some) == 3


def test_the_critical_angle_balances_weight_and_drag():
    phi = float(line.critical_angle(jnp.asarray(2.0), jnp.asarray(1.2)))
    across = 1025 / 2 * 0.02 * 1.2 * 4 * np.sin(phi) ** 2
    assert np.isclose(line.line_weight() * np.cos(phi), across)
    place, tension = line.shape(line.matching_area())
    assert np.isclose(np.arctan2(place[1], place[0]) + np.pi, phi, atol=1e-6)
    assert np.isclose(tension, line.top_tension(phi), rtol=1e-6)


def test_the_scenario_carries_and_lets_go():
    found = read_scenario("experiments/scenarios/bluerov2.toml", KINDS)
    held = found.system.parts["grip"]
    assert held.latch and found.simulation["dt"] == 0.002


@pytest.mark.study
@pytest.mark.validation
@pytest.mark.parametrize("study", [rov, tow])
def test_every_number_of_a_quick_run_is_inside_its_tolerance(study, tmp_path):
    run = Study(study.TITLE, "", tmp_path, stages=study.STAGES, quick=True)
    study.run(run)
    run.finish()
    assert len(run.checks) > 5
    assert [c.quantity for c in run.checks if c.passed is False] == []
    assert (tmp_path / "report.html").stat().st_size < 10e6
