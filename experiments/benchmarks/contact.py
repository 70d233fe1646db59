"""Cubes tossed on the ground, 1024 at once, beside MuJoCo's threaded rollout.

Both start from the same first frames. Contact is compliant here, by explicit steps of
fourth order that must resolve it; MuJoCo solves an implicit problem in each step and so
may take longer ones. Hence two ratios: by steps, and by the time that is simulated.
"""

import importlib
from typing import Any

import equinox as eqx
import numpy as np

from ..harness.study import Study
from ..studies.cube_toss.model import SUBSTEPS, Unknowns, build, predict
from ..studies.cube_toss.peer import model
from ..studies.cube_toss.records import HALF, Tosses, read
from ..studies.cube_toss.synthetic import synthesise
from .engines.mujoco import threaded
from .race import race


TITLE = "Tossed cubes beside MuJoCo"
STAGES = 2
OPTIONS: dict[str, Any] = {"data": "", "batch": 1024, "rounds": 5}
FRAMES = 80
USUAL = 2e-3  # s, MuJoCo's own choice of a step


def cubes(study: Study, batch: int) -> Tosses:
    """As many tosses as asked for; those of a file are used again and again."""
    data = str(study.options["data"])
    tosses = read(data) if data else synthesise(build(), min(batch, 256), 2)
    return tosses.lanes(np.arange(batch) % len(tosses))


def run(study: Study) -> None:
    batch = 64 if study.quick else int(study.options["batch"])
    with study.stage("tosses"):
        tosses = cubes(study, batch)
        calls, steps = engines(study, tosses)
    with study.stage(f"race of {batch} cubes"):
        budget = 2.0 if study.quick else 20.0
        timings = race(calls, int(study.options["rounds"]), budget)
    span, rows = (FRAMES - 1) * tosses.dt, []
    for key, timing in timings.items():
        rate, real = (batch * x / timing.best for x in (steps[key], span))
        stem = f"contact.batch{batch}" + ("" if key == "djdyn" else f".{key}")
        note = f"steps of {1e3 * span / steps[key]:.3g} ms"
        study.metric(f"{stem}.rate", rate, unit="steps/s", note=note)
        study.metric(f"{stem}.realtime", real, note="simulated seconds in a second")
        rows.append((key, 1e3 * span / steps[key], rate, real, f"{timing.spread:.0%}"))
    for key in (k for k in timings if k != "djdyn"):
        times = timings[key].best / timings["djdyn"].best
        stem = f"contact.batch{batch}.vs_{key}"
        by_steps = times * steps["djdyn"] / steps[key]
        study.metric(f"{stem}.by_steps", by_steps, note="djdyn is faster by")
        study.metric(f"{stem}.by_time", times, note="djdyn is faster by")
    columns = ("engine", "step, ms", "steps/s", "times real time", "spread")
    study.report.table(f"{batch} cubes, best of interleaved runs", columns, rows)


def engines(study: Study, tosses: Tosses) -> tuple[dict, dict[str, int]]:
    """Calls that toss all cubes, and how many steps a toss has in each."""
    source = str(study.options["data"]) or "synthesised"
    study.report.text(
        f"{len(tosses)} tosses ({source}) of {FRAMES} frames at "
        f"{1 / tosses.dt:.0f} Hz, "
        "double precision, all cores. djdyn: compliant contact at eight corners, "
        "regularised friction, Runge and Kutta's steps of fourth order, compiled "
        "kernels. MuJoCo: its default solver, integrator and softness of contact."
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
        ("mujoco", round(span / USUAL)),
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
        note="median over cubes of how much higher they end, of half their width",
    )
    return calls, steps
