"""The launch study, and the pieces it stands on."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from experiments.harness.study import Study
from experiments.studies.launch import study as launch
from experiments.studies.launch.landing import LENGTH, TIP, landing
from experiments.studies.launch.model import cone, ship


def test_a_conical_pendulum_pulls_as_published():
    """Ship V23: 55.7 deg, 71.9 N inwards and 87.0 N in all at 0.35 rad/s."""
    angle, tension = cone(100.0, 0.35)
    found = [np.rad2deg(angle), tension * np.sin(angle), tension]
    assert np.allclose(found, [55.7, 71.9, 87.0], atol=0.05)


def test_the_payload_hangs_under_the_end_of_the_boom():
    """Ship V26: the boom ends in the origin, and so does the line."""
    system = ship(velocity=1.0)
    y = system.initial_state()
    tip = eqx.filter_jit(lambda s, y: s.at(0.0, y).world.pose("tip").p)(system, y)
    assert jnp.allclose(tip, jnp.zeros(3), atol=1e-9)
    changed = djdyn.with_parameters(system, {"felt.share": 1.0, "payload.mass": 7.0})
    assert djdyn.get_parameters(changed, "payload.mass") == 7.0


@pytest.mark.study
@pytest.mark.validation
def test_every_number_of_a_quick_run_is_inside_its_tolerance(tmp_path):
    run = Study(launch.TITLE, "", tmp_path, stages=launch.STAGES, quick=True)
    launch.run(run)
    run.finish()
    assert len(run.checks) > 7
    assert [c.quantity for c in run.checks if c.passed is False] == []
    assert (tmp_path / "report.html").stat().st_size < 10e6


def test_a_box_that_is_set_down_hangs_under_the_tip():
    """Ship V31: the line ends at (3.592, 0, 5.642), without stretch at the start."""
    system = landing()
    q = system.initial_state({"link2": [np.pi / 4]})
    now = eqx.filter_jit(lambda s, y: s.at(0.0, y))(system, q)
    assert jnp.allclose(now.world.pose("tip").p, TIP, atol=1e-9)
    assert np.allclose(TIP, [3.592, 0.0, 5.642], atol=1e-3)
    assert jnp.allclose(now.world.pose("hook").p, TIP - [0.0, 0.0, LENGTH], atol=1e-9)
