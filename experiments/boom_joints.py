"""The payload and the one- and two-joint cranes of the boom-crane study.

V10 to V12 push a free cube, V16 and V17 have one joint, V18 to V21 two.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.interpolate
import scipy.linalg
import scipy.optimize
import scipy.special
from jaxtyping import Array, Float

import djdyn
from djdyn import dynamics
from djdyn._types import Scalar
from djdyn._units import si
from djdyn.parts import ExternalWrench, JointForce
from djdyn.spatial import Pose, quat_log, quat_to_rotation, rotation_z

from .boom_tables import (
    DOUBLE_PENDULUM,
    PRISMATIC,
    REVOLUTE,
    TURNING_SLIDE,
    crane,
    links,
)
from .study import Study


GRAVITY = 9.81  # m/s^2
SWING = np.deg2rad(0.1)  # rad, of the pendulums
CLOSED = 1e-8  # relative: against a closed form, a hundred times the solver's tolerance
TIGHT = {"solver": "dopri8", "rtol": 1e-10, "atol": 1e-10, "ledger": True}
# A swing of 0.1 deg at 90 deg: as many digits of the swing, not of the angle.
FINE = TIGHT | {"rtol": 1e-13, "atol": 1e-13}


def ledger(
    study: Study, case: str, trajectory: djdyn.Trajectory, exchanged: float
) -> None:
    """Whether the energy books balance, relative to the energy that changes hands."""
    residual = djdyn.audit(trajectory.system, trajectory)
    study.metric(
        f"boom_crane.{case}.energy_residual",
        float(jnp.max(jnp.abs(residual))) / exchanged,
        0.0,
        1e-8,
        note=f"of the energy ledger, relative to the {exchanged:.3g} J exchanged",
    )


def farthest(values: Array, reference: float) -> Array:
    """The value that misses the reference most."""
    return values[jnp.argmax(jnp.abs(values - reference))]


# V10 to V12: a free body --------------------------------------------------------------


def payload(wrench: tuple[float, ...]) -> djdyn.System:
    """A cube of 5 kg and 5 kg m^2, weightless, under `[torque; force]` in world axes."""
    cube = djdyn.Body("payload", "world", djdyn.Free(), 5.0, I_BC=5 * jnp.eye(3))
    mechanism = djdyn.Mechanism((cube,), gravity_W=(0.0, 0.0, 0.0))
    return djdyn.System(mechanism, {"load": ExternalWrench("payload", wrench)})


def run_payload(study: Study) -> None:
    push, turn = (0.0,) * 3 + (0.01,) * 3, (0.01,) * 3 + (0.0,) * 3
    ends = {}
    for case, wrench in (("v10", push), ("v11", turn), ("v12", (0.01,) * 6)):
        trajectory = djdyn.simulate(payload(wrench), 20.0, saveat=5, **TIGHT)
        y = jax.tree.map(lambda x: x[-1], trajectory.y)
        w = quat_to_rotation(y.q[3:]) @ y.v[:3]
        ends[case] = {
            "displacement": y.q[:3],
            "velocity": y.v[3:],
            "angular_velocity": w,
            "rotation": jnp.linalg.norm(quat_log(y.q[3:]))[None],
        }
    worst = "the axis that is farthest off; "
    for case, what, unit, reference, note in (
        ("v10", "displacement", "m", 0.4, "F t^2/2m; the print calls it a velocity"),
        ("v10", "velocity", "m/s", 0.04, "F t/m"),
        ("v11", "angular_velocity", "rad/s", 0.04, "M t/I; the print found 0.0399975"),
        ("v11", "rotation", "rad", 0.4 * np.sqrt(3), "M t^2/2I about (1, 1, 1)"),
        ("v12", "velocity", "m/s", 0.04, "F t/m; the print found 0.03999975"),
        ("v12", "angular_velocity", "rad/s", 0.04, "M t/I; the print found 0.03999975"),
    ):
        study.metric(
            f"boom_crane.{case}.{what}",
            farthest(ends[case][what], reference),
            reference,
            CLOSED * reference,
            unit=unit,
            note=("" if what == "rotation" else worst) + note,
        )


# V16 and V17: one joint ---------------------------------------------------------------


def run_revolute(study: Study) -> None:
    """Period of a swinging rod, from where its path crosses the vertical."""
    mechanism, q0 = crane(REVOLUTE)
    system = djdyn.System(mechanism)
    t = np.linspace(0.0, 20.0, 1001)
    trajectory = djdyn.simulate(
        system, 20.0, system.initial_state(q0), saveat=t, **FINE
    )
    swing, rate = trajectory.y.q[:, 0] + np.pi / 2, trajectory.y.v[:, 0]
    path = scipy.interpolate.CubicHermiteSpline(t, np.asarray(swing), np.asarray(rate))
    crossings = path.roots(extrapolate=False)
    (rod,) = links(REVOLUTE)
    lever = rod.mass * GRAVITY * rod.com[0]
    inertia = rod.inertia[2] + rod.mass * rod.com[0] ** 2
    ellipse = 2 / np.pi * scipy.special.ellipk(np.sin(SWING / 2) ** 2)
    period = 2 * np.pi * np.sqrt(inertia / lever) * ellipse
    study.metric(
        "boom_crane.v16.period",
        2 * np.mean(np.diff(crossings)),
        period,
        CLOSED * period,
        unit="s",
        note="physical pendulum, elliptic integral; the print's 2.3153 is that of g 9.82",
    )
    ledger(study, "v16", trajectory, lever * (1 - np.cos(SWING)))
    study.series("v16", trajectory)


def run_prismatic(study: Study) -> None:
    """Free fall along a slide."""
    mechanism, q0 = crane(PRISMATIC)
    system = djdyn.System(mechanism)
    trajectory = djdyn.simulate(
        system, 30.0, system.initial_state(q0), saveat=61, **TIGHT
    )
    height = GRAVITY * 30.0**2 / 2
    study.metric(
        "boom_crane.v17.displacement",
        trajectory.y.q[-1, 0],
        -height,
        CLOSED * height,
        unit="m",
        note="-g t^2/2 with z up; the print gives it without its sign",
    )
    ledger(study, "v17", trajectory, 10.0 * GRAVITY * height)
    study.series("v17", trajectory)


# V18: a double pendulum ---------------------------------------------------------------


def two_periods(inertia: float) -> Float[np.ndarray, "2"]:
    """Fast and slow period of small swings, of masses with some inertia of their own."""
    (m1, l1), (m2, l2) = ((x.mass, x.com[0]) for x in links(DOUBLE_PENDULUM))
    M = [[(m1 + m2) * l1**2 + inertia, m2 * l1 * l2], [m2 * l1 * l2, 0.0]]
    M[1][1] = m2 * l2**2 + inertia
    K = np.diag([(m1 + m2) * GRAVITY * l1, m2 * GRAVITY * l2])
    squares = scipy.linalg.eigh(K, M, eigvals_only=True)
    return 2 * np.pi / np.sqrt(squares[::-1])


@eqx.filter_jit
def linearised(system: djdyn.System, q: Float[Array, " n"]) -> Float[Array, "2n 2n"]:
    """The matrix of small motions about rest at `q`."""

    def rate(x):
        n = len(q)
        y = djdyn.State(q + x[:n], x[n:], system.initial_state().parts)
        dy = system.derivative(0.0, y)
        return jnp.concatenate([dy.q, dy.v])

    return jax.jacfwd(rate)(jnp.zeros(2 * len(q)))


def fit_periods(
    t: Float[np.ndarray, " n"], swings: Float[np.ndarray, "n 2"]
) -> tuple[Float[np.ndarray, "2"], Float[np.ndarray, "2 2"]]:
    """Periods of the two cosines that fit both angles best, and their amplitudes."""

    def cosines(periods):
        return np.cos(2 * np.pi * t[:, None] / periods)

    def misfit(periods):
        basis = cosines(periods)
        return (basis @ np.linalg.lstsq(basis, swings)[0] - swings).ravel()

    printed = (3.104088, 7.662144)
    best = scipy.optimize.least_squares(misfit, printed, xtol=1e-14, ftol=1e-14).x
    return best, np.linalg.lstsq(cosines(best), swings)[0]


def run_double_pendulum(study: Study) -> None:
    """Both periods, of the linearised system and of the motion itself."""
    mechanism, q0 = crane(DOUBLE_PENDULUM)
    system = djdyn.System(mechanism)
    hanging = jnp.array([-np.pi / 2, 0.0])
    points = djdyn.put(
        system, {f"link{i}.I_BC": np.zeros((3, 3)) for i in (1, 2)}
    )  # as the print has them
    spheres, masses = two_periods(links(DOUBLE_PENDULUM)[0].inertia[2]), two_periods(0)
    for tail, machine, known, note in (
        ("", system, spheres, "spheres as tabulated"),
        ("_points", points, masses, "point masses, as in the print, which has g 9.82"),
    ):
        roots = np.linalg.eigvals(linearised(machine, hanging))
        found = np.sort(2 * np.pi / roots.imag[roots.imag > 0])
        for i, mode in enumerate(("fast", "slow")):
            study.metric(
                f"boom_crane.v18.{mode}_period{tail}",
                found[i],
                known[i],
                CLOSED * known[i],
                unit="s",
                note=f"eigenvalues of the linearised system; {note}",
            )
    t = np.linspace(0.0, 60.0, 601)
    trajectory = djdyn.simulate(
        system, 60.0, system.initial_state(q0), saveat=t, **FINE
    )
    first = np.asarray(trajectory.y.q[:, 0]) + np.pi / 2
    swings = np.stack([first, first + np.asarray(trajectory.y.q[:, 1])], 1)
    periods, amplitudes = fit_periods(t, swings / SWING)
    for i, mode in enumerate(("fast", "slow")):
        study.metric(
            f"boom_crane.v18.{mode}_period_fit",
            periods[i],
            spheres[i],
            SWING**2 * spheres[i],
            unit="s",
            note="cosines fitted to 60 s of motion; a swing of 0.1 deg changes a period "
            "by its square at most",
        )
    study.metric(
        "boom_crane.v18.slow_share",
        amplitudes[1, 0],
        0.9096,
        1e-4,
        note="of the slow mode in the upper swing; one unit of the last digit",
    )
    (m1, l1), (m2, l2) = ((x.mass, x.com[0]) for x in links(DOUBLE_PENDULUM))
    energy = GRAVITY * ((m1 + m2) * l1 + m2 * l2) * (1 - np.cos(SWING))
    ledger(study, "v18", trajectory, energy)
    study.series("v18", trajectory)
    sums = np.cos(2 * np.pi * t[:, None] / spheres) @ [
        [0.0904, -0.1963],
        [0.9096, 1.1963],
    ]
    shown = t <= 30.0
    study.report.plot(
        "V18: double pendulum, angles from the vertical",
        ("time", "s", t[shown]),
        ("angle", "deg"),
        {"upper": np.rad2deg(swings[shown, 0]), "lower": np.rad2deg(swings[shown, 1])},
        {
            f"{name}, two cosines": (t[shown][::3], 0.1 * sums[shown, i][::3])
            for i, name in enumerate(("upper", "lower"))
        },
    )


# V19 to V21: a slide on a turning arm -------------------------------------------------


class Turning(eqx.Module):
    """A frame that turns about z at a constant rate."""

    rate: Scalar = eqx.field(converter=si("rad/s"))
    angle: Scalar = eqx.field(converter=si("rad"))

    def __call__(self, t: Scalar) -> Pose:
        return Pose(rotation_z(self.angle + self.rate * t), jnp.zeros(3))


def driven_slide(force: float) -> djdyn.System:
    """Joint 1 held at 1 rad/s, a constant force along joint 2."""
    mechanism, q0 = crane(TURNING_SLIDE)
    held = djdyn.Prescribed(Turning(1.0, q0[0]))
    mechanism = eqx.tree_at(lambda m: m.bodies[0].joint, mechanism, held)
    return djdyn.System(mechanism, {"push": JointForce("link2", force)})


def slide_loads(now: djdyn.system.Instant) -> tuple[Array, Array, Array, Array]:
    """Torque on the arm, force across the slide, its acceleration, force to hold it."""
    hold = dynamics.inverse(now.world, jnp.zeros_like(now.y.v))
    return now.reaction("link1")[2], now.reaction("link2")[3], now.v_dot[0], hold[0]


def run_driven_slide(study: Study) -> None:
    """V19, the force that holds the slide, and V20, the slide let go."""
    slow = np.arcsinh(0.009901)  # s, when the slide has the rate that the print gives
    t = np.sort([slow, *np.linspace(0.0, 2.0, 81)])
    runs = {
        case: djdyn.simulate(driven_slide(force), 2.0, saveat=t, **TIGHT)
        for case, force in (("v19", -10.0), ("v20", 0.0))
    }
    loads = {case: run.map(slide_loads) for case, run in runs.items()}
    torque, across, acceleration, hold = loads["v20"]
    rounding = 1e-12  # relative: nothing is integrated
    study.metric(
        "boom_crane.v19.holding_force",
        hold[0],
        -10.0,
        10 * rounding,
        unit="N",
        note="-m r w^2, by inverse dynamics",
    )
    study.metric(
        "boom_crane.v19.free_acceleration",
        acceleration[0],
        1.0,
        rounding,
        unit="m/s^2",
        note="r w^2 when the force is let go, by forward dynamics",
    )
    study.metric(
        "boom_crane.v19.drift",
        jnp.max(jnp.abs(runs["v19"].y.q)),
        0.0,
        CLOSED,
        unit="m",
        note="of the slide over 2 s under -10 N, though it is unstable there",
    )
    study.metric(
        "boom_crane.v20.coriolis_acceleration",
        across[np.searchsorted(t, slow)] / 10.0,
        2 * 0.009901,
        CLOSED,
        unit="m/s^2",
        note="2 w r', across the slide, from the force there; r' is in m/s, not rad/s "
        "as printed; the print found 0.019465",
    )
    study.metric(
        "boom_crane.v20.slide_rate",
        runs["v20"].y.v[-1, 0],
        np.sinh(2.0),
        CLOSED * np.sinh(2.0),
        unit="m/s",
        note="sinh t at 2 s",
    )
    study.metric(
        "boom_crane.v20.holding_torque",
        torque[-1],
        10 * np.sinh(4.0),
        CLOSED * 10 * np.sinh(4.0),
        unit="N m",
        note="that keeps joint 1 at 1 rad/s: 10 sinh 2t at 2 s",
    )
    ledger(study, "v20", runs["v20"], 5 * (np.cosh(4.0) - 1))
    study.series("v20", runs["v20"].dataset(holding_torque=torque, across=across))


def run_energy(study: Study) -> None:
    """V21: both joints free, until joint 1 has all but stopped."""
    mechanism, q0 = crane(TURNING_SLIDE)
    system = djdyn.System(mechanism)
    lines, known = {}, {}
    arm, slider = links(TURNING_SLIDE)
    for tail, centre, rate, where in (
        ("", 0.0, 1.156500, "on the axis, which is what the print computed"),
        ("_offset", 1.0, 1.528495, "1 m off the axis, as tabulated"),
    ):
        machine = djdyn.put(system, {"link1.p_BC": (centre, 0.0, 0.0)})
        start = machine.initial_state(q0, v={"link1": 1.0})
        t = np.linspace(0.0, 30.0, 301)
        trajectory = djdyn.simulate(machine, 30.0, start, saveat=t, **TIGHT)
        r, (turn, out) = 1 + trajectory.y.q[:, 1], trajectory.y.v.T
        still = arm.inertia[2] + arm.mass * centre**2 + slider.inertia[1]
        whole = still + slider.mass  # kg m^2, at the start
        about = still + slider.mass * r**2
        study.metric(
            f"boom_crane.v21.rate{tail}",
            out[-1],
            rate,
            1e-6,
            unit="m/s",
            note=f"after 30 s, centre of link 1 {where}; one unit of the last digit",
        )
        final = float(trajectory.energy()[-1])
        limit = np.sqrt(whole / slider.mass)
        study.metric(
            f"boom_crane.v21.asymptote{tail}",
            np.sqrt(2 * final / slider.mass),
            limit,
            CLOSED * limit,
            unit="m/s",
            note="when all energy is in the slide: sqrt(I/m) w"
            + ("; the print's 1.1547 leaves out the slider's own inertia" * (not tail)),
        )
        study.metric(
            f"boom_crane.v21.momentum_drift{tail}",
            jnp.max(jnp.abs(about * turn / whole - 1)),
            0.0,
            CLOSED,
            note="of the angular momentum about joint 1, relative",
        )
        ledger(study, f"v21{tail}", trajectory, whole / 2)
        study.series(f"v21{tail}", trajectory)
        name = "offset" if tail else "on axis"
        lines |= {f"slide, {name} [m/s]": out, f"turn, {name} [rad/s]": turn}
        exact = np.sqrt((whole - whole**2 / np.asarray(about)) / slider.mass)
        known |= {f"slide, {name}, closed form": (t[::10], exact[::10])}
        if not tail:
            for what, value, digits, unit in (
                ("turn_rate", turn[-1], (0.001126, 1e-6), "rad/s"),
                ("slide", r[-1] - 1, (33.478, 1e-3), "m"),
            ):
                study.metric(
                    f"boom_crane.v21.{what}",
                    value,
                    *digits,
                    unit=unit,
                    note="after 30 s; one unit of the last digit",
                )
    study.report.plot(
        "V21: a slide let go on a turning arm, centre of link 1 on the axis or 1 m off",
        ("time", "s", t),
        ("rate", "m/s, rad/s"),
        lines,
        known,
    )
