"""Laws of single components against worked numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.hydraulics import (
    Circuit,
    Efficiency,
    EndStop,
    HydraulicCylinder,
    Oil,
    OnJoint,
    Orifice,
    SealLuGre,
    SealStribeck,
    Tank,
    Triangle,
    Volume,
)
from djdyn.hydraulics.component import Conditions
from djdyn.smooth import signed_sqrt, step

from .rigs import BAR, slider


LITRE_PER_MINUTE = 1e-3 / 60


def passage(component, **pressures) -> float:
    world = djdyn.forward_kinematics(slider_mechanism(), jnp.zeros(1))
    p = {k: jnp.asarray(x, float) for k, x in pressures.items()}
    return component.flow(Conditions(Oil(), p, world, {}))


def slider_mechanism() -> djdyn.Mechanism:
    return djdyn.Mechanism(
        (djdyn.Body("mass", "world", djdyn.Prismatic((1, 0, 0)), 1.0),)
    )


def test_volumes_real_time_multibody_v13():
    """1 l/min into 1 l; and a hose of 2e8 Pa that makes 3.2e8 Pa of 1.6e9."""
    oil = Oil(bulk_modulus=1.6e9, conserves="volume")
    node = Volume(1e-3, hose_volume=1e-3, hose_modulus=2e8)
    K, _, _ = node.wall_compliance(jnp.array(50 * BAR), oil)
    stiff = node.dead_volume() / (
        node.dead_volume() / oil.stiffness(jnp.array(0.0)) + K
    )
    assert jnp.allclose(stiff, 3.2e8, rtol=1e-12)
    ram = HydraulicCylinder("A", "T", OnJoint("mass"), 1e-3, 1e-3, 9.0, follow=False)
    parts = {"A": Volume(1e-3), "T": Tank(), "ram": ram}
    system = slider(Circuit(oil, parts))
    y = system.initial_state(v={"mass": -LITRE_PER_MINUTE / 1e-3})
    rate = system.derivative(0.0, y).parts["oil"]["A.bar"]
    assert jnp.allclose(rate * BAR, 2.66667e7, rtol=2e-6)


def test_orifice_real_time_multibody_v14():
    q = passage(Orifice("a", "b", 1e-5, 0.6), a=10 * BAR, b=0.0)
    assert jnp.allclose(q, 2.876780e-4, rtol=2e-7)
    assert jnp.allclose(60 * LITRE_PER_MINUTE / np.sqrt(35e5) / 10, 5.345224838e-8)
    law = lambda x: signed_sqrt(x, jnp.array(BAR))
    slope = jax.grad(law)
    assert jnp.allclose(slope(jnp.array(0.0)), 1.5 / np.sqrt(BAR), rtol=1e-12)
    for side in (1 - 1e-9, 1 + 1e-9):
        x = jnp.array(side * BAR)
        assert jnp.allclose(law(x), np.sqrt(BAR), rtol=1e-8)
        assert jnp.allclose(slope(x), 0.5 / np.sqrt(BAR), rtol=1e-8)
    assert law(jnp.array(-4 * BAR)) == -2 * jnp.sqrt(jnp.array(BAR))


@pytest.mark.parametrize("v", [0.1, -0.1])
def test_efficiency_real_time_multibody_v16(v):
    """800 N of 40 kN at 0.1 m/s, against the motion whatever the pressure's sign."""
    for push in (40e3, -40e3):
        F, loss, _ = Efficiency(0.9).act(jnp.array(v), jnp.array(push), {})
        assert jnp.allclose(F, np.sign(v) * 800.0, rtol=1e-6)
        assert loss > 0


def test_end_stop_real_time_multibody_v16():
    stop = EndStop(1e6, 1e4)
    for v, force in ((0.1, 2000.0), (-0.1, 1000.0)):
        found, _ = stop.force(jnp.array(1e-3), jnp.array(v))
        assert jnp.allclose(found, force, rtol=1e-12)
    found = [step(jnp.array(x), jnp.array(1.0)) for x in (0.25, 0.5, 0.75)]
    assert jnp.allclose(jnp.stack(found), jnp.array([0.15625, 0.5, 0.84375]))


def test_actuator_triangle_bond_graph_v10():
    triangle = Triangle("mass", 0.425, 0.117, 1.149)
    q = jnp.array([-0.45, 0.0, 0.6, 1.36])
    levers = jax.vmap(lambda q: triangle.lever(q)[1])(q)
    known = jnp.array([0.093070, 0.115756, 0.106300, 0.056111])
    assert jnp.allclose(levers, known, atol=5e-7)
    assert jnp.allclose(triangle.lever(jnp.array(0.0))[0], 0.391917, atol=5e-7)
    slopes = jax.vmap(jax.grad(lambda q: triangle.lever(q)[0]))(q)
    assert jnp.allclose(levers, slopes, rtol=1e-12)
    assert jnp.allclose(triangle.lever(jnp.array(0.1429))[1], 0.117, atol=1e-8)


def test_oil_is_stiff_as_its_volume_says_and_finite_everywhere():
    oil = Oil(bulk_modulus=1.4e9, air=0.01, exponent=1.4)
    p = jnp.array([-1e8, -2e5, -1.01325e5, -9.2e4, 0.0, 1e5, 2e7])
    volume = lambda p: oil.expansion(p)
    slopes = jax.vmap(jax.grad(volume))(p)
    v = jax.vmap(volume)(p)
    assert jnp.allclose(jax.vmap(oil.stiffness)(p), -v / slopes, rtol=1e-12)
    h_slopes = jax.vmap(jax.grad(oil.enthalpy))(p)
    assert jnp.allclose(h_slopes, v, rtol=1e-12)  # dh = v dp
    e_slopes = jax.vmap(jax.grad(oil.energy))(p)
    e = jax.vmap(oil.energy)(p)
    assert jnp.allclose(e_slopes, (e + p) / jax.vmap(oil.stiffness)(p), rtol=1e-9)
    # One part in a hundred of air, at the atmosphere's pressure.
    soft = 1 / (0.99 / 1.4e9 + 0.01 / (1.4 * 101325.0))
    assert jnp.allclose(oil.stiffness(jnp.array(0.0)), soft, rtol=1e-12)
    torn = jnp.array(-2e7)  # oil without air holds together at any pressure
    for law in (Oil().stiffness, Oil().enthalpy, Oil().energy):
        assert jnp.isfinite(law(torn)) and jnp.isfinite(jax.grad(law)(torn))


def test_lugre_slides_at_its_stribeck_curve():
    """Steady: z = g/s0 and F = g + s2 v; at zero speed gradients are finite."""
    law = SealLuGre(1e6, 1e3, 300.0, 200.0, 100.0, 0.02)
    v = jnp.array(0.01)
    g = 200 + 100 * np.exp(-0.25)
    F, loss, rate = law.act(v, jnp.array(0.0), {"bristle_um": jnp.array(g)})
    assert jnp.allclose(F, g + 300 * v, rtol=1e-12)
    assert jnp.allclose(rate["bristle_um"], 0.0, atol=1e-9)
    assert jnp.allclose(loss, F * v)
    state = {"bristle_um": jnp.array(0.0)}
    slope = jax.grad(lambda v: law.act(v, jnp.array(0.0), state)[0])(jnp.array(0.0))
    assert jnp.allclose(slope, 1300.0)
    curve = SealStribeck(300.0, 200.0, 100.0, 0.02, 1e-4)
    assert jnp.allclose(curve.force(v, v), F, rtol=1e-12)
