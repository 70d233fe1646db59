"""The boom-crane study, and the pieces it stands on."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from experiments.harness.study import Study
from experiments.studies.boom_crane import (
    gradient as boom_gradient,
    joints as boom_joints,
    slide as boom_slide,
    stops as boom_stops,
    study as boom_crane,
)
from experiments.studies.boom_crane.model import (
    DOUBLE_PENDULUM,
    PALFINGER,
    crane,
    links,
    lock,
)


def study(folder, **how) -> Study:
    options = {**boom_crane.OPTIONS, **how.pop("options", {})}
    stages = boom_crane.STAGES
    return Study(
        boom_crane.TITLE, "", folder, stages=stages, quick=True, options=options, **how
    )


@pytest.mark.study
@pytest.mark.validation
def test_every_number_of_a_quick_run_is_inside_its_tolerance(tmp_path):
    run = study(tmp_path)
    boom_crane.run(run)
    run.finish()
    assert len(run.checks) > 40
    assert [c.quantity for c in run.checks if c.passed is not True] == []
    assert (tmp_path / "metrics.json").exists()
    assert (tmp_path / "report.html").stat().st_size < 10e6


@pytest.mark.study
def test_the_gradient_is_right_through_the_impact(tmp_path):
    check, _ = boom_gradient.impact_gradient(study(tmp_path))
    assert check.ok
    assert check.difference_error < 1e-6
    # A mass at 1.5 m has the same effect whichever telescope it belongs to.
    outer = check.reverse[[check.paths.index(f"link{i}.mass") for i in range(3, 8)]]
    assert np.allclose(outer, outer[0], rtol=1e-9)


def test_closed_forms_round_to_the_published_corrections():
    """V18, V24: values recomputed for g 9.81 to the digits they are given in."""
    points = boom_joints.two_periods(0.0)
    assert np.allclose(points, [3.105662, 7.666030], atol=5e-7)
    sphere, _ = links(DOUBLE_PENDULUM)
    spheres = boom_joints.two_periods(sphere.inertia[2])
    assert np.allclose(spheres, [3.105789, 7.666071], atol=5e-7)
    assert np.allclose(boom_stops.boom(), [2026.025, 2855.05], atol=5e-3)
    assert np.allclose([boom_stops.TOUCH], [0.4800], atol=5e-5)
    assert np.allclose([boom_stops.TOUCH_RATE], [-3.1377], atol=5e-5)


def test_the_slide_alone_reaches_the_published_rates():
    """V21: with the centre of link 1 on the axis and 1 m off it."""
    t = np.array([0.0, 15.0, 30.0])
    found = [boom_slide.slide_alone(x, 10.0, t)[-1] for x in (3.39, 13.39)]
    assert np.allclose(found, [1.156500, 1.528495], atol=1e-6)


def test_two_cosines_are_found_again():
    t = np.linspace(0.0, 60.0, 601)
    periods, shares = np.array([3.1, 7.7]), np.array([[0.1, -0.2], [0.9, 1.2]])
    swings = np.cos(2 * np.pi * t[:, None] / periods) @ shares
    found, amplitudes = boom_joints.fit_periods(t, swings)
    assert np.allclose(found, periods, rtol=1e-10)
    assert np.allclose(amplitudes, shares, rtol=1e-8)


def test_the_crane_stands_where_its_table_puts_it():
    """Joint 2 at (-2, 0, 0), the elbow at (-1, 0, 0), the tip at the origin."""
    mechanism, q = crane(PALFINGER)
    world = eqx.filter_jit(djdyn.forward_kinematics)(mechanism, q)
    assert jnp.allclose(world.pose("link1.end").p, jnp.array([-2.0, 0, 0]), atol=1e-12)
    assert jnp.allclose(world.pose("link2.end").p, jnp.array([-1.0, 0, 0]), atol=1e-12)
    X = world.pose("link7")
    assert jnp.allclose(X.act(jnp.array([0.0, 0.0, 1.0])), jnp.zeros(3), atol=1e-12)


@eqx.filter_jit
def forward_kinematics(mechanism: djdyn.Mechanism, q):
    """Mass matrix, weight at the joints, place of the tip."""
    weight = djdyn.bias_force(mechanism, q, jnp.zeros_like(q))
    tip = djdyn.frame_pose(mechanism, q, "link7.end").p
    return djdyn.mass_matrix(mechanism, q), weight, tip


def test_a_locked_crane_moves_like_the_whole_one_held_still():
    """Mass and weight at its free joint are entries of those of the whole crane."""
    mechanism, q = crane(PALFINGER)
    locked = lock(mechanism, q, ["link2"])
    assert [body.name for body in locked.bodies] == ["link2"]
    q2 = jnp.array([-0.4])
    q = q.at[1].set(q2[0])
    whole = forward_kinematics(mechanism, q)
    one = forward_kinematics(locked, q2)
    assert jnp.allclose(one[0], whole[0][1, 1], rtol=1e-12)
    assert jnp.allclose(one[0], boom_stops.boom()[1], rtol=1e-12)
    assert jnp.allclose(one[1], whole[1][1], rtol=1e-12)
    assert jnp.allclose(one[2], whole[2], atol=1e-12)


def test_a_target_on_this_side_of_the_stop_is_refused(tmp_path):
    with pytest.raises(ValueError, match="beyond the stop"):
        boom_crane.run(study(tmp_path, options={"target": 80.0}))


def test_parameters_of_the_crane_go_by_path():
    system = djdyn.with_parameters(
        boom_crane.build(), {"link2.mass": 800.0, "pid.kp[1]": 5.0}
    )
    assert djdyn.get_parameters(system, "link2.mass") == 800.0
    assert djdyn.get_parameters(system, "stop.stiffness") == 1e7
