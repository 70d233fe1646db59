"""Commands that are late, and noise, in loops that take samples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from controllers import JointPID, Reference, hardened, hardened_state, softened
from djdyn.parts import JointActuator


PERIOD = 0.01


@pytest.fixture(scope="module")
def slide() -> djdyn.System:
    body = djdyn.Body("slide", "world", djdyn.Prismatic((1, 0, 0)), 2.0)
    parts = {
        "path": Reference(jnp.array([0.3])),
        "pid": JointPID("slide", "path.value", kp=[8.0], kd=[5.0], rate="path.rate"),
        "motor": JointActuator(("slide",), "pid.u"),
    }
    return djdyn.System(djdyn.Mechanism((body,)), parts)


def test_a_command_is_a_sample_late(slide):
    hard = hardened(slide, "pid", "motor", period=PERIOD, deviation=0.0)
    run = djdyn.simulate(hard, 0.5, control_period=PERIOD, solver="rk4", dt=PERIOD)
    late, now = (run.signal(k)[:, 0] for k in ("motor_late.value", "pid.u"))
    assert np.allclose(late[1:-1], now[:-2], rtol=1e-9, atol=1e-12) and late[0] == 0
    # By hand: held forces on a mass, each that of the sample before.
    x, v, last = 0.0, 0.0, 0.0
    for k in range(50):
        assert np.allclose(run.y.q[k], x) and np.allclose(run.y.v[k], v)
        u = 8 * (0.3 - x) - 5 * v
        x, v = x + PERIOD * v + PERIOD**2 * last / 4, v + PERIOD * last / 2
        last = u


def test_noise_has_its_deviation(slide):
    hard = hardened(slide, "pid", "motor", period=PERIOD, deviation=2e-3)
    signals = jax.jit(lambda t: hard.at(t, hard.initial_state()).signals)
    at = lambda t: signals(t)["pid_noise.value"][0]
    values = np.array([at(t) for t in np.random.default_rng(0).uniform(0, 1e4, 400)])
    assert np.isclose(np.std(values), 2e-3, rtol=0.15)
    assert np.isclose(np.mean(values), 0.3, atol=5e-4)
    h = 1e-6
    rate = signals(1.0)["pid_noise.rate"][0]
    assert np.isclose(rate, (at(1.0 + h) - at(1.0 - h)) / (2 * h), rtol=1e-5)


def test_what_was_hardened_is_softened(slide):
    hard = hardened(slide, "pid", "motor", period=PERIOD, deviation=1e-3)
    soft = softened(hard, "pid", "motor")
    assert djdyn.parameters(soft).keys() == djdyn.parameters(slide).keys()
    y = soft.initial_state(q={"slide": 0.1})
    known = slide.derivative(0.0, y)
    assert np.allclose(soft.derivative(0.0, y).v, known.v)
    quiet = hardened(slide, "pid", "motor", period=PERIOD, deviation=0.0)
    begun = hardened_state(quiet, y, "pid", "motor")
    assert np.allclose(quiet.derivative(0.0, begun).v, known.v)
    with pytest.raises(ValueError, match="not a JointPID"):
        hardened(slide, "path", "motor", period=PERIOD, deviation=0.0)
