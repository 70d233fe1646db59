"""Dynamics and their derivatives equal MuJoCo's and Pinocchio's on random trees.

A topology is compiled once and evaluated on many trees with other lengths, axes, masses
and states at once.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from djdyn.multibody import dynamics, mass_matrix
from djdyn.multibody.kinematics import forward_kinematics
from djdyn.multibody.reactions import kinetic_energy

from ..gradients import quick_jit
from .trees import (
    Cartesian,
    Cylindrical,
    Fixed,
    Free,
    Planar,
    Prismatic,
    Revolute,
    RollPitchYaw,
    Spherical,
    Topology,
    Universal,
    random_q,
    random_topology,
    random_tree,
    stack,
)


peers = pytest.importorskip("tests.multibody.peers", exc_type=ImportError)

COMMON = (Revolute, Prismatic, Revolute, Spherical, Fixed, Free)
OTHERS = (Cylindrical, RollPitchYaw, Universal, Planar, Cartesian, Spherical, Revolute)
TREES = 20  # of each topology


@quick_jit
@jax.vmap
def evaluate(mechanism, q, v, tau, v_dot):
    world = forward_kinematics(mechanism, q, v)
    return {
        "projection": dynamics.forward(world, tau, method="projection"),
        "recursion": dynamics.forward(world, tau, method="recursion"),
        "inverse": dynamics.inverse(world, v_dot),
        "mass": mass_matrix.projected_inertia(world),
        "map": speeds_map(mechanism, q, v),
        "energy": kinetic_energy(world)
        - v @ mass_matrix.projected_inertia(world) @ v / 2,
    }


def speeds_map(mechanism, q, v):
    r"""$T$ and $\dot T v$ of Pinocchio's speeds $u = T(q)v$."""
    u = lambda q, v: peers.pinocchio_speeds(mechanism, q, v)
    _, T_dot_v = jax.jvp(lambda q: u(q, v), (q,), (mechanism.q_dot(q, v),))
    return jax.jacfwd(u, 1)(q, v), T_dot_v


def random_trees(topology: Topology, count: int, seed: int = 0, geared=False):
    """Trees, states and what is found there."""
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, topology, geared) for _ in range(count)]
    q = np.stack([random_q(rng, tree) for tree in trees])
    v, tau, v_dot = rng.normal(size=(3, count, trees[0].nv))
    found = jax.device_get(evaluate(stack(trees), q, v, tau, v_dot))
    states = [
        (q[i], v[i], tau[i], v_dot[i], jax.tree.map(lambda x, i=i: x[i], found))
        for i in range(count)
    ]
    return trees, states


def assert_close(found, expected, rtol):
    """To a fraction of the largest entry."""
    np.testing.assert_allclose(
        found, expected, rtol=0.0, atol=rtol * np.abs(expected).max()
    )


def assert_dynamics(found, forward, inverse, mass):
    assert_close(found["projection"], forward, 1e-9)
    assert_close(found["recursion"], forward, 1e-9)
    assert_close(found["inverse"], inverse, 1e-9)
    assert_close(found["mass"], mass, 1e-9)


def assert_as_mujoco(tree, q, v, tau, v_dot, found):
    model = peers.mujoco.MjModel.from_xml_string(peers.to_mjcf(tree))
    rows = peers.mujoco_rows(model, tree)
    expected = peers.mujoco_dynamics(model, rows, q, v, tau, v_dot)
    assert_dynamics(found, **expected)


def assert_as_pinocchio(tree, q, v, tau, v_dot, found):
    model, (T, T_dot_v) = peers.to_pinocchio(tree), found["map"]
    rows, q = peers.pinocchio_rows(model, tree), peers.pinocchio_q(tree, q)
    tau, u_dot = np.linalg.solve(T.T, tau), T @ v_dot + T_dot_v
    theirs = peers.pinocchio_dynamics(model, rows, q, T @ v, tau, u_dot)
    forward = np.linalg.solve(T, theirs["forward"] - T_dot_v)
    assert_dynamics(found, forward, T.T @ theirs["inverse"], T.T @ theirs["mass"] @ T)


@pytest.mark.parametrize("bodies", [2, 5, 9, 14, 20])
def test_dynamics_equal_mujoco_and_pinocchio(bodies):
    topology = random_topology(bodies, bodies, COMMON)
    for tree, state in zip(*random_trees(topology, TREES), strict=True):
        assert_as_mujoco(tree, *state)
        assert_as_pinocchio(tree, *state)


def test_dynamics_of_further_joints_equal_pinocchio():
    topology = random_topology(9, 9, OTHERS)
    for tree, state in zip(*random_trees(topology, TREES), strict=True):
        assert_as_pinocchio(tree, *state)


@pytest.mark.parametrize("kinds", [COMMON, COMMON[:-1]])
def test_dynamics_with_armature_equal_mujoco_and_pinocchio(kinds):
    """Pinocchio takes a free body's velocity in its own axes, its rotor's inertia too,
    so free bodies are compared with MuJoCo alone.
    """
    topology = random_topology(6, 6, kinds)
    for tree, state in zip(*random_trees(topology, 5, geared=True), strict=True):
        assert_as_mujoco(tree, *state)
        assert abs(state[-1]["energy"]) < 1e-12 * np.abs(state[-1]["mass"]).max()
        if Free not in topology.joints:
            assert_as_pinocchio(tree, *state)


# Derivatives --------------------------------------------------------------------------


@quick_jit
@jax.vmap
def derivatives(mechanism, q, v, tau):
    r"""Of Pinocchio's $\dot u$ by its tangents of `q`, speeds `u` and joint forces.

    A tangent is a displacement at the speeds $T^{-1}\delta$, with `u` held.
    """
    T, _ = speeds_map(mechanism, q, v)
    u, tau_p = T @ v, jnp.linalg.solve(T.T, tau)

    def u_dot(delta, u, tau_p):
        moved = q + mechanism.q_dot(q, jnp.linalg.solve(T, delta))
        v = jnp.linalg.solve(speeds_map(mechanism, moved, jnp.zeros_like(u))[0], u)
        T_here, T_dot_v = speeds_map(mechanism, moved, v)
        v_dot = dynamics.forward_dynamics(mechanism, moved, v, T_here.T @ tau_p)
        return T_here @ v_dot + T_dot_v

    zero = jnp.zeros_like(u)
    return T, *jax.jacfwd(u_dot, (0, 1, 2))(zero, u, tau_p)


@pytest.mark.parametrize(
    "bodies, joints",
    [
        (10, (Revolute, Prismatic, Revolute, Fixed)),
        (6, (Spherical, Planar, Free, Cylindrical, Prismatic, Revolute)),
    ],
)
def test_derivatives_equal_pinocchio(bodies, joints):
    """Not on joints whose subspace turns with `q` (universal, Euler angles).

    There Pinocchio's derivatives differ from differences of its own accelerations.
    """
    topology = random_topology(bodies, bodies, joints)
    rng = np.random.default_rng(7)
    trees = [random_tree(rng, topology) for _ in range(8)]
    q = np.stack([random_q(rng, tree) for tree in trees])
    v, tau = rng.normal(size=(2, 8, trees[0].nv))
    found = jax.device_get(derivatives(stack(trees), q, v, tau))
    for i, tree in enumerate(trees):
        T, *ours = (x[i] for x in found)
        model, q_p = peers.to_pinocchio(tree), peers.pinocchio_q(tree, q[i])
        rows, tau_p = peers.pinocchio_rows(model, tree), np.linalg.solve(T.T, tau[i])
        theirs = peers.pinocchio_derivatives(model, rows, q_p, T @ v[i], tau_p)
        for mine, other in zip(ours, theirs, strict=True):
            assert_close(mine, other, 1e-8)
