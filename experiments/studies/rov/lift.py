"""The ROV lifts an object from one pillar, turns, and places it on another."""

import equinox as eqx
import jax
import numpy as np

import djdyn
from controllers import roll_pitch_yaw
from djdyn.multibody.spatial import quat_to_rotation
from djdyn.view import Scene

from ...harness import tables
from ...harness.study import Study
from .model import FLIP, LIFT_SPAN, LIFT_TIMES, START, TOOL, build, layout, start


STEP = 1e-3  # s; the grip on the light end of the arm has poles of 2000 1/s
NAMES = ("depth", "roll", "pitch", "joint 1", "joint 2", "joint 3")
SPANS = {"start": (0.0, 20.0), "carrying": (20.0, 130.0), "after": (130.0, 160.0)}
COLUMNS = ("n_m", "e_m", "d_m", "phi_rad", "theta_rad", "psi_rad", "qe1_rad", "qe2_rad",
           "qe3_rad", "obj_n_m", "obj_e_m", "obj_d_m")  # fmt: skip
LIFT_SCENE = "Lift and place: the ROV, its thrusts, pillars and object"
NOTHING = 1e-3  # m, rad: smaller peaks are rounding of the reference


def lifted(sets: dict) -> djdyn.Trajectory:
    """Return the lift of the source, with parameters of the user."""
    system = djdyn.with_parameters(build(), sets)
    y0 = jax.tree.map(lambda x: x[None], start(system))
    saves = np.linspace(0.0, LIFT_SPAN, round(2 * LIFT_SPAN) + 1)
    run = djdyn.rollout(system, LIFT_SPAN, y0, solver="rk4", dt=STEP, saveat=saves)
    return run.lane(0)


def seen(run: djdyn.Trajectory) -> np.ndarray:
    """Return place, angles, joints and object, with z downwards as in the source."""
    q = np.asarray(run.y.q)
    turned = jax.vmap(lambda x: roll_pitch_yaw(quat_to_rotation(x)))
    angles = np.asarray(turned(run.y.q[:, 3:7]))
    return np.concatenate(
        [q[:, :3] * FLIP, angles * FLIP, q[:, 7:10], q[:, 10:13] * FLIP], 1
    )


def peaks(t: np.ndarray, x: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """Return the largest errors in each span: depth, roll, pitch and joints."""
    error = np.stack([x[:, 2] - depth, x[:, 3], x[:, 4], *(x[:, 6:9] - START).T], 1)
    of = lambda low, high: np.abs(error[(t >= low) & (t <= high)]).max(0)
    return np.array([of(*span) for span in SPANS.values()])


def run_lift(study: Study) -> djdyn.Trajectory:
    """Compare the lift with an independent run."""
    run = lifted(study.sets)
    rows = tables.read("rov/ref_lift.csv")
    t, known = tables.columns(rows, "t_s")[:, 0], tables.columns(rows, *COLUMNS)
    depth, found = tables.columns(rows, "d_des_m")[:, 0], seen(run)
    ours, theirs = peaks(t, found, depth), peaks(t, known, depth)
    counted = theirs > NOTHING
    gaps = np.abs(ours - theirs)[counted] / theirs[counted]
    study.metric(
        "rov.lift.max_error",
        gaps.max(),
        at_most=0.01,
        note=f"largest error of {counted.sum()} peaks of depth, roll, pitch and "
        "joints, relative to each peak of an independent run",
    )
    study.metric(
        "rov.lift.max_gap",
        np.abs(found - known).max(),
        at_most=0.01,
        unit="m, rad",
        note="largest difference at any time, of place, angles, joints and object",
    )
    for name, value in zip(NAMES, ours[1], strict=True):
        unit = "m" if name == "depth" else "rad"
        path = f"rov.lift.{name.replace(' ', '')}_carrying"
        study.metric(path, value, unit=unit, note="largest error while carrying")
    study.report.table(
        "Lift and place: largest errors in each span (m, rad), and the reference",
        ("span", *NAMES),
        [
            (f"{span}, {who}", *row)
            for who, table in (("this run", ours), ("reference", theirs))
            for span, row in zip(SPANS, table, strict=True)
        ],
    )
    time = ("time", "s", t)
    for title, unit, picked in (
        ("depth, downwards", "m", {"vehicle": 2, "object": 11}),
        ("roll and pitch", "rad", {"roll": 3, "pitch": 4}),
        ("joints", "rad", {"joint 1": 6, "joint 2": 7, "joint 3": 8}),
    ):
        study.report.plot(
            f"Lift and place: {title}", time, (title, unit),
            {name: found[:, i] for name, i in picked.items()},
            {name: (t, known[:, i]) for name, i in picked.items()},
        )  # fmt: skip
    study.series("lift", run)
    return run


@eqx.filter_jit
def _places(run: djdyn.Trajectory) -> tuple:
    at = lambda now: (now.world.X_WB, now.signals["thrusters.thrust"])
    return run.map(at)


def scene(run: djdyn.Trajectory) -> Scene:
    """Return the replay with thrust arrows, pillars and object."""
    X, thrust = jax.tree.map(np.asarray, _places(run))
    view = Scene(np.asarray(run.t), ground=-1.6)
    at = lambda k: (X.R[:, k], X.p[:, k])
    view.box("hull", (2.8, 1.8, 1.0), *at(1), opacity=0.6)
    view.box("buoyancy", (2.6, 1.6, 0.4), *at(1),
             offset=(np.eye(3), (0, 0, 0.7)), opacity=0.6)  # fmt: skip
    view.cylinder("base of the arm", 0.121, 0.195, *at(2),
                  offset=(np.eye(3), (0, 0, 0.1)))  # fmt: skip
    for k, (length, height, breadth) in (
        (3, (0.851, 0.15, 0.2)),
        (4, (TOOL, 0.1, 0.18)),
    ):
        centre = (np.eye(3), (length / 2, 0, 0))
        view.box(f"link {k - 1}", (length, height, breadth), *at(k), offset=centre)
    view.box("object", (0.3, 0.3, 0.3), *at(5), offset=(np.eye(3), (0, 0, 0.0)),
             color="#ccb974")  # fmt: skip
    held = np.argmin(np.abs(np.asarray(run.t) - LIFT_TIMES["drop"]))
    for i, place in enumerate((X.p[0, 5], X.p[held, 5])):
        top = place - np.array([0.0, 0.0, 0.15])
        tall = top[2] + 1.6
        view.cylinder(f"pillar {i + 1}", 0.25, tall, None, top - [0, 0, tall / 2],
                      color="#8c8c8c")  # fmt: skip
    places, axes = (np.asarray(x) for x in (layout().positions, layout().axes))
    for i in range(6):
        tail = X.p[:, 1] + X.R[:, 1] @ places[i]
        view.arrow("thrust", tail, thrust[:, i, None] * (X.R[:, 1] @ axes[i]),
                   unit="N", color="#dd8452")  # fmt: skip
    return view
