"""The gradient of the motion, and who is to blame when it is not."""

from functools import partial

import jax.numpy as jnp
import pytest

import djdyn
from djdyn.parts import JointActuator


TRUE = jnp.array([-0.385627849, -0.254075583])  # of |q(1 s)|^2 to the two torques


@pytest.fixture(scope="module")
def pendulum() -> djdyn.System:
    mechanism = djdyn.from_mjcf("tests/data/dpend.xml")
    motors = JointActuator(("j1", "j2"), "torque")
    return djdyn.System(mechanism, {"motors": motors}, {"torque": jnp.zeros(2)})


def loss(system, simulate, bend=lambda x: x, **how):
    y0 = system.initial_state(q=[2.0, 0.5])
    end = simulate(system, 1.0, y0, saveat=jnp.array([1.0]), **how)
    return bend(jnp.sum(end.y.q[-1] ** 2))


def test_default_settings_give_the_true_gradient(pendulum):
    """GRAD-1: a double pendulum over one second, to 1e-6."""
    check = djdyn.check_gradient(loss, pendulum, ["torque"])
    assert check.ok
    assert jnp.allclose(check.reverse, TRUE, rtol=1e-6)
    assert jnp.allclose(check.forward, TRUE, rtol=1e-6)
    assert "right" in check.verdict()
    assert "torque[1]" in str(check)


def test_coarse_steps_are_blamed_on_the_integrator(pendulum):
    """GRAD-1: semi-implicit Euler at 2 ms is a third off, and exact about its error."""
    coarse = partial(loss, solver="semi_implicit", dt=2e-3)
    check = djdyn.check_gradient(coarse, pendulum, ["torque"])
    assert check.blame == "integrator"
    assert check.adjoint_error < 1e-10
    assert check.difference_error < 1e-6
    assert 0.3 < check.integrator_error < 0.4


def test_a_kink_is_named(pendulum):
    level = float(loss(pendulum, djdyn.simulate))
    kinked = partial(
        loss, bend=lambda x: jnp.abs(x - level) ** 1.5 + jnp.abs(x - level), dt=5e-3
    )
    check = djdyn.check_gradient(kinked, pendulum, ["torque"])
    assert check.blame == "kink"


def test_what_is_not_finite_is_named(pendulum):
    check = djdyn.check_gradient(
        partial(loss, bend=lambda x: jnp.sqrt(x - x), dt=5e-3), pendulum, ["torque"]
    )
    assert check.blame == "not finite"
    assert "torque[0]" in check.verdict()


def test_slopes_stand_beside_the_names_of_their_parameters(pendulum):
    def weighted(system, simulate):
        del simulate
        return 3 * system.inputs["torque"][0] + 5 * system.mechanism.gravity_W[2]

    check = djdyn.check_gradient(weighted, pendulum, ["torque", "gravity_W"])
    slopes = dict(zip(check.paths, check.reverse, strict=True))
    assert jnp.allclose(slopes["torque[0]"], 3.0)
    assert jnp.allclose(slopes["gravity_W[2]"], 5.0)
