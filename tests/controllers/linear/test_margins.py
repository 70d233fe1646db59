"""Margins of loops, compared with closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from controllers import JointPID, linearise, margins
from controllers.linear.margins import Opened, moduli
from djdyn.parts import JointActuator, JointSpring


MASS, KP, KD = 2.0, 18.0, 3.0


def slides(coupled: bool) -> djdyn.System:
    """Two masses under PD control, one riding on the other if they are coupled."""
    rider = "first" if coupled else "world"
    bodies = (
        djdyn.Body("first", "world", djdyn.Prismatic((1, 0, 0)), MASS),
        djdyn.Body("second", rider, djdyn.Prismatic((1, 0, 0)), 3 * MASS),
    )
    names, two = ("first", "second"), jnp.ones(2)
    parts = {
        "pid": JointPID(names, "target", KP * two, KD * two),
        "motors": JointActuator(names, "pid.u"),
        "spring": JointSpring("first", 0.0),
    }
    given = {"target": [0.0, 0.0], "another": [0.0]}
    return djdyn.System(djdyn.Mechanism(bodies), parts, given)


def crossing(m: float) -> float:
    """Return the crossover frequency of (kp + kd s) / (m s2), rad/s."""
    return np.sqrt((KD**2 + np.sqrt(KD**4 + 4 * m**2 * KP**2)) / (2 * m**2))


def by_hand(m: float, delay: float) -> float:
    """Return the phase margin, deg, of (kp + kd s) / (m s2) with a delay."""
    w = crossing(m)
    return np.degrees(np.arctan(KD * w / KP) - w * delay)


@pytest.mark.parametrize("delay", [0.0, 0.05])
def test_phase_margins_are_those_by_hand(delay):
    system = slides(False)
    found = margins(system, system.initial_state(), "pid.u", delay=delay)
    known = [by_hand(m, delay) for m in (MASS, 3 * MASS)]
    assert np.allclose(found.phase, known, atol=1e-2)
    assert np.all(np.isinf(found.gain)) == (delay == 0)
    borne = np.array([by_hand(m, 0.0) for m in (MASS, 3 * MASS)])
    w = np.array([crossing(m) for m in (MASS, 3 * MASS)])
    assert np.allclose(found.delay, np.radians(borne) / w - delay, rtol=1e-3)
    assert "deg" in str(found)


def test_a_loop_at_its_margin_is_at_its_edge():
    """A loop with the delay that its phase margin allows has no margins left."""
    system = slides(False)
    y = system.initial_state()
    edge = np.radians(by_hand(MASS, 0.0)) / crossing(MASS)
    found = margins(system, y, "pid.u", delay=edge)
    assert abs(found.phase[0]) < 1e-2 and abs(found.delay[0]) < 1e-4
    assert np.isclose(found.gain[0], 1.0, atol=1e-3) and found.modulus[0] < 1e-2


def test_other_loops_stay_closed():
    """The response of one loop follows from the matrices of the coupled masses."""
    system = slides(True)
    found = margins(system, system.initial_state(), "pid.u", delay=0.02)
    M = np.array([[4 * MASS, 3 * MASS], [3 * MASS, 3 * MASS]])
    w = np.logspace(-1, 3, 200_001)
    s = 1j * w[:, None, None]
    for i in range(2):
        closed = np.diag(np.arange(2) != i)
        with_delay = np.exp(-0.02 * s)
        plant = np.linalg.inv(s**2 * M + closed * (KP + KD * s) * with_delay)[:, i, i]
        L = plant * (KP + KD * 1j * w) * with_delay[:, 0, 0]
        crossings = np.flatnonzero(np.diff(np.sign(np.abs(L) - 1)))
        lags = np.degrees(np.angle(-L[crossings]))
        assert np.isclose(found.phase[i], lags.min(), atol=0.1)
        assert np.isclose(found.modulus[i], np.min(np.abs(1 + L)), rtol=1e-3)


def test_an_unknown_signal_is_named():
    system = slides(False)
    with pytest.raises(ValueError, match=r"unknown signal 'pid\.w'"):
        margins(system, system.initial_state(), "pid.w")


def test_inputs_are_named_as_their_columns_stand():
    system = slides(False)
    plant = linearise(system, inputs={"target": [0.0, 0.0], "another": [0.0]})
    assert plant.inputs == ("another", "target")
    assert np.allclose(plant.B[:, 0], 0.0)
    assert np.allclose(plant.B[2:4, 1:], np.diag([KP / MASS, KP / (3 * MASS)]))


def test_loops_of_several_signals_are_opened_like_those_of_one():
    whole = slides(True)
    one = jnp.ones(1)
    parts = {"spring": whole.parts["spring"]}
    for name in ("first", "second"):
        parts[f"pid_{name}"] = JointPID((name,), "another", KP * one, KD * one)
        parts[f"motor_{name}"] = JointActuator((name,), f"pid_{name}.u")
    apart = djdyn.System(whole.mechanism, parts, {"another": [0.0]})
    known = margins(whole, whole.initial_state(), "pid.u", delay=0.05)
    both = ("pid_first.u", "pid_second.u")
    found = margins(apart, apart.initial_state(), both, delay=0.05)
    for name in ("gain", "phase", "modulus", "delay"):
        assert np.allclose(getattr(found, name), getattr(known, name), rtol=1e-9)


def test_moduli_of_several_loops_have_derivatives():
    """Derivatives by all four matrices, each loop opened with the others closed."""
    rng = np.random.default_rng(3)
    A = rng.normal(size=(5, 5)) - 4 * np.eye(5)
    B, C, D = (rng.normal(size=s) for s in ((5, 3), (3, 5), (3, 3)))
    given = [jnp.asarray(x) for x in (A, 0.5 * B, 0.5 * C, 0.1 * D)]
    of_all = jax.jit(lambda some: jnp.append(*moduli(Opened(*some).with_delay(0.02))))
    assert of_all(given)[-1] < 0  # stable
    ways = [jnp.asarray(rng.normal(size=x.shape)) for x in given]
    for k, way in enumerate(ways):
        of = lambda h, k=k, way=way: of_all(
            [x + h * way if i == k else x for i, x in enumerate(given)]
        )
        found = jax.jacfwd(of)(0.0)
        assert np.allclose(found, (of(1e-6) - of(-1e-6)) / 2e-6, rtol=1e-4, atol=1e-7)


def test_batches_of_moduli_come_back_and_are_those_of_each():
    """Batches and their gradients finish: LAPACK's batches can deadlock in pairs."""
    rng = np.random.default_rng(4)
    A = rng.normal(size=(16, 12, 12)) - 6 * np.eye(12)
    rest = (0.5 * rng.normal(size=(16, *s)) for s in ((12, 3), (3, 12), (3, 3)))
    given = [jnp.asarray(x) for x in (A, *rest)]
    both = jax.value_and_grad(
        lambda some: moduli(Opened(*some).with_delay(0.02))[0].sum()
    )
    one, many = jax.jit(both), jax.jit(jax.vmap(both))
    values, slopes = many(given)
    for _ in range(20):
        assert np.array_equal(many(given)[0], values)
    for k in (0, 7):
        value, slope = one([x[k] for x in given])
        assert np.allclose(values[k], value, rtol=1e-9)
        assert np.allclose(slopes[0][k], slope[0], rtol=1e-6, atol=1e-9)
