"""Whole circuits: energy balance, gradients, batches, and what is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.hydraulics import (
    Circuit,
    Counterbalance,
    HydraulicCylinder,
    Oil,
    OnJoint,
    Orifice,
    Supply,
    Tank,
    Volume,
)

from ..gradients import quick_jit, random_direction
from .rigs import BAR, everything, slider, valve_step


def start(system: djdyn.System, x: float = 0.3, v: float = 0.2) -> djdyn.State:
    y = system.initial_state(
        q={"mass": x, "arm": 0.1, "wheel": 0.3}, v={"mass": v, "arm": 0.1, "wheel": -2}
    )
    moving = {"valve.spool": 0.4, "valve.rate": 2.0, "lag.spool": -0.3}
    moving |= {"ram.bristle_um": 50.0}
    moving = {k: jnp.array(float(x)) for k, x in moving.items()}
    return eqx.tree_at(lambda y: y.parts["oil"], y, {**y.parts["oil"], **moving})


def balance(system: djdyn.System, y: djdyn.State):
    """Rates of energy and of oil, and what they should be; every component's loss."""
    rate, now = system.derivative(0.0, y), system.at(0.0, y)
    circuit = system.parts["oil"]
    _, gained = jax.jvp(lambda y: system.energy(0.0, y), (y,), (rate,))
    power_in, power_loss = system.powers(0.0, y)

    def mass(y):
        return circuit.oil_mass(
            y.parts["oil"], djdyn.forward_kinematics(system.mechanism, y.q, y.v)
        )

    _, poured = jax.jvp(mass, (y,), (rate,))
    given = circuit.oil_in(y.parts["oil"], now.world, now.signals)
    _, effects, _ = circuit._effects(y.parts["oil"], now.world, now.signals)
    losses = {name: effect.loss for name, effect in effects.items()}
    return gained, power_in - power_loss, poured, given, losses


@pytest.mark.slow
@pytest.mark.parametrize("conserves", ["mass", "volume"])
def test_energy_and_mass_balance(conserves):
    """All components at once; also at a stop, and with a chamber below zero."""
    system = everything(conserves)
    energy_balance = quick_jit(lambda y: balance(system, y))
    low = start(system, 0.502, 0.4)
    low.parts["oil"]["D.bar"] = jnp.array(-0.98)
    for y in (start(system), low, start(system, -0.001, -0.1)):
        gained, expected, poured, given, losses = energy_balance(y)
        assert jnp.allclose(gained, expected, rtol=1e-8), (gained, expected)
        assert all(loss >= 0 for loss in losses.values()), losses
        if conserves == "mass":
            assert jnp.allclose(poured, given, rtol=1e-8)


def special_points(system: djdyn.System) -> tuple[djdyn.State, dict]:
    """States and commands: at work, spools at zero, all level and still, saturated."""
    work = start(system)
    shut = {"valve.spool": 0.0, "valve.rate": 0.0, "lag.spool": 0.0}
    full = {"valve.spool": 1.0, "lag.spool": -1.0}
    level = {k: 200.0 for k in work.parts["oil"] if k.endswith(".bar")}
    level |= {**shut, "ram.bristle_um": 0.0, "pipe.l_per_s": 0.0}
    states = []
    for changes in ({}, shut, level, full):
        oil = work.parts["oil"] | {k: jnp.array(x) for k, x in changes.items()}
        states.append(eqx.tree_at(lambda y: y.parts["oil"], work, oil))
    states[2] = eqx.tree_at(lambda y: y.v, states[2], jnp.zeros_like(work.v))
    commands = jnp.array([0.7, 0.0, 0.0, 2.5])  # 2 opens the larger valve fully
    table = {k: jnp.stack([x] * 4) for k, x in djdyn.parameters(system).items()}
    return jax.tree.map(lambda *x: jnp.stack(x), *states), {**table, "u": commands}


@pytest.mark.slow
def test_gradients_of_every_number_at_special_points():
    """Reverse, forward and differences, along random directions, four lanes at once."""
    system = everything()
    ys, table = special_points(system)

    def loss(numbers, y):
        rate = djdyn.with_parameters(system, numbers).derivative(0.0, y)
        flat = jnp.concatenate([jnp.ravel(x) for x in jax.tree.leaves(rate)])
        weights = jnp.cos(jnp.arange(1.0, flat.size + 1))
        return weights @ jnp.tanh(flat / 30.0)

    @quick_jit
    def all_at_once(d):
        move = lambda s: {k: x + s * d[k] for k, x in table.items()}
        lanes = jax.vmap(loss)
        h = 1e-8  # curvature jumps at zero drop: differences are off by their step
        difference = (lanes(move(h), ys) - lanes(move(-h), ys)) / (2 * h)
        _, forward = jax.jvp(lambda x: lanes(x, ys), (table,), (d,))
        return jax.vmap(jax.grad(loss))(table, ys), forward, difference

    for seed in range(3):
        units = random_direction(table, seed)
        d = {k: x * table[k] for k, x in units.items()}
        gradient, forward, difference = all_at_once(d)
        assert all(np.all(np.isfinite(x)) for x in gradient.values())
        products = {k: (gradient[k] * d[k]).reshape(4, -1).sum(1) for k in d}
        reverse = sum(products.values())
        assert jnp.allclose(reverse, forward, rtol=1e-10)
        assert jnp.allclose(reverse, difference, rtol=1e-4), (reverse, difference)
    assert gradient["u"][3] == 0.0  # beyond full opening a command changes nothing
    assert gradient["u"][0] != 0.0


def test_gradients_at_the_worst_points():
    """Zero opening, zero drop, full saturation: finite, and as differences say."""

    def flow(x):
        u, p_a = x
        system = valve_step(1e-4, start=p_a * 200 * BAR, tank=0.0)
        system = djdyn.with_parameters(
            system, {"u": u, "oil.valve.width": 0.1, "oil.valve.transition": BAR}
        )
        rate = system.derivative(0.0, system.initial_state())
        return rate.parts["oil"]["A.bar"] / 1e3

    value = quick_jit(flow)
    both = quick_jit(lambda x: (jax.jacrev(flow)(x), jax.jacfwd(flow)(x)))
    for u, p_a in ((0.0, 0.5), (1e-3, 0.5), (0.5, 1.0), (-0.5, 0.0), (1.3, 0.7)):
        x = jnp.array([u, p_a])
        reverse, forward = both(x)
        h = 1e-7
        difference = [
            (value(x + h * e) - value(x - h * e)) / (2 * h) for e in jnp.eye(2)
        ]
        assert jnp.allclose(reverse, forward, rtol=1e-12)
        assert jnp.allclose(reverse, jnp.stack(difference), rtol=1e-4, atol=2e-6)
        if u > 1:
            assert reverse[0] == 0.0
    assert value(jnp.array([0.0, 0.5])) == 0.0  # a shut valve is shut


def test_a_batch_is_the_same_as_one_by_one():
    system = everything()
    y, scale = start(system), jnp.array([0.8, 1.0, 1.3])

    def rate(s):
        here = djdyn.with_parameters(
            system, {"oil.A.pressure": s * 1e7, "oil.ram.area_a": s * 2e-3}
        )
        return here.derivative(0.0, y)

    batch = quick_jit(jax.vmap(rate))(scale)
    one = quick_jit(rate)
    for i, s in enumerate(scale):
        for x, z in zip(jax.tree.leaves(batch), jax.tree.leaves(one(s)), strict=True):
            assert jnp.allclose(x[i], z, rtol=1e-12)


def circuit(**parts) -> Circuit:
    return Circuit(Oil(), parts)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: Orifice("P", "A", -1e-5), r"Orifice.area must be at least 0 m\^2"),
        (
            lambda: HydraulicCylinder("A", "B", OnJoint("x"), -1e-3, 1e-3, 0.5),
            r"Cylinder.area_a must be above 0 m\^2",
        ),
        (
            lambda: circuit(A=Volume(1e-3), x=Orifice("A", "", 1e-5)),
            r"port 'outlet' of 'x' is not connected",
        ),
        (
            lambda: circuit(A=Volume(1e-3), x=Orifice("A", "Q", 1e-5)),
            r"port 'outlet' of 'x' is connected to 'Q', which is no node; there are A",
        ),
        (
            lambda: circuit(A=Volume(1e-3), x=Orifice("A", "A", 1e-5)),
            r"two ports of 'x' are connected to one node",
        ),
        (
            lambda: circuit(P=Supply(1.0), T=Tank(), x=Orifice("P", "T", 1), A=Tank()),
            r"nothing is connected to node 'A'",
        ),
        (
            lambda: circuit(
                P=Supply(1.0), T=Tank(), A=Volume(1.0),
                x=Counterbalance("P", "T", "A", 1e-8, 1e7),
            ),
            r"volume 'A' is isolated",
        ),
        (
            lambda: circuit(P=Supply(1.0), T=Tank(2.0), x=Orifice("P", "T", 1e-5)),
            r"supply 'P' at 1 Pa is below tank 'T' at 2 Pa",
        ),
        (lambda: Volume(0.0), r"a volume must be positive"),
    ],
)  # fmt: skip
def test_bad_circuits_are_refused(build, said):
    with pytest.raises(ValueError, match=said):
        build()


def test_a_piston_outside_its_cylinder_is_refused():
    ram = HydraulicCylinder("A", "T", OnJoint("mass"), 1e-3, 1e-3, 0.5)
    system = slider(circuit(A=Volume(1e-3), T=Tank(), ram=ram))
    y = system.initial_state(q={"mass": 0.7})
    with pytest.raises(ValueError, match=r"'ram' is extended by 0.7 m, outside its"):
        djdyn.simulate(system, 0.1, y)


def test_stiff_steps_in_kernels():
    """Linearly implicit steps of half a millisecond, compiled and by XLA."""
    how = {"solver": "rodas4", "dt": 5e-4, "saveat": [0.0, 0.02]}
    lanes = {"u": np.array([0.3, 1.0])}
    system = valve_step(1e-4)
    runs = [
        djdyn.rollout(system, 0.02, parameters=lanes, backend=b, **how)
        for b in ("kernel", "xla")
    ]
    alone = djdyn.simulate(system, 0.02, **how)
    for x, z in zip(*(jax.tree.leaves(run.y) for run in runs), strict=True):
        assert np.allclose(x, z, rtol=1e-10, atol=1e-12)
    assert np.allclose(runs[0].y.q[1, -1], alone.y.q[-1], rtol=1e-10)
