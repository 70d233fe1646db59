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


def bent(system, simulate):
    del simulate
    x = system.inputs["torque"]
    return 3 * x[0] ** 2 - 5 * x[1] + 2 * x[0] * x[1]


def test_a_mean_slope_is_exact_where_the_loss_is_quadratic(pendulum):
    system = djdyn.with_parameters(pendulum, {"torque": [2.0, 0.0]})
    exact = djdyn.gradient(bent, system, ["torque"])
    mean = djdyn.gradient(bent, system, ["torque"], spread=0.3, samples=8)
    assert jnp.allclose(exact.gradient["torque"], jnp.array([12.0, -1.0]))
    assert jnp.allclose(mean.gradient["torque"], jnp.array([12.0, -1.0]))
    assert jnp.all(mean.error["torque"] < 1e-12)


def test_a_mean_slope_of_a_jump(pendulum):
    """Of a step at zero it is the height of a normal density."""
    step = lambda system, _: jnp.where(system.inputs["torque"][0] > 0, 1.0, 0.0)
    free = ["torque[0]"]
    found = djdyn.gradient(step, pendulum, free, spread=0.5, samples=4000)
    known = 1 / (0.5 * jnp.sqrt(2 * jnp.pi))
    assert djdyn.gradient(step, pendulum, free).gradient["torque[0]"] == 0
    assert jnp.abs(found.gradient["torque[0]"] - known) < 4 * found.error["torque[0]"]
    assert found.error["torque[0]"] < 0.02


def test_a_mean_slope_needs_samples(pendulum):
    with pytest.raises(ValueError, match="2 free numbers need more than 2 samples"):
        djdyn.gradient(bent, pendulum, ["torque"], spread=0.1, samples=2)
    with pytest.raises(ValueError, match="spread must not be negative"):
        djdyn.gradient(bent, pendulum, ["torque"], spread=-0.1)
