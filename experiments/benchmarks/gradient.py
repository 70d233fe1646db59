"""Cost of the gradient of a rollout, in forward runs and in bytes.

The gradient of the sum of all final coordinates squared, to the initial states and the
mass, centre and inertia of all links (peers: to what they can), beside a forward run in
the same race.
"""

import functools

import numpy as np

from ..harness.study import Study
from .engines import Engine, jaxed, own, placements
from .problems import Problem, problem
from .race import OPTIONS as COMMON, Field, curves, describe, label, race


TITLE = "Gradients of rollouts"
STAGES = 4
OPTIONS = {**COMMON, "problems": "arm7,dpend,tree20"}

BATCHES = (1, 256)
LENGTHS = (50, 200, 800, 3200)  # steps, for memory
TOLERANCE = {"": 1e-9, "mujoco": 1e-5}  # its own are differences
WANTED = {"arm7.batch256": "wanted: at most 4"}


def run(study: Study) -> None:
    field = Field(study)
    study.report.text(
        f"Rollouts of {field.steps} steps of 1 ms, semi-implicit Euler, in double "
        "precision: seconds of the gradient over seconds of the rollout. Gradients to "
        "the initial states agree before they are timed."
    )
    names = str(study.options["problems"]).split(",")
    names = names[:1] if study.quick else names
    study.progress.update(study.task, total=len(names) + 1)
    for name in names:
        machine = problem(name)
        with study.stage(machine.title):
            one_problem(study, field, machine)
    with study.stage("memory"):
        if not study.quick:
            memory(study, problem(names[0]))
    field.say(study)


def one_problem(study: Study, field: Field, machine: Problem) -> None:
    rows = []
    for batch in BATCHES[1:] if study.quick else BATCHES:
        who = [*field.ours, placements(), *field.peers]
        who = field.ours[:1] if study.quick else who
        what = f"gradient of the {describe(machine, batch)}"
        calls = {}
        for kind in ("ends", "gradients"):
            make = functools.partial(_make, kind, machine, batch, field.steps)
            calls[kind] = field.prepare(make, who, what)
        results = {k: _starts(call()) for k, call in calls["gradients"].items()}
        gaps = field.agreed(results, TOLERANCE, what)
        both = {(k, kind): calls[kind][k] for k in gaps for kind in calls}
        timings = race(
            {" ".join(key): call for key, call in both.items()},
            field.rounds,
            field.budget,
        )
        for engine in (e for e in who if e.key in gaps):
            ahead, back = (timings[f"{engine.key} {kind}"] for kind in calls)
            size = jaxed.memory(calls["gradients"][engine.key])
            metrics(study, machine, batch, engine, ahead.best, back.best, size)
            row = (engine.name, batch, back.best * 1e3, back.best / ahead.best)
            spread = f"{max(ahead.spread, back.spread):.0%}"
            rows.append((*row, spread, f"{gaps[engine.key]:.1e}", engine.free))
    header = ["engine", "batch", "ms", "gradient / forward", "spread", "gap", "free"]
    study.report.table(f"Gradients: {machine.title}", header, rows)


def _make(kind: str, machine: Problem, batch: int, steps: int, engine: Engine):
    return getattr(engine, kind)(machine, batch, steps)


def _starts(found) -> np.ndarray:
    return np.concatenate([np.asarray(found[0]), np.asarray(found[1])], 1)


def metrics(study, machine, batch, engine, ahead, back, size) -> None:
    stem = f"{machine.name}.{label(batch)}"
    name = f"gradient.{stem}" + ("" if engine.key == "djdyn" else f".{engine.key}")
    note = WANTED.get(stem, "") if engine.key == "djdyn" else ""
    study.metric(f"{name}.ratio", back / ahead, note=note)
    study.metric(f"{name}.seconds", back, unit="s")
    if size is not None:
        study.metric(f"{name}.bytes", size, unit="B")


def memory(study: Study, machine: Problem, batch: int = 64) -> None:
    """Bytes against steps, by each rule of what the reverse sweep remembers."""
    lines = {}
    for rule in own.MEMORIES or (None,):
        sizes = []
        for steps in LENGTHS:
            call = own.gradients(machine, batch, steps, checkpoints=rule)
            sizes.append(jaxed.memory(call) or np.nan)
        shown = rule or "default"
        lines[f"checkpoints {shown}"] = (LENGTHS, sizes)
        slope = np.polyfit(np.log(LENGTHS), np.log(sizes), 1)[0]
        name = f"gradient.{machine.name}.memory.{shown}"
        study.metric(f"{name}.exponent", slope, note="of bytes in the number of steps")
        study.metric(f"{name}.bytes", sizes[-1], unit="B", note=f"{LENGTHS[-1]} steps")
    curves(
        study,
        f"Memory of the gradient: {machine.title}, batch of {batch}",
        ("steps", "1"),
        ("memory", "B"),
        lines,
    )
