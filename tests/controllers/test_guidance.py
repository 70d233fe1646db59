"""Joystick and reference model against closed forms."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from controllers import Joystick, ReferenceModel


def idle(parts, **inputs) -> djdyn.System:
    body = djdyn.Body("mass", "world", djdyn.Prismatic((1, 0, 0)), 1.0)
    return djdyn.System(djdyn.Mechanism((body,)), parts, inputs)


class Ramp(eqx.Module):
    def __call__(self, t):
        return jnp.stack([jnp.ones_like(t), 0.3 * t])


def test_step_and_ramp_bond_graph_v16():
    system = idle({"path": ReferenceModel("target", [0.0, 0.0])}, target=[0.0, 0.0])
    times = np.array([0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 3.0])
    run = djdyn.simulate(system, 3.0, saveat=times, inputs={"target": Ramp()})
    found = run.y.parts["path"]["path"]
    step = [0.0, 0.080301, 0.323324, 0.576810, 0.875348, 0.997231]
    assert jnp.allclose(found[:-1, 0], jnp.array(step), atol=6e-7)
    assert jnp.allclose(found[-2, 1], 0.210099, atol=6e-7)
    assert jnp.allclose(0.3 * 3.0 - found[-1, 1], 0.09, atol=1e-6)


def test_outputs_are_derivatives_of_each_other():
    system = idle({"path": ReferenceModel("target", [0.2], 5.0, 0.8)}, target=[1.0])
    y = system.initial_state()
    y.parts["path"]["path_rate"] = jnp.array([0.3])
    rate = system.derivative(0.0, y)
    outputs = lambda y: system.at(0.0, y).responses["path"].outputs
    now, change = jax.jvp(outputs, (y,), (rate,))
    for quantity, derivative in zip(
        ("value", "rate", "acceleration"), ("rate", "acceleration", "jerk"), strict=True
    ):
        assert jnp.allclose(change[quantity], now[derivative])


def test_the_rate_is_limited():
    path = ReferenceModel("target", [0.0], rate_limit=0.3)
    run = djdyn.simulate(idle({"path": path}, target=[1.0]), 6.0)
    speed = run.y.parts["path"]["path_rate"][:, 0]
    assert 0.299 < speed.max() <= 0.3 + 1e-7 and speed.min() > -1e-7
    assert jnp.allclose(run.y.parts["path"]["path"][-1, 0], 1.0, atol=1e-6)


def test_the_stick_stops_before_the_limit_bond_graph_v17():
    guide = Joystick("stick", [0.3], [0.0], -0.45, 1.36, 0.06)
    system = idle({"guide": guide}, stick=[2.0])  # beyond full is full
    times = np.array([0.0, 4.0, 4.3333, 6.0])
    run = djdyn.simulate(system, 6.0, saveat=times)
    target = run.y.parts["guide"]["target"][:, 0]
    assert jnp.allclose(target, jnp.array([0.0, 1.2, 1.3, 1.3]), atol=1e-4)
    back = djdyn.simulate(
        djdyn.with_parameters(system, {"stick": [-1.0]}), 1.0, saveat=[0.0, 1.0]
    )
    assert jnp.allclose(back.y.parts["guide"]["target"][-1, 0], -0.3, atol=1e-6)


def test_sampled_guidance_is_the_same():
    parts = {
        "guide": Joystick("stick", [0.3], [0.0]),
        "path": ReferenceModel("guide.target", [0.0]),
    }
    system = idle(parts, stick=[1.0])
    run = djdyn.simulate(system, 1.0, control_period=0.001, dt=0.001, solver="rk4")
    lag = jnp.diff(run.y.parts["path"]["path"][-2:, 0])[0] / 0.001
    assert jnp.allclose(run.y.parts["path"]["path"][-1, 0], 0.210099, atol=4e-4)
    assert jnp.allclose(lag, 0.3, atol=2e-3)


def test_bad_guidance_is_refused():
    with pytest.raises(ValueError, match=r"the lower limit .* is above"):
        Joystick("stick", [0.3], [0.0], 1.0, 0.0)
    with pytest.raises(ValueError, match=r"signal 'target' has shape \(2,\)"):
        idle({"path": ReferenceModel("target", [0.0])}, target=[0.0, 0.0])
