"""Structure: names, topology, and the sentences that bad input gets."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

from djdyn.multibody.dynamics import forward_dynamics, inverse_dynamics
from djdyn.multibody.joints import Fixed, Free, Prismatic, Revolute, Spherical
from djdyn.multibody.mechanism import Body, Frame, Mechanism
from djdyn.multibody.spatial import rotation_rpy, translation


def body(name: str, parent: str = "world", joint=None, **values) -> Body:
    values = {"mass": 1.0, "I_BC": np.eye(3), **values}
    return Body(name, parent, Revolute() if joint is None else joint, **values)


def branched() -> Mechanism:
    """A free base with an arm of two links and a leg."""
    return Mechanism(
        (
            body("base", joint=Free()),
            body("upper", "base", joint_name="shoulder"),
            body("leg", "base", joint=Spherical()),
            body("lower", "upper", joint=Prismatic(), joint_name="slide"),
        ),
        (Frame("tip", "lower", translation([0.0, 0.0, 1.0])),),
    )


def test_names_lead_to_rows_and_slices():
    m = branched()
    assert (m.nq, m.nv) == (13, 11)
    assert m.index("world") == 0
    assert m.index("lower") == 4
    assert m.joint_names == ("base", "shoulder", "leg", "slide")
    assert m.joint_index("slide") == 4
    assert m.q_slice("leg") == slice(8, 12)
    assert m.v_slice("leg") == slice(7, 10)
    assert m.frame("tip").body == "lower"
    assert m.frame("upper").body == "upper"


def test_topology_says_who_carries_and_moves_whom():
    m = branched()
    np.testing.assert_array_equal(m.parents, [0, 0, 1, 1, 2])
    np.testing.assert_array_equal(m.supports[4], [True, True, True, False, True])
    np.testing.assert_array_equal(m.speed_rows, [1] * 6 + [2] + [3] * 3 + [4])
    assert not m.moves[0].any()
    np.testing.assert_array_equal(np.flatnonzero(m.moves[3]), [*range(6), 7, 8, 9])


def test_undisplaced_state_and_its_rate():
    m = branched()
    expected = [0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0]
    np.testing.assert_array_equal(m.q0(), expected)
    q_dot = m.q_dot(m.q0(), jnp.arange(1.0, 12.0))
    half = [4, 5, 6, 0, 0.5, 1, 1.5, 7, 0, 4, 4.5, 5, 11]
    np.testing.assert_allclose(q_dot, half)


def test_arrays_are_parameters_and_all_else_is_structure():
    m = branched()
    assert all(eqx.is_inexact_array(x) for x in jax.tree.leaves(m))
    heavier = eqx.tree_at(lambda m: m.bodies[1].mass, m, jnp.asarray(2.0))
    assert jax.tree.structure(heavier) == jax.tree.structure(m)


# Bad input ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values, sentence",
    [
        ({"mass": -1.0}, "'b': mass must be positive, got -1 kg"),
        ({"mass": np.nan}, "'b': mass, centre and inertia must be finite"),
        ({"I_BC": np.diag([1.0, 1.0, 2.5])}, "'b'.*triangle inequality"),
        ({"I_BC": np.diag([1.0, 1.0, -0.1])}, "'b': a principal moment is negative"),
        ({"I_BC": np.eye(3) + np.eye(3, k=1)}, "'b': inertia must be symmetric"),
        ({"mass": 0.0}, "'b': mass is zero but its inertia is not"),
        ({"I_BC": np.ones(3)}, r"'b': I_BC has shape \(3,\), expected \(3, 3\)"),
        ({"p_BC": np.ones(2)}, r"'b': p_BC has shape \(2,\), expected \(3,\)"),
        ({"mass": np.ones(3)}, r"'b': mass has shape \(3,\), expected \(\)"),
        ({"A_B": -np.eye(6)}, "'b': added mass must be .* positive semidefinite"),
        ({"A_B": np.eye(6, k=1)}, "'b': added mass must be symmetric"),
        ({"armature": [1.0, 1.0]}, r"'b': armature has shape \(2,\), expected \(1,\)"),
        ({"armature": [-1.0]}, "'b': armature must be at least 0"),
    ],
)
def test_inertia_that_no_body_has_is_refused(values, sentence):
    with pytest.raises(ValueError, match=sentence):
        body("b", **values)


@pytest.mark.parametrize(
    "bodies, frames, sentence",
    [
        ([body("a", "b")], [], "'a' hangs on unknown body 'b'"),
        ([body("a", "b"), body("b")], [], "parents come before children"),
        ([body("a"), body("a")], [], "two bodies are called 'a'"),
        ([body("world")], [], "two bodies are called 'world'"),
        ([body("a"), body("b", joint_name="a")], [], "two joints are called 'a'"),
        ([body("a")], [Frame("f", "b")], "'f' is on unknown body 'b'"),
        ([body("a")], [Frame("a", "a")], "two frames are called 'a'"),
        ([Body("a", "world", Revolute(), 0.0)], [], "last of a chain needs mass"),
        (
            [Body("a", "world", Revolute(), 0.0), Body("b", "a", Fixed(), 0.0)],
            [],
            "'a': the last of a chain needs mass",
        ),
    ],
)
def test_wrong_structure_is_refused(bodies, frames, sentence):
    with pytest.raises(ValueError, match=sentence):
        Mechanism(tuple(bodies), tuple(frames))


def test_gravity_has_three_components():
    with pytest.raises(ValueError, match=r"gravity_W has shape \(\)"):
        Mechanism((body("a"),), gravity_W=9.81)


def test_unknown_names_are_answered_with_the_known():
    m = branched()
    with pytest.raises(ValueError, match="unknown body 'foot'; there are world, base"):
        m.index("foot")
    with pytest.raises(
        ValueError, match="unknown joint 'knee'; there are base, should"
    ):
        m.q_slice("knee")
    with pytest.raises(ValueError, match="unknown frame 'toe'; there are world"):
        m.frame("toe")


@pytest.mark.parametrize("dynamics", [forward_dynamics, inverse_dynamics])
@pytest.mark.parametrize(
    "sizes, sentence",
    [
        ((12, 11, 11), r"q has shape \(12,\).*needs \(13,\): base 7, shoulder 1"),
        ((13, 12, 12), r"v has shape \(12,\).*needs \(11,\): base 6"),
    ],
)
def test_states_of_the_wrong_shape_are_refused(dynamics, sizes, sentence):
    with pytest.raises(ValueError, match=sentence):
        dynamics(branched(), *(jnp.zeros(n) for n in sizes))


@pytest.mark.parametrize("dynamics", [forward_dynamics, inverse_dynamics])
def test_joint_forces_of_the_wrong_shape_are_refused(dynamics):
    """One number for one joint of several would be broadcast to all."""
    m = Mechanism((body("a"), body("b", "a")))
    jaxtyping.config.update("jaxtyping_disable", True)  # as it is for users
    try:
        with pytest.raises(ValueError, match=r"shape \(1,\).* has 2 speeds"):
            dynamics(m, m.q0(), jnp.zeros(2), jnp.zeros(1))
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def test_massless_body_may_stand_between_two_joints():
    m = Mechanism((Body("a", "world", Revolute(), 0.0), body("b", "a")))
    assert m.nv == 2


def test_last_of_a_chain_may_have_a_rotor_for_mass():
    m = Mechanism((Body("a", "world", Revolute(), 0.0, armature=[0.1]),))
    assert m.nv == 1


def test_inertia_computed_in_single_precision_is_symmetric_enough():
    R = np.asarray(rotation_rpy(*jnp.array([0.3, 0.2, 0.1])), np.float32)
    I_BC = R @ np.diag(np.float32([1e-3, 2.0, 2.0])) @ R.T
    with jax.enable_x64(False):
        assert body("b", I_BC=I_BC).I_BC.dtype == np.float32


def test_fixed_body_may_have_no_mass():
    m = Mechanism((body("a"), Body("eye", "a", Fixed(), 0.0)))
    assert m.nv == 1
