"""Joint PID: its law, its limits, its modes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import djdyn
from controllers import JointPID, Reference
from djdyn.multibody.time_functions import Harmonic
from djdyn.parts import JointActuator


def slider(pid: JointPID, target=1.0, mass: float = 2.0) -> djdyn.System:
    body = djdyn.Body("mass", "world", djdyn.Prismatic((1, 0, 0)), mass)
    parts = {
        "ref": Reference(target),
        "pid": pid,
        "motor": JointActuator(("mass",), "pid.u"),
    }
    return djdyn.System(djdyn.Mechanism((body,)), parts)


@eqx.filter_jit
def command(system, q, v):
    y = system.initial_state(q={"mass": q}, v={"mass": v})
    now = system.at(0.0, y)
    return now.signals["pid.u"][0], now.responses["pid"].rate.integral[0]


def test_law_in_position_mode():
    pid = JointPID(("mass",), "ref.value", kp=10.0, kd=3.0, ki=4.0)
    u, build_up = command(slider(pid), 0.4, 0.5)
    assert jnp.allclose(u, 10.0 * 0.6 - 3.0 * 0.5)
    assert jnp.allclose(build_up, 4.0 * 0.6)


def test_the_rate_of_the_target_is_fed_forward():
    pid = JointPID(("mass",), "ref.value", kp=10.0, kd=3.0, rate="ref.rate")
    u, _ = command(slider(pid, Harmonic([1.0], 2.0)), 0.0, 0.5)
    assert jnp.allclose(u, 3.0 * (2.0 - 0.5))


@pytest.mark.parametrize(
    ("limits", "v", "most"),
    [
        ({"limit": 2.0}, 0.1, 2.0),
        ({"power": 3.0}, 1.5, 2.0),
        ({"power": 3.0}, -3.0, 1.0),
    ],
)
def test_force_and_power_are_capped_and_the_integral_does_not_wind_up(limits, v, most):
    pid = JointPID(("mass",), "ref.value", 100.0, ki=1.0, anti_windup=2.0, **limits)
    u, build_up = command(slider(pid), 0.0, v)
    assert jnp.allclose(u, most, rtol=1e-9)
    assert jnp.allclose(build_up, 1.0 + 2.0 * (1.0 / 100.0) * (most - 100.0))
    gradient = jax.grad(lambda v: command(slider(pid), 0.0, v)[0])(jnp.array(0.0))
    assert jnp.isfinite(gradient)


def test_velocity_mode_reaches_its_speed():
    pid = JointPID(("mass",), "ref.value", kp=8.0, ki=20.0, kd=0.1, mode="velocity")
    system = slider(pid, 0.7)
    end = djdyn.simulate(system, 8.0, saveat=2)
    assert jnp.allclose(end.v("mass")[-1], 0.7, atol=1e-4)


def test_integral_action_removes_a_static_error():
    """A weight held up: the error decays to zero only with the integral."""
    body = djdyn.Body("mass", "world", djdyn.Prismatic((0, 0, 1)), 2.0)
    for ki, sag in ((0.0, 2.0 * 9.81 / 200.0), (100.0, 0.0)):
        parts = {
            "ref": Reference(0.0),
            "pid": JointPID(("mass",), "ref.value", 200.0, 40.0, ki),
            "motor": JointActuator(("mass",), "pid.u"),
        }
        system = djdyn.System(djdyn.Mechanism((body,)), parts)
        end = djdyn.simulate(system, 30.0, saveat=2)
        assert jnp.allclose(end.q("mass")[-1, 0], -sag, atol=1e-5)


def test_bad_controllers_are_refused():
    with pytest.raises(ValueError, match=r"kp must be at least 0"):
        JointPID(("mass",), "ref.value", -1.0)
    with pytest.raises(ValueError, match=r"one value for each of the joints mass"):
        slider(JointPID(("mass",), "ref.value", 1.0), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"unknown signal 'ref.speed'"):
        slider(JointPID(("mass",), "ref.value", 1.0, rate="ref.speed"))
