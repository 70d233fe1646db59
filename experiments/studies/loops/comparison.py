"""Ways to keep loops closed beside each other, and beside Exudyn."""

import time
from typing import Any

import jax.numpy as jnp
import numpy as np

import djdyn
from djdyn import Body, Frame, Loop, Mechanism, Revolute, translation

from ...harness.exudyn_planar import PlanarBody, PlanarJoint, run_planar
from ...harness.study import Study
from ...harness.tables import columns, read
from . import planar


CRANK_START = np.pi / 3  # rad
SPAN, STEP = 2.0, 1e-3  # s
TOLERANCE = 1e-7  # beside Exudyn
WAYS = {
    "projection (default)": djdyn.Projection(),
    "multipliers, 10 rad/s": djdyn.Multipliers(),
    "multipliers, not stabilised": djdyn.Multipliers(frequency=0.0),
    "penalty 1e7": djdyn.Penalty(stiffness=1e7),
    "penalty 1e5": djdyn.Penalty(stiffness=1e5),
    "augmented Lagrangian 1e5": djdyn.AugmentedLagrangian(),
    "elimination": djdyn.Elimination(independent=("crank",)),
}


def four_bar(
    closure: djdyn.AbstractClosure | None = None,
    lengths: tuple = (1.0, 3.0, 2.5),
) -> Mechanism:
    """Rods of 1, 3 and 2.5 m, 1 kg/m, on a base of 3 m, cut at the rocker's pivot."""
    bodies, parent, at = [], "world", 0.0
    for name, length in zip(("crank", "coupler", "rocker"), lengths, strict=True):
        I = jnp.diag(jnp.array([0.0, 1.0, 1.0])) * length**3 / 12
        centre = jnp.stack([jnp.asarray(length) / 2, jnp.zeros(()), jnp.zeros(())])
        place = translation(jnp.array([1.0, 0.0, 0.0]) * at)
        turn = Revolute((0.0, -1.0, 0.0))
        bodies.append(Body(name, parent, turn, length, centre, I, place))
        parent, at = name, length
    frames = (
        Frame("end", "rocker", translation(jnp.array([1.0, 0.0, 0.0]) * at)),
        Frame("pivot", "world", translation((3.0, 0.0, 0.0))),
    )
    pin = Loop("pin", "pivot", "end", djdyn.PointOnLine((0.0, 1.0, 0.0)))
    closure = djdyn.Projection() if closure is None else closure
    return Mechanism(tuple(bodies), frames, loops=(pin,), closure=closure)


def gaps(now: Any) -> Any:
    """Return the gaps of all loops at an instant."""
    return now.rows.gap


def formulations(study: Study) -> None:
    """Compare all ways by the error, gap and energy they leave, and their time."""
    worked = columns(read("loops/fourbar.csv"), "z1_rad")[-1, 0]
    rows = []
    for name, way in WAYS.items():
        system = djdyn.System(four_bar(way))
        y0 = system.initial_state(q={"crank": CRANK_START})
        lanes = {"crank.mass": jnp.ones(8)}
        how = {"parameters": lanes, "solver": "rk4", "dt": STEP, "saveat": 21}
        run = djdyn.rollout(system, SPAN, y0, **how)
        began = time.perf_counter()
        run = djdyn.rollout(system, SPAN, y0, **how)
        run.y.q.block_until_ready()
        taken = (time.perf_counter() - began) / (8 * SPAN / STEP)
        one = run.lane(0)
        gap = np.abs(one.map(gaps)).max()
        error = abs(float(one.q("crank")[-1, 0]) - worked)
        rows.append((name, error, gap, float(np.ptp(one.energy())), 1e6 * taken))
    study.report.table(
        "Four-bar by RK4 with steps of 1 ms, after 2 s, in lanes of 8",
        (
            "way",
            "error of the crank (rad)",
            "widest gap (m)",
            "energy drift (J)",
            "time a step and lane (us)",
        ),
        rows,
    )
    study.metric(
        "loops.projection.gap",
        rows[0][2],
        at_most=1e-10,
        unit="m",
        note="RK4 with steps of 1 ms",
    )


def beside_exudyn(study: Study, windows: int = 40) -> None:
    """Compare a row of four-bars with Exudyn's generalised alpha at equal error."""
    span, true = 4.0, {2: 0.1176161024, 40: 0.0693420322}[windows]
    mechanism = planar.four_bars(windows)
    system, y0 = djdyn.System(mechanism), planar.standing(mechanism)
    bodies, joints = exudyn_model(windows)
    x, taken = run_planar(bodies, joints, span, steps=round(span / 1e-3), gravity=-9.81)
    theirs = abs(x[0] - true)
    how = {"saveat": 2, "rtol": TOLERANCE, "atol": TOLERANCE}
    run = djdyn.simulate(system, span, y0, **how)
    began = time.perf_counter()
    run = djdyn.simulate(system, span, y0, **how)
    run.y.q.block_until_ready()
    ours_taken = time.perf_counter() - began
    ours = abs(float(np.cos(run.q("post0")[-1, 0])) - true)
    drift = abs(float(np.diff(run.energy())[0]))
    study.report.table(
        f"{windows} four-bars after {span:g} s",
        ("engine", "error of the top (m)", "energy drift (J)", "time (s)"),
        [
            ("djdyn, tsit5, tolerance 1e-7", ours, drift, ours_taken),
            ("Exudyn, generalised alpha, 1 ms", theirs, "", taken),
        ],
    )
    study.metric(
        "loops.exudyn.time_ratio",
        taken / ours_taken,
        note="Exudyn's time over djdyn's; errors are in the report",
    )
    study.metric(
        "loops.exudyn.error_ratio",
        ours / theirs,
        at_most=1.0,
        note="djdyn's error over Exudyn's in that comparison",
    )


def exudyn_model(windows: int) -> tuple[list[PlanarBody], list[PlanarJoint]]:
    """Return the same bars for Exudyn: centre of each, angle and speeds."""
    bodies, joints = [], []
    for k in range(windows + 1):
        bodies.append(PlanarBody(1.0, 1 / 12, (k, 0.5), np.pi / 2, (0.5, 0.0), -1.0))
        joints.append(PlanarJoint(-1, (k, 0.0), k, (-0.5, 0.0)))
    for k in range(windows):
        at = len(bodies)
        bodies.append(PlanarBody(1.0, 1 / 12, (k + 0.5, 1.0), 0.0, (1.0, 0.0), 0.0))
        joints.append(PlanarJoint(k, (0.5, 0.0), at, (-0.5, 0.0)))
        joints.append(PlanarJoint(k + 1, (0.5, 0.0), at, (0.5, 0.0)))
    return bodies, joints
