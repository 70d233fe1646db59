"""Speed of 1024 tossed cubes beside MuJoCo's threaded rollout.

Both start from the same first frames. djdyn has compliant contact and explicit
fourth-order steps that resolve it; MuJoCo solves an implicit problem in each step and
can take longer steps. There are two ratios: by steps, and by simulated time.
"""

import importlib
from typing import Any

import equinox as eqx
import numpy as np

from ..harness.study import Study
from ..harness.tosses import Tosses
from ..studies.cube_toss.model import HALF, SUBSTEPS, Unknowns, build, predict, read
from ..studies.cube_toss.peer import model
from ..studies.cube_toss.synthetic import synthesise
from .engines.mujoco import threaded
from .timing import time_calls


TITLE = "Tossed cubes beside MuJoCo"
STAGES = 2
OPTIONS: dict[str, Any] = {"data": "", "batch": 1024, "rounds": 5}
FRAMES = 80
MUJOCO_STEP = 2e-3  # s, default of MuJoCo


def cubes(study: Study, batch: int) -> Tosses:
    """Return a number of tosses, repeating those of a file."""
    data = str(study.options["data"])
    tosses = read(data) if data else synthesise(build(), min(batch, 256), 2)
    return tosses.lanes(np.arange(batch) % len(tosses))


def run(study: Study) -> None:
    batch = 64 if study.quick else int(study.options["batch"])
    with study.stage("tosses"):
        tosses = cubes(study, batch)
        calls, steps = engines(study, tosses)
    with study.stage(f"timing of {batch} cubes"):
        budget = 2.0 if study.quick else 20.0
        timings = time_calls(calls, int(study.options["rounds"]), budget)
    span, rows = (FRAMES - 1) * tosses.dt, []
    for key, timing in timings.items():
        rate, real = (batch * x / timing.best for x in (steps[key], span))
        stem = f"contact.batch{batch}" + ("" if key == "djdyn" else f".{key}")
        note = f"steps of {1e3 * span / steps[key]:.3g} ms"
        study.metric(f"{stem}.rate", rate, unit="steps/s", note=note)
        study.metric(f"{stem}.realtime", real, note="simulated over elapsed time")
        rows.append((key, 1e3 * span / steps[key], rate, real, f"{timing.spread:.0%}"))
    for key in (k for k in timings if k != "djdyn"):
        times = timings[key].best / timings["djdyn"].best
        stem = f"contact.batch{batch}.vs_{key}"
        by_steps = times * steps["djdyn"] / steps[key]
        study.metric(f"{stem}.by_steps", by_steps, note="speed of djdyn over MuJoCo")
        study.metric(f"{stem}.by_time", times, note="speed of djdyn over MuJoCo")
    columns = ("engine", "step, ms", "steps/s", "times real time", "spread")
    study.report.table(f"{batch} cubes, best of interleaved runs", columns, rows)


def engines(study: Study, tosses: Tosses) -> tuple[dict, dict[str, int]]:
    """Return calls that simulate all cubes, and their numbers of steps."""
    source = str(study.options["data"]) or "synthetic"
    study.report.text(
        f"{len(tosses)} tosses ({source}) of {FRAMES} frames at "
        f"{1 / tosses.dt:.0f} Hz, "
        "double precision, all cores. djdyn has compliant contact at eight corners, "
        "regularised friction, fourth-order Runge–Kutta steps and compiled kernels. "
        "MuJoCo has its default solver, integrator and contact softness."
    )
    system, x = build(), Unknowns.zeros()
    toss = eqx.filter_jit(predict)
    calls: dict[str, Any] = {
        "djdyn": lambda: toss(system, x, tosses.start, FRAMES, tosses.dt)
    }
    steps = {"djdyn": (FRAMES - 1) * SUBSTEPS}
    try:
        importlib.import_module("mujoco")
    except ImportError:
        study.report.text("MuJoCo is not installed.")
        return calls, steps
    span = (FRAMES - 1) * tosses.dt
    for key, count in (
        ("mujoco", round(span / MUJOCO_STEP)),
        ("mujoco_same_step", steps["djdyn"]),
    ):
        call = threaded(model(span / count), np.asarray(tosses.start), count)
        calls[key] = lambda call=call: call()[:, -1]
        steps[key] = count
    ends = {k: np.asarray(call()).reshape(len(tosses), -1) for k, call in calls.items()}
    low = [np.abs(e[:, -7 if k == "djdyn" else 0 :][:, 2]) for k, e in ends.items()]
    study.metric(
        "contact.height_gap",
        np.median(np.abs(low[0] - low[1])) / HALF,
        at_most=0.1,
        note="median difference of the final heights, over half the width",
    )
    return calls, steps
