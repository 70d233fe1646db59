"""Boom lifted by a cylinder: reference series, and stiff oil with long steps.

After the coupled hydraulic boom of Baharudin 2016.
"""

from typing import Any

import jax
import numpy as np

import djdyn
from djdyn.view import Scene

from ...harness import tables
from ...harness.study import Study
from .model import ANNULUS, BAR, BORE, GAIN, SWITCHES, boom
from .valve import jacobian


SPAN = 5.0  # s
SCENE = "Lifted boom, cylinder and rod"
COLUMNS = {  # compared quantities: unit, column of the table, its scale
    "angle": ("rad", "theta_rad", 1.0),
    "rate": ("rad/s", "omega_rad_s", 1.0),
    "p1": ("bar", "p1_Pa", BAR),
    "p2": ("bar", "p2_Pa", BAR),
    "opening": ("", "spool_U", 1.0),
}


def seen(run: djdyn.Trajectory) -> np.ndarray:
    """Return the compared quantities, one column each."""
    oil = run.y.parts["oil"]
    pressures = oil["A.bar"], oil["B.bar"]
    found = run.y.q[:, 0], run.y.v[:, 0], *pressures, 10 * oil["valve.spool"]
    return np.stack(found, 1).astype(float)


def adaptive(system: djdyn.System, **how: Any) -> djdyn.Trajectory:
    """Simulate with adaptive steps."""
    how = {"solver": "rodas4", "rtol": 1e-7, "atol": 1e-7, **how}
    return djdyn.simulate(system, SPAN, jumps=SWITCHES, **how)


def run_series(study: Study) -> None:
    """Compare the whole series of a lifted boom with a reference."""
    rows = tables.read("hydraulic_boom/ref_hydraulic_boom.csv")
    units, names, scales = zip(*COLUMNS.values(), strict=True)
    known = tables.columns(rows, *names) / scales
    system = study.customise(boom())
    run = adaptive(system, saveat=501)
    found, t = seen(run), np.asarray(run.t)
    errors, size = np.abs(found[::5] - known).max(0), np.ptp(known, 0)
    study.metric(
        "hydraulic_boom.reference_error",
        (errors / size).max(),
        at_most=1e-5,
        note=f"largest error of five series, over its range; {int(run.steps)} steps",
    )
    for name, unit, error, within in zip(
        COLUMNS, units, errors, 1e-5 * size, strict=True
    ):
        metric, note = (
            f"hydraulic_boom.v15.{name}_error",
            "lifted boom: largest error of the series",
        )
        study.metric(metric, error, at_most=within, unit=unit, note=note)
    study.series("lift", run)
    piston = run.map(
        lambda now: [now.signals[f"oil.lift.{k}"] for k in ("force", "x", "v")]
    )
    force, x, v = map(np.asarray, piston)
    late = np.argmin(abs(t - 1.9))
    lever, weight = v[late] / found[late, 1], 9810.0 * 3.0 * np.cos(found[late, 0])
    push = 200 * BAR * BORE - BAR * ANNULUS - weight / lever
    steady = 0.3 * GAIN * np.sqrt(push / (BORE**3 + ANNULUS**3))
    poles = np.linalg.eigvals(jacobian(system, system.initial_state()))
    for name, value, reference, within, unit, note in (
        ("force", force[0], 35923.893, 1e-3, "N", "at rest"),
        ("stroke", x[0], 0.27065556, 1e-8, "m", "at rest"),
        ("mode", np.abs(poles.imag).max(), 31.4033, 0.02, "rad/s", "frequency; "
         "reference with constant weight and lever"),
        ("speed", v[late], 0.097591, 1e-6, "m/s", "piston at 1.9 s"),
        ("steady_speed", steady, 0.097749, 2e-6, "m/s", "steady state at 1.9 s"),
    ):  # fmt: skip
        metric, note = f"hydraulic_boom.v15.{name}", f"lifted boom: {note}"
        study.metric(metric, value, reference, within, unit=unit, note=note)
    time = ("time", "s", t)
    angle = {"boom": np.degrees(found[:, 0])}
    study.report.plot(
        "Lifted boom (Baharudin 2016): angle",
        time,
        ("angle", "deg"),
        angle,
        {"boom": (t[::10], np.degrees(known[::2, 0]))},
    )
    sides = {"piston": 2, "rod": 3}
    study.report.plot(
        "Lifted boom (Baharudin 2016): pressures",
        time,
        ("pressure", "bar"),
        {k: found[:, i] for k, i in sides.items()},
        {k: (t[::10], known[::2, i]) for k, i in sides.items()},
    )
    study.report.scene(replay(run), SCENE)


def replay(run: djdyn.Trajectory) -> Scene:
    """Return the replay of boom, cylinder and rod."""
    q, base = np.asarray(run.y.q[:, 0]), np.array([0.3, 0.0, -1.0])
    along = np.stack([np.cos(q), 0 * q, np.sin(q)], 1)
    line = along - base  # the pin is a metre along the boom
    line = line / np.linalg.norm(line, axis=1)[:, None]
    side = np.broadcast_to([0.0, 1.0, 0.0], line.shape)
    scene = Scene(run.t)
    turned = np.stack([along, side, np.cross(along, side)], 2)
    for name, size, x in (("boom", (4.0, 0.16, 0.2), 2.0), ("load", (0.5,) * 3, 4.0)):
        scene.box(name, size, turned, offset=(np.eye(3), (x, 0.0, 0.12)))
    turned = np.stack([np.cross(side, line), side, line], 2)
    half = 0.45 * line
    for name, radius, p in (
        ("cylinder", 0.07, base + half),
        ("rod", 0.035, along - half),
    ):
        scene.cylinder(name, radius, 0.9, turned, p)
    return scene


def run_stiff(study: Study) -> None:
    """Report errors for stiff oil with fixed steps, in both precisions."""
    truth = adaptive(study.customise(boom(modulus=1.4e9)), saveat=1001, rtol=1e-8)
    known, rows, shown = seen(truth), [], {}
    for bits in (64, 32):
        for h, within in ((1e-3, 1e-5), (5e-3, 1e-4)):
            with jax.enable_x64(bits == 64):
                system = study.customise(boom(modulus=1.4e9))
                how: dict[str, Any] = {"solver": "rodas4", "dt": h, "control_period": h}
                run = djdyn.simulate(system, SPAN, **how)
                found = seen(run)
            every = round(5e-3 / h)
            errors = np.abs(found[::every] - known).max(0)
            name = f"{'double' if bits == 64 else 'single'}_{1e3 * h:g}ms"
            study.metric(
                f"hydraulic_boom.stiff.{name}",
                errors[0],
                at_most=within,
                unit="rad",
                note=f"oil of 1.4e9 Pa, {run.y.q.dtype}: largest error of the angle",
            )
            rows.append((name, *errors))
            shown[name] = np.abs(found[::every, 2] - known[:, 2])[1:]
    head = [f"{k}, {u}" if u else k for k, (u, *_) in COLUMNS.items()]
    study.report.table(
        "Lifted boom with oil of 1.4e9 Pa: largest errors with fixed steps",
        ("precision and step", *head),
        rows,
    )
    study.report.plot(
        "Lifted boom with oil of 1.4e9 Pa: pressure error with fixed steps",
        ("time", "s", np.asarray(truth.t)[1:]),
        ("error", "bar"),
        {k: np.maximum(error, 1e-9) for k, error in shown.items()},
        log="y",
    )
