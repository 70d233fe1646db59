"""Forces of contact: closed forms, published numbers, energy balance, and gradients."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.contact import (
    Contact,
    Coulomb,
    Cuboid,
    ElasticFoundation,
    HalfSpace,
    HuntCrossley,
    Karnopp,
    KelvinVoigt,
    LuGre,
    Sphere,
    Stribeck,
    VolumeContact,
    dissipation,
    hertz_stiffness,
    restitution,
)

from ..gradients import quick_jit


def over_a_plane(part, mass=1.0, inertia=0.01, g=(0.0, 0.0, -9.81)) -> djdyn.System:
    body = djdyn.Body("b", "world", djdyn.Free(), mass, I_BC=inertia * np.eye(3))
    return djdyn.System(djdyn.Mechanism((body,), gravity_W=g), {"c": part})


def at(system, z, v=(0, 0, 0), w=(0, 0, 0)) -> djdyn.State:
    return system.initial_state(q={"b": [0, 0, z, 1, 0, 0, 0]}, v={"b": [*w, *v]})


BALL = Sphere(0.1)


@pytest.mark.validation
def test_drop():
    """Real-time-multibody V18: 900 kg from 0.1 m on a spring and damper."""
    law = KelvinVoigt(1e6, 1e4, width=1e-7)
    system = over_a_plane(Contact("b", BALL, "world", HalfSpace(), law), 900.0)
    run = djdyn.simulate(
        system, 0.4, at(system, 0.2), ledger=True, saveat=4001, rtol=1e-9, atol=1e-11
    )
    z = np.asarray(run.y.q[:, 2]) - 0.1
    assert np.isclose(z.min(), -0.040396, atol=2e-6)
    assert np.isclose(run.t[z.argmin()], 0.142784 + 0.04913, atol=1e-4)
    assert np.isclose(np.max(run.signal("c.normal_force")), 42234.0, rtol=1e-4)
    assert np.isclose(z[2000:].max(), 0.022589, atol=1e-5)
    assert np.max(np.abs(djdyn.energy_balance(system, run))) < 1e-6 * 900 * 9.81 * 0.1


@pytest.mark.validation
def test_restitution_of_hunt_and_crossley():
    """Every dissipation, and Hertz and Kelvin–Voigt, without gravity."""
    s = np.array([0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0])
    e = [0.993377, 0.967739, 0.937476, 0.882190, 0.748435, 0.593624, 0.410720]
    assert np.allclose(restitution(s), e, atol=1e-6)
    assert np.allclose(dissipation(restitution(s), 2.0), s / 2, rtol=1e-9)
    law = HuntCrossley(1e6, 0.0)
    part = Contact("b", BALL, "world", HalfSpace(), law)
    system = over_a_plane(part, g=(0, 0, 0))
    y = at(system, 0.1, (0, 0, -0.5))
    run = djdyn.rollout(
        system,
        0.04,
        y,
        parameters={"c.normal.dissipation": s / 0.5},
        saveat=[0.04],
        solver="tsit5",
        rtol=1e-10,
        atol=1e-12,
    )
    assert np.allclose(run.y.v[:, -1, 5] / 0.5, e, atol=1e-6)
    hertz = djdyn.simulate(system, 0.02, y, saveat=20001, rtol=1e-10, atol=1e-12)
    depth, push = (
        np.asarray(hertz.signal(f"c.{k}")) for k in ("depth", "normal_force")
    )
    assert np.isclose(depth.max(), 2.5e-3, rtol=1e-5)
    assert np.isclose(push.max(), 125.0, rtol=1e-5)
    assert np.isclose(np.sum(push > 0) * 1e-6, 14.71637e-3, rtol=2e-4)
    k = hertz_stiffness((2e11, 2e11), (0.3, 0.3), 0.1)
    assert np.isclose(k, 4 / 3 * 2e11 / (2 * (1 - 0.09)) * np.sqrt(0.1))


@pytest.mark.validation
def test_kelvin_voigt_lets_go_without_pulling():
    zeta = np.array([0.05, 0.1, 0.2, 0.4])
    law = KelvinVoigt(1e4, width=1e-9)
    part = Contact("b", BALL, "world", HalfSpace(), law)
    system = over_a_plane(part, g=(0, 0, 0))
    run = djdyn.rollout(
        system,
        0.1,
        at(system, 0.1, (0, 0, -0.5)),
        parameters={"c.normal.damping": 2 * zeta * 100.0},
        saveat=[0.1],
        rtol=1e-10,
        atol=1e-13,
    )
    e = [0.858758, 0.744079, 0.571740, 0.363527]
    assert np.allclose(run.y.v[:, -1, 5] / 0.5, e, atol=1e-5)


@pytest.mark.validation
def test_lugre():
    """Real-time-multibody V19: steady curve, and a step of the speed."""
    # mu_static 0.9, mu 0.5, Stribeck speed 12.5 m/s, exponent 1/2
    law = LuGre(0.5, 0.9, 40.0, 4.9487, 0.0018, 12.5, 0.5, width=1e-9)
    v = np.array([0.1, 1.0, 5.0, 12.5, 20.0])
    g = [0.865776, 0.801455, 0.712514, 0.647152, 0.612906]
    assert np.allclose(jax.vmap(law.steady)(jnp.asarray(v)), g, atol=1e-6)

    def rate(z):
        grip = law.evaluate(
            jnp.array([1.0, 0, 0]), jnp.array(1.0), jnp.array([z, 0, 0]), jnp.zeros(3)
        )
        return float(grip.rate[0]), -float(grip.force[0])

    assert np.isclose(rate(0.0)[1], 4.9505, atol=1e-4)
    limit = 0.02003638
    assert np.isclose(rate(limit)[0], 0.0, atol=1e-5)
    assert np.isclose(rate(limit)[1], 0.801455 + 0.0018, atol=1e-5)


@pytest.mark.validation
def test_a_spinning_disc_comes_to_rest():
    r"""Bristles about the normal bend by the angle $a$ at most (Dahl): what is left of
    the energy after a turn $x$ is $E - T(x - a(1 - e^{-x/a}))$.
    """
    law, grip = KelvinVoigt(1e5, width=1e-5), LuGre(0.4, 0.4, 4000.0, width=1e-9)
    part = Contact("b", BALL, "world", HalfSpace(), law, grip, spinning=4e-3)
    system = over_a_plane(part)
    y = at(system, 0.1 - 9.81e-5, w=(0, 0, 5.0))
    how = {"rtol": 1e-9, "atol": 1e-11, "max_steps": 65536}
    run = djdyn.simulate(system, 1.4, y, saveat=1401, ledger=True, **how)
    q, spin = np.asarray(run.y.q), np.asarray(run.y.v[:, 2])
    turn = 2 * np.arctan2(q[:, 6], q[:, 3])
    most, whole, a = 9.81 * 4e-3, 0.01 * 5.0**2 / 2, 0.4 / 4000 / (4e-3 / 0.4)
    until = np.cumprod(spin > 0) > 0  # it stops for the first time
    left = whole - most * (turn + a * np.expm1(-turn / a))
    assert np.allclose(0.01 * spin[until] ** 2 / 2, left[until], atol=1e-6 * whole)
    assert np.isclose(turn.max(), whole / most + a, atol=1e-5)
    assert turn[-1] > turn.max() - 2 * a  # springs back, and no further
    assert np.max(np.abs(djdyn.energy_balance(system, run))) < 1e-6 * whole


LAWS = {
    "coulomb": Coulomb(0.4, 1e-3),
    "stribeck": Stribeck(0.3, 0.5, 0.05, 0.01, 1e-3),
    "lugre": LuGre(0.4, 0.5, 4000.0, 20.0, width=1e-4),
    "karnopp": Karnopp(0.4, 0.5),
}


def rough(size: list[float], width: float, law) -> djdyn.System:
    """A box of 1 kg that slides, rolls and spins on a plane."""
    normal = HuntCrossley(2e4, 0.3, 1.0, width=width)
    arms: Any = {"rolling": 1e-3, "spinning": 2e-3}
    part = Contact("b", Cuboid(size), "world", HalfSpace(), normal, law, **arms)
    return over_a_plane(part, 1.0, 0.005)


@pytest.mark.parametrize("name", LAWS)
def test_the_energy_balance_of_a_tumbling_box(name):
    """Bounces, slides, rolls and spins, and loses only the energy in the ledger."""
    system = rough([0.2, 0.15, 0.1], 1e-4, LAWS[name])
    y = at(system, 0.2, (0.8, 0.3, 0.0), (2.0, -3.0, 1.0))
    run = djdyn.simulate(
        system, 0.5, y, ledger=True, saveat=51, rtol=1e-8, atol=1e-10, max_steps=65536
    )
    assert np.max(np.abs(djdyn.energy_balance(system, run))) < 2e-6 * 9.81 * 0.2


@pytest.mark.parametrize("name", ["lugre", "karnopp"])
def test_a_box_stays_on_a_slope(name):
    """A box below the friction angle creeps less than a thousandth of a millimetre a
    second; above it slides as it should.
    """
    shape, law = Cuboid([0.2, 0.2, 0.2]), KelvinVoigt(1e5, 400.0, width=1e-5)
    part = Contact("b", shape, "world", HalfSpace(), law, LAWS[name])
    for angle, slides in ((0.35, False), (0.6, True)):
        g = 9.81 * np.array([np.sin(angle), 0, -np.cos(angle)])
        system = over_a_plane(part, 1.0, 0.005, g)
        y = at(system, 0.1 - 9.81 * np.cos(angle) / 4e5)
        run = djdyn.simulate(
            system, 3.0, y, saveat=4, rtol=1e-6, atol=1e-8, max_steps=1 << 18
        )
        x = np.asarray(run.y.q[:, 0])
        if slides:
            a = 9.81 * (np.sin(angle) - 0.4 * np.cos(angle))
            assert np.isclose(x[3] - 2 * x[2] + x[1], a, rtol=0.02)
        else:
            assert x[3] - x[1] < 2e-6
            assert x[3] < 5e-4


def test_gradients_where_things_begin():
    """First contact, rest, zero sliding and the edge of slip, in both modes."""
    system = rough([0.2, 0.2, 0.2], 1e-3, LAWS["lugre"])
    paths = [k for k in djdyn.parameters(system) if k.startswith("c.")]
    paths = [k for k in paths if "width" not in k and "full" not in k]
    table = {k: djdyn.get_parameters(system, k) for k in paths}

    def value(numbers, x):
        model = djdyn.with_parameters(system, numbers)
        y = at(system, 0.1)
        q = y.q.at[2].add(x[0])
        bent = jnp.full_like(y.parts["c"]["bristles"], 1e-5)
        parts = {"c": {**y.parts["c"], "bristles": bent}}
        rate = model.derivative(0.0, djdyn.State(q, x[1:], parts))
        return jnp.sum(rate.v * jnp.arange(1.0, 7.0)) + jnp.sum(
            rate.parts["c"]["stored"]
        )

    still = jnp.zeros(6)
    places = jnp.stack(
        [
            jnp.concatenate([jnp.array([z]), v])
            for z, v in (
                (0.0, still),
                (-2e-3, still),
                (-2e-3, still.at[3].set(0.1)),
                (0.0, still.at[5].set(-1.0)),
                (5e-3, still.at[5].set(-1.0)),
            )
        ]
    )
    gradients = quick_jit(jax.vmap(jax.grad(value, (0, 1)), (None, 0)))(table, places)
    assert all(bool(jnp.all(jnp.isfinite(x))) for x in jax.tree.leaves(gradients))
    direction = {k: 0.1 * x for k, x in table.items()}
    along = quick_jit(
        jax.vmap(lambda x: jax.jvp(lambda n: value(n, x), (table,), (direction,))[1])
    )(places)
    product = sum(
        jnp.sum((gradients[0][k] * direction[k][None]).reshape(len(places), -1), 1)
        for k in table
    )
    assert jnp.allclose(product, along, rtol=1e-9, atol=1e-9)
    many = quick_jit(jax.vmap(value, (None, 0)))
    h = 1e-5
    moved = lambda s: many({k: x * (1 + 0.1 * s) for k, x in table.items()}, places)
    assert jnp.allclose((moved(h) - moved(-h)) / (2 * h), along, rtol=1e-5, atol=1e-5)
    for k in range(7):
        e, h = jnp.eye(7)[k][None], 1e-7
        slope = (many(table, places + h * e) - many(table, places - h * e)) / (2 * h)
        assert jnp.allclose(slope, gradients[1][:, k], rtol=1e-4, atol=1e-3), k


@pytest.mark.validation
def test_flat_box_on_its_bed():
    """Ship V28: the volume that carries 25 t."""
    beds = (ElasticFoundation(950e6, 50e6), ElasticFoundation(950e6, 50e6))
    ground = djdyn.Frame("bed", "world", djdyn.translation((0, 0, -5.6)))
    body = djdyn.Body("b", "world", djdyn.Free(), 25000.0, I_BC=5e4 * np.eye(3))
    part = VolumeContact("b", Cuboid([5, 5, 1]), "bed", Cuboid([100, 100, 10]), beds)
    system = djdyn.System(djdyn.Mechanism((body,), (ground,)), {"c": part})
    run = djdyn.simulate(
        system, 3.0, ledger=True, saveat=31, rtol=1e-8, atol=1e-10, max_steps=65536
    )
    assert np.isclose(run.signal("c.volume")[-1], 7.9017059e-3, rtol=1e-7)
    assert np.isclose(run.y.q[-1, 2], -0.1 - 3.1607e-4, atol=1e-8)
    assert np.isclose(run.signal("c.normal_force")[-1], 245250.0, rtol=1e-7)
    assert np.max(np.abs(djdyn.energy_balance(system, run))) < 1e-7 * 25000 * 9.81 * 0.1


def test_bad_laws():
    with pytest.raises(ValueError, match="stiffness must be above 0"):
        KelvinVoigt(-1.0)
    with pytest.raises(ValueError, match=r"static friction 0\.3 is below"):
        LuGre(0.4, 0.3, 100.0)
    with pytest.raises(ValueError, match="unknown law 'newton'"):
        dissipation(0.5, 1.0, "newton")
    with pytest.raises(ValueError, match="above 0, at most 1"):
        dissipation(1.5, 1.0)
    with pytest.raises(ValueError, match="foundation of a HalfSpace needs a depth"):
        VolumeContact(
            "b",
            BALL,
            "world",
            HalfSpace(),
            (ElasticFoundation(1e9), ElasticFoundation(1e9)),
        )
    with pytest.raises(ValueError, match="unknown frame 'floor'"):
        over_a_plane(Contact("b", BALL, "floor", HalfSpace(), KelvinVoigt(1e4)))
