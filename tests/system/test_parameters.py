"""Numbers by path, and their domains."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

import djdyn
from djdyn.multibody.mechanism import check_inertia
from djdyn.system.parameters import FreeParameter, pack, unpack
from djdyn.system.transforms import Unbounded
from experiments.studies.crane import study as crane


@pytest.fixture(scope="module")
def system() -> djdyn.System:
    return crane.build()


def test_every_leaf_has_a_path_that_leads_to_it(system):
    table = djdyn.parameters(system)
    leaves = [x for x in jax.tree.leaves(system) if eqx.is_inexact_array(x)]
    assert len(table) == len(leaves)
    for path, value in table.items():
        assert djdyn.get_parameters(system, path) is value
        if value.any():
            other = 1.01 * value  # a little more of a possible inertia is possible
        else:
            other = value + (jnp.eye(6) if value.shape == (6, 6) else 0.5)
        moved = djdyn.with_parameters(system, {path: other})
        assert jnp.array_equal(djdyn.get_parameters(moved, path), other)
        changed = [
            not np.array_equal(a, b)
            for a, b in zip(
                jax.tree.leaves(system), jax.tree.leaves(moved), strict=True
            )
        ]
        assert sum(changed) == 1


def test_paths_read_as_a_user_writes_them(system):
    assert djdyn.get_parameters(system, "king.mass") == 1000.0
    assert djdyn.get_parameters(system, "pd.kp") == 5e5
    assert djdyn.get_parameters(system, "gravity_W[2]") == -9.81
    assert djdyn.get_parameters(system, "springs.stiffness") == 8e7
    assert (
        djdyn.get_parameters(
            djdyn.with_parameters(system, {"gravity_W[2]": -1.6}), "gravity_W"
        )[2]
        == -1.6
    )
    assert "king.mass" in str(djdyn.parameters(system))
    assert djdyn.parameters(system).units["king.mass"] == "kg"


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("king.mas", 1.0, "no parameter 'king.mas'"),
        ("kp", 1.0, "did you mean pd.kp"),
        ("gravity_W[3]", 1.0, r"outside an array of shape \(3,\)"),
        ("gravity_W", 1.0, "cannot be set"),
        ("king.mass", -1.0, "king.mass must be at least 0 kg, got -1"),
        ("king.mass", "heavy", "is a number"),
        ("pd.kp", -1.0, "kp must be at least 0"),
    ],
)
def test_wrong_paths_are_said(system, path, value, said):
    with pytest.raises(ValueError, match=said):
        djdyn.with_parameters(system, {path: value})


TRANSFORMS = {
    "king.mass": djdyn.Positive(),
    "pd.kd": djdyn.Sigmoid(1e3, 1e5),
    "pd.kp": djdyn.Box(1e3, 1e6),
    "king.I_BC": djdyn.PositiveDefinite(),
    "gravity_W[2]": Unbounded(),
    "king.joint.axis": djdyn.Direction(),
}


@pytest.mark.parametrize("path", TRANSFORMS)
def test_transforms_come_back(system, path):
    free = [FreeParameter(path, TRANSFORMS[path])]
    theta = pack(system, free)
    again = unpack(system, free, theta)
    assert jnp.allclose(
        djdyn.get_parameters(again, path),
        djdyn.get_parameters(system, path),
        rtol=1e-12,
    )


def test_a_value_outside_its_domain_is_said(system):
    with pytest.raises(ValueError, match=r"'gravity_W\[2\]' = -9.81 is not inside"):
        pack(system, [FreeParameter("gravity_W[2]", djdyn.Positive())])
    with pytest.raises(ValueError, match=r"'pd.kp' = 500000.0 is not inside"):
        pack(system, [FreeParameter("pd.kp", djdyn.Box(1e3, 4e5))])


def test_bounds_can_be_reached():
    between = djdyn.Box(jnp.array([1.0, -2.0]), jnp.array([3.0, 5.0]))
    ends = jnp.array([3.0, -2.0])
    assert jnp.array_equal(between.constrain(ends), ends)
    assert jnp.array_equal(between.unconstrain(ends), ends)
    assert jnp.array_equal(jax.jacfwd(between.constrain)(ends), jnp.eye(2))
    assert jnp.array_equal(
        between.constrain(jnp.array([0.0, 9.0])), jnp.array([1.0, 5.0])
    )


@given(st.lists(st.floats(-2, 2), min_size=10, max_size=10))
def test_any_vector_is_a_physical_inertia(vector):
    made = djdyn.PhysicalInertia().constrain(jnp.array(vector))
    values = (np.asarray(made[k]) for k in ("mass", "p_BC", "I_BC"))
    check_inertia("b", *values, np.zeros((6, 6)))
    back = djdyn.PhysicalInertia().unconstrain(made)
    assert jnp.allclose(back, jnp.array(vector), atol=1e-7)


def test_the_inertia_of_a_body_is_one_free_thing(system):
    free = [
        FreeParameter("king", djdyn.PhysicalInertia()),
        FreeParameter("pd.kp", djdyn.Positive()),
    ]
    theta = pack(system, free)
    assert theta["king"].shape == (10,)
    again = unpack(system, free, theta)
    for path in ("king.mass", "king.p_BC", "king.I_BC", "pd.kp"):
        assert jnp.allclose(
            djdyn.get_parameters(again, path),
            djdyn.get_parameters(system, path),
            atol=1e-9,
        )
    heavier = unpack(system, free, {**theta, "king": theta["king"].at[9].add(0.1)})
    assert djdyn.get_parameters(heavier, "king.mass") > djdyn.get_parameters(
        system, "king.mass"
    )
