"""Gradients where contact begins, rests, slips or changes its kind; and losses."""

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
    LuGre,
    VolumeContact,
)

from ..gradients import quick_jit


TURN = np.pi / 8  # half of the bed's turn about y
UPRIGHT, LYING = (1.0, 0.0, 0.0, 0.0), (np.cos(TURN), 0.0, np.sin(TURN), 0.0)
OUT = np.array([np.sqrt(0.5), 0.0, np.sqrt(0.5)])  # of the bed's upper faces
ROLLED = (np.cos(TURN), np.sin(TURN), 0.0, 0.0)


def on_a_corner() -> np.ndarray:
    """A quaternion that has a box stand on a corner on an upper face of the bed."""
    a = np.array([1.0, 1.0, 1.0]) / np.sqrt(3)
    q = np.array([1 + a @ OUT, *np.cross(a, OUT)])
    return q / np.linalg.norm(q)


# Height over the bed's centre along a direction, rotation, velocity, bent bristles.
LANES = {
    "grazing": (0.6 * OUT, LYING, (0.3, -0.2, 0.5, 0.1, 0.2, -0.4), 0.0),
    "at rest": (0.599 * OUT, LYING, (0,) * 6, 0.0),
    "edge of slip": (0.599 * OUT, LYING, (0, 0, 0, 0, 1e-3, 0), 0.5 / 4000),
    "edge on edge": (
        (0, 0, 0.6 * np.sqrt(2) - 1e-3),
        ROLLED,
        (0.3, 0.2, 0.1, 0.1, 0.2, -0.1),
        1e-5,
    ),
    "corner on face": (
        (0.5 + 0.1 * np.sqrt(3) - 1e-3) * OUT,
        on_a_corner(),
        (0.3, 0.2, 0.1, 0.1, 0.2, -0.1),
        1e-5,
    ),
    "apart": (2 * OUT, UPRIGHT, (0.3, 0.2, 0.1, 0, 0, 0), 0.0),
}


@pytest.fixture(scope="module")
def system() -> djdyn.System:
    """A free box over a larger one that shows it an edge."""
    body = djdyn.Body("b", "world", djdyn.Free(), 1.0, I_BC=0.005 * np.eye(3))
    bed = djdyn.Frame("bed", "world", djdyn.pose_rpy((0, 0, 0), (0, 2 * TURN, 0)))
    law = HuntCrossley(2e4, 0.3, 1.0, width=1e-3)
    grip = LuGre(0.4, 0.5, 4000.0, 20.0, width=1e-4)
    shapes = Cuboid([0.2, 0.2, 0.2]), Cuboid([1.0, 1.0, 1.0])
    part = Contact("b", shapes[0], "bed", shapes[1], law, grip)
    return djdyn.System(djdyn.Mechanism((body,), (bed,)), {"c": part})


PATHS = ("c.normal.stiffness", "c.normal.dissipation", "c.friction.mu", "b.mass")


def test_gradients_are_those_of_differences_in_every_lane(system):
    """All coordinates, speeds and parameters of the laws; forward mode too."""
    table = jnp.stack([djdyn.get_parameters(system, k) for k in PATHS])
    y = system.initial_state()
    zero = jnp.zeros_like(y.parts["c"]["bristles"])

    def value(x, bent):
        model = djdyn.with_parameters(
            system, dict(zip(PATHS, table * (1 + x[13:]), strict=True))
        )
        parts = {"c": {**y.parts["c"], "bristles": zero.at[:, 1].set(bent)}}
        rate = model.derivative(0.0, djdyn.State(x[:7], x[7:13], parts))
        return rate.v @ jnp.arange(1.0, 7.0) + rate.parts["c"]["stored"]

    x = jnp.asarray([[*p, *q, *v, *4 * (0.0,)] for p, q, v, _ in LANES.values()])
    bent = jnp.asarray([row[-1] for row in LANES.values()])
    found = quick_jit(jax.vmap(jax.grad(value)))(x, bent)
    assert jnp.all(jnp.isfinite(found))
    forward = quick_jit(jax.vmap(jax.jacfwd(value)))(x, bent)
    assert jnp.allclose(found, forward, rtol=1e-9, atol=1e-7)
    h, n = 1e-7, x.shape[1]
    moved = jnp.stack([x[:, None] + s * h * jnp.eye(n)[None] for s in (1, -1)])
    lanes = jnp.broadcast_to(bent[None, :, None], moved.shape[:3])
    up, down = quick_jit(jax.vmap(jax.vmap(jax.vmap(value))))(moved, lanes)
    slopes = (up - down) / (2 * h)
    for name, g, d in zip(LANES, found, slopes, strict=True):
        scale = float(jnp.max(jnp.abs(d)))
        assert jnp.allclose(g, d, rtol=1e-3, atol=1e-5 * (scale + 1)), (name, g, d)
    assert jnp.all(jnp.abs(found[:5, 13]) > 0)  # five touch, each in its own way
    assert jnp.all(found[5, 13:16] == 0)


def test_a_bed_only_takes_energy():
    """Random places and velocities, also as the contact separates."""
    beds = (ElasticFoundation(1e7, 2e5), ElasticFoundation(1e7, 2e5, 1.0))
    shape = Cuboid([1.5, 1.5, 0.5])
    part = VolumeContact("b", shape, "world", HalfSpace(), beds, Coulomb(0.3))
    body = djdyn.Body("b", "world", djdyn.Free(), 800.0, I_BC=200.0 * np.eye(3))
    system = djdyn.System(djdyn.Mechanism((body,)), {"c": part})
    y, rng = system.initial_state(), np.random.default_rng(0)
    turn = np.array([1.0, 0, 0, 0]) + 0.02 * rng.normal(size=(400, 4))
    place = [0.0, 0.0, 0.25] + 0.01 * rng.normal(size=(400, 3))
    q = np.concatenate([place, turn / np.linalg.norm(turn, axis=1)[:, None]], 1)
    v = rng.normal(size=(400, 6))
    loss = lambda q, v: system.powers(0.0, djdyn.State(q, v, y.parts), {}, {})[1]
    lost = quick_jit(jax.vmap(loss))(jnp.asarray(q), jnp.asarray(v))
    assert jnp.sum(lost > 0) > 200
    assert jnp.min(lost) > -1e-9 * jnp.max(lost)
