"""Thrusters and their allocation, against published and worked-out numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

from djdyn.marine.allocation import Allocation, ThrustAllocation, ThrusterLayout
from djdyn.marine.thruster import (
    FirstOrderThrust,
    QuadraticThrust,
    ShaftAndDuct,
    ThrottleCurve,
)

from ..gradients import assert_gradient


BLADES = ShaftAndDuct(0.8, 0.15, 5.0, 10.0, 29.0, 2.0, 2.0)
LOOP = ShaftAndDuct(
    0.8, 0.15, 5.0, 10.0, 29.0, 2.0, 2.0, mode="thrust", kp=30.0, ki=1.0
)
D1, D2, D3, D4, D6, D7, ANGLE = 1.4, 0.6, 1.2, 0.6, 1.2, 0.3, 0.5


def six() -> ThrusterLayout:
    """The vehicle of Rokseth's thesis (NTNU, 2014), with z upwards and y to port."""
    c, s = np.cos(ANGLE), np.sin(ANGLE)
    return ThrusterLayout(
        [[-D1, D2, 0], [-D1, -D2, 0], [D3, D4, 0], [D3, -D4, 0], [-D6, 0, 0],
         [D7, 0, 0]],
        [[c, s, 0], [c, -s, 0], [0, 0, -1], [0, 0, -1], [0, 0, -1], [0, -1, 0]],
    )  # fmt: skip


DOWN = np.array([1.0, -1, -1, 1, -1, -1])  # wrench with z up from one with z down


def test_blades_at_a_point_and_at_the_bollard():
    one = lambda x: jnp.array([x])
    thrust, torque, _ = BLADES.blades(one(20.0), one(0.5))
    assert jnp.allclose(thrust, 252.3906, atol=5e-5)
    assert jnp.allclose(torque, 27.28646, atol=5e-6)
    assert jnp.allclose(BLADES.blades(one(20.0), one(0.0))[0], 319.3814, atol=5e-5)
    # For equal lift and drag T = rho A C v^2 sin(p - theta) cos p.
    theta = np.arctan2(0.5, 2.1)
    square = 2.1**2 + 0.5**2
    exact = 1025 * np.pi * 0.0225 * 2 * square * np.sin(0.8 - theta) * np.cos(0.8)
    assert jnp.allclose(thrust, exact, rtol=1e-12)
    back, back_torque, _ = BLADES.blades(one(-20.0), one(-0.5))
    assert jnp.allclose(back, -thrust) and jnp.allclose(back_torque, -torque)


def run(law, command: float, t1: float, times, advance: float = 0.0):
    """States at times of one thruster that is not moved, by a solver of SciPy."""
    keys = list(law.initial_state(1))
    one = lambda x: jnp.array([x])

    @jax.jit
    def rate(x):
        state = {k: x[i : i + 1] for i, k in enumerate(keys)}
        push = law.push(state, one(command), one(advance))
        return jnp.concatenate([push.rate[k] for k in keys])

    done = scipy.integrate.solve_ivp(
        lambda t, x: np.asarray(rate(jnp.asarray(x))), (0, t1), np.zeros(len(keys)),
        "LSODA", times, rtol=1e-9, atol=1e-12,
    )  # fmt: skip
    return {k: done.y[i] for i, k in enumerate(keys)}


def test_thruster_open_and_closed_loop():
    found = run(BLADES, 100.0, 60.0, [1.0, 60.0])
    assert np.allclose(found["shaft"], [8.40615, 9.56345], atol=5e-6)
    blades = lambda found, i: BLADES.blades(
        jnp.asarray(found["shaft"][i : i + 1]), jnp.asarray(found["water"][i : i + 1])
    )[0]
    assert np.allclose(blades(found, 1), 40.3796, atol=5e-5)
    found = run(LOOP, 100.0, 20.0, [0.02, 0.1, 0.5, 1.0, 20.0])
    thrusts = [float(blades(found, i)[0]) for i in range(5)]
    wanted = [59.80, 93.62, None, 95.00, 97.30]
    for x, y in zip(thrusts, wanted, strict=True):
        assert y is None or abs(x - y) < 6e-3
    jet = 2 * 1025 * np.pi * 0.0225 * found["water"][2] ** 2
    assert abs(jet - 86.96) < 6e-3


def test_simple_laws_settle_where_they_should():
    assert np.allclose(
        run(FirstOrderThrust(0.2, -9.0, 30.0), 50.0, 4.0, [4.0])["lagged"], 30.0,
        rtol=1e-6,
    )  # fmt: skip
    law = QuadraticThrust(0.01, 0.3, 0.02)
    shaft = run(law, -25.0, 6.0, [6.0])["shaft"]
    assert np.allclose(shaft, -50.0, rtol=1e-6)
    ahead = law.push({"shaft": jnp.asarray(shaft)}, jnp.ones(1), jnp.array([0.5]))
    assert jnp.allclose(ahead.thrust, -25.0 - 0.02 * 50.0 * 0.5, rtol=1e-6)
    full = ThrottleCurve(0.1).thrust(jnp.array([1.0, -1.0, 0.5, 0.0]))
    assert jnp.allclose(full[:2], jnp.array([30.4, -30.4]))
    half = 8.9 / 2 + 176.0 / 8 - 404.1 / 32 + 389.9 / 128 - 140.3 / 512
    assert jnp.allclose(full[2:], jnp.array([half, 0.0]))


def test_allocation_of_a_square_layout():
    assert np.isclose(abs(np.linalg.det(six().matrix())), 6.7814843, atol=5e-8)
    allocation = Allocation(six())
    share = jax.jit(lambda wrench: allocation.thrusts(wrench))
    of = lambda *wrench: share(jnp.asarray(DOWN * np.array(wrench, float)))
    for wrench, wanted in (
        ((0, 0, 0, 1000, 0, 0), (569.747, 569.747, 0, 0, 0, 0)),
        ((0, 0, 0, 0, 0, 1000), (0, 0, 250, 250, 500, 0)),
        ((0, 0, 1000, 0, 0, 0), (372.697, -372.697, 0, 0, 0, 357.361)),
        ((0, 0, 0, 0, 1000, 0), (-111.809, 111.809, 0, 0, 0, 892.792)),
    ):
        assert np.allclose(of(*wrench), wanted, atol=6e-4)


def eight() -> ThrusterLayout:
    """Four level and four upright thrusters, as of a BlueROV2 Heavy."""
    x, y, s = 0.156, 0.111, np.sqrt(0.5)
    level = [[x, y, 0.085], [x, -y, 0.085], [-x, y, 0.085], [-x, -y, 0.085]]
    ways = [[s, -s, 0], [s, s, 0], [-s, -s, 0], [-s, s, 0]]
    upright = [
        [0.12, 0.218, 0],
        [0.12, -0.218, 0],
        [-0.12, 0.218, 0],
        [-0.12, -0.218, 0],
    ]
    return ThrusterLayout(level + upright, ways + [[0, 0, -1.0]] * 4)  # fmt: skip


def test_weighted_pseudo_inverse_and_limits():
    rng = np.random.default_rng(0)
    weights, wrench = rng.uniform(0.5, 2.0, 8), jnp.asarray(rng.normal(size=6))
    H, W = np.asarray(eight().matrix()), np.diag(1 / weights)
    wanted = W @ H.T @ np.linalg.solve(H @ W @ H.T, np.asarray(wrench))
    found = Allocation(eight(), weights).thrusts(wrench)
    assert np.allclose(found, wanted, rtol=1e-10)
    surge = jnp.array([0, 0, 0, 60.0, 0, 12.0])
    free = Allocation(eight()).thrusts(surge)
    upper = np.full(8, 30.0)
    upper[0] = 0.8 * float(free[0])  # one is weak; the others make up for it
    limits = {"lower": -30.0, "upper": upper, "width": 1e-3}
    clipped, shared = (
        Allocation(eight(), rounds=n, **limits).thrusts(surge) for n in (0, 3)
    )
    assert np.all(np.asarray(shared) <= upper + 1e-3)
    short = [np.linalg.norm(H @ np.asarray(T) - np.asarray(surge)) for T in
             (clipped, shared)]  # fmt: skip
    assert short[1] < 0.2 * short[0]


def test_gradients_of_laws_and_allocation():
    wrench, state = (
        jnp.array([1.0, 2, -3, 40, -50, 60]),
        jnp.array([3.0, 0.0, -2, 1, 4, 5]),
    )

    def loss(x):
        limits = {"lower": -20.0, "upper": 25.0, "rounds": 1, "width": 5.0}
        share = Allocation(six(), x[:6], **limits).thrusts(x[6:12] * wrench)
        law = ShaftAndDuct(x[12], x[13], 5.0, x[14], 29.0, x[15], x[16])
        push = law.push({"shaft": state, "water": 0.1 * state}, share, 0.0 * share)
        total = push.thrust + push.rate["shaft"] + push.power_loss
        return jnp.sum(total * jnp.arange(1.0, 7.0))

    x = jnp.concatenate([jnp.ones(12), jnp.array([0.8, 0.15, 1.0, 2.0, 1.8])])
    assert_gradient(loss, x, h=1e-5, rtol=1e-6, modes_rtol=1e-9)


def test_bad_layouts_are_named():
    flat = ThrusterLayout(np.eye(3), [[1, 0, 0], [1, 0, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match="cannot push in sway as asked: their layout"):
        Allocation(flat, axes=("surge", "sway", "heave"))
    assert Allocation(flat, axes=("surge", "heave")).axes == ("surge", "heave")
    with pytest.raises(ValueError, match="thruster 2 has no direction"):
        ThrusterLayout(np.eye(3), [[1, 0, 0], [0, 0, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match="unknown axis 'up'; there are roll, pitch"):
        Allocation(six(), axes="up")
    assert ThrustAllocation("u", Allocation(six())).command == "u"
