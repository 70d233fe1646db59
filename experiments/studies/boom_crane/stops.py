"""Joint stops of a crane (Roy, Steinke and Nicoll 2014, sections 4.4.9, 4.4.10)."""

from typing import Any

import numpy as np
import scipy.integrate
from jaxtyping import Array
from scipy.optimize import root_scalar

import djdyn
from controllers import JointPID, Reference
from djdyn.parts import JointActuator, JointStop
from djdyn.view import Scene

from ...harness.study import Study
from .joints import CLOSED_FORM_TOLERANCE, GRAVITY, TIGHT, ledger, states
from .model import PALFINGER, crane, links, lock


KP, KI, KD = 1e9, 1.0, 1e8  # N m/rad, N m/(rad s), N m s/rad; sample files
FALL = "Passive joint limit: joint 2 falls onto its stop"
SCENE = f"{FALL}, first 1.5 s"
POWER = 5e5  # W, limit of the driven joint; sample files
LOWER, UPPER = -np.pi / 4, np.pi / 2  # rad
STIFFNESS, DAMPING = 1e7, 1e7  # N m/rad, N m s/rad; stop
WIDTH = 1e-6  # rad, transition of the stop's force

NAMES = tuple(f"link{i}" for i in range(1, 8))
STIFF: dict[str, Any] = {"solver": "kvaerno3", "rtol": 1e-7, "atol": 1e-7}


def build(angle: float | Array | None = None, width: float = WIDTH) -> djdyn.System:
    """Return the seven-joint crane under PID control, with stops on joint 2.

    **Arguments:**

    - `angle`: target of joint 2, rad; left out, the joint is passive.
    - `width`: transition of the stop's force, rad.
    """
    mechanism, held = crane(PALFINGER)
    active = np.ones(len(NAMES))
    active[1] = angle is not None
    power = np.full(len(NAMES), 1e12)
    power[1] = POWER
    return djdyn.System(
        mechanism,
        {
            "target": Reference(held.at[1].set(0.0 if angle is None else angle)),
            "pid": JointPID(
                NAMES,
                "target.value",
                KP * active,
                KD * active,
                KI * active,
                power=power,
            ),
            "motors": JointActuator(NAMES, "pid.u"),
            "stop": JointStop("link2", LOWER, UPPER, STIFFNESS, DAMPING, width),
        },
    )


def start(system: djdyn.System) -> djdyn.State:
    """Return the state at rest with the boom level."""
    return system.initial_state(crane(PALFINGER)[1])


def rigid(system: djdyn.System) -> djdyn.System:
    """Return the crane with all joints but the second locked, and no controller."""
    mechanism = lock(system.mechanism, crane(PALFINGER)[1], ["link2"])
    return djdyn.System(mechanism, {"stop": system.parts["stop"]})


def boom() -> tuple[float, float]:
    """Return first (kg m) and second (kg m^2) moment of mass about joint 2."""
    _, inner, *outer = links(PALFINGER)
    first = inner.mass * 0.5 + sum(x.mass * 1.5 for x in outer)
    second = inner.mass * 0.5**2 + sum(x.mass * 1.5**2 for x in outer)
    own = inner.inertia[2] + outer[0].inertia[2] + sum(x.inertia[1] for x in outer[1:])
    return first, second + own


def touch() -> tuple[float, float]:
    """Return time and rate at which the boom reaches its stop, by energy."""
    first, inertia = boom()
    rate = lambda angle: np.sqrt(2 * first * GRAVITY * np.sin(angle) / inertia)
    slowness = lambda s: 2 * s / rate(s * s)  # the angle is s^2: finite at the start
    time, _ = scipy.integrate.quad(slowness, 0, np.sqrt(-LOWER), epsabs=0, epsrel=1e-13)
    return time, -rate(-LOWER)


TOUCH, TOUCH_RATE = touch()
TIMES = np.unique(  # s, dense during the impact
    np.concatenate(
        [
            np.linspace(0.0, 0.47, 48),
            TOUCH + np.linspace(-1e-3, 4e-3, 251),
            np.linspace(0.49, 0.99, 51),
            np.linspace(1.0, 2.0, 51),
            np.linspace(2.1, 10.0, 80),
        ]
    )
)


def controlled(study: Study) -> dict[str, djdyn.Trajectory]:
    """Simulate the controlled crane with joint 2 passive and driven."""
    target = np.deg2rad(study.options["target"])
    cases = {"passive": None, "clipped": UPPER, "unclipped": target}
    if study.quick:
        del cases["unclipped"]
    runs = {}
    for name, angle in cases.items():
        system = study.customise(build(angle))
        runs[name] = djdyn.simulate(system, 10.0, start(system), saveat=TIMES, **STIFF)
    return runs


# Passive joint limit: the boom falls onto its stop ------------------------------------


def run_passive_stop(study: Study) -> djdyn.Trajectory:
    """Compare the fall onto the stop with closed forms, other joints locked."""
    system = rigid(study.customise(build()))
    saves = [*TIMES, 20.0]
    trajectory = djdyn.simulate(system, 20.0, saveat=saves, max_steps=32768, **TIGHT)
    t, (angle, rate) = np.asarray(trajectory.t), np.hstack(states(trajectory)).T
    at = lambda time: int(np.searchsorted(t, time - 1e-9))
    first, _ = boom()
    sag = lambda q: STIFFNESS * (LOWER - q) - first * GRAVITY * np.cos(q)
    rest = root_scalar(sag, bracket=(LOWER - 0.1, LOWER), xtol=1e-15).root
    rows = (
        ("touch_angle", at(TOUCH), LOWER, CLOSED_FORM_TOLERANCE, "at contact: -pi/4"),
        ("angle_1s", at(1.0), -0.786500, 1e-6, "creeping after the impact"),
        ("angle_3s", at(3.0), -0.786761, 1e-6, "creeping after the impact"),
        ("angle_10s", at(10.0), -0.7868015, 1e-7, "creeping after the impact"),
        ("equilibrium", -1, rest, CLOSED_FORM_TOLERANCE, "after 20 s"),
    )  # fmt: skip
    for what, i, reference, tolerance, note in rows:
        study.metric(
            f"boom_crane.v24.{what}",
            angle[i],
            reference,
            tolerance,
            unit="rad",
            note=note,
        )
    study.metric(
        "boom_crane.v24.touch_rate",
        rate[at(TOUCH)],
        TOUCH_RATE,
        CLOSED_FORM_TOLERANCE * abs(TOUCH_RATE),
        unit="rad/s",
        note="at contact; reference: conservation of energy",
    )
    ledger(study, "v24", trajectory, first * GRAVITY * np.sin(-rest))
    study.series("v24_rigid", trajectory)
    return trajectory


def run_held(
    study: Study, fallen: djdyn.Trajectory, trajectory: djdyn.Trajectory
) -> None:
    """Compare the fall with the other joints under control, as in the report."""
    study.metric(
        "boom_crane.v24.controlled_angle_10s",
        states(trajectory)[0][-1, 1],
        -0.7868015,
        1e-6,
        unit="rad",
        note="other joints under PID control",
    )
    data, alone = trajectory.to_xarray(), fallen.to_xarray().isel(time=slice(0, -1))
    study.series("v24", data)
    runs = {"other joints locked": alone, "other joints under PID control": data}
    title = FALL
    early = TIMES <= 2.0
    study.report.plot(
        title,
        ("time", "s", TIMES[early]),
        ("angle", "deg"),
        {k: np.rad2deg(run["link2.q"].values[early]) for k, run in runs.items()},
        {"lower stop": (np.array([0.0, 2.0]), np.rad2deg([LOWER, LOWER]))},
    )
    study.report.scene(scene(trajectory), SCENE)
    after = TIMES > TOUCH
    known = np.array([[1.0, -0.786500], [3.0, -0.786761], [10.0, -0.7868015]]).T
    study.report.plot(
        f"{title}: angle beyond the stop",
        ("time after contact", "s", TIMES[after] - TOUCH),
        ("angle beyond the stop", "mrad"),
        {k: 1e3 * (LOWER - run["link2.q"].values[after]) for k, run in runs.items()},
        {"reference": (known[0] - TOUCH, 1e3 * (LOWER - known[1]))},
        log="x",
    )
    near = (TIMES > TOUCH - 5e-4) & (TIMES < TOUCH + 2e-3)
    study.report.plot(
        f"{title}: moment of the stop during the impact",
        ("time after contact", "ms", 1e3 * (TIMES[near] - TOUCH)),
        ("moment", "MN m"),
        {k: run["stop.force"].values[near] / 1e6 for k, run in runs.items()},
    )


# Active joint limit: joint 2 is driven against its stop -------------------------------


def run_active_stop(study: Study, runs: dict[str, djdyn.Trajectory]) -> None:
    """Compare a target clipped to the limit with one beyond the limit."""
    target = np.deg2rad(study.options["target"])
    first, _ = boom()
    push = lambda q: (
        KP * (target - q) - STIFFNESS * (q - UPPER) - first * GRAVITY * np.cos(q)
    )
    pushed = root_scalar(push, bracket=(UPPER, target), xtol=1e-15).root
    angles, powers = {}, {}
    for case, reference, note in (
        ("clipped", UPPER, "target clipped to the limit"),
        ("unclipped", pushed, "target beyond the limit: the drive deflects the stop"),
    ):  # fmt: skip
        if case not in runs:
            continue
        data = runs[case].to_xarray()
        study.series(f"v25_{case}", data)
        angles[f"target {case}"] = np.rad2deg(data["link2.q"].values)
        power = data["pid.u"].values[:, 1] * data["link2.v"].values
        powers[f"target {case}"] = power / 1e3
        study.metric(
            f"boom_crane.v25.angle_{case}",
            data["link2.q"].values[-1],
            reference,
            1e-6,
            unit="rad",
            note=note,
        )
    study.metric(
        "boom_crane.v25.peak_power",
        max(np.max(np.abs(power)) for power in powers.values()) * 1e3,
        POWER,
        1e-6 * POWER,
        unit="W",
        note="largest power of the drive; reference: its limit",
    )
    early = TIMES <= 2.0
    study.report.plot(
        f"Active joint limit: target {study.options['target']:g} deg, stop at 90 deg",
        ("time", "s", TIMES[early]),
        ("angle", "deg"),
        {name: angle[early] for name, angle in angles.items()},
        {"upper stop": (np.array([0.0, 2.0]), np.rad2deg([UPPER, UPPER]))},
    )
    study.report.plot(
        "Active joint limit: power of the drive of joint 2",
        ("time", "s", TIMES[early]),
        ("power", "kW"),
        {name: power[early] for name, power in powers.items()},
    )


# Replay -------------------------------------------------------------------------------


def motion(now: djdyn.Instant) -> tuple[Array, Array, Array]:
    """Return rotations, positions and twists of the bodies."""
    return now.world.X_WB.R, now.world.X_WB.p, now.world.V_WB


def scene(trajectory: djdyn.Trajectory) -> Scene:
    """Return the replay of the first 1.5 s; the telescopes are retracted."""
    shown = TIMES <= 1.5
    R, p, V = (np.asarray(x)[shown] for x in trajectory.map(motion))
    replay = Scene(TIMES[shown])
    for row, name, size, centre, opacity in (
        (1, "column", (0.7, 0.7, 1.4), (-0.35, 0.0, 0.7), 0.4),
        (2, "inner boom", (1.0, 0.5, 0.5), (0.5, 0.0, 0.0), 1.0),
        (7, "outer boom", (0.42, 0.42, 1.0), (0.0, 0.0, 0.5), 1.0),
    ):
        replay.box(
            name,
            size,
            R[:, row],
            p[:, row],
            offset=(np.eye(3), np.array(centre)),
            opacity=opacity,
        )
    pivot = p[0, 2]
    reach = 2.2 * np.array([np.cos(LOWER), 0.0, np.sin(LOWER)])
    replay.polyline("lower stop", np.stack([pivot, pivot + reach]), size=0.03)
    arm = R[:, 7] @ np.array([0.0, 0.0, 1.0])
    velocity = V[:, 7, 3:] + np.cross(V[:, 7, :3], arm)
    replay.arrow("velocity of the tip", p[:, 7] + arm, velocity, unit="m/s")
    return replay
