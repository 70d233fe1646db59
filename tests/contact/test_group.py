"""Many solids at once, beside the same pairs one by one."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.contact import (
    Contact,
    ContactGroup,
    Coulomb,
    Cuboid,
    HalfSpace,
    HuntCrossley,
    LuGre,
    Sphere,
)

from ..gradients import assert_gradient, quick_jit


LAW, GRIP = HuntCrossley(2e4, 0.3, 1.0, width=1e-3), Coulomb(0.4, 0.01)
ARMS: Any = {"rolling": 1e-3, "spinning": 2e-3}
RNG = np.random.default_rng(0)


def free(shapes: dict, parts: dict) -> djdyn.System:
    """A body for each shape, which lies beside its origin."""
    bodies, frames = [], []
    for i, name in enumerate(shapes):
        body = djdyn.Body(
            f"body{i}", "world", djdyn.Free(), 1.0 + i, I_BC=0.1 * np.eye(3)
        )
        bodies.append(body)
        beside = djdyn.translation((0.1, 0.05 * i, 0.0))
        frames.append(djdyn.Frame(name, f"body{i}", beside))
    return djdyn.System(djdyn.Mechanism(tuple(bodies), tuple(frames)), parts)


def one_by_one(shapes: dict) -> djdyn.System:
    laws = {"normal": LAW, "friction": GRIP, **ARMS}
    pairs = itertools.combinations(shapes, 2)
    return free(
        shapes,
        {a + b: Contact(a, shapes[a], b, shapes[b], **laws) for a, b in pairs},
    )


def grouped(shapes: dict, most: int) -> djdyn.System:
    return free(shapes, {"group": ContactGroup(shapes, LAW, most, GRIP, **ARMS)})


def scattered(system: djdyn.System, lanes: int, spread: float) -> tuple:
    m = system.mechanism
    q, n = np.tile(m.q0(), (lanes, 1)), len(m.bodies)
    for b in range(n):
        turn = RNG.normal(size=(lanes, 4))
        q[:, 7 * b : 7 * b + 3] = spread * RNG.normal(size=(lanes, 3))
        q[:, 7 * b + 3 : 7 * b + 7] = turn / np.linalg.norm(turn, axis=1)[:, None]
    return jnp.asarray(q), jnp.asarray(RNG.normal(size=(lanes, m.nv)))


BALLS = {f"b{i}": Sphere(0.2 + 0.02 * i) for i in range(4)}
BOXES = {f"b{i}": Cuboid([0.5, 0.4, 0.3 + 0.1 * i]) for i in range(3)}


@pytest.mark.parametrize(
    ("shapes", "most", "spread"),
    [(BALLS, 3, 0.25), (BOXES, 2, 0.35)],
    ids=["balls", "boxes"],
)
def test_a_contact_group_is_all_of_its_pairs(shapes, most, spread):
    """Forces and what is stored and lost, in lanes that touch differently."""
    alone, together = one_by_one(shapes), grouped(shapes, most)
    q, v = scattered(alone, 40, spread)

    def response_of(system, q, v):
        now = system.at(0.0, djdyn.State(q, v, system.initial_state().parts))
        said = [
            now.signals.get(f"group.{k}", 0.0)
            for k in ("dropped_pairs", "normal_force")
        ]
        return now.v_dot, now.energy(), system.powers(0.0, now.y, {}, {})[1], said

    wanted = quick_jit(jax.vmap(lambda q, v: response_of(alone, q, v)))(q, v)
    found = quick_jit(jax.vmap(lambda q, v: response_of(together, q, v)))(q, v)
    dropped_pairs, normal_force = found[3]
    room = dropped_pairs == 0
    assert 5 < jnp.sum(room & (normal_force > 0))
    assert jnp.any(~room)
    for x, y in zip(found[:3], wanted[:3], strict=True):
        assert jnp.allclose(x[room], y[room], rtol=1e-9, atol=1e-9)


def test_gradients_through_a_contact_group():
    system = grouped({k: BALLS[k] for k in ("b0", "b1", "b2")}, 2)
    q = system.mechanism.q0() + jnp.zeros(21).at[7].set(0.4).at[14].set(0.78)
    v = jnp.zeros(18).at[3].set(0.3).at[4].set(0.2).at[13].set(-0.2)
    paths = ("group.solids.b1.radius", "group.normal.stiffness", "group.friction.mu")
    table = {k: djdyn.get_parameters(system, k) for k in paths}

    def loss(x):
        model = djdyn.with_parameters(system, {k: table[k] * (1 + x[k]) for k in paths})
        rate = model.derivative(0.0, djdyn.State(q + x["q"], v, {"group": {}}))
        return rate.v @ jnp.arange(1.0, 19.0)

    zero = {**{k: jnp.zeros(()) for k in paths}, "q": jnp.zeros(21)}
    assert_gradient(loss, zero, h=1e-7, rtol=1e-5, jit=quick_jit)


def test_balls_fall_on_a_plane_and_each_other():
    """A column of three comes to rest: the plane carries all, energy balances."""
    shapes = {k: Sphere(0.1) for k in "abc"}
    law = HuntCrossley(2e4, 30.0, 1.0, width=1e-4)
    bodies = tuple(
        djdyn.Body(k, "world", djdyn.Free(), 1.0, I_BC=0.004 * np.eye(3))
        for k in shapes
    )
    parts = {
        "group": ContactGroup(shapes, law, 2),
        "floor": ContactGroup(shapes, law, 3, against={"world": HalfSpace()}),
    }
    system = djdyn.System(djdyn.Mechanism(bodies), parts)
    q = {k: [0.0, 0.0, 0.101 + 0.202 * i, 1, 0, 0, 0] for i, k in enumerate(shapes)}
    y, how = system.initial_state(q), {"solver": "rk4", "dt": 2e-4, "saveat": 9}
    run = djdyn.simulate(system, 0.8, y, ledger=True, **how)
    assert np.isclose(run.signal("floor.normal_force")[-1], 3 * 9.81, rtol=1e-3)
    assert np.isclose(
        run.signal("group.normal_force")[-1], 3 * 9.81, rtol=1e-3
    )  # 2 + 1
    assert np.max(np.abs(djdyn.energy_balance(system, run))) < 2e-5 * 0.088  # J to lose
    assert not np.any(run.signal("group.dropped_pairs"))


def test_bad_contact_groups():
    with pytest.raises(
        ValueError, match="Cuboid on 'b' differs from the first one, a S"
    ):
        ContactGroup({"a": Sphere(1.0), "b": Cuboid([1, 1, 1])}, LAW, 1)
    with pytest.raises(ValueError, match="at least 1, not 0"):
        ContactGroup(BALLS, LAW, 0)
    with pytest.raises(ValueError, match="Coulomb or Stribeck, not LuGre"):
        ContactGroup(BALLS, LAW, 1, LuGre(0.4, 0.5, 100.0))
    with pytest.raises(ValueError, match="two shapes on different bodies"):
        lone = grouped({"a": Sphere(1.0)}, 1)
        lone.derivative(0.0, lone.initial_state())
