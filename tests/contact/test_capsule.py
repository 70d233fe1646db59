"""A capsule on other solids: where it lies, where it crosses, that it lies still."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.contact import (
    Capsule,
    Contact,
    ContactPoints,
    Cuboid,
    KelvinVoigt,
    find_contacts,
)
from djdyn.multibody.spatial import Pose, rotation_x, rotation_y, rotation_z

from ..gradients import assert_gradient, quick_jit


ROD, DEEP = Capsule(0.1, 1.0), 1e-3
ALONG_X = rotation_y(jnp.asarray(np.pi / 2))
BEAM = Cuboid([0.6, 2.0, 1.0])


def find(shape, X: Pose) -> ContactPoints:
    still = Pose(jnp.eye(3), jnp.zeros(3))
    if isinstance(shape, Capsule):
        still = Pose(ALONG_X, jnp.zeros(3))
    return quick_jit(lambda X: find_contacts(ROD, X, shape, still))(X)


def over(height: float, x: float = 0.0, turn: float = 0.0) -> Pose:
    R = rotation_z(jnp.asarray(turn)) @ ALONG_X
    return Pose(R, jnp.array([x, 0.0, height - DEEP]))


@pytest.mark.parametrize(
    ("shape", "pose", "ends"),
    [
        (Cuboid([3.0, 2.0, 1.0]), over(0.6), (-0.5, 0.5)),
        (BEAM, over(0.6), (-0.3, 0.3)),  # beyond both sides
        (BEAM, over(0.6, 0.6), (0.1, 0.3)),  # over one side
        (Capsule(0.2, 1.0), over(0.3, 0.4), (-0.1, 0.5)),  # beside its like
    ],
)
def test_it_lies_on_two_points(shape, pose, ends):
    found = find(shape, pose)
    assert np.allclose(np.sort(found.p[:2, 0]), ends, atol=1e-9)
    assert np.allclose(found.depth[:2], DEEP, atol=1e-9)
    assert found.depth[2] < 0
    assert np.allclose(found.n[:2], [[0, 0, 1]], atol=1e-9)


def test_it_crosses_its_like_in_one_point():
    found = find(Capsule(0.2, 1.0), over(0.3, turn=1.0))
    assert np.allclose(found.depth[2], DEEP, atol=1e-9)
    assert np.allclose(found.p[2, :2], 0.0, atol=1e-9)
    assert np.all(found.depth[:2] < 0)


def test_it_stands_and_leans_on_one_end():
    eliminate_dead_code = rotation_x(jnp.asarray(0.3))
    height = 0.6 + 0.5 * np.cos(0.3) - DEEP
    found = find(
        Cuboid([3.0, 3.0, 1.0]),
        Pose(eliminate_dead_code, jnp.array([0.0, 0.0, height])),
    )
    assert np.isclose(found.depth[0], DEEP, atol=1e-9)
    assert np.all(found.depth[1:] < 1e-9)


def test_it_lies_still():
    """A capsule off the middle of a beam turns only by its weight."""
    body = djdyn.Body("rod", "world", djdyn.Free(), 1.0, I_BC=0.1 * np.eye(3))
    law = KelvinVoigt(9.81 / (2 * DEEP), 20.0, width=1e-5)
    part = Contact("rod", ROD, "world", BEAM, law)
    system = djdyn.System(djdyn.Mechanism((body,)), {"c": part})
    half = np.pi / 4
    q = jnp.array([0.0, 0.0, 0.6 - DEEP, np.cos(half), 0.0, np.sin(half), 0.0])
    still = lambda q: djdyn.State(q, jnp.zeros(6), {"c": {}})
    rate = quick_jit(lambda q: system.derivative(0.0, still(q)))
    assert np.allclose(rate(q).v, 0.0, atol=1e-6)
    tilt = 1e-4  # about the world's y axis: the end at +x goes down
    turned = jnp.array([np.cos(half + tilt), 0.0, np.sin(half + tilt), 0.0])
    back = rate(q.at[3:].set(turned)).v[1]
    stiff = 2 * 9.81 / (2 * DEEP) * 0.3**2 / 0.1
    assert np.isclose(back, -stiff * 2 * tilt, rtol=1e-2)


@pytest.mark.slow
def test_gradients_where_it_lies_askew():
    def value(x):
        pose = Pose(rotation_y(np.pi / 2 + x[0]) @ rotation_x(x[1]), x[2:])
        found = find_contacts(ROD, pose, BEAM, Pose(jnp.eye(3), jnp.zeros(3)))
        weights = jnp.array([1.0, 2.0, 3.0])
        return found.depth @ weights + jnp.sum(found.p * weights[:, None])

    x = jnp.array([1e-3, 0.1, 0.05, 0.02, 0.598])
    assert_gradient(value, x, h=1e-7, rtol=1e-5, modes_rtol=1e-9, jit=quick_jit)
    assert jnp.all(jnp.isfinite(quick_jit(jax.grad(value))(x.at[:4].set(0.0))))
