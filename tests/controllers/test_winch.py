"""Winch drive, tension mode, brake and heave compensation, on a massless line."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from controllers import Reference, WinchPID
from djdyn.marine.waves import jonswap
from djdyn.multibody.time_functions import Harmonic, Heave, Interpolated
from djdyn.parts import FrameSensor, Winch

from ..gradients import assert_gradient
from .line import Line


EA, LENGTH, G = 8e5, 30.0, 9.81
SAMPLE = {"kp": 0.1, "kd": 0.01, "ki": 1e-4}  # the source's winch
SWING = 2 * np.pi / 5


def hoist(
    parts, mass=204.536, damping=1e2, deck=0.0
) -> tuple[djdyn.System, djdyn.State]:
    """Return a static payload under a deck that may heave."""
    motion = Heave(deck) if callable(deck) else Heave(Harmonic(deck, 2 * np.pi / 8))
    bodies = (
        djdyn.Body("deck", "world", djdyn.Prescribed(motion), 1.0),
        djdyn.Body("load", "world", djdyn.Prismatic((0, 0, 1)), mass),
    )
    line = Line("deck", "load", "winch.rate", LENGTH, EA, damping)
    parts = {"line": line, "sheave": FrameSensor("deck"), **parts}
    parts["payload"] = FrameSensor("load")
    system = djdyn.System(djdyn.Mechanism(bodies), parts)
    start = motion(jnp.zeros(())).p[2] - LENGTH * (1 + mass * G / EA)
    return system, system.initial_state(q={"load": start})


def run(system, y0, t1, **how):
    return djdyn.simulate(system, t1, y0, solver="rk4", dt=5e-4, **how)


def test_velocity_mode_ramps_as_the_limits_say():
    """Ship V9: the rate is t/10 up to 1 m/s at 10 s, the length 30 + t^2/20."""
    winch = Winch("order.value", acceleration=0.1, deceleration=0.1, gain=500.0)
    system, y0 = hoist({"order": Reference(1.0), "winch": winch}, mass=1.0)
    found = run(system, y0, 20.0, saveat=[0.0, 2.0, 5.0, 9.0, 12.0, 20.0], ledger=True)
    rate = found.signal("winch.rate")
    assert jnp.allclose(rate, jnp.array([0, 0.2, 0.5, 0.9, 1, 1]), atol=1e-9)
    length = jnp.array([30, 30.2, 31.25, 34.05, 37, 45])
    assert jnp.allclose(found.signal("line.length"), length, atol=1e-3)
    assert (
        jnp.max(jnp.abs(djdyn.energy_balance(system, found))) < 1e-4
    )  # of 150 J lowered


@pytest.mark.validation
def test_velocity_mode_moves_the_payload():
    """Ship V8: 1 m/s at 5 s, and the undamped bounce of 0.544 s: 1.110 m/s."""
    parts = {"order": Reference(Harmonic(1.0, SWING)), "winch": Winch("order.value")}
    system, y0 = hoist(parts, 200.0, 0.0)
    found = run(system, y0, 20.0, saveat=4001)
    assert jnp.allclose(jnp.max(jnp.abs(found.v("load"))), 1.110, atol=0.015)
    assert (
        jnp.max(jnp.abs(found.signal("winch.rate") - jnp.sin(SWING * found.t))) < 0.03
    )


@pytest.mark.validation
def test_tension_mode_follows_a_varying_set_point():
    """Ship V7: rms error 15 N and at most 39 N after 3 s, from rest."""
    parts = {
        "order": Reference(Harmonic(250.0, SWING, mean=2006.1)),
        "pid": WinchPID("line.tension_start", "order.value", **SAMPLE),
        "winch": Winch("pid.u"),
    }
    system, y0 = hoist(parts)
    found = run(system, y0, 20.0, saveat=4001)
    error = found.signal("pid.error")[found.t > 3.0]
    assert jnp.sqrt(jnp.mean(error**2)) < 15.0
    assert jnp.max(jnp.abs(error)) < 39.0
    sampled = run(system, y0, 20.0, control_period=0.005)
    error = sampled.signal("pid.error")[sampled.t > 3.0]
    assert jnp.sqrt(jnp.mean(error**2)) < 15.0


def test_the_brake_stops_the_drum_and_the_drive_takes_over_again():
    """Disengaged at 1 s at 0.5 m/s, it stops within 1/6 s at 3 m/s2; engaged at 2 s."""
    clutch = Interpolated([0.999, 1.0, 1.999, 2.0], [1.0, 0.0, 0.0, 1.0])
    parts = {
        "order": Reference(0.5),
        "clutch": Reference(clutch),
        "winch": Winch("order.value", engaged="clutch.value"),
    }
    system, y0 = hoist(parts)
    found = run(system, y0, 3.0, saveat=[0.0, 0.9, 1.1, 1.5, 1.9, 2.1, 2.9])
    rate = found.signal("winch.rate")
    wanted = jnp.array([0.0, 0.5, 0.2, 0.0, 0.0, 0.3, 0.5])
    assert jnp.allclose(rate, wanted, atol=5e-3)


@pytest.mark.parametrize("hold", ["height", "tension"])
def test_heave_compensation(hold):
    r"""A lag of $1/k$ leaves $\omega/\sqrt{k^2+\omega^2}$ of the heave."""
    omega, k = 2 * np.pi / 8, 50.0
    gains = {"kp": 0.0} if hold == "height" else {"kp": 0.01, "ki": 1e-4}
    measured = {"height": "payload.height", "tension": "line.tension_end"}[hold]
    still = {"height": -30.0, "tension": 204.536 * G}[hold]
    parts = {
        "order": Reference(still),
        "pid": WinchPID(measured, "order.value", deck="sheave.climb", **gains),
        "winch": Winch("pid.u", gain=k, start=omega),  # moves with the deck
    }
    system, y0 = hoist(parts, deck=1.0)
    found = run(system, y0, 32.0, saveat=np.arange(16.0, 32.0, 0.01))
    height = found.signal("payload.height")
    swing = (jnp.max(height) - jnp.min(height)) / 2
    if hold == "height":
        bounce = np.sqrt(EA / LENGTH / 204.536)
        left = omega / np.hypot(k, omega) / (1 - (omega / bounce) ** 2)
        assert jnp.allclose(swing, left, rtol=0.02)
    else:
        # The payload's inertia on an uncompensated line makes m w^2 a = 126 N.
        assert jnp.max(jnp.abs(found.signal("pid.error"))) < 0.01 * 126.0


def test_height_feedback_brings_the_payload_where_it_should_be():
    """The payload approaches a moving height as a first-order lag of rate kp."""
    path = Harmonic(2.0, 0.5, mean=-31.0)
    gains = {"kp": 2.0, "limit": 5.0, "deck": "sheave.climb"}
    parts = {
        "order": Reference(path),
        "pid": WinchPID(
            "payload.height", "order.value", wanted_rate="order.rate", **gains
        ),
        "winch": Winch("pid.u"),
    }
    sea = jonswap(2.0, 8.0, seed=3, components=20)
    system, y0 = hoist(parts, damping=1e3, deck=sea)
    found = run(system, y0, 12.0, saveat=[0.0, 6.0, 9.0, 12.0])
    error = found.signal("pid.error")
    assert jnp.abs(error[0]) > 0.5
    assert jnp.max(jnp.abs(error[1:])) < 0.05


def test_gradients_through_limits_and_brake():
    """Gradients to PID gains, limits and set points, in both modes, with saturation."""
    clutch = Interpolated([0.2, 0.25], [1.0, 0.0])
    parts = {
        "order": Reference(2300.0),
        "clutch": Reference(clutch),
        "pid": WinchPID(
            "line.tension_start", "order.value", 2e-3, 1e-3, 1e-5,
            limit=0.2, engaged="clutch.value", width=0.05,
        ),
        "winch": Winch("pid.u", 3.0, 2.0, engaged="clutch.value", width=0.2),
    }  # fmt: skip
    system, y0 = hoist(parts)
    names = ("pid.kp", "pid.ki", "pid.kd", "pid.limit", "winch.acceleration")
    names += ("winch.deceleration", "winch.gain", "order.path.value", "line.EA")
    theta = {k: jnp.ones(()) for k in names}

    def loss(adjoint):
        def value(scale):
            numbers = {k: scale[k] * djdyn.get_parameters(system, k) for k in names}
            model = djdyn.with_parameters(system, numbers)
            end = djdyn.simulate(
                model, 0.5, y0, solver="rk4", dt=2e-3, saveat=2, adjoint=adjoint
            )
            return end.y.parts["line"]["length"][-1] * 10 + end.y.q[-1, 0]

        return value

    assert_gradient(loss("reverse"), theta, forward=loss("forward"), h=1e-6, rtol=1e-5)


def test_the_drive_has_a_gradient_at_its_set_point_and_its_corners():
    system, y0 = hoist({"order": Reference(1.0), "winch": Winch("order.value")})

    def acceleration(rate):
        y = eqx.tree_at(lambda y: y.parts["winch"].rate, y0, rate)
        return system.at(0.0, y).responses["winch"].rate.rate

    rates = jnp.array([1.0, 1.0 - 3 / 50, 1.0 + 3 / 50, 0.0, 2.0])
    found = jax.jit(jax.vmap(jax.value_and_grad(acceleration)))(rates)
    wanted = (
        jnp.array([0.0, 2.9975, -2.9975, 3, -3]),
        jnp.array([-50, -25, -25, 0, 0.0]),
    )
    assert jnp.allclose(found[0], wanted[0], atol=1e-9)
    assert jnp.allclose(found[1], wanted[1], atol=1e-6)


def test_bad_winches_are_refused():
    with pytest.raises(ValueError, match=r"acceleration must be above 0 m/s\^2"):
        Winch("order.value", acceleration=-1.0)
    with pytest.raises(
        ValueError, match=r"'order.value' has shape \(2,\), expected one"
    ):
        hoist({"order": Reference([1.0, 2.0]), "winch": Winch("order.value")})
    with pytest.raises(ValueError, match=r"unknown signal 'pid.u'"):
        hoist({"winch": Winch("pid.u")})
