"""Cases of the offshore crane: single states, hoisting cycles and gradients."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from djdyn.multibody import dynamics, reactions

from ...harness import tables
from ...harness.study import Study
from .model import (
    BEARING,
    BEARING_ROWS,
    JOINTS,
    build,
    mechanism,
    moves,
    observe,
    start,
)
from .report import figures


def fixtures(study: Study) -> float:
    """Compare accelerations and loads at nine states with references.

    Return the largest difference between two methods for the loads.
    """

    @jax.jit
    def evaluate(q, u, tau, gravity):
        now = djdyn.forward_kinematics(mechanism(gravity=gravity), q, u)
        v_dot = dynamics.forward(now, tau)
        rho = reactions.constraint_force(now, v_dot, "king", jnp.asarray(BEARING))
        other = reactions.reactions(now, v_dot)[2][BEARING_ROWS]
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
        at_most=1e-9,
        note="largest relative error of accelerations and loads at nine states",
    )
    return gap


def scenario(
    study: Study, name: str, gravity: float, t1: float, checked: float
) -> tuple[djdyn.Trajectory, dict[str, Any]]:
    """Simulate a hoisting cycle and compare its states with the reference."""
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
        at_most={"A": 1e-5, "B": 1e-6}[name],
        unit="rad",
        note=f"largest error over {min(t1, checked):g} s, beside a converged series",
    )
    moment = jnp.linalg.norm(found["loads"][:, :2], axis=-1)
    study.metric(
        f"crane.scenario_{name.lower()}.peak_moment",
        jnp.max(moment),
        unit="N m",
        note=f"largest bending moment in the slewing bearing in {t1:g} s",
    )
    figures(study, name, trajectory, found)
    series = trajectory.to_xarray(
        loads=found["loads"], loads_vessel=found["loads_vessel"]
    )
    study.series(f"scenario_{name}", series)
    return trajectory, found


def peak_moment(system: djdyn.System, simulate, t1: float = 5.0) -> Array:
    """Return the largest bending moment in the bearing, N m."""
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


def gradient(study: Study) -> None:
    """Check the gradient of the peak moment by gains and masses."""
    masses = [f"{body}.mass" for body in ("vessel", *JOINTS)]
    free = ["pd.kp", "pd.kd", *masses]
    check = djdyn.check_gradient(peak_moment, study.customise(build()), free)
    study.metric(
        "crane.gradient_error",
        check.difference_error,
        at_most=1e-6,
        note=f"gradient of the peak bearing moment over 5 s: {check.verdict()}",
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


def end_of_scenario(theta: Float[Array, "8"]) -> Float[Array, "11"]:
    """Return coordinates and bearing loads 10 s into scenario A.

    `theta` are the four masses, the stiffness, both gains and gravity.
    """
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


def scenario_gradients(study: Study) -> None:
    """Compare derivatives of state and loads at 10 s with extrapolated differences."""
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
        at_most=1e-6,
        note="relative error of d(state, loads)/d(masses, k, kP, kD, g) at 10 s, less "
        "twice the uncertainty of the reference",
    )
