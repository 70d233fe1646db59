"""Offshore crane on a moving vessel: its motion and the loads in its slewing bearing.

A vessel on cubic rotational springs carries a crane of three joints under PD control.
The five constraint loads between crane and vessel come from auxiliary generalized
speeds. (Cibicik and Egeland, *Determination of constraint forces for an offshore crane
on a moving base*. The print lacks masses, gains and the motion sequence; those here are
chosen, and so are the reference series.)
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from controllers import JointPID, Reference
from djdyn.multibody import dynamics
from djdyn.multibody.spatial import Pose, rotation_x, rotation_z, translation
from djdyn.multibody.time_functions import Moves
from djdyn.parts import JointActuator, JointSpring
from djdyn.system.system import Instant
from djdyn.view import Scene

from ...harness import tables
from ...harness.study import Study


TITLE = "Offshore crane on a moving vessel"
STAGES = 6

MASSES = (10000.0, 1000.0, 600.0, 400.0)  # kg: vessel, king, inner boom, outer boom
LENGTHS = (5.0, 2.0, 2.0, 2.0)  # m: pivot to crane foot, king, inner boom, outer boom
CENTRES = (2.5, 1.0, 1.0, 1.0)  # m, of mass, from each body's origin
STIFFNESS = 8e7  # N m/rad^3, roll, pitch and yaw
KP, KD = 5e5, 5e4  # N m/rad, N m s/rad
GRAVITY = 9.81  # m/s^2

JOINTS = ("king", "inner", "outer")
BEARING = np.eye(6)[[0, 1, 3, 4, 5]]  # all but the moment about the slewing axis
LOADS = ("moment x", "moment y", "force x", "force y", "force z")
DEG = 180 / np.pi


def mechanism(
    masses: Sequence | Array = MASSES, gravity: float | Array = GRAVITY
) -> djdyn.Mechanism:
    """Vessel, king, inner and outer boom (eqs 51 to 62 and 73)."""
    slender = ((1, 1, 1), (1, 1, 0.1), (0, 1, 1), (0, 1, 1))
    inertia = [
        m * length**2 / 12 * jnp.diag(jnp.array(s, float))
        for m, length, s in zip(masses, LENGTHS, slender, strict=True)
    ]
    luff = rotation_z(jnp.array(jnp.pi / 2)) @ rotation_x(jnp.array(jnp.pi / 2))
    slew = djdyn.Revolute()
    up, out = (lambda d: (0.0, 0.0, d)), (lambda d: (d, 0.0, 0.0))
    l1, l2, l3, _ = LENGTHS
    return djdyn.Mechanism(
        (
            djdyn.Body(
                "vessel",
                "world",
                djdyn.RollPitchYaw(),
                masses[0],
                up(CENTRES[0]),
                inertia[0],
            ),
            djdyn.Body(
                "king",
                "vessel",
                slew,
                masses[1],
                up(CENTRES[1]),
                inertia[1],
                translation(up(l1)),
            ),
            djdyn.Body(
                "inner",
                "king",
                slew,
                masses[2],
                out(CENTRES[2]),
                inertia[2],
                Pose(luff, up(l2)),
            ),
            djdyn.Body(
                "outer",
                "inner",
                slew,
                masses[3],
                out(CENTRES[3]),
                inertia[3],
                translation(out(l3)),
            ),
        ),
        (djdyn.Frame("tip", "outer", translation(out(LENGTHS[3]))),),
        gravity_W=jnp.array([0.0, 0.0, -1.0]) * gravity,
    )


def moves() -> Moves:
    """The hoisting cycle: slew, reach out, lift, slew back, reach out."""
    rows = tables.read("crane/motion_sequence.csv")
    points = np.deg2rad(tables.columns(rows, "q4_deg", "q5_deg", "q6_deg"))
    start, end = tables.columns(rows[1:], "t_start_s", "t_end_s").T
    return Moves(points[0], points[1:], start, end)


def build(
    masses: Sequence | Array = MASSES,
    stiffness: float | Array = STIFFNESS,
    kp: float | Array = KP,
    kd: float | Array = KD,
    gravity: float | Array = GRAVITY,
) -> djdyn.System:
    """The crane under PD control along its motion sequence."""
    return djdyn.System(
        mechanism(masses, gravity),
        {
            "springs": JointSpring("vessel", stiffness, exponent=3),
            "reference": Reference(moves()),
            "pd": JointPID(JOINTS, "reference.value", kp, kd, rate="reference.rate"),
            "motors": JointActuator(JOINTS, "pd.u"),
        },
    )


def start(system: djdyn.System) -> djdyn.State:
    """At rest, the vessel upright, the crane parked."""
    parked = moves().first
    return system.initial_state(q={joint: parked[i] for i, joint in enumerate(JOINTS)})


def observe(now: Instant) -> dict[str, Any]:
    """What the study looks at: loads on the king, energy, and where the bodies are.

    The five loads are in the axes of the king (frame 2) and of the vessel (frame 1);
    `recursive` is an independent calculation of the former, by Newton and Euler.
    """
    rho = now.constraint_force("king", jnp.asarray(BEARING))
    (angle,), _ = now.world.joint("king")
    R_12 = rotation_z(angle)
    return {
        "loads": rho,
        "loads_vessel": jnp.concatenate([R_12[:2, :2] @ rho[:2], R_12 @ rho[2:]]),
        "recursive": now.reaction("king")[np.array([0, 1, 3, 4, 5])],
        "energy": now.energy(),
        "wanted": now.signals["reference.value"],
        "X_WB": now.world.X_WB,
    }


def peak_moment(system: djdyn.System, simulate, t1: float = 5.0) -> Array:
    """Largest bending moment in the bearing, N m."""
    trajectory = simulate(
        system,
        t1,
        start(system),
        saveat=51,
        solver="dopri8",
        rtol=1e-10,
        atol=1e-10,
        jumps=moves().breaks,
    )
    return jnp.max(jnp.linalg.norm(trajectory.reaction("king")[:, :2], axis=-1))


def end_of_scenario(theta: Float[Array, "8"]) -> Float[Array, "11"]:
    """Coordinates and bearing loads 10 s into scenario A, from its eight parameters."""
    masses, (stiffness, kp, kd, g) = theta[:4], theta[4:]
    system = build(masses, stiffness, kp, kd, g)
    trajectory = djdyn.simulate(
        system,
        10.0,
        start(system),
        saveat=np.array([10.0]),
        solver="dopri8",
        rtol=1e-9,
        atol=1e-9,
        jumps=moves().breaks,
        adjoint="forward",
    )
    return jnp.concatenate([trajectory.y.q[0], trajectory.map(observe)["loads"][0]])


def run(study: Study) -> None:
    report = study.report
    report.text(
        "The vessel turns about a fixed pivot on cubic springs and moves only because "
        "the crane does. The crane slews, reaches out, lifts and slews back. Masses, "
        "gains and timing are chosen, since the print lacks them; the reference series "
        "were computed independently for the same choice."
    )
    with study.stage("fixtures"):
        worst = fixtures(study)
    seen, residuals = {}, []
    for name, gravity, checked in (("A", GRAVITY, 20.0), ("B", 0.0, 50.0)):
        with study.stage(f"scenario {name}"):
            t1 = 5.0 if study.quick else 50.0
            trajectory, found = scenario(study, name, gravity, t1, checked)
            seen[name] = trajectory.t, found
            gap = jnp.max(jnp.abs(found["loads"] - found["recursive"]))
            worst = max(worst, float(gap))
            residual = jnp.max(
                jnp.abs(djdyn.energy_balance(trajectory.system, trajectory))
            )
            residuals.append(float(residual / jnp.max(jnp.abs(found["energy"]))))
    study.metric(
        "crane.constraint_force.max_error",
        worst,
        0.0,
        1e-6,
        unit="N, N m",
        note="auxiliary speeds against recursive Newton-Euler, all fixtures and runs",
    )
    study.metric(
        "crane.energy_residual",
        max(residuals),
        0.0,
        1e-8,
        note="of the energy ledger, over both scenarios, relative to the energy",
    )
    with study.stage("gradient of the peak moment"):
        gradient(study)
    with study.stage("gradients through scenario A"):
        if not study.quick:
            scenario_gradients(study)
    with study.stage("replay"):
        report.scene(scene(*seen["A"]), "Scenario A")


def fixtures(study: Study) -> float:
    """Accelerations and loads at nine states; the largest gap between two methods."""

    @jax.jit
    def evaluate(q, u, tau, gravity):
        now = djdyn.forward_kinematics(mechanism(gravity=gravity), q, u)
        v_dot = dynamics.forward(now, tau)
        rho = dynamics.constraint_force(now, v_dot, "king", jnp.asarray(BEARING))
        other = dynamics.reactions(now, v_dot)[2][np.array([0, 1, 3, 4, 5])]
        return v_dot, rho, other

    error, gap = 0.0, 0.0
    for row in tables.read("crane/point_fixtures.csv"):
        number = lambda *names, row=row: tables.columns([row], *names)[0]
        q = number(*(f"q{i}_rad" for i in range(1, 7)))
        u = number(*(f"u{i}_rad_s" for i in range(1, 7)))
        spring = -float(row["k_Nm_rad3"]) * q[:3] ** 3
        tau = np.concatenate([spring, number("tau4_Nm", "tau5_Nm", "tau6_Nm")])
        v_dot, rho, other = evaluate(q, u, tau, float(row["g_m_s2"]))
        u_dot = number(*(f"udot{i}_rad_s2" for i in range(1, 7)))
        known = number("rho1_Nm", "rho2_Nm", "rho3_N", "rho4_N", "rho5_N")
        for found, wanted in ((v_dot, u_dot), (rho, known)):
            scale = np.abs(wanted).max()
            error = max(error, np.abs(found - wanted).max() / scale)
        gap = max(gap, np.abs(rho - other).max())
    study.metric(
        "crane.fixtures.max_error",
        error,
        0.0,
        1e-9,
        note="accelerations and loads at nine states, relative",
    )
    return gap


def scenario(
    study: Study, name: str, gravity: float, t1: float, checked: float
) -> tuple[djdyn.Trajectory, dict[str, Any]]:
    system = study.customise(build(gravity=gravity))
    trajectory = djdyn.simulate(
        system,
        t1,
        start(system),
        saveat=np.linspace(0, t1, round(t1 / 0.05) + 1),
        solver="dopri8",
        rtol=1e-10,
        atol=1e-10,
        jumps=moves().breaks,
        ledger=True,
    )
    found = trajectory.map(observe)
    known = tables.read(f"crane/scenario_{name}.csv")
    known = [row for row in known if float(row["t_s"]) <= min(t1, checked)]
    q_known = tables.columns(known, *(f"q{i}_rad" for i in range(1, 7)))
    error = jnp.max(jnp.abs(trajectory.y.q[::10][: len(known)] - q_known))
    study.metric(
        f"crane.scenario_{name.lower()}.max_state_error",
        error,
        0.0,
        {"A": 1e-5, "B": 1e-6}[name],
        unit="rad",
        note=f"over {min(t1, checked):g} s, against the converged series",
    )
    figures(study, name, trajectory, found)
    series = trajectory.dataset(
        loads=found["loads"], loads_vessel=found["loads_vessel"]
    )
    study.series(f"scenario_{name}", series)
    return trajectory, found


def figures(
    study: Study, name: str, trajectory: djdyn.Trajectory, found: dict[str, Any]
) -> None:
    time, q = ("time", "s", trajectory.t), trajectory.y.q * DEG
    wanted = found["wanted"] * DEG
    title = f"Scenario {name} ({'with' if name == 'A' else 'without'} gravity)"
    study.report.plot(
        f"{title}: crane joints",
        time,
        ("angle", "deg"),
        {"slew": q[:, 3], "luff": q[:, 4], "knuckle": q[:, 5]},
        dict(zip(("slew", "luff", "knuckle"), wanted.T, strict=True)),
    )
    study.report.plot(
        f"{title}: vessel",
        time,
        ("angle", "deg"),
        {"roll": q[:, 0], "pitch": q[:, 1], "yaw": q[:, 2]},
    )
    known = tables.read(f"crane/scenario_{name}.csv")
    known = [row for row in known if float(row["t_s"]) <= float(trajectory.t[-1])][::2]
    t_known = tables.columns(known, "t_s")[:, 0]
    for key, tail, frame in (
        ("loads", "", "king (frame 2)"),
        ("loads_vessel", "_f1", "vessel (frame 1)"),
    ):
        for what, unit, which in (("moment", "N m", (0, 1)), ("force", "N", (2, 3, 4))):
            symbol = unit.replace(" ", "")
            reference = {
                LOADS[k]: (
                    t_known,
                    tables.columns(known, f"rho{k + 1}{tail}_{symbol}")[:, 0],
                )
                for k in which
            }
            study.report.plot(
                f"{title}: {what}s on the king, in the axes of the {frame}",
                time,
                (what, unit),
                {LOADS[k]: found[key][:, k] for k in which},
                reference,
            )


def gradient(study: Study) -> None:
    """How the peak moment depends on gains and masses, and whether that is right."""
    masses = [f"{body}.mass" for body in ("vessel", *JOINTS)]
    free = ["pd.kp", "pd.kd", *masses]
    check = djdyn.check_gradient(peak_moment, study.customise(build()), free)
    study.metric(
        "crane.gradient_error",
        check.difference_error,
        0.0,
        1e-6,
        note=f"peak bearing moment over 5 s: {check.verdict()}",
    )
    study.report.table(
        f"Gradient of the peak bending moment, {check.value:.6g} N m in the first 5 s",
        ("parameter", "reverse", "forward", "differences", "tight tolerance"),
        zip(
            check.paths,
            check.reverse,
            check.forward,
            check.differences,
            check.tight,
            strict=True,
        ),
    )
    study.console.print(f"  {check.verdict()}")


def scenario_gradients(study: Study) -> None:
    """Derivatives of state and loads at 10 s, against extrapolated differences."""
    rows = [
        row
        for row in tables.read("crane/scenario_gradients.csv")
        if row["scenario"] == "A"
    ]
    theta = tables.columns(rows, "value")[:, 0]
    order = [row["param"] for row in rows]
    places = [order.index(p) for p in ("m1", "m2", "m3", "m4", "k", "kP", "kD", "g")]
    jacobian = jax.jit(jax.jacfwd(end_of_scenario))(jnp.asarray(theta[places]))
    names = [f"dq{i}" for i in range(1, 7)] + [f"drho{i}" for i in range(1, 6)]
    known = tables.columns(rows, *names)[places].T
    unsure = tables.columns(rows, "rel_unc")[places, 0]
    scale = np.abs(known).max(0)
    error = np.abs(jacobian - known).max(0) / scale
    study.metric(
        "crane.scenario_gradient.max_error",
        np.max(error - 2 * unsure).clip(0.0),
        0.0,
        1e-6,
        note="d(state, loads)/d(masses, k, kP, kD, g) at 10 s, relative, beyond twice "
        "the reference's own uncertainty",
    )


def scene(t: Array, found: dict[str, Any]) -> Scene:
    """The machine in 3-D, with the force that the vessel exerts on the king."""
    replay = Scene(np.asarray(t))
    R, p = np.asarray(found["X_WB"].R), np.asarray(found["X_WB"].p)
    sizes = {
        "vessel": ((9.0, 4.0, 1.2), (0.0, 0.0, 4.4)),
        "king": ((0.9, 0.9, 2.0), (0.0, 0.0, 1.0)),
        "inner": ((2.0, 0.45, 0.45), (1.0, 0.0, 0.0)),
        "outer": ((2.0, 0.3, 0.3), (1.0, 0.0, 0.0)),
    }
    for b, (body, (size, centre)) in enumerate(sizes.items(), start=1):
        offset, opacity = (np.eye(3), np.array(centre)), 1.0 if b == 1 else 0.6
        replay.box(body, size, R[:, b], p[:, b], offset=offset, opacity=opacity)
    force_W = np.einsum("tij,tj->ti", R[:, 2], np.asarray(found["loads"][:, 2:]))
    replay.arrow("force on the king", p[:, 2], force_W, scale=2e-4, unit="N")
    return replay
