"""Poses from marker coordinates by Newton's method, and what they are worth.

The thesis meets five of twelve coordinates exactly (Knutson 2007, sections 4.2.2
and 4.3). At its guess their slopes are singular, and more than one pose meets them, so
steps are damped at first. Places of markers here follow from the printed angles.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn

from ...harness import tables
from ...harness.study import Study
from .model import ANGLES, POSES, at, build, places
from .statics import static_state


CHOSEN = ((0, 0), (1, 0), (0, 1), (2, 1), (1, 2))  # marker, axis: of trial 5
GUESS = "newton_raphson_guess"
ALL = tuple((i, k) for i in range(4) for k in range(3))
STEPS, LARGEST_STEP = 200, 0.2  # 1, rad
DAMPING, FADING = 1e-6, 0.7  # m^2 at the first step, and its share in the next one
SPAN, SAMPLES = 5.0, 501  # s, 1: every 10 ms, as in the worked series
RANGES = {  # mm, marker 1 in 5 s without friction, by another program: x, y, z
    "equilibrium_damped": (
        "tables", ((-276.61, -276.55), (-38.26, -37.97), (9.12, 9.45)),
    ),
    "equilibrium_newton_raphson": (
        "as printed", ((-278.7, -276.1), (-41.6, -35.0), (-2.4, 20.4)),
    ),
}  # fmt: skip
Z_RANGES = {"trial_5": 18.3, "trial_5_bias_corrected": 9.1}  # mm, marker 1, friction
COULOMB = 0.15  # N


@eqx.filter_jit
def solve_pose(
    mechanism: djdyn.Mechanism,
    guess: Float[Array, "5"],
    seen: Float[Array, " c"],
    chosen: tuple[tuple[int, int], ...] = CHOSEN,
    damping: float = DAMPING,
) -> Float[Array, "5"]:
    """Return the angles that fit five marker coordinates or more, m.

    Newton's method for as many coordinates as angles, Gauss and Newton's for more, with
    a damping that fades away, and steps of `LARGEST_STEP` at most.
    """
    marker, axis = (jnp.array(x) for x in zip(*chosen, strict=True))
    off = lambda q: places(mechanism, q)[marker, axis] - seen

    def step(carry: tuple[Array, Array], _: Any) -> tuple[tuple[Array, Array], None]:
        q, damping = carry
        J = jax.jacfwd(off)(q)
        dq = jnp.linalg.solve(J.T @ J + damping * jnp.eye(5), J.T @ off(q))
        q = q - dq * jnp.minimum(1.0, LARGEST_STEP / jnp.max(jnp.abs(dq)))
        return (q, FADING * damping), None

    start = jnp.asarray(guess), jnp.asarray(damping)
    return jax.lax.scan(step, start, None, STEPS)[0][0]


def run_poses(study: Study) -> None:
    """Solve for the printed poses, and compare static markers with the measured."""
    system = study.customise(build())
    guess, rows = jnp.asarray(POSES[GUESS]), []
    for name, chosen, damping, said in (
        ("equilibrium_newton_raphson", ALL, DAMPING, "twelve coordinates"),
        ("trial_5", CHOSEN, DAMPING, "five coordinates"),
        ("trial_5", CHOSEN, 1e-9, "the same five, hardly damped: another pose"),
    ):
        seen = places(system.mechanism, jnp.asarray(POSES[name]))
        seen = jnp.stack([seen[i, k] for i, k in chosen])
        q = np.asarray(solve_pose(system.mechanism, guess, seen, chosen, damping))
        error = np.abs(np.rad2deg(q - POSES[name])).max()
        rows.append((name, said, *np.rad2deg(q)))
        if damping != DAMPING:
            note = "distance of a second pose with the same five coordinates"
            study.metric("optotrak.pose.second_deg", error, unit="deg", note=note)
            continue
        note = f"five angles by Newton's method from {said} of the printed pose"
        study.metric(
            f"optotrak.pose.{name}_deg", error, at_most=1e-6, unit="deg", note=note
        )
    study.report.table(
        "Poses from marker coordinates (Knutson 2007), deg",
        ("pose", "from", *(f"x{i}" for i in range(1, len(ANGLES) + 1))),
        rows,
    )
    run_static_markers(study, system)


def run_static_markers(study: Study, system: djdyn.System) -> None:
    """Compare markers at the simulated equilibrium with those of the measured pose."""
    known = tables.read("optotrak/marker_positions.csv")
    of = lambda name: tables.columns(
        [r for r in known if r["configuration"].startswith(name)],
        "x_mm", "y_mm", "z_mm",
    )  # fmt: skip
    here = 1e3 * np.asarray(places(system.mechanism, static_state(system).q))
    error = np.abs(here - of("equilibrium_exact")).max()
    note = "twelve marker coordinates at equilibrium, beside an independent solution"
    study.metric(
        "optotrak.static.markers_mm", error, at_most=2e-3, unit="mm", note=note
    )
    off = np.abs(here - of("equilibrium_newton_raphson")).max(0)
    for axis, worst, most in zip("xyz", off, (0.26, 0.6, 4.8), strict=True):
        note = f"static markers {axis}: simulated, beside those of the measured pose"
        study.metric(
            f"optotrak.static.measured_{axis}_mm", worst, at_most=most, unit="mm",
            note=note,
        )  # fmt: skip


def run_undamped(study: Study) -> None:
    """Release the rod from the stated poses, without friction and with it."""
    for pose, (inertia, known) in RANGES.items():
        p = _marker1(study.customise(build(inertia=inertia)), pose, 0.0)
        error = max(
            abs(end - bound)
            for x, (low, high) in zip(p.T, known, strict=True)
            for end, bound in ((x.min(), low), (x.max(), high))
        )
        note = (
            f"ends of the range of marker 1 in 5 s from {pose}; independent reference"
        )
        within = 0.006 if pose == "equilibrium_damped" else 0.05  # digits printed
        study.metric(
            f"optotrak.undamped.{pose}_mm", error, at_most=within, unit="mm", note=note
        )
    system = study.customise(build(inertia="as printed"))
    for pose, known in Z_RANGES.items():
        z = np.ptp(_marker1(system, pose, COULOMB)[:, 2])
        note = f"range of marker 1 z from {pose}, 0.15 N; independent reference"
        study.metric(f"optotrak.z_range.{pose}_mm", z, known, 0.1, unit="mm", note=note)


def _marker1(system: djdyn.System, pose: str, coulomb: float) -> np.ndarray:
    """Return positions of marker 1 for 5 s after the release from a pose, mm."""
    y0 = jax.tree.map(lambda x: x[None], at(system, pose))
    how: dict[str, Any] = {"solver": "rk4", "dt": 2.5e-4, "saveat": SAMPLES}
    lanes = {"contact.coulomb": np.array([coulomb])}
    run = djdyn.rollout(system, SPAN, y0, parameters=lanes, **how)
    return 1e3 * np.asarray(places(system.mechanism, run.y.q[0]))[:, 0]
