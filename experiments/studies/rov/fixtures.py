"""Momentum, mass matrix, hydrostatics, drag and roots of the ROV."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from controllers import Reference, VehiclePID, linearise
from djdyn.marine.water import Fluid
from djdyn.multibody.spatial import quat_from_rotation, rotation_rpy, skew
from djdyn.parts import FrameActuator

from ...harness import tables
from ...harness.study import Study
from .model import (
    AREAS,
    DENSITY,
    FLIP,
    gains,
    mechanism,
    values,
    water_parts,
)


MOMENTUM = np.array([878.91129, -282.10845, 204.52582])  # kg m/s, z downwards
ANGULAR = np.array([27.45032, 120.48133, -201.1704])  # kg m2/s, about the origin
END = np.array(
    [2.16235, -0.68822, 0.51161, 0.27729, 0.29821, -0.25976, 5.23197, 0.68063, -0.71988]
)
ROOTS = {  # of the loops with ideal thrust: a pair and a real one, 1/s
    "surge": (-0.1347, 0.5701, -0.0520),
    "heave": (-0.1144, 0.5387, -0.2355),
    "roll": (-0.4666, 2.7239, -0.0458),
    "pitch": (-0.2460, 2.0962, -0.0673),
    "yaw": (-0.1960, 0.5725, -0.0528),
}


def floating(p: Array, angles: Array, q: Array) -> Array:
    """Return coordinates of a vehicle whose place and angles have z downwards."""
    turn = quat_from_rotation(rotation_rpy(*(FLIP * angles)))
    return jnp.concatenate([FLIP * p, turn, q])


def momentum(world: djdyn.World) -> Array:
    """Return angular momentum about the world's origin, and momentum."""
    total = jnp.zeros(6)
    for i, body in enumerate(world.mechanism.bodies, start=1):
        R, w = world.X_WB.R[i], world.V_WB[i, :3]
        arm = R @ body.p_BC
        v = world.V_WB[i, 3:] + jnp.cross(w, arm)
        spin = R @ body.I_BC @ R.T @ w
        spin = spin + body.mass * jnp.cross(world.X_WB.p[i] + arm, v)
        total = total + jnp.concatenate([spin, body.mass * v])
    return total


def run_momentum(study: Study) -> None:
    """Let the dry vehicle with its arm float freely for 10 s."""
    dry = mechanism(wet=False, payload=False)
    dry = eqx.tree_at(lambda m: m.gravity_W, dry, jnp.zeros(3))
    system = djdyn.System(dry)
    q = floating(
        jnp.zeros(3), jnp.array([0.1, -0.05, 0.2]), jnp.array([0.3, 0.5, -0.7])
    )
    u = np.array([0.2, -0.1, 0.05, 0.02, 0.03, -0.04, 0.5, -0.4, 0.8])
    R = rotation_rpy(*jnp.asarray(FLIP * np.array([0.1, -0.05, 0.2])))
    v = jnp.concatenate([FLIP * u[3:6], R @ (FLIP * u[:3]), u[6:]])
    y0 = djdyn.State(q, v, {})
    run = djdyn.simulate(
        system, 10.0, y0, saveat=101, solver="dopri8", rtol=1e-12, atol=1e-13
    )
    kept = np.asarray(run.map(lambda now: momentum(now.world)))
    size = np.linalg.norm(kept[0].reshape(2, 3), axis=1).repeat(3)
    study.metric(
        "rov.momentum.error",
        np.abs((kept - kept[0]) / size).max(),
        at_most=1e-9,
        note="dry vehicle with arm, no forces: largest change of momentum and angular "
        "momentum in 10 s, relative to their size",
    )
    known = np.concatenate([FLIP * ANGULAR, FLIP * MOMENTUM])
    study.metric(
        "rov.momentum.value_error",
        np.abs(kept[0] - known).max(),
        at_most=1e-5,
        unit="kg m/s, kg m^2/s",
        note="momentum and angular momentum at the start, against an independent run",
    )
    world = djdyn.forward_kinematics(dry, run.y.q[-1], run.y.v[-1])
    now = world.X_WB.R[1]
    angles = FLIP * np.array(
        [np.arctan2(now[2, 1], now[2, 2]), -np.arcsin(now[2, 0]),
         np.arctan2(now[1, 0], now[0, 0])]
    )  # fmt: skip
    found = np.concatenate([FLIP * run.y.q[-1, :3], angles, run.y.q[-1, 7:]])
    study.metric(
        "rov.momentum.end_error",
        np.abs(found - END).max(),
        at_most=1e-5,
        unit="m, rad",
        note="place, angles and joints at 10 s, against an independent run",
    )


def run_identity(study: Study) -> None:
    """Compare the gyroscopic matrix of quasi-coordinates with Kirchhoff's."""

    def rates(q: Array) -> Array:
        """Body velocities per rate of place and roll, pitch, yaw."""
        s, c = jnp.sin(q), jnp.cos(q)
        T = jnp.stack([
            jnp.stack([1.0, 0.0, -s[4]]),
            jnp.stack([0.0, c[3], c[4] * s[3]]),
            jnp.stack([0.0, -s[3], c[4] * c[3]]),
        ])  # fmt: skip
        zero = jnp.zeros((3, 3))
        return jnp.block([[rotation_rpy(q[3], q[4], q[5]).T, zero], [zero, T]])

    @jax.jit
    def gap(q: Array, w: Array) -> Array:
        alpha = lambda q: rates(q).T
        beta = jnp.linalg.inv(rates(q))
        q_dot = beta @ w
        slope = jax.jacfwd(alpha)(q)  # [i, j, k]: alpha_ij by q_k
        gamma = slope @ q_dot - jnp.einsum("i,ijk->kj", q_dot, slope)
        kirchhoff = jnp.block(
            [[skew(w[3:]), jnp.zeros((3, 3))], [skew(w[:3]), skew(w[3:])]]
        )
        return jnp.max(jnp.abs(beta.T @ gamma - kirchhoff))

    rng = np.random.default_rng(0)
    found = [gap(*0.5 * rng.normal(size=(2, 6))) for _ in range(5)]
    study.metric(
        "rov.identity.error",
        max(map(float, found)),
        at_most=1e-14,
        note="gyroscopic matrix of the quasi-coordinates against Kirchhoff's form, at "
        "five random states",
    )


def run_mass_matrix(study: Study) -> None:
    """Compare the mass matrix in body velocities, dry and wet."""
    q = floating(jnp.zeros(3), jnp.zeros(3), jnp.array([0.3, 0.5, -0.7]))
    turn = np.zeros((9, 9))
    turn[:3, 3:6] = turn[3:6, :3] = np.diag(FLIP)
    turn[6:, 6:] = np.eye(3)
    rows = tables.read("rov/ref_mass_matrix.csv")
    worst = 0.0
    for case in ("rigid", "added_mass"):
        model = mechanism(wet=case != "rigid", payload=False)
        found = turn.T @ np.asarray(djdyn.mass_matrix(model, q)) @ turn
        for row in rows:
            if row["case"] == case:
                i, j = int(row["i"]) - 1, int(row["j"]) - 1
                gap = found[i, j] - float(row["value_SI"])
                worst = max(worst, abs(gap) / np.sqrt(found[i, i] * found[j, j]))
    study.metric(
        "rov.mass_matrix.error",
        worst,
        at_most=1e-9,
        note="9x9 mass matrix, dry and wet: largest error of an entry over the root of "
        "its diagonal entries; the reference has ten digits",
    )


def run_hydrostatics(study: Study) -> None:
    """Compare net weights, stiffness of roll and pitch, and free oscillations."""
    of = values()
    weight = lambda with_arm: 9.81 * (
        of["vehicle.m_rov"] - DENSITY * of["vehicle.V_rov"]
        + with_arm * (72.0 - 3 * DENSITY * 1e-3)
    )  # fmt: skip
    whole = mechanism(payload=False)
    parts = {k: x for k, x in water_parts(Fluid(DENSITY)).items() if "lift" in k}
    system = djdyn.System(whole, parts)
    net = eqx.filter_jit(lambda s, y: jnp.sum(s.at(0.0, y).F_WB[1:, 5]))
    found = net(system, system.initial_state())
    total = sum(float(b.mass) for b in whole.bodies) * 9.81 - float(found)
    for name, value, known in (
        ("hull", weight(False), -689.40), ("vehicle", total, -13.24),
    ):  # fmt: skip
        study.metric(
            f"rov.hydrostatics.{name}_weight", value, known, 0.005, unit="N",
            note="weight less buoyancy",
        )  # fmt: skip
    bare = bare_hull()
    poles = np.asarray(linearise(bare).poles())
    for axis, known, ratio in (("roll", 2.642, 0.053), ("pitch", 1.997, 0.040)):
        damped = poles[np.argmin(np.abs(np.imag(poles) - known))]
        study.metric(
            f"rov.hydrostatics.{axis}_frequency", abs(damped), known, 5e-4,
            unit="rad/s", note="hull alone, no control",
        )  # fmt: skip
        study.metric(
            f"rov.hydrostatics.{axis}_damping", -damped.real / abs(damped), ratio, 5e-4
        )


def bare_hull(control: bool = False) -> djdyn.System:
    """Return the hull alone in water, free or with its controller and ideal thrust."""
    model = mechanism(payload=False, arm=False)
    parts = water_parts(Fluid(DENSITY), arm=False)
    if control:
        parts["path"] = Reference(jnp.zeros(6))
        parts["pid"] = VehiclePID("hull", "path", gains("kp"), gains("kd"), gains("ki"))
        parts["ideal"] = FrameActuator("hull", "pid.u", follows=True)
    return djdyn.System(model, parts)


def run_added_mass(study: Study) -> None:
    """Let the hull coast while it turns: added mass must not push it aside."""
    model = mechanism(payload=False, arm=False)
    model = eqx.tree_at(lambda m: m.gravity_W, model, jnp.zeros(3))
    system = djdyn.System(model)
    y0 = system.initial_state(v={"hull": [0, 0, -0.1, 1.0, 0, 0]})
    end = djdyn.simulate(
        system, 10.0, y0, saveat=[10.0], solver="tsit5", rtol=1e-9, atol=1e-10
    ).y.q[-1]
    study.metric(
        "rov.added_mass.drift",
        np.hypot(float(end[0]) - 10.0, float(end[1])),
        at_most=1e-6,
        unit="m",
        note="place of the coasting, turning hull after 10 s; the printed sign of the "
        "Coriolis term puts it 2.8 m aside",
    )


def run_drag(study: Study) -> None:
    """Compare the speed of the rising hull, and strips with the exact integral."""
    rising = djdyn.simulate(bare_hull(), 60.0, saveat=[60.0], rtol=1e-8, atol=1e-9)
    of = values()
    b, c = of["vehicle.d_w"], DENSITY / 2 * of["vehicle.Cd"] * AREAS[2]
    push = 9.81 * (DENSITY * of["vehicle.V_rov"] - of["vehicle.m_rov"])
    exact = (np.sqrt(b * b + 4 * c * push) - b) / (2 * c)
    study.metric(
        "rov.drag.rise_speed", rising.y.v[-1, 5], 0.37152, 1e-5, unit="m/s",
        note=f"hull alone, let go; {exact:.6f} m/s in closed form",
    )  # fmt: skip
    strips = (np.arange(3) + 0.5) / 3
    study.metric(
        "rov.drag.strip_quadratic", np.sum(strips**3) / 3 * 4, 0.9444, 5e-5,
        note="torque of three strips on a turning link over the integral's",
    )  # fmt: skip
    study.metric(
        "rov.drag.strip_linear", np.sum(strips**2) / 3 * 3, 0.9722, 5e-5,
        note="the same for linear drag",
    )  # fmt: skip


def run_roots(study: Study) -> None:
    """Compare the poles of the loops of the hull with ideal thrust."""
    system = bare_hull(control=True)
    poles = np.asarray(linearise(system).poles())
    rows, worst = [], 0.0
    for axis, (real, imaginary, slow) in ROOTS.items():
        wanted = (real + 1j * imaginary, slow + 0j)
        found = [poles[np.argmin(np.abs(poles - x))] for x in wanted]
        gap = max(abs(x - y) for x, y in zip(found, wanted, strict=True))
        worst = max(worst, gap)
        rows.append((axis, found[0].real, found[0].imag, found[1].real, gap))
    study.metric(
        "rov.roots.error", worst, at_most=1e-3, unit="1/s",
        note="poles of the hull's loops with ideal thrust, five axes",
    )  # fmt: skip
    study.report.table(
        "Poles of the hull's loops with ideal thrust, 1/s",
        ("axis", "pair, real", "pair, imaginary", "real pole", "difference"),
        rows,
    )
