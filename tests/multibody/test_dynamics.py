"""Accelerations against worked-out cases and against a differentiated Lagrangian."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from djdyn.multibody import dynamics, kinematics, mass_matrix, reactions
from djdyn.multibody.joints import Free, Prescribed
from djdyn.multibody.mechanism import Body, Mechanism
from djdyn.multibody.spatial import Pose, rotation_rpy
from experiments.harness import tables
from experiments.studies.titan4 import model as titan4

from .. import machines
from ..gradients import quick_jit
from . import lagrangian
from .trees import (
    Cylindrical,
    Planar,
    PlanarPointContact,
    PointContact,
    Prismatic,
    Revolute,
    RollPitchYaw,
    Spherical,
    Topology,
    Universal,
    random_q,
    random_tree,
)


@quick_jit
def _evaluate(mechanism, q, v, tau, v_dot, F):
    world = kinematics.forward_kinematics(mechanism, q, v)
    return {
        "world": world,
        "mass": mass_matrix.projected_inertia(world),
        "bias": dynamics.inverse(world, jnp.zeros_like(v)),
        "inverse": dynamics.inverse(world, v_dot, F),
        "projection": dynamics.forward(world, tau, F, "projection"),
        "recursion": dynamics.forward(world, tau, F, "recursion"),
        "reactions": reactions.reactions(world, v_dot, F),
        "energy": (reactions.kinetic_energy(world), reactions.potential_energy(world)),
    }


def evaluate(mechanism, q, v=None, *, tau=None, v_dot=None, F=None):
    """All there is to know at a state, in one compilation; what is left out is zero."""
    n, rows = mechanism.nv, len(mechanism.bodies) + 1
    fill = lambda x, shape: jnp.zeros(shape) if x is None else jnp.asarray(x)
    speeds = [fill(x, n) for x in (v, tau, v_dot)]
    return _evaluate(mechanism, jnp.asarray(q), *speeds, fill(F, (rows, 6)))


TITAN_Q = np.array([0.3, 0.5, -0.7, 0.4, -0.2, 0.9])
TITAN_V = np.array([0.1, -0.2, 0.3, -0.4, 0.5, -0.6])


class Seaway(eqx.Module):
    """A deck that surges, heaves, rolls, pitches and yaws."""

    amplitude: jax.Array
    rate: jax.Array

    def __call__(self, t):
        x = self.amplitude * jnp.sin(self.rate * t)
        return Pose(rotation_rpy(x[0], x[1], x[2]), x[3:])


def seaway() -> Seaway:
    return Seaway(
        jnp.array([0.3, -0.2, 0.5, 1.0, 0.4, -0.7]),
        jnp.array([0.6, 0.9, 0.4, 0.7, 1.1, 0.8]),
    )


def with_added_mass(rng, body: Body) -> Body:
    root = rng.normal(size=(6, 6))
    given = dict(is_leaf=lambda x: x is None)
    return eqx.tree_at(lambda b: b.A_B, body, jnp.asarray(root @ root.T), **given)


@quick_jit
def all_ways(mechanism, q, v, v_dot, t):
    tau = lagrangian.inverse_dynamics(mechanism, q, v, v_dot, t)
    world = kinematics.forward_kinematics(mechanism, q, v, t)
    return {
        "lagrangian": tau,
        "inverse": dynamics.inverse(world, v_dot),
        "projection": dynamics.forward(world, tau, method="projection"),
        "recursion": dynamics.forward(world, tau, method="recursion"),
    }


@pytest.mark.parametrize(
    "kinds",
    [
        (Cylindrical, RollPitchYaw, Universal, Revolute),
        (Spherical, Planar, Prismatic),
        (PointContact, PlanarPointContact),
    ],
)
def test_lagrangian_gives_the_same_on_a_moving_base_with_added_mass(kinds):
    rng = np.random.default_rng(1)
    tree = random_tree(rng, Topology(tuple(range(len(kinds))), kinds))
    first, *others = tree.bodies
    deck = Body("deck", "world", Prescribed(seaway()), 3.0)
    hung = dataclasses.replace(first, parent="deck")
    bodies = (deck, *(with_added_mass(rng, body) for body in (hung, *others)))
    mechanism = Mechanism(bodies, gravity_W=tree.gravity_W)
    q = jnp.asarray(random_q(rng, mechanism))
    v, v_dot = jnp.asarray(rng.normal(size=(2, mechanism.nv)))
    found = all_ways(mechanism, q, v, v_dot, jnp.asarray(0.8))
    np.testing.assert_allclose(found["inverse"], found["lagrangian"], rtol=1e-10)
    np.testing.assert_allclose(found["projection"], v_dot, rtol=1e-9)
    np.testing.assert_allclose(found["recursion"], v_dot, rtol=1e-9)


def test_free_body_with_added_mass_obeys_kirchhoff():
    r"""$\dot h = -V\times^* h$ in the body's axes, $h = (M + A)V$."""
    rng = np.random.default_rng(2)
    hull = with_added_mass(
        rng, Body("hull", "world", Free(), 2.0, (0.1, -0.2, 0.3), np.diag([1, 2, 2.5]))
    )
    mechanism = Mechanism((hull,), gravity_W=(0.0, 0.0, 0.0))
    q, (v, tau) = random_q(rng, mechanism), rng.normal(size=(2, 6))
    found = evaluate(mechanism, q, v, tau=tau)
    R, M = np.asarray(found["world"].X_WB.R[1]), np.asarray(hull.inertia_B)
    w, u = v[:3], R.T @ v[3:]  # in the body's axes
    h = M @ np.concatenate([w, u])
    rate = np.concatenate([np.cross(w, h[:3]) + np.cross(u, h[3:]), np.cross(w, h[3:])])
    force = np.concatenate([tau[:3], R.T @ tau[3:]])
    w_dot, u_dot = np.split(np.linalg.solve(M, force - rate), 2)
    expected = np.concatenate([w_dot, R @ (u_dot + np.cross(w, u))])
    np.testing.assert_allclose(found["projection"], expected, rtol=1e-12)
    np.testing.assert_allclose(found["recursion"], expected, rtol=1e-12)


@pytest.mark.validation
@pytest.mark.parametrize("yaw", [0.0, 0.7])
def test_hull_with_isotropic_added_mass_coasts_straight_while_turning(yaw):
    """The wrong sign of the added mass's Coriolis force would bend its way.

    The hull of Rokseth's underwater vehicle (master's thesis, NTNU, 2014, table C.1).
    """
    added = np.diag([817.0, 1430.0, 1477.0, 1600.0, 1600.0, 1600.0])
    hull = Body(
        "hull", "world", Free(), 4000.0, I_BC=np.diag([2043.0, 3576, 3693]), A_B=added
    )
    mechanism = Mechanism((hull,), gravity_W=(0.0, 0.0, 0.0))
    q = [0.0, 0.0, 0.0, np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]
    found = evaluate(mechanism, q, [0.0, 0.0, 0.1, 1.0, 0.0, 0.0])
    np.testing.assert_allclose(found["projection"], 0.0, atol=1e-15)


def test_gravity_does_not_pull_on_added_mass():
    added = np.diag([0.0, 0.0, 0.0, 6.0, 6.0, 6.0])
    hull = Body("hull", "world", Free(), 2.0, I_BC=np.eye(3), A_B=added)
    mechanism = Mechanism((hull,))
    v_dot = evaluate(mechanism, mechanism.q0())["projection"]
    np.testing.assert_allclose(v_dot[3:], [0.0, 0.0, -9.81 / 4], rtol=1e-14)


# Wrenches and reactions ---------------------------------------------------------------


def test_wrenches_on_bodies_act_through_the_jacobians():
    arm, rng = titan4.mechanism(printed=False), np.random.default_rng(3)
    v, v_dot = rng.normal(size=(2, 6))
    F = rng.normal(size=(7, 6))
    free = evaluate(arm, TITAN_Q, v, v_dot=v_dot)
    loaded = evaluate(arm, TITAN_Q, v, v_dot=v_dot, F=F)["inverse"]
    jacobians = np.asarray(free["world"].jacobians())  # [body, speed, 6]
    felt = np.einsum("nai,ni->a", jacobians, F)
    np.testing.assert_allclose(free["inverse"] - loaded, felt, rtol=1e-11)
    back = evaluate(arm, TITAN_Q, v, tau=loaded, F=F)
    np.testing.assert_allclose(back["projection"], v_dot, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(back["recursion"], v_dot, rtol=1e-11, atol=1e-11)


def test_jacobian_of_a_frame_is_the_derivative_of_its_pose():
    arm, q = titan4.mechanism(printed=False), jnp.asarray(TITAN_Q)
    tool = lambda q: kinematics.forward_kinematics(arm, q).pose("tool")
    both = quick_jit(lambda q: (kinematics.frame_jacobian(arm, q, "tool"), tool(q)))
    (J, X), rate = both(q), quick_jit(jax.jacfwd(tool))(q)
    W = jnp.einsum("ijk,lj->kil", rate.R, X.R)  # skew of each column's angular part
    turn = jnp.stack([W[:, 2, 1], W[:, 0, 2], W[:, 1, 0]])
    np.testing.assert_allclose(J, jnp.concatenate([turn, rate.p]), atol=1e-14)


def test_reactions_along_the_joints_are_the_joint_forces():
    arm, rng = titan4.mechanism(printed=False), np.random.default_rng(4)
    q, v, v_dot = rng.normal(size=(3, 6))
    found = evaluate(arm, q, v, v_dot=v_dot)
    along = found["reactions"][1:, 2]  # each joint turns about its z
    np.testing.assert_allclose(along, found["inverse"], rtol=1e-10, atol=1e-10)
    weight = 9.81 * sum(float(body.mass) for body in arm.bodies)
    still = evaluate(arm, q)["reactions"]
    np.testing.assert_allclose(still[1, 3:], [0.0, 0.0, weight], atol=1e-9)


def test_constraint_force_is_the_reaction_along_its_directions():
    arm, rng = titan4.mechanism(printed=False), np.random.default_rng(5)
    q, v, v_dot = rng.normal(size=(3, 6))
    F = jnp.asarray(rng.normal(size=(7, 6)))
    found = evaluate(arm, q, v, v_dot=v_dot, F=F)
    at_joint3 = quick_jit(
        lambda world, a: reactions.constraint_force(world, a, "joint3", jnp.eye(6), F)
    )
    force = at_joint3(found["world"], v_dot)
    np.testing.assert_allclose(force, found["reactions"][3], rtol=1e-10, atol=1e-10)


# Worked-out cases ---------------------------------------------------------------------


@pytest.mark.validation
def test_wagon_and_pendulum_mass_matrix():
    M = evaluate(machines.wagon_pendulum(), [0.0, 0.5])["mass"]
    np.testing.assert_allclose(M, [[3, 0.26327477], [0.26327477, 0.09]], atol=1e-8)
    inverse = [[0.44846089, -1.31187152], [-1.31187152, 14.94869636]]
    np.testing.assert_allclose(np.linalg.inv(M), inverse, rtol=1e-8)


@quick_jit
def _wagon_stiffness(q):
    """Acceleration at rest under the two springs, and its derivative."""
    wagon, k = machines.wagon_pendulum(), jnp.asarray(machines.WAGON_SPRINGS)
    pull = lambda q: dynamics.forward_dynamics(wagon, q, jnp.zeros(2), -k * q)
    return pull(q), jax.jacfwd(pull)(q)


@pytest.mark.validation
@pytest.mark.parametrize(
    "angle, squares",
    [
        (0.0, [-(1.00605**2), 6.34262**2]),
        (2.6706475, [-(6.895965**2), -(0.996126**2)]),
    ],
)
def test_wagon_and_pendulum_equilibria_and_their_modes(angle, squares):
    """The eigenvalues are squared growth rates, or minus squared frequencies."""
    pull, stiffness = _wagon_stiffness(jnp.array([0.0, angle]))
    np.testing.assert_allclose(pull, 0.0, atol=2e-6)
    values = np.sort(np.linalg.eigvals(stiffness).real)
    np.testing.assert_allclose(values, sorted(squares), rtol=2e-5)


def titan_fixture(config: str, quantity: str) -> list[float]:
    rows = tables.read("titan4/ref_dynamics_fixtures.csv")
    return [
        float(row["value"])
        for row in rows
        if row["config"] == config and row["quantity"].startswith(quantity)
    ]


CONFIGS = {"zero": np.zeros(6), "test": TITAN_Q}


@pytest.mark.validation
@pytest.mark.parametrize("config", CONFIGS)
def test_titan4_places_its_joints_and_tool(config):
    world = evaluate(titan4.mechanism(printed=False), CONFIGS[config])["world"]
    joints = titan_fixture(config, "joint")
    np.testing.assert_allclose(np.ravel(world.X_WB.p[1:]), joints, atol=1e-9)
    tool = titan_fixture(config, "tool")
    np.testing.assert_allclose(world.pose("tool").p, tool, atol=1e-9)


@pytest.mark.validation
@pytest.mark.parametrize("config", CONFIGS)
def test_titan4_mass_matrix_gravity_and_coriolis_forces(config):
    arm, q = titan4.mechanism(), CONFIGS[config]
    still, moving = evaluate(arm, q), evaluate(arm, q, TITAN_V)
    upper = still["mass"][np.triu_indices(6)]
    # Bond-graph V9: where the packed triangle holds an entry, counted from one.
    place = lambda i, j, n=6: j + (n - 1) * (i - 1) - (i - 1) * (i - 2) // 2
    assert [place(2, 2), place(3, 3), place(6, 6), place(9, 9, 9)] == [7, 12, 21, 45]
    for i, j in ((2, 2), (2, 4), (3, 3), (6, 6)):
        assert upper[place(i, j) - 1] == still["mass"][i - 1, j - 1]
    expected = titan_fixture(config, "B_")
    np.testing.assert_allclose(upper, expected, rtol=1e-9, atol=1e-9)
    expected = titan_fixture(config, "g_")
    np.testing.assert_allclose(still["bias"], expected, rtol=1e-9, atol=1e-9)
    coriolis = moving["bias"] - still["bias"]
    expected = titan_fixture(config, "coriolis_")
    np.testing.assert_allclose(coriolis, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.validation
def test_titan4_coriolis_matrix_of_christoffel_symbols():
    r"""$C v$ is the bias without gravity, and $\dot B - 2C$ is skew."""
    arm, v = titan4.mechanism(), TITAN_V
    slope = quick_jit(jax.jacfwd(lambda q: dynamics.mass_matrix(arm, q)))
    dB = np.asarray(slope(jnp.asarray(TITAN_Q)))  # [i, j, k]: of B_ij by q_k
    B_dot = np.einsum("ijk,k->ij", dB, v)
    C = (B_dot + np.einsum("ikj,k->ij", dB, v) - np.einsum("jki,k->ij", dB, v)) / 2
    still, moving = evaluate(arm, TITAN_Q), evaluate(arm, TITAN_Q, v)
    coriolis = moving["bias"] - still["bias"]
    np.testing.assert_allclose(C @ v, coriolis, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(B_dot - 2 * C, -(B_dot - 2 * C).T, atol=1e-13)
    half = np.einsum("i,ijk,j->k", v, dB, v) / 2
    expected = titan_fixture("test", "half_w_dB_w_")
    np.testing.assert_allclose(half, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.validation
def test_double_pendulum_by_velocity_transformation():
    found = evaluate(machines.double_pendulum(), [0.3, 0.5], [1.0, 2.0])
    M = [[2.5442492286, 0.7721246143], [0.7721246143, 0.3333333333]]
    np.testing.assert_allclose(found["mass"], M, rtol=1e-9)
    np.testing.assert_allclose(
        found["bias"], [-19.3928250012, -3.1776336400], rtol=1e-10
    )
    expected = [15.9215556750, -27.3473741828]
    np.testing.assert_allclose(found["projection"], expected, rtol=1e-10)
    np.testing.assert_allclose(found["recursion"], expected, rtol=1e-10)
    world = found["world"]  # the lower rod's centre, at constant speeds
    w, alpha, a = world.V_WB[2, :3], world.A_bias_WB[2, :3], world.A_bias_WB[2, 3:]
    arm = world.X_WB.R[2] @ jnp.array([0.5, 0.0, 0.0])
    centre = a + np.cross(alpha, arm) + np.cross(w, np.cross(w, arm))
    expected = [-4.0905166812, 0.0, 3.5236226157]
    np.testing.assert_allclose(centre, expected, atol=1e-10)
    np.testing.assert_allclose(alpha, 0.0, atol=1e-15)


@pytest.mark.validation
def test_double_pendulum_released_from_horizontal_rest():
    v_dot = evaluate(machines.double_pendulum(), [0.0, 0.0])["projection"]
    np.testing.assert_allclose(v_dot, [9 * 9.81 / 7, -12 * 9.81 / 7], rtol=1e-14)


@pytest.mark.validation
def test_slider_on_a_turning_arm_feels_coriolis_and_centrifugal_force():
    found = evaluate(machines.slider_on_arm(), [0.4, 1.5], [2.0, 0.5])
    np.testing.assert_allclose(found["projection"], [-1.2711864407, 6.0], rtol=1e-10)


@pytest.mark.validation
def test_harvester_manipulator_starts_to_fall():
    machine, q = machines.harvester(), [0.0, -0.6, 1.0, -0.4, 0.0, 0.0]
    still, moving = evaluate(machine, q), evaluate(machine, q, [0.3, 0, 0, 0, 0.2, 0.1])
    diagonal = [49902.8905389, 51605.9966013, 16813.1182172, 1214.125, 101, 444]
    np.testing.assert_allclose(np.diag(still["mass"]), diagonal, rtol=1e-10)
    hold = [0.0, -83366.346, -34787.092, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(still["bias"], hold, atol=6e-4)
    expected = np.array(
        [
            0.0070750933,
            2.1174948085,
            -1.1291458764,
            4.8051838841,
            -0.0070750933,
            -5.8526356069,
        ]
    )
    np.testing.assert_allclose(moving["projection"], expected, rtol=1e-8)
    np.testing.assert_allclose(moving["recursion"], expected, rtol=1e-8)
    kinetic, potential = moving["energy"]
    np.testing.assert_allclose(kinetic, 2255.930074, rtol=1e-9)
    np.testing.assert_allclose(potential, 55633.43432, rtol=1e-9)
