"""The Titan 4: conditions, sampled control, and the study itself."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import djdyn
from experiments.__main__ import main
from experiments.studies.titan4 import (
    conditions as titan4_conditions,
    fixtures as titan4_fixtures,
    loop as titan4_loop,
    model as titan,
    tracking as titan4_tracking,
    tuning as titan4_tune,
)
from experiments.studies.titan4.operator_inputs import STOP, sticks


def test_sticks_are_held_as_their_rows_say():
    held = sticks(STOP)
    assert jnp.array_equal(held(jnp.array(0.4)), jnp.zeros(6))
    assert jnp.array_equal(held(jnp.array(4.0)), jnp.array([0.0, 1, -1, 0, 0, 0]))
    assert jnp.array_equal(held(jnp.array(7.0)), jnp.array([0.0, 1, 0, 0, 0, 0]))


def test_a_load_at_the_tip_is_felt_as_one():
    """Torques of gravity and inertia of the laden arm against the load's own."""
    lanes = titan4_conditions.conditions(titan4_conditions.corners())
    arm, q = titan.mechanism(printed=False), jnp.array([0.3, 0.5, -0.7, 0.4, -0.2, 0.9])
    values = {k: x[-1] for k, x in lanes.items() if k.startswith("link6")}
    with_added_inertia, load = (
        djdyn.with_parameters(arm, values),
        lanes["link6.mass"][-1] - arm.bodies[-1].mass,
    )
    J = djdyn.frame_jacobian(arm, q, "tool")[3:]
    felt = djdyn.mass_matrix(with_added_inertia, q) - djdyn.mass_matrix(arm, q)
    assert jnp.allclose(felt, load * J.T @ J, atol=1e-9)
    zero = jnp.zeros(6)
    torque = lambda arm: djdyn.inverse_dynamics(arm, q, zero, zero)
    assert jnp.allclose(
        torque(with_added_inertia) - torque(arm), load * 9.81 * J[2], atol=1e-9
    )


def test_errors_vibrate_undamped_without_integral_and_friction():
    """The loop's law is B e'' + Kp e = 0: frequencies are those of the stiffness Kp."""
    control = eqx.tree_at(lambda c: c.ki, titan.controller(), jnp.zeros(6))
    found = np.linalg.eigvals(titan4_fixtures.loop_matrix(control, jnp.zeros(6)))
    B = np.asarray(djdyn.mass_matrix(titan.mechanism(), jnp.zeros(6)))
    law = np.sqrt(scipy.linalg.eigh(np.diag(control.kp), B, eigvals_only=True))
    assert np.abs(found.real).max() < 1e-9
    assert np.allclose(np.sort(found.imag)[-6:], law, rtol=1e-9)


@pytest.mark.study
def test_the_friction_of_the_desired_rate_tracks_best():
    for name, found in titan4_tracking.variant_errors("desired").items():
        assert np.all(found > titan4_tracking.BEST), name


@pytest.mark.study
def test_sampled_control_follows_the_continuous_one():
    system = titan.build()
    y0 = jax.tree.map(lambda x: x[None], system.initial_state())
    given = {"sticks": sticks([(2, 1, 0.1, 0.6), (4, -1, 0.2, 0.6)])}
    how = {"solver": "rk4", "dt": 1e-3, "inputs": given}
    times = np.linspace(0.0, 1.0, 1001)
    smooth = djdyn.rollout(system, 1.0, y0, saveat=times, **how)
    sampled = djdyn.rollout(system, 1.0, y0, control_period=1e-3, **how)
    assert jnp.allclose(sampled.y.q, smooth.y.q, atol=2e-3)
    assert jnp.abs(smooth.y.q[0, -1, 1]) > 0.05
    path = lambda run: run.y.parts["path"]["path"]
    assert jnp.allclose(path(sampled), path(smooth), atol=1e-3)


def test_the_tuning_begins_softer_than_the_source_and_damped():
    """Each joint's frequency lies between those with the others locked and free."""
    source = titan4_conditions.machine()
    kp, kd = (
        djdyn.get_parameters(titan4_tune.begun(source), f"control.{k}")
        for k in ("kp", "kd")
    )
    B = djdyn.mass_matrix(source.mechanism, jnp.zeros(6))
    locked, free = jnp.diagonal(B), 1 / jnp.diagonal(jnp.linalg.inv(B))
    low, high = jnp.sqrt(kp / locked), jnp.sqrt(kp / free)
    assert jnp.allclose(low * high, titan4_tune.START_FREQUENCY**2)
    assert jnp.all(kp < djdyn.get_parameters(source, "control.kp"))
    assert jnp.all(
        kd / 2 / jnp.sqrt(kp * locked) < titan4_tune.START_DAMPING_RATIO + 1e-9
    )
    assert jnp.all(
        kd / 2 / jnp.sqrt(kp * free) > titan4_tune.START_DAMPING_RATIO - 1e-9
    )


def test_sensors_add_their_noise_and_nothing_else():
    bare = titan4_conditions.machine()
    built = titan4_loop.instrumented(bare)
    quiet = {f"gauge{x}.deviation": 0.0 for x in titan4_loop.SIDES}
    quiet["noise.deviation"] = 0.0
    t, v = jnp.array(0.3), 0.1 * jnp.arange(1.0, 7.0)

    @eqx.filter_jit
    def areas(system: djdyn.System) -> jax.Array:
        return system.at(t, system.initial_state(v=v)).signals["control.u"]

    known, silent = areas(bare), areas(djdyn.with_parameters(built, quiet))
    assert jnp.allclose(silent, known, rtol=1e-12)
    assert jnp.all(jnp.abs(areas(built) - known) > 1e-12)


@pytest.mark.study
@pytest.mark.validation
def test_every_number_of_a_quick_run_is_inside_its_tolerance(tmp_path):
    assert main(["run", "titan4", "--quick", "--out", str(tmp_path)]) == 0
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["titan4.tracking.max_error_ratio"] < 1.05
    assert metrics["titan4.frequency_response.max_error"] < 0.01
    assert metrics["titan4.eigenvalue_error"] < 1e-6
    assert (tmp_path / "report.html").stat().st_size < 10e6
