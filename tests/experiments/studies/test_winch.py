"""The winch study, and the pieces it stands on."""

import numpy as np
import pytest

import controllers
import djdyn
from experiments.harness.study import Study
from experiments.studies.winch import (
    loop as winch_loop,
    model as winch_model,
    sea_states,
    study as winch,
    tuning as winch_tune,
)


def test_by_hand_the_payload_bounces_as_published():
    """Ship V8: without mass in the line, by damping."""
    t = np.linspace(0.0, 20.0, 4001)
    speeds = [winch_loop.bounce(c, t, with_line=False) for c in (0.0, 100.0, 1000.0)]
    assert np.allclose(np.max(np.abs(speeds), 1), [1.110, 1.097, 1.065], atol=6e-4)


def test_seas_differ_and_have_the_energy_of_their_heights():
    seas = sea_states.seas(0, 4)
    assert seas.amplitude.shape == seas.phase.shape == (4, 30)
    assert len(np.unique(np.asarray(seas.phase))) == 120
    heights = 4 * np.sqrt(np.sum(np.asarray(seas.amplitude) ** 2, 1) / 2)
    assert np.all(heights > 0.49)
    assert np.all(heights < 1.51)


def test_what_is_tuned_goes_by_path():
    system = sea_states.rig()
    known = [float(djdyn.get_parameters(system, f.path)) for f in sea_states.FREE]
    assert np.allclose(known, [*sea_states.START.values()])
    with pytest.raises(ValueError, match="no parameter"):
        djdyn.get_parameters(winch.build("velocity", order=1.0), "pid.kp")


def test_each_sea_has_a_slam_and_noise_of_its_own():
    system = sea_states.rig()
    ready = system.initial_state(q={"load": -winch_model.LENGTH})
    some, others = (
        sea_states.conditions(system, ready, k, 4).parameters for k in (0, 1000)
    )
    for path in ("noise.phase", "push.wrench.points"):
        drawn = np.concatenate([some[path], others[path]])
        assert len(np.unique(drawn[drawn != 0])) == np.sum(drawn != 0)
    pushes = np.asarray(some["push.wrench.points"])
    assert np.all(np.abs(pushes) <= sea_states.MAX_SLAM)
    assert np.all(pushes[:, 1] == 0)


@pytest.mark.slow
def test_the_loop_to_begin_with_has_margins_with_its_delay():
    system = sea_states.rig()
    ready = winch_model.static_state(system)
    still = winch_tune.calm(system, ready)
    found = controllers.margins(still, ready, "pid.u", 1.5 * sea_states.PERIOD)
    assert found.modulus.min() > 0.5
    assert found.phase.min() > 45


def test_by_hand_a_winch_that_holds_tension_lets_its_line_run():
    """Without lag a quadratic; never above that of a tension held fully."""
    mass, weight = winch.PAYLOAD + winch_loop.LINE_MASS, winch.DENSITY * winch.GRAVITY
    for kp in (1e-3, 0.01, 0.1):
        quick = (np.sqrt(1 + 4 * kp**2 * mass * weight) - 1) / (2 * kp * mass)
        assert np.isclose(winch_loop.unstable_root(kp, 0.0, 0.0), quick, rtol=2e-3)
        assert winch_loop.unstable_root(kp, 1e-3, 1e-3) < np.sqrt(weight / mass)
    assert winch_loop.unstable_root(100.0, 0.0, 0.0) > 0.99 * np.sqrt(weight / mass)


@pytest.mark.study
@pytest.mark.validation
def test_every_number_of_a_quick_run_is_inside_its_tolerance(tmp_path):
    run = Study(winch.TITLE, "", tmp_path, stages=winch.STAGES, quick=True)
    winch.run(run)
    run.finish()
    assert len(run.checks) > 20
    assert [c.quantity for c in run.checks if c.passed is False] == []
    assert (tmp_path / "report.html").stat().st_size < 10e6
