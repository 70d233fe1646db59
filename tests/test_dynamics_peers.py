"""Dynamics and their derivatives equal MuJoCo's and Pinocchio's on random trees.

A topology is compiled once and evaluated on many trees with other lengths, axes, masses
and states at once.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from djdyn import dynamics
from djdyn.kinematics import look

from .trees import (
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


peers = pytest.importorskip("tests.peers", exc_type=ImportError)
pin, mujoco = peers.pin, peers.mujoco

COMMON = (Revolute, Prismatic, Revolute, Spherical, Fixed, Free)
OTHERS = (Cylindrical, RollPitchYaw, Universal, Planar, Spherical, Revolute)
TREES = 17  # of each topology


@jax.jit
@jax.vmap
def evaluate(mechanism, q, v, tau, v_dot):
    world = look(mechanism, q, v)
    return {
        "projection": dynamics.forward(world, tau, method="projection"),
        "recursion": dynamics.forward(world, tau, method="recursion"),
        "inverse": dynamics.inverse(world, v_dot),
        "mass": dynamics.projected_inertia(world),
    }


def random_trees(topology: Topology, count: int, seed: int = 0):
    """Trees, states and what is found there."""
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, topology) for _ in range(count)]
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
    model = mujoco.MjModel.from_xml_string(peers.to_mjcf(tree))
    rows = peers.mujoco_rows(model, tree)
    expected = peers.mujoco_dynamics(model, rows, q, v, tau, v_dot)
    assert_dynamics(found, **expected)


def assert_as_pinocchio(tree, q, v, tau, v_dot, found):
    model = peers.to_pinocchio(tree)
    data, q_p = model.createData(), peers.pinocchio_q(tree, q)
    T, T_dot_v = speeds_map(tree, q, v)
    u, tau_p = T @ v, np.linalg.solve(T.T, tau)
    u_dot = pin.aba(model, data, q_p, u, tau_p)
    tau_v = pin.rnea(model, data, q_p, u, T @ v_dot + T_dot_v)
    M = pin.crba(model, data, q_p)
    M = np.triu(M) + np.triu(M, 1).T
    forward = np.linalg.solve(T, u_dot - T_dot_v)
    assert_dynamics(found, forward, T.T @ tau_v, T.T @ M @ T)


def speeds_map(tree, q, v):
    r"""$T$ and $\dot T v$ of Pinocchio's speeds $T(q)v$, by central differences of q.

    The map is a rotation or a permutation, so differences of it are good to 1e-10.
    """
    columns = [peers.pinocchio_speeds(tree, q, e) for e in np.eye(tree.nv)]
    T = np.stack(columns, axis=1)
    h = 1e-4
    q_dot = np.asarray(tree.q_dot(jnp.asarray(q), jnp.asarray(v)))
    points = [
        peers.pinocchio_speeds(tree, q + k * h * q_dot, v) for k in (-2, -1, 1, 2)
    ]
    a, b, c, d = (np.asarray(x) for x in points)
    return T, (a - 8 * b + 8 * c - d) / (12 * h)


@pytest.mark.parametrize("bodies", [2, 4, 7, 11, 15, 20])
def test_dynamics_equal_mujoco_and_pinocchio(bodies):
    topology = random_topology(bodies, bodies, COMMON)
    for tree, state in zip(*random_trees(topology, TREES), strict=True):
        assert_as_mujoco(tree, *state)
        assert_as_pinocchio(tree, *state)


@pytest.mark.parametrize("bodies", [6, 12])
def test_dynamics_of_further_joints_equal_pinocchio(bodies):
    topology = random_topology(bodies, bodies, OTHERS)
    for tree, state in zip(*random_trees(topology, TREES), strict=True):
        assert_as_pinocchio(tree, *state)
