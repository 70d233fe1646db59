"""Energy, momentum and gradients with every force a line knows."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import djdyn
from djdyn.cable import (
    Cable,
    CableProperties,
    ClampedEnd,
    DrivenEnd,
    FixedEnd,
    FreeEnd,
    PinnedEnd,
    PointForce,
    PointMass,
)
from djdyn.marine.sea_bed import SeaBed
from djdyn.marine.water import Fluid
from djdyn.multibody.time_functions import Harmonic
from experiments.studies.cable.model import ground

from ..gradients import random_direction
from ..parts.test_parts import machine


ROPE = CableProperties(
    0.3,
    2e3,
    EI=5.0,
    GJ=4.0,
    diameter=0.02,
    compression=0.3,
    slack_width=0.05,
    axial_damping=30.0,
    bending_damping=0.2,
    normal_drag=1.2,
    tangential_drag=0.1,
    added_mass=1.0,
    tangential_added_mass=0.3,
)
FLUID = Fluid(
    heights=[-1.0, 1.0],
    currents=[[0.1, 0, 0], [0.5, 0.2, 0]],
    surface=0.8,
    surface_width=0.2,
)
BED = SeaBed(
    [[0.5, 0.3], [0.4, 0.9]],
    stiffness=2e4,
    damping=500.0,
    friction=0.5,
    slip_speed=0.3,
    width=0.2,
    x=[-1.0, 1.5],
    y=[-1.0, 1.0],
)
MORE = {
    "mesh": 4,
    "fluid": FLUID,
    "ground": BED,
    "masses": (PointMass(0.5, 0.2, 1e-4),),
    "forces": (PointForce(0.7, Harmonic([1.0, 2, 3], 2.0)),),
}
ENDS = {
    "clamped": (
        ClampedEnd("buoy", (1, 0, 0.5), (0, 1, 0)),
        ClampedEnd("tip", payout="u"),
    ),
    "pinned": (PinnedEnd("buoy", payout="w"), PinnedEnd("tip", payout="-u")),
    "driven": (
        FreeEnd(),
        DrivenEnd(Harmonic([1.0, 0.2, 0.3], [2.0, 3, 1]), payout="u"),
    ),
}


@pytest.fixture(scope="module")
def system() -> djdyn.System:
    parts = {k: Cable(ROPE, 1.3, *ends, **MORE) for k, ends in ENDS.items()}
    return djdyn.System(machine(), parts, {"u": 0.7, "w": -0.4})


@pytest.fixture(scope="module")
def y(system) -> djdyn.State:
    """Lines in disorder."""
    free = [1.0, 0.2, 0.5, 0.9, 0.1, -0.3, 0.2]
    y = system.initial_state(
        q={"cart": 0.3, "arm": 0.6, "buoy": free},
        v={"cart": -0.4, "arm": 0.7, "buoy": [0.3, -0.2, 0.5, 1.0, 0.4, -0.6]},
    )
    size = {"r": 0.05, "v": 0.5, "paid": 0.1, "twist": 0.0}
    noise = random_direction(y.parts)
    mix = lambda s, d: {k: x + size[k] * d[k] for k, x in s.items()}
    return djdyn.State(y.q, y.v, {k: mix(s, noise[k]) for k, s in y.parts.items()})


@eqx.filter_jit
def ledgers(system: djdyn.System, t, y):
    now, rate = system.at(t, y), system.derivative(t, y)
    found = {}
    for name, part in system.parts.items():

        def stored(t, y, name=name, part=part):
            return part.energy(
                y.parts[name], djdyn.forward_kinematics(system.mechanism, y.q, y.v, t)
            )

        _, gained = jax.jvp(stored, (t, y), (jnp.ones(()), rate))
        arguments = (t, y.parts[name], now.world, now.signals)
        response = now.responses[name]
        power = sum((x.power(now.world) for x in response.loads), start=jnp.zeros(()))
        for inertia in response.inertias:
            power += inertia.power(now.world, now.A_WB)
        loss = part.power_loss(*arguments)
        found[name] = gained, part.power_in(*arguments) - loss - power, loss
    _, gained = jax.jvp(system.energy, (t, y), (jnp.ones(()), rate))
    power_in, power_loss = system.powers(t, y)
    found["all"] = gained, power_in - power_loss, power_loss
    return found


@pytest.mark.slow
def test_energy(system, y):
    for name, (gained, expected, loss) in ledgers(system, jnp.array(0.4), y).items():
        assert jnp.allclose(gained, expected, rtol=1e-11), name
        assert loss > 0, name


def test_momentum(system, y):
    """Forces within the line cancel; what is fed brings its own momentum."""

    @eqx.filter_jit
    def sums(y):
        world, found = djdyn.forward_kinematics(system.mechanism, y.q, y.v, 0.4), []
        for name, part in system.parts.items():
            rates = part.rates({"u": jnp.array(0.7), "w": jnp.array(-0.4)})
            # Added mass has no frame, and the ground is outside.
            dry = eqx.tree_at(lambda p: (p.fluid, p.ground), part, (None, None))
            line = dry.snapshot(jnp.array(0.4), y.parts[name], world, rates)
            spent = jnp.einsum("nij,nj->i", line.mass_rate, line.v)
            weight = jnp.sum(line.mass[:, 0, 0]) * world.gravity_W
            enters = jnp.zeros(3)
            for node, _ in line.held():
                enters += part.rope.linear_density * line.rates[node] * line.v[node]
            outside = weight + jnp.sum(line.pushes, 0) + enters - spent
            found.append((jnp.sum(line.load, 0), outside))
        return found

    for inside, outside in sums(y):
        assert jnp.allclose(inside, outside, rtol=1e-10, atol=1e-9)


@pytest.mark.slow
def test_gradients(system, y):
    """By every number of a line and by the payout, in both modes; and in a batch."""
    only = {"clamped": system.parts["clamped"]}
    system = djdyn.System(system.mechanism, only, system.inputs)
    y = djdyn.State(y.q, y.v, {"clamped": y.parts["clamped"]})
    table = {
        k: x for k, x in djdyn.parameters(system).items() if k.split(".")[0] in only
    }
    weights = random_direction(y, 3)

    @jax.jit
    def loss(numbers, u):
        model = djdyn.with_parameters(system, numbers)
        rate = model.derivative(0.4, y, {"u": u})
        products = jax.tree.map(jnp.vdot, weights, rate)
        return sum(jax.tree.leaves(products))

    u = jnp.array(0.7)
    gradient = jax.jit(jax.grad(loss, (0, 1)))(table, u)
    along = jax.jit(lambda d: jax.jvp(loss, (table, u), d)[1])
    scaled = {
        k: 0.1 * x * jnp.cos(jnp.arange(1.0, x.size + 1)).reshape(x.shape)
        for k, x in table.items()
    }
    for d in ((scaled, jnp.zeros(())), (jax.tree.map(jnp.zeros_like, scaled), u)):
        products = jax.tree.map(jnp.vdot, gradient, d)
        reverse, h = sum(jax.tree.leaves(products)), 1e-4
        move = lambda s, d=d: jax.tree.map(lambda x, dx: x + s * dx, (table, u), d)
        difference = (loss(*move(h)) - loss(*move(-h))) / (2 * h)
        assert jnp.allclose(reverse, along(d), rtol=1e-9)
        assert jnp.allclose(reverse, difference, rtol=1e-5)
    rates = jnp.array([0.7, -0.2])
    batch = jax.jit(jax.vmap(lambda u: loss(table, u)))(rates)
    assert jnp.allclose(batch, jnp.stack([loss(table, x) for x in rates]), rtol=1e-12)


def test_gradients_straight_tight_and_slack():
    """A straight line: pulled, at its own length, pushed together; and of no length.

    Without length the derivative of the strain does not exist: it is finite there.
    """
    rope = CableProperties(
        1.0, 1e4, EI=1.0, normal_drag=1.0, diameter=0.1, axial_damping=1.0
    )
    rope = eqx.tree_at(lambda r: r.slack_width, rope, jnp.array(1e-3))
    line = Cable(
        rope, 1.0, FixedEnd([0, 0, 0]), FixedEnd([1.0, 0, 0]), mesh=3, fluid=FLUID
    )
    system = djdyn.System(ground(), {"line": line})
    weights = jnp.array([[1.0, 0.3, -0.2], [-0.4, 0.7, 0.5]])

    @jax.jit
    def loss(x):
        r, EA, length = x
        model = djdyn.with_parameters(
            system, {"line.rope.EA": EA, "line.length": length}
        )
        y = eqx.tree_at(lambda y: y.parts["line"]["r"], system.initial_state(), r)
        return jnp.sum(weights * model.derivative(0.0, y).parts["line"]["v"])

    r = jnp.array([[1 / 3, 0, 0], [2 / 3, 0, 0]])
    r0 = 0 * r
    cases = ((r, 0.9), (r, 1.0), (r, 1.2), (r0, 1.0))
    points = [(r, jnp.array(1e4), jnp.array(length)) for r, length in cases]
    directions = (weights, jnp.array(1e4), jnp.array(0.1))
    gradients = jax.jit(jax.vmap(jax.grad(loss)))
    together = gradients(jax.tree.map(lambda *x: jnp.stack(x), *points))
    along = jax.jit(lambda x, d: jax.jvp(loss, (x,), (d,))[1])
    assert all(bool(jnp.all(jnp.isfinite(x))) for x in jax.tree.leaves(together))
    for i, x in enumerate(points[:-1]):
        for k, d in enumerate(directions):
            d = tuple(d if j == k else jnp.zeros_like(z) for j, z in enumerate(x))
            move = lambda s, x=x, d=d: jax.tree.map(lambda y, dy: y + s * dy, x, d)
            difference = (loss(move(1e-6)) - loss(move(-1e-6))) / 2e-6
            reverse = jnp.vdot(together[k][i], d[k])
            assert jnp.allclose(reverse, along(x, d), rtol=1e-9, atol=1e-9)
            assert jnp.allclose(reverse, difference, rtol=1e-5, atol=1e-4), (i, k)


BAD = {
    "element 2 of the mesh has no length": dict(mesh=(0, 0.5, 0.5, 1)),
    "at least two elements": dict(mesh=1),
    "run from 0 to 1": dict(mesh=(0, 0.5, 2)),
    "beyond the line": dict(masses=(PointMass(5.0, 1.0),)),
    "lumping is spline or half": dict(lumping="consistent"),
}


@pytest.mark.parametrize("said", BAD)
def test_bad_input(said):
    with pytest.raises(ValueError, match=said):
        Cable(ROPE, 1.3, FreeEnd(), PinnedEnd("tip"), **BAD[said])


def test_more_bad_input():
    with pytest.raises(ValueError, match="EA must be above 0 N"):
        CableProperties(1.0, -1e5)
    line = Cable(ROPE, 1.3, FreeEnd(), PinnedEnd("mast"))
    with pytest.raises(ValueError, match="unknown frame 'mast'"):
        djdyn.System(machine(), {"line": line})
    with pytest.raises(ValueError, match="parallel"):
        ClampedEnd("tip", (0, 0, 1), (0, 0, 2))
