"""Cost of the gradient of a rollout, in forward runs and in bytes.

The loss is the sum of all squared final coordinates. Its gradient is with respect to
initial states and inertial parameters of all links (other engines: what they support)
and is timed together with a forward run.
"""

import functools

import numpy as np

from ..harness.study import Study
from .engines import Engine, jaxed, own, placements
from .problems import Problem, problem
from .timing import (
    OPTIONS as COMMON,
    Engines,
    curves,
    describe,
    label,
    time_calls,
)


TITLE = "Gradients of rollouts"
STAGES = 4
OPTIONS = {**COMMON, "problems": "arm7,dpend,tree20"}

BATCHES = (1, 256)
LENGTHS = (50, 200, 800, 3200)  # steps, for the memory
TOLERANCE = {"": 1e-9, "mujoco": 1e-5}  # MuJoCo's are finite differences
AIMS = {"arm7.batch256": 4.0}  # gradient over forward run


def run(study: Study) -> None:
    """Compare gradients of all problems, and report the memory they need."""
    engines = Engines(study)
    study.report.text(
        f"Rollouts of {engines.steps} steps of 1 ms, semi-implicit Euler, in double "
        "precision. The ratio is the time of the gradient over that of the rollout. "
        "All engines must agree on gradients by initial states before they are timed."
    )
    names = str(study.options["problems"]).split(",")
    names = names[:1] if study.quick else names
    study.progress.update(study.task, total=len(names) + 1)
    for name in names:
        machine = problem(name)
        with study.stage(machine.title):
            one_problem(study, engines, machine)
    with study.stage("memory"):
        if not study.quick:
            memory(study, problem(names[0]))
    engines.report_notes(study)


def one_problem(study: Study, engines: Engines, machine: Problem) -> None:
    """Compare the gradients of all engines on one problem."""
    rows = []
    for batch in BATCHES[1:] if study.quick else BATCHES:
        who = [*engines.ours, placements(), *engines.peers]
        who = engines.ours[:1] if study.quick else who
        what = f"gradient of the {describe(machine, batch)}"
        calls = {}
        for kind in ("ends", "gradients"):
            make = functools.partial(_make, kind, machine, batch, engines.steps)
            calls[kind] = engines.prepare(make, who, what)
        results = {k: _starts(call()) for k, call in calls["gradients"].items()}
        gaps = engines.agreed(results, TOLERANCE, what)
        both = {(k, kind): calls[kind][k] for k in gaps for kind in calls}
        timings = time_calls(
            {" ".join(key): call for key, call in both.items()},
            engines.rounds,
            engines.budget,
        )
        for engine in (e for e in who if e.key in gaps):
            ahead, back = (timings[f"{engine.key} {kind}"] for kind in calls)
            size = jaxed.memory(calls["gradients"][engine.key])
            metrics(study, machine, batch, engine, ahead.best, back.best, size)
            row = (engine.name, batch, back.best * 1e3, back.best / ahead.best)
            spread = f"{max(ahead.spread, back.spread):.0%}"
            rows.append((*row, spread, f"{gaps[engine.key]:.1e}", engine.free))
    header = [
        "engine",
        "batch",
        "ms",
        "gradient / forward",
        "spread",
        "difference",
        "parameters",
    ]
    study.report.table(f"Gradients: {machine.title}", header, rows)


def _make(kind: str, machine: Problem, batch: int, steps: int, engine: Engine):
    return getattr(engine, kind)(machine, batch, steps)


def _starts(found) -> np.ndarray:
    return np.concatenate([np.asarray(found[0]), np.asarray(found[1])], 1)


def metrics(study, machine, batch, engine, ahead, back, size) -> None:
    """Report cost ratio, time and memory of an engine's gradient."""
    stem = f"{machine.name}.{label(batch)}"
    name = f"gradient.{stem}" + ("" if engine.key == "djdyn" else f".{engine.key}")
    aim = AIMS.get(stem) if engine.key == "djdyn" else None
    note = ("" if aim is None else "aim: ") + "time of the gradient over a forward run"
    study.metric(f"{name}.ratio", back / ahead, at_most=aim, note=note)
    study.metric(f"{name}.seconds", back, unit="s")
    if size is not None:
        study.metric(f"{name}.bytes", size, unit="B")


def memory(study: Study, machine: Problem, batch: int = 64) -> None:
    """Report the memory by the number of steps, for each kind of checkpoints."""
    lines = {}
    for rule in own.CHECKPOINTS or (None,):
        sizes = []
        for steps in LENGTHS:
            call = own.gradients(machine, batch, steps, checkpoints=rule)
            sizes.append(jaxed.memory(call) or np.nan)
        shown = rule or "default"
        lines[f"checkpoints {shown}"] = (LENGTHS, sizes)
        slope = np.polyfit(np.log(LENGTHS), np.log(sizes), 1)[0]
        name = f"gradient.{machine.name}.memory.{shown}"
        study.metric(
            f"{name}.exponent", slope, note="exponent of bytes in the number of steps"
        )
        study.metric(f"{name}.bytes", sizes[-1], unit="B", note=f"{LENGTHS[-1]} steps")
    curves(
        study,
        f"Memory of the gradient: {machine.title}, batch of {batch}",
        ("steps", "1"),
        ("memory", "B"),
        lines,
    )
