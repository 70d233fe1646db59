"""Tangent vectors of states: there and back, beside SciPy's rotations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import djdyn
from controllers import JointPID
from djdyn.multibody.joints import Free, Revolute, Spherical
from djdyn.multibody.mechanism import Body, Mechanism
from djdyn.system.manifold import difference, dimension, retract, tangent
from djdyn.system.state import State
from tests.gradients import assert_gradient


def machine() -> djdyn.System:
    inertia = {"mass": 1.0, "I_BC": np.eye(3)}
    bodies = (
        Body("box", "world", Free(), **inertia),
        Body("arm", "box", Revolute(), **inertia),
        Body("ball", "arm", Spherical(), **inertia),
    )
    return djdyn.System(Mechanism(bodies))


SYSTEM = machine()
RNG = np.random.default_rng(0)
Y = retract(SYSTEM, SYSTEM.initial_state(), jnp.asarray(RNG.normal(size=20)))


def test_rotation_vectors_turn_about_the_bodys_axes():
    d = jnp.asarray(0.3 * RNG.normal(size=20))
    moved = retract(SYSTEM, Y, d)
    for q0, q1, turn in (
        (Y.q[3:7], moved.q[3:7], d[:3]),
        (Y.q[8:], moved.q[8:], d[7:10]),
    ):
        before, after = (
            Rotation.from_quat(np.array(q), scalar_first=True) for q in (q0, q1)
        )
        wanted = before * Rotation.from_rotvec(np.array(turn))
        assert np.allclose(after.as_matrix(), wanted.as_matrix(), atol=1e-14)
    assert np.allclose(moved.q[:3], Y.q[:3] + d[3:6])
    assert np.allclose(moved.q[7], Y.q[7] + d[6])
    assert np.allclose(moved.v, Y.v + d[10:])
    assert np.allclose(difference(SYSTEM, Y, moved), d, atol=1e-14)
    opposite = State(-1.0 * moved.q, moved.v, {})  # the same rotations
    turn = difference(SYSTEM, Y, opposite)
    assert np.allclose(turn[:3], d[:3]) and np.allclose(turn[7:10], d[7:10])


def test_derivatives_where_nothing_has_turned():
    probe = jnp.asarray(RNG.normal(size=(20, 20)))

    def loss(d):
        there = difference(
            SYSTEM, retract(SYSTEM, Y, d["a"]), retract(SYSTEM, Y, d["b"])
        )
        return probe[0] @ there + there @ probe @ there

    assert_gradient(loss, {"a": jnp.zeros(20), "b": jnp.zeros(20)})
    assert_gradient(loss, {"a": jnp.zeros(20), "b": 0.1 * probe[1]})


def test_tangents_by_name():
    assert dimension(SYSTEM) == 20
    found = tangent(SYSTEM, q={"arm": 0.1, "ball": [1, 2, 3]}, v=0.5)
    assert np.allclose(found, [0] * 6 + [0.1, 1, 2, 3] + [0.5] * 10)
    pid = JointPID("arm", "goal", 1.0)
    held = djdyn.System(SYSTEM.mechanism, {"pid": pid}, {"goal": 0.0})
    own = sum(x.size for x in jax.tree.leaves(held.initial_state().parts))
    assert own and dimension(held) == 20 + own
    found = tangent(held, parts={"pid": 0.2})
    assert np.allclose(found, [0] * 20 + [0.2] * own)
    moved = retract(held, held.initial_state(), found)
    assert np.allclose(difference(held, held.initial_state(), moved), found)
    with pytest.raises(
        ValueError, match="unknown joint 'leg'; there are box, arm, ball"
    ):
        tangent(SYSTEM, v={"leg": 1.0})
