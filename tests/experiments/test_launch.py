"""The launch study, and the pieces it stands on."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from experiments import launch
from experiments.launch_gear import Slew, ship
from experiments.study import Study


def test_a_conical_pendulum_pulls_as_published():
    """Ship V23: 71.9 N inwards and 87.0 N in all at 0.35 rad/s."""
    assert np.allclose(launch.cone(0.35), [71.9, 87.0], atol=0.05)
    assert np.isclose(launch.cone(0.014712)[0], 0.10822, rtol=1e-3)


def test_the_arm_reaches_its_rate_smoothly():
    turn = Slew(0.35, 60.0)
    yaw = lambda t: jnp.arctan2(turn(t).R[1, 0], turn(t).R[0, 0])
    t = jnp.array([0.0, 1.0, 60.0, 61.0])
    angles = np.unwrap(np.array([yaw(x) for x in t]))
    assert angles[0] == 0.0
    assert abs(angles[1]) < 1e-4
    assert np.isclose(angles[3] - angles[2], 0.35)


def test_the_payload_hangs_under_the_end_of_the_boom():
    """Ship V26: link 7 ends in the origin, and so does the line."""
    system = ship(velocity=1.0)
    y = system.initial_state()
    tip = eqx.filter_jit(lambda s, y: s.at(0.0, y).world.pose("link7.end").p)(system, y)
    assert jnp.allclose(tip, jnp.zeros(3), atol=1e-9)
    changed = djdyn.put(system, {"felt.share": 1.0, "payload.mass": 7.0})
    assert djdyn.get(changed, "payload.mass") == 7.0


@pytest.mark.slow
@pytest.mark.validation
def test_every_number_of_a_run_is_inside_its_tolerance(tmp_path):
    run = Study(launch.TITLE, "", tmp_path, stages=launch.STAGES, quick=True)
    launch.run(run)
    run.finish()
    assert len(run.checks) > 15
    assert [c.quantity for c in run.checks if c.passed is False] == []
    assert (tmp_path / "report.html").stat().st_size < 10e6
