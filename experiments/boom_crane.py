"""Boom crane: a payload, simple joints, and a crane falling and driven onto its stops.

The single-body and boom-crane validation cases V10 to V12, V16 to V21, V24 and V25 of
Roy, Steinke and Nicoll, *Ship Mechanical Systems API: Final Report* (2014), chapter 4.
Where the print's expected value is wrong, the reference is the corrected one and the
row says so.
"""

import equinox as eqx
import numpy as np
import scipy.integrate
import scipy.interpolate
import scipy.optimize
from jaxtyping import Array, Float

import djdyn
from controllers import JointPID, Reference
from djdyn.parts import JointActuator, JointStop
from djdyn.view import Scene

from . import boom_joints as joints
from .boom_joints import CLOSED, GRAVITY, TIGHT, ledger
from .boom_tables import PALFINGER, crane, links, lock
from .study import Study


TITLE = "Boom crane: joints, payload and stops"
STAGES = 10
OPTIONS = {"target": 100.0}  # deg, where joint 2 is sent beyond its stop

KP, KI, KD = 1e9, 1.0, 1e8  # N m/rad, N m/(rad s), N m s/rad, the sample's gains
POWER = 5e5  # W, the sample's cap; for the driven joint
LOWER, UPPER = -np.pi / 4, np.pi / 2  # rad
STIFFNESS, DAMPING = 1e7, 1e7  # N m/rad, N m s/rad, of the stop
WIDTH = 1e-6  # rad, over which the stop's force comes in
SOFT = 1e-4  # rad, the same in the check of the gradient

NAMES = tuple(f"link{i}" for i in range(1, 8))
STIFF = {"solver": "kvaerno3", "rtol": 1e-7, "atol": 1e-7}


def build(angle: float | Array | None = None, width: float = WIDTH) -> djdyn.System:
    """The seven-joint crane, its joints held by PID control, joint 2 on stops.

    **Arguments:**

    - `angle`: where joint 2 is driven to, rad; left out, it is passive.
    - `width`: over which the stop's force comes in, rad.
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
                tracking_time=KP / KI,
            ),
            "motors": JointActuator(NAMES, "pid.u"),
            "stop": JointStop("link2", LOWER, UPPER, STIFFNESS, DAMPING, width),
        },
    )


def start(system: djdyn.System) -> djdyn.State:
    """At rest, the boom level."""
    return system.initial_state(crane(PALFINGER)[1])


def rigid(system: djdyn.System) -> djdyn.System:
    """The same crane with all joints but the second rigid, and no controller."""
    mechanism = lock(system.mechanism, crane(PALFINGER)[1], ["link2"])
    return djdyn.System(mechanism, {"stop": system.parts["stop"]})


def boom() -> tuple[float, float]:
    """First and second moment of mass about joint 2, kg m and kg m^2, by hand."""
    _, inner, *outer = links(PALFINGER)
    first = inner.mass * 0.5 + sum(x.mass * 1.5 for x in outer)
    second = inner.mass * 0.5**2 + sum(x.mass * 1.5**2 for x in outer)
    own = inner.inertia[2] + outer[0].inertia[2] + sum(x.inertia[1] for x in outer[1:])
    return first, second + own


def touch() -> tuple[float, float]:
    """Time and rate at which the falling boom reaches its stop, by conserved energy."""
    first, inertia = boom()
    rate = lambda angle: np.sqrt(2 * first * GRAVITY * np.sin(angle) / inertia)
    slowness = lambda s: 2 * s / rate(s * s)  # the angle is s^2: finite at the start
    time, _ = scipy.integrate.quad(slowness, 0, np.sqrt(-LOWER), epsabs=0, epsrel=1e-13)
    return time, -rate(-LOWER)


TOUCH, TOUCH_RATE = touch()
TIMES = np.unique(  # s, many while the stop is hit
    np.concatenate(
        [
            np.linspace(0.0, 0.47, 48),
            TOUCH + np.linspace(-1e-3, 4e-3, 251),
            np.linspace(0.49, 0.99, 51),
            np.linspace(1.0, 10.0, 91),
        ]
    )
)


def run(study: Study) -> None:
    study.report.text(
        "Cases V10 to V12, V16 to V21, V24 and V25 of Roy, Steinke and Nicoll, Ship "
        "Mechanical Systems API: Final Report (2014). References are closed forms, or "
        "corrected values where the print is wrong: it calls a displacement a velocity "
        "(V10), has g 9.82 in its pendulums (V16, V18), drops signs (V17, V24), puts "
        "the Coriolis acceleration along the slide with a rate in rad/s (V20) and "
        "leaves link 1 off centre in the table but not in the result (V21)."
    )
    study.report.text(
        "Tolerances come from the references, not from this run: `1e-8` of a closed "
        "form, a hundred times the solver's tolerance; one unit of the last digit of a "
        "rounded number; the solver's own tolerance for the stiff controlled crane."
    )
    for name, part in (
        ("payload (V10 to V12)", joints.run_payload),
        ("revolute joint (V16)", joints.run_revolute),
        ("prismatic joint (V17)", joints.run_prismatic),
        ("double pendulum (V18)", joints.run_double_pendulum),
        ("turning slide (V19, V20)", joints.run_driven_slide),
        ("energy (V21)", joints.run_energy),
    ):
        with study.stage(name):
            part(study)
    with study.stage("passive stop, rigid crane (V24)"):
        fallen = run_passive_stop(study)
    with study.stage("passive stop, controlled (V24)"):
        held = run_held(study, fallen)
    with study.stage("active stop (V25)"):
        run_active_stop(study)
    with study.stage("gradient"):
        gradient(study)
    study.report.scene(scene(held), "V24: the boom falls onto its stop")


# V24: the boom falls onto its stop ----------------------------------------------------


def fall(system: djdyn.System) -> djdyn.Trajectory:
    """The boom let go, the other joints rigid; the last sample is at 20 s."""
    return djdyn.simulate(
        rigid(system), 20.0, saveat=[*TIMES, 20.0], max_steps=32768, **TIGHT
    )


def run_passive_stop(study: Study) -> djdyn.Trajectory:
    """The other joints rigid: one equation by hand to compare with."""
    trajectory = fall(study.customise(build()))
    t, angle = np.asarray(trajectory.t), np.asarray(trajectory.y.q[:, 0])
    at = lambda time: int(np.searchsorted(t, time - 1e-9))
    first, _ = boom()
    sag = lambda q: STIFFNESS * (LOWER - q) - first * GRAVITY * np.cos(q)
    rest = scipy.optimize.brentq(sag, LOWER - 0.1, LOWER, xtol=1e-15)
    width = f"the stop's width of {WIDTH:g} rad shifts it by less"
    rows = (
        ("touch_angle", at(TOUCH), LOWER, CLOSED, "at the time of touch, -pi/4"),
        ("angle_1s", at(1.0), -0.786500, 1e-6, f"one unit of the last digit; {width}"),
        ("angle_3s", at(3.0), -0.786761, 1e-6, f"one unit of the last digit; {width}"),
        ("angle_10s", at(10.0), -0.7868015, 1e-7, "one unit of the last digit; print "
         "-0.7868"),
        ("equilibrium", -1, rest, CLOSED, "after 20 s: K (-pi/4 - q) = m g r cos q; "
         "the print expects 0.7854, the stop itself, without its sign"),
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
        trajectory.y.v[at(TOUCH), 0],
        TOUCH_RATE,
        CLOSED * abs(TOUCH_RATE),
        unit="rad/s",
        note="by conserved energy",
    )
    ledger(study, "v24", trajectory, first * GRAVITY * np.sin(-rest))
    study.series("v24_rigid", trajectory)
    return trajectory


def run_held(study: Study, fallen: djdyn.Trajectory) -> djdyn.Trajectory:
    """The other joints held by their controllers, as in the print."""
    system = study.customise(build())
    trajectory = djdyn.simulate(system, 10.0, start(system), saveat=TIMES, **STIFF)
    study.metric(
        "boom_crane.v24.controlled_angle_10s",
        trajectory.q("link2")[-1, 0],
        -0.7868015,
        1e-6,
        unit="rad",
        note="other joints held by PID, not rigid; ten times the solver's tolerance",
    )
    data = trajectory.dataset()
    study.series("v24", data)
    title, time = "V24: joint 2 falls onto its stop", ("time", "s", TIMES)
    alone, held = np.asarray(fallen.y.q[:-1, 0]), data["link2.q"].values
    lines = {"other joints rigid": alone, "other joints held by PID": held}
    digest = (np.array([1.0, 3.0, 10.0]), np.array([-0.786500, -0.786761, -0.7868015]))
    study.report.plot(
        title,
        time,
        ("angle", "deg"),
        {name: np.rad2deg(line) for name, line in lines.items()},
        {"lower stop": (np.array([0.0, 10.0]), np.rad2deg([LOWER, LOWER]))},
    )
    beyond = TIMES >= TOUCH
    study.report.plot(
        f"{title}: how far beyond it",
        ("time", "s", TIMES[beyond]),
        ("angle beyond the stop", "mrad"),
        {name: 1e3 * (LOWER - line[beyond]) for name, line in lines.items()},
        {"reference": (digest[0], 1e3 * (LOWER - digest[1]))},
        log="x",
    )
    near = (TIMES > TOUCH - 1e-3) & (TIMES < TOUCH + 4e-3)
    study.report.plot(
        f"{title}: the stop's moment at the impact",
        ("time after the touch", "ms", 1e3 * (TIMES[near] - TOUCH)),
        ("moment", "MN m"),
        {"other joints held by PID": data["stop.force"].values[near] / 1e6},
    )
    return trajectory


# V25: joint 2 is driven against its stop ----------------------------------------------


def run_active_stop(study: Study) -> None:
    """Sent beyond the limit: to a target clipped to the limit, and to the target."""
    target = np.deg2rad(study.options["target"])
    first, _ = boom()
    push = lambda q: (
        KP * (target - q) - STIFFNESS * (q - UPPER) - first * GRAVITY * np.cos(q)
    )
    pushed = scipy.optimize.brentq(push, UPPER, target, xtol=1e-15)
    angles, powers = {}, {}
    for tail, name, wanted, reference, note in (
        ("", "target clipped", UPPER, UPPER, "print 1.570791"),
        ("_unclipped", "target not clipped", target, pushed, "the drive is a hundred "
         "times stiffer than the stop"),
    ):  # fmt: skip
        if study.quick and tail:
            continue
        system = study.customise(build(wanted))
        trajectory = djdyn.simulate(system, 10.0, start(system), saveat=TIMES, **STIFF)
        data = trajectory.dataset()
        study.series(f"v25{tail}", data)
        angles[name] = np.rad2deg(data["link2.q"].values)
        powers[name] = data["pid.u"].values[:, 1] * data["link2.v"].values / 1e3
        study.metric(
            f"boom_crane.v25.angle{tail}",
            data["link2.q"].values[-1],
            reference,
            1e-6,
            unit="rad",
            note=f"{name} to the limit; ten times the solver's tolerance; {note}",
        )
    study.metric(
        "boom_crane.v25.peak_power",
        max(np.max(np.abs(power)) for power in powers.values()) * 1e3,
        POWER,
        1e-6 * POWER,
        unit="W",
        note="of the drive: its cap",
    )
    early = TIMES <= 2.0
    study.report.plot(
        f"V25: joint 2 sent to {study.options['target']:g} deg, stop at 90 deg",
        ("time", "s", TIMES[early]),
        ("angle", "deg"),
        {name: angle[early] for name, angle in angles.items()},
        {"upper stop": (np.array([0.0, 2.0]), np.rad2deg([UPPER, UPPER]))},
    )
    study.report.plot(
        "V25: power of the drive of joint 2",
        ("time", "s", TIMES[early]),
        ("power", "kW"),
        {name: power[early] for name, power in powers.items()},
    )


# The gradient through the impact ------------------------------------------------------


class Impact(eqx.Module):
    """Angle of joint 2, 20 ms after the stop was touched; steps end at `edges`."""

    edges: Float[np.ndarray, " n"]

    def __call__(self, system: djdyn.System, simulate) -> Float[Array, ""]:
        trajectory = simulate(
            system,
            0.5,
            saveat=np.array([0.5]),
            solver="dopri8",
            rtol=1e-12,
            atol=1e-12,
            jumps=self.edges,
            max_steps=1024,
        )
        return trajectory.y.q[-1, 0]


def edges(system: djdyn.System) -> Float[np.ndarray, " n"]:
    """When the boom touches its stop, and when the stop's force is all there."""
    trajectory = fall(system)
    after = TIMES >= TOUCH
    q, v = (np.asarray(x[:-1, 0])[after] for x in (trajectory.y.q, trajectory.y.v))
    path = scipy.interpolate.CubicHermiteSpline(TIMES[after], q - LOWER + SOFT, v)
    return np.array([TOUCH, path.roots(extrapolate=False)[0]])


def gradient(study: Study) -> None:
    """How deep the boom runs into its stop, by stop and by masses."""
    system = study.customise(build(width=SOFT))
    free = ["stop.stiffness", "stop.damping", *(f"{name}.mass" for name in NAMES[1:])]
    check = djdyn.check_gradient(
        Impact(edges(system)), rigid(system), free, tight={"rtol": 1e-13, "atol": 1e-13}
    )
    study.metric(
        "boom_crane.gradient_error",
        check.difference_error,
        0.0,
        1e-6,
        note=f"V24, angle 20 ms after the touch: {check.verdict()}",
    )
    study.report.table(
        f"V24: gradient of the angle at 0.5 s, {check.value:.7g} rad, through the impact",
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


# The picture --------------------------------------------------------------------------


def motion(now: djdyn.system.Instant) -> tuple[Array, Array, Array]:
    return now.world.X_WB.R, now.world.X_WB.p, now.world.V_WB


def scene(trajectory: djdyn.Trajectory) -> Scene:
    """The first second and a half; the telescopes are inside the outer boom."""
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
