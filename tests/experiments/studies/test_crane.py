"""The offshore crane: point fixtures, its equations, and the study itself."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.multibody import dynamics, reactions
from experiments.__main__ import main
from experiments.harness import tables
from experiments.studies.crane import model as crane


@pytest.fixture(scope="module")
def loads():
    """Bearing loads on the king at given accelerations, two ways, jitted once."""

    @jax.jit
    def evaluate(q, u, u_dot):
        world = djdyn.forward_kinematics(crane.mechanism(), q, u)
        rho = reactions.constraint_force(world, u_dot, "king", jnp.eye(6))
        return rho, reactions.reactions(world, u_dot)[2], dynamics.inverse(world, u_dot)

    return evaluate


@pytest.mark.validation
def test_static_loads_in_closed_form(loads):
    """Offshore-crane V1: level and heeled."""
    zero = jnp.zeros(6)
    known = {
        (0.0,) * 6: (17658.0, 0.0, 0.0, 0.0, 19620.0),
        (0.0, 0.0, 0.0, 0.7, 0.5, -0.9): (15666.9622454697, 0.0, 0.0, 0.0, 19620.0),
        (0.1, -0.05, 0.3, 0.7, 0.5, -0.9): (
            14049.6070715443,
            3533.48045096513,
            2010.27017575143,
            864.534066973378,
            19497.584329027,
        ),
    }
    for q, rho in known.items():
        found, recursive, _ = loads(jnp.array(q), zero, zero)
        assert jnp.allclose(found[np.array([0, 1, 3, 4, 5])], jnp.array(rho), atol=1e-8)
        assert jnp.allclose(found, recursive, atol=1e-9)


@pytest.mark.validation
def test_slewing_loads_in_closed_form(loads):
    """Offshore-crane V2: steady and accelerated slewing, the vessel held."""
    q, u = jnp.zeros(6), jnp.zeros(6).at[3].set(0.2)
    rho, _, _ = loads(q, u, jnp.zeros(6))
    assert jnp.allclose(rho, jnp.array([17802.0, 0, 0, 0, -72.0, 19620.0]), atol=1e-9)
    rho, _, tau = loads(q, u, jnp.zeros(6).at[3].set(0.1))
    assert jnp.allclose(rho[np.array([1, 3])], jnp.array([-360.0, -180.0]), atol=1e-9)
    assert jnp.allclose(tau[3], 456.6666667, atol=1e-6)
    assert jnp.allclose(
        rho[2], tau[3], atol=1e-9
    )  # the sixth load is the drive's torque


@pytest.mark.validation
def test_joint_wrenches_and_mass_matrix():
    """Offshore-crane V3: the wrench in every joint, and M, at the printed states."""

    @jax.jit
    def evaluate(q, u, tau, gravity):
        mechanism = crane.mechanism(gravity=gravity)
        world = djdyn.forward_kinematics(mechanism, q, u)
        both = [
            dynamics.forward(world, tau, None, m) for m in ("projection", "recursion")
        ]
        return (
            reactions.reactions(world, both[0]),
            both,
            djdyn.mass_matrix(mechanism, q),
        )

    wrenches = tables.read("crane/joint_wrenches.csv")
    matrices = tables.read("crane/mass_matrix.csv")
    for row in tables.read("crane/point_fixtures.csv"):
        number = lambda *names, row=row: tables.columns([row], *names)[0]
        q = number(*(f"q{i}_rad" for i in range(1, 7)))
        u = number(*(f"u{i}_rad_s" for i in range(1, 7)))
        spring = -float(row["k_Nm_rad3"]) * q[:3] ** 3
        tau = np.concatenate([spring, number("tau4_Nm", "tau5_Nm", "tau6_Nm")])
        found, both, M = evaluate(q, u, tau, float(row["g_m_s2"]))
        assert jnp.allclose(both[0], both[1], rtol=1e-10, atol=1e-12)
        columns = ("nx_Nm", "ny_Nm", "nz_Nm", "fx_N", "fy_N", "fz_N")
        mine = [w for w in wrenches if w["id"] == row["id"]]
        known = tables.columns(mine, *columns)
        assert jnp.allclose(found[1:], known, atol=1e-9 * np.abs(known).max())
        mine = [m for m in matrices if m["id"] == row["id"]]
        if mine:
            known = tables.columns(mine, *(f"M_{i}_kgm2" for i in range(1, 7)))
            assert jnp.allclose(M, known, rtol=1e-12, atol=1e-9)


@pytest.mark.validation
def test_auxiliary_speeds_equal_newton_euler():
    """Offshore-crane V4: 200 random states, three joints each."""

    @jax.jit
    @jax.vmap
    def gaps(key):
        a, b, c = jax.random.split(key, 3)
        q = jax.random.uniform(a, (6,), minval=-0.6, maxval=0.6)
        u = jax.random.uniform(b, (6,), minval=-1.0, maxval=1.0)
        tau = jax.random.uniform(c, (6,), minval=-2e4, maxval=2e4)
        world = djdyn.forward_kinematics(crane.mechanism(), q, u)
        u_dot = dynamics.forward(world, tau)
        recursive = reactions.reactions(world, u_dot)
        out = []
        for row, joint in enumerate(crane.JOINTS, start=2):
            rho = reactions.constraint_force(world, u_dot, joint, jnp.eye(6))
            scale = jnp.max(jnp.abs(rho))
            out.append(jnp.max(jnp.abs(rho - recursive[row])) / scale)
            out.append(jnp.abs(rho[2] - tau[row + 1]) / scale)
        return jnp.stack(out)

    assert jnp.max(gaps(jax.random.split(jax.random.key(0), 200))) < 1e-11


@pytest.mark.validation
def test_free_motion_keeps_momentum_and_energy():
    """Offshore-crane V6, V7 and V14: no gravity, springs or drives."""
    system = djdyn.System(crane.mechanism(gravity=0.0))
    rows = tables.read("crane/scenario_E.csv")
    q, u = (
        tables.columns(rows, *names)
        for names in (
            [f"q{i}_rad" for i in range(1, 7)],
            [f"u{i}_rad_s" for i in range(1, 7)],
        )
    )
    y0 = system.initial_state(q[0], u[0])
    trajectory = djdyn.simulate(
        system, 10.0, y0, saveat=21, solver="dopri8", rtol=1e-11, atol=1e-11
    )
    assert jnp.allclose(trajectory.y.q, q, atol=1e-8)
    kept = trajectory.map(_momentum_and_energy)
    momentum = [4608.849085541702, -9464.032589339642, 2112.007202552668]
    assert jnp.allclose(kept[0], jnp.array(momentum)[None], atol=1e-5)
    assert jnp.allclose(kept[1], 475.780513966868, atol=1e-8 * 475.78)


def _momentum_and_energy(now):
    return reactions.momentum(now.world)[:3], now.energy()


@pytest.mark.validation
def test_derivatives_of_accelerations_and_loads():
    """Offshore-crane V15: at F4, to masses, gravity, torques and the state."""
    rows = {row["wrt"]: row for row in tables.read("crane/point_jacobian_F4.csv")}
    names = [f"d_udot{i}_rad_s2" for i in range(1, 7)]
    names += ["d_rho1_Nm", "d_rho2_Nm", "d_rho3_N", "d_rho4_N", "d_rho5_N"]
    fixtures = {row["id"]: row for row in tables.read("crane/point_fixtures.csv")}
    number = lambda *columns: tables.columns([fixtures["F4"]], *columns)[0]
    q = number(*(f"q{i}_rad" for i in range(1, 7)))
    u = number(*(f"u{i}_rad_s" for i in range(1, 7)))
    torque = number("tau4_Nm", "tau5_Nm", "tau6_Nm")

    def both(masses, q, u, torque, g):
        world = djdyn.forward_kinematics(crane.mechanism(masses, g), q, u)
        tau = jnp.concatenate([-crane.STIFFNESS * q[:3] ** 3, torque])
        u_dot = dynamics.forward(world, tau)
        bearing = jnp.asarray(crane.BEARING)
        rho = reactions.constraint_force(world, u_dot, "king", bearing)
        return jnp.concatenate([u_dot, rho])

    at = (jnp.array(crane.MASSES), jnp.array(q), jnp.array(u), jnp.array(torque))
    jacobian = jax.jit(jax.jacfwd(both, argnums=range(5)))(*at, jnp.array(9.81))
    found = jnp.concatenate([j.reshape(11, -1) for j in jacobian], axis=1).T
    order = [f"m{i}_kg" for i in range(1, 5)] + [f"q{i}_rad" for i in range(1, 7)]
    order += [f"u{i}_rad_s" for i in range(1, 7)] + [f"tau{i}_Nm" for i in (4, 5, 6)]
    order += ["g_m_s2"]
    assert set(order) <= set(rows), sorted(rows)
    known = tables.columns([rows[name] for name in order], *names)
    scale = np.abs(known).max(axis=1, keepdims=True)
    assert np.max(np.abs(found - known) / scale) < 1e-9


@pytest.mark.study
def test_the_study_passes_its_checks(tmp_path):
    assert main(["run", "crane", "--quick", "--out", str(tmp_path)]) == 0
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["crane.scenario_b.max_state_error"] < 1e-6
    assert metrics["crane.gradient_error"] < 1e-6
    assert (tmp_path / "report.html").stat().st_size < 10e6
