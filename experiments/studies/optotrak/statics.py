"""Static equilibrium, settling and linear modes (Knutson 2007)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

import djdyn
from djdyn.multibody import dynamics, mass_matrix, reactions

from ...harness.study import Study
from .model import POSES, SPRING_MASS, at, build, places


MEASURED_STATIC_Y = -38.3  # mm, marker 1 (Knutson 2007)
MODES = {  # Hz, from an independent linearisation
    "sliding": (2.2436, 2.2970, 4.792, 4.944, 18.958),
    "rolling": (2.3686, 2.3979, 18.918),
}
Y_SWAY_WITH_SPRING_MASS = {"sliding": 2.271, "rolling": 2.363}  # Hz


def static_state(system: djdyn.System) -> djdyn.State:
    """Return the static equilibrium."""
    return djdyn.equilibrium(system, at(system, "equilibrium_damped"))


def generalised_forces(system: djdyn.System, y: djdyn.State) -> jax.Array:
    """Return the forces on the joint's coordinates at rest, N m, but for friction."""
    now = system.at(0.0, eqx.tree_at(lambda y: y.v, y, jnp.zeros_like(y.v)))
    zero = jnp.zeros_like(y.v)
    return now.tau - dynamics.inverse(now.with_added_inertia, zero, now.F_WB)


@eqx.filter_jit
def _linear(system: djdyn.System, y: djdyn.State) -> tuple[Any, ...]:
    """Return mass matrix, stiffness, and slip velocity per unit of each speed."""

    def force(q: jax.Array) -> jax.Array:
        return generalised_forces(system, eqx.tree_at(lambda y: y.q, y, q))

    def slip(v: jax.Array) -> jax.Array:
        world = djdyn.forward_kinematics(system.mechanism, y.q, v)
        return system.parts["contact"].slip(world)[2]  # pyright: ignore

    M = mass_matrix.projected_inertia(system.at(0.0, y).with_added_inertia)
    return M, -jax.jacfwd(force)(y.q), jax.jacfwd(slip)(y.v)


@eqx.filter_jit
def contact_force_and_energy(
    system: djdyn.System, y: djdyn.State
) -> tuple[jax.Array, jax.Array]:
    """Return the contact force on the ball for zero accelerations, and the energy."""
    now, row = system.at(0.0, y), system.mechanism.joint_index("rod")
    loads = reactions.reactions(now.with_added_inertia, jnp.zeros_like(y.v), now.F_WB)
    return loads[row, 3:], now.energy()


def modes(system: djdyn.System) -> dict[str, np.ndarray]:
    """Return frequencies about equilibrium, Hz: with free sliding, and rolling."""
    M, K, J = map(np.asarray, _linear(system, static_state(system)))
    free = {"sliding": np.eye(len(M)), "rolling": scipy.linalg.null_space(J, 1e-9)}
    pick = lambda A, Z: Z.T @ A @ Z
    return {
        k: np.sqrt(scipy.linalg.eigh(pick(K, Z), pick(M, Z))[0]) / (2 * np.pi)
        for k, Z in free.items()
    }


def run_equilibrium(study: Study) -> None:
    """Compare the static equilibrium with the thesis, no parameter being fitted."""
    system = study.customise(build())
    y = static_state(system)
    force, energy = contact_force_and_energy(system, y)
    q = np.asarray(y.q)
    rows, stem = [], "optotrak.equilibrium"
    for name, row, within, said in (
        ("max_error_deg", "equilibrium_exact", 1e-3, "root of the generalised forces"),
        ("stated_error_deg", "equilibrium_damped", 0.15, "simulation of the thesis"),
    ):
        error = np.abs(np.rad2deg(q - POSES[row])).max()
        note = f"static equilibrium: largest error of five angles, beside the {said}"
        study.metric(f"{stem}.{name}", error, at_most=within, unit="deg", note=note)
        rows.append((said, *np.rad2deg(POSES[row])))
    rows.append(("this run", *np.rad2deg(q)))
    study.report.table(
        "Static equilibrium (Knutson 2007, section 5.2), no parameter fitted, deg",
        ("origin", *(f"x{i}" for i in range(1, 6))),
        rows,
    )
    y1 = 1e3 * places(system.mechanism, y.q)[0, 1]
    for name, value, reference, within, unit, note in (
        (
            "normal_force",
            np.linalg.norm(force),
            0.56059,
            1e-5,
            "N",
            "beside an independent solution; the weight is 1.7217 N",
        ),
        ("energy", energy, 1.7980244, 1e-7, "J", "beside an independent solution"),
        (
            "marker1_y",
            y1,
            MEASURED_STATIC_Y,
            0.25,
            "mm",
            "beside the measurement; no parameter fitted",
        ),
    ):
        study.metric(
            f"{stem}.{name}",
            value,
            reference,
            within,
            unit=unit,
            note=f"equilibrium: {note}",
        )


def run_settling(study: Study) -> None:
    """Compare where a run with dampers settles with the static equilibrium."""
    system = study.customise(build(damping=0.3))
    y0 = at(system, "damped_start")
    y0 = eqx.tree_at(lambda y: y.q, y0, y0.q[None])
    how: dict[str, Any] = {"solver": "rk4", "dt": 5e-4, "saveat": 501}
    run = djdyn.rollout(system, 5.0, y0, **how)
    q = np.rad2deg(run.y.q[0])
    late = q[-100:]
    known = np.rad2deg(POSES["equilibrium_exact"])
    for name, value, within, note in (
        (
            "error",
            np.abs(late.mean(0) - known).max(),
            2e-3,
            "largest error of the mean over the last second",
        ),
        ("spread", np.ptp(late, 0).max(), 0.03, "largest range in the last second"),
    ):
        study.metric(
            f"optotrak.settling.{name}",
            value,
            at_most=within,
            unit="deg",
            note=f"settling: {note}",
        )
    study.report.plot(
        "Damped settling (Knutson 2007), dampers of 0.3 N s/m; dashed: equilibrium",
        ("time", "s", np.asarray(run.t)),
        ("angle", "deg"),
        {f"x{i + 1}": q[:, i] for i in (0, 1, 3, 4)},
        {f"x{i + 1}": ([4.0, 5.0], [known[i]] * 2) for i in (0, 1, 3, 4)},
    )


def run_modes(study: Study) -> None:
    """Compare linear modes, with and without the mass of the springs."""
    plain, heavy = (modes(build(spring_mass=m)) for m in (0.0, SPRING_MASS))
    rows, worst = [], 0.0
    for kind, known in MODES.items():
        errors = np.abs(plain[kind] - known)
        worst = max(worst, errors.max())
        for i, reference in enumerate(known):
            rows.append((kind, i + 1, plain[kind][i], reference, heavy[kind][i]))
        note = f"y sway, {kind}, with springs of 4.37 g; beside an independent solution"
        study.metric(
            f"optotrak.spring_mass.{kind}_hz",
            heavy[kind][1],
            Y_SWAY_WITH_SPRING_MASS[kind],
            1e-3,
            unit="Hz",
            note=note,
        )
    note = "largest error of five sliding and three rolling modes"
    study.metric(
        "optotrak.modes.max_error_hz", worst, at_most=1e-3, unit="Hz", note=note
    )
    study.report.table(
        "Linear modes about equilibrium, Hz",
        ("contact", "mode", "this run", "reference", "this run, springs with mass"),
        rows,
    )
