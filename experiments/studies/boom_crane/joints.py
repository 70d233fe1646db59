"""Free body, single joints and double pendulum.

Roy, Steinke and Nicoll 2014, sections 4.3.1 to 4.3.3 and 4.4.1 to 4.4.3.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.interpolate
import scipy.linalg
import scipy.optimize
import scipy.special
from jaxtyping import Array, Float
from scipy.spatial.transform import Rotation

import djdyn
from djdyn.parts import ExternalWrench

from ...harness.energy import energy_residual
from ...harness.study import Study
from .model import DOUBLE_PENDULUM, PRISMATIC, REVOLUTE, crane, links


GRAVITY = 9.81  # m/s^2
SWING = np.deg2rad(0.1)  # rad, amplitude of the pendulums
CLOSED_FORM_TOLERANCE = 1e-8  # relative; a hundred times that of the solver


def precise(tolerance: float) -> dict[str, Any]:
    """Return options of `simulate` for a tolerance."""
    return {"solver": "dopri8", "rtol": tolerance, "atol": tolerance, "ledger": True}


TIGHT = precise(1e-10)
FINE = precise(1e-13)  # for the relative accuracy of swings of 0.1 deg


def ledger(
    study: Study,
    case: str,
    trajectory: djdyn.Trajectory,
    exchanged: float,
    tail: str = "",
) -> None:
    """Report the energy residual, relative to the energy that is exchanged."""
    name = f"boom_crane.{case}.energy_residual{tail}"
    energy_residual(study, name, trajectory, at_most=1e-8, scale=exchanged)


def farthest(values: Float[np.ndarray, " n"], reference: float) -> float:
    """Return the value with the largest error."""
    return values[np.abs(values - reference).argmax()]


def states(trajectory: djdyn.Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates and speeds, one row for each sample."""
    return np.array(trajectory.y.q), np.array(trajectory.y.v)


# Free body ----------------------------------------------------------------------------


def payload() -> djdyn.System:
    """Return a cube of 5 kg and 5 kg m^2 without gravity, under a constant wrench."""
    cube = djdyn.Body("payload", "world", djdyn.Free(), 5.0, I_BC=5 * jnp.eye(3))
    mechanism = djdyn.Mechanism((cube,), gravity_W=(0.0, 0.0, 0.0))
    return djdyn.System(mechanism, {"load": ExternalWrench("payload", (0.01,) * 6)})


def run_payload(study: Study) -> None:
    """Compare 20 s under a force, a torque, and both (sections 4.3.1 to 4.3.3)."""
    system, ends = payload(), {}
    push, turn = (0.0,) * 3 + (0.01,) * 3, (0.01,) * 3 + (0.0,) * 3
    for case, wrench in (("v10", push), ("v11", turn), ("v12", (0.01,) * 6)):
        loaded = djdyn.with_parameters(system, {"load.wrench.value": wrench})
        q, v = states(djdyn.simulate(loaded, 20.0, saveat=5, rtol=1e-10, atol=1e-10))
        R_WB = Rotation.from_quat(q[-1, 3:], scalar_first=True)
        ends[case] = {
            "displacement": q[-1, :3],
            "velocity": v[-1, 3:],
            "angular_velocity": R_WB.apply(v[-1, :3]),
            "rotation": np.array([R_WB.magnitude()]),
        }
    for case, what, unit, reference, note in (
        ("v10", "displacement", "m", 0.4, "F t²/2m; axis with the largest error"),
        ("v10", "velocity", "m/s", 0.04, "F t/m"),
        ("v11", "angular_velocity", "rad/s", 0.04, "M t/I"),
        ("v11", "rotation", "rad", 0.4 * np.sqrt(3), "M t²/2I about (1, 1, 1)"),
        ("v12", "velocity", "m/s", 0.04, "F t/m"),
        ("v12", "angular_velocity", "rad/s", 0.04, "M t/I"),
    ):
        study.metric(
            f"boom_crane.{case}.{what}",
            farthest(ends[case][what], reference),
            reference,
            CLOSED_FORM_TOLERANCE * reference,
            unit=unit,
            note=note,
        )


# Single joints ------------------------------------------------------------------------


def run_revolute(study: Study) -> None:
    """Compare the period of a rod on a revolute joint (section 4.4.1)."""
    mechanism, q0 = crane(REVOLUTE)
    system = djdyn.System(mechanism)
    t = np.linspace(0.0, 20.0, 1001)
    start, samples = system.initial_state(q0), t[1:-1]  # where steps end
    trajectory = djdyn.simulate(system, 20.0, start, saveat=t, jumps=samples, **FINE)
    q, v = states(trajectory)
    swing = scipy.interpolate.CubicHermiteSpline(t, q[:, 0] + np.pi / 2, v[:, 0])
    crossings = swing.roots(extrapolate=False)
    (rod,) = links(REVOLUTE)
    lever = rod.mass * GRAVITY * rod.com[0]
    inertia = rod.inertia[2] + rod.mass * rod.com[0] ** 2
    ellipse = 2 / np.pi * scipy.special.ellipk(np.sin(SWING / 2) ** 2)
    period = 2 * np.pi * np.sqrt(inertia / lever) * ellipse
    study.metric(
        "boom_crane.v16.period",
        2 * np.mean(np.diff(crossings)),
        period,
        CLOSED_FORM_TOLERANCE * period,
        unit="s",
        note="reference: physical pendulum, elliptic integral",
    )
    ledger(study, "v16", trajectory, lever * (1 - np.cos(SWING)))


def run_prismatic(study: Study) -> None:
    """Compare the free fall along a prismatic joint (section 4.4.2)."""
    mechanism, q0 = crane(PRISMATIC)
    system = djdyn.System(mechanism)
    trajectory = djdyn.simulate(
        system, 30.0, system.initial_state(q0), saveat=61, **TIGHT
    )
    height = GRAVITY * 30.0**2 / 2
    study.metric(
        "boom_crane.v17.displacement",
        states(trajectory)[0][-1, 0],
        -height,
        CLOSED_FORM_TOLERANCE * height,
        unit="m",
        note="-g t²/2, z up",
    )
    ledger(study, "v17", trajectory, 10.0 * GRAVITY * height)


# Double pendulum ----------------------------------------------------------------------


def two_periods(inertia: float) -> Float[np.ndarray, "2"]:
    """Return fast and slow period of small swings of bodies with some inertia."""
    (m1, l1), (m2, l2) = ((x.mass, x.com[0]) for x in links(DOUBLE_PENDULUM))
    M = np.diag([(m1 + m2) * l1**2 + inertia, m2 * l2**2 + inertia])
    M[0, 1] = M[1, 0] = m2 * l1 * l2
    K = np.diag([(m1 + m2) * GRAVITY * l1, m2 * GRAVITY * l2])
    squares = scipy.linalg.eigh(K, M, eigvals_only=True)
    return 2 * np.pi / np.sqrt(squares[::-1])


@eqx.filter_jit
def linearised(system: djdyn.System, q: Float[Array, " n"]) -> Float[Array, "2n 2n"]:
    """Return the state matrix of small motions about rest at `q`."""

    def rate(x):
        n = len(q)
        y = djdyn.State(q + x[:n], x[n:], system.initial_state().parts)
        dy = system.derivative(0.0, y)
        return jnp.concatenate([dy.q, dy.v])

    return jax.jacfwd(rate)(jnp.zeros(2 * len(q)))


def fit_periods(
    t: Float[np.ndarray, " n"], swings: Float[np.ndarray, "n 2"]
) -> tuple[Float[np.ndarray, "2"], Float[np.ndarray, "2 2"]]:
    """Fit two cosines to both angles; return their periods and amplitudes."""

    def cosines(periods):
        return np.cos(2 * np.pi * t[:, None] / periods)

    def misfit(periods):
        basis = cosines(periods)
        return (basis @ np.linalg.lstsq(basis, swings)[0] - swings).ravel()

    printed = (3.104088, 7.662144)
    best = scipy.optimize.least_squares(misfit, printed, xtol=1e-14, ftol=1e-14).x
    return best, np.linalg.lstsq(cosines(best), swings)[0]


def run_double_pendulum(study: Study) -> None:
    """Compare both periods of the double pendulum (section 4.4.3).

    They come from the linearised system and from the motion.
    """
    mechanism, q0 = crane(DOUBLE_PENDULUM)
    system = djdyn.System(mechanism)
    hanging = jnp.array([-np.pi / 2, 0.0])
    none = np.zeros((3, 3))  # point masses, as in the report
    points = djdyn.with_parameters(system, {"link1.I_BC": none, "link2.I_BC": none})
    spheres, masses = (
        two_periods(links(DOUBLE_PENDULUM)[0].inertia[2]),
        two_periods(0.0),
    )
    for tail, machine, known, note in (
        ("", system, spheres, "spheres"),
        ("_points", points, masses, "point masses"),
    ):
        roots = np.linalg.eigvals(linearised(machine, hanging))
        found = np.sort(2 * np.pi / roots.imag[roots.imag > 0])
        for i, mode in enumerate(("fast", "slow")):
            study.metric(
                f"boom_crane.v18.{mode}_period{tail}",
                found[i],
                known[i],
                CLOSED_FORM_TOLERANCE * known[i],
                unit="s",
                note=f"linearised system, {note}",
            )
    t = np.linspace(0.0, 60.0, 601)
    trajectory = djdyn.simulate(
        system, 60.0, system.initial_state(q0), saveat=t, **FINE
    )
    swings = np.cumsum(states(trajectory)[0] + [np.pi / 2, 0.0], axis=1)
    periods, amplitudes = fit_periods(t, swings / SWING)
    for i, mode in enumerate(("fast", "slow")):
        study.metric(
            f"boom_crane.v18.{mode}_period_fit",
            periods[i],
            spheres[i],
            SWING**2 * spheres[i],
            unit="s",
            note="cosines fitted to 60 s; tolerance T (0.1°)²",
        )
    study.metric(
        "boom_crane.v18.slow_share",
        amplitudes[1, 0],
        0.9096,
        1e-4,
        note="share of the slow mode in the upper angle",
    )
    (m1, l1), (m2, l2) = ((x.mass, x.com[0]) for x in links(DOUBLE_PENDULUM))
    energy = GRAVITY * ((m1 + m2) * l1 + m2 * l2) * (1 - np.cos(SWING))
    ledger(study, "v18", trajectory, energy)
    study.series("v18", trajectory)
    shares = np.array([[0.0904, -0.1963], [0.9096, 1.1963]])
    sums = np.cos(2 * np.pi * t[:, None] / spheres) @ shares
    shown = t <= 30.0
    study.report.plot(
        "Double pendulum (Roy, Steinke and Nicoll 2014, section 4.4.3): angles",
        ("time", "s", t[shown]),
        ("angle", "deg"),
        {"upper": np.rad2deg(swings[shown, 0]), "lower": np.rad2deg(swings[shown, 1])},
        {
            f"{name}, two cosines": (t[shown][::3], 0.1 * sums[shown, i][::3])
            for i, name in enumerate(("upper", "lower"))
        },
    )
