"""How cost grows: with bodies, steps, batch and cores; and where the roof is.

Cost is that of the forward rollout by semi-implicit Euler in double precision. The roof
is what this machine does in NumPy's matrix product and in copying memory.
"""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..harness.study import Study
from . import roofline
from .engines import own
from .problems import problem
from .race import OPTIONS as COMMON, Field, curves, describe, race
from .worker import Job, start


TITLE = "Scaling of rollouts"
STAGES = 4
OPTIONS = {**COMMON, "engines": "mujoco", "batch": 1024, "problem": "arm7"}

BODIES = (5, 10, 20, 35, 50)
LENGTHS = (50, 200, 1000, 5000)
TOLERANCE = {"": 1e-9}


def run(study: Study) -> None:
    field, batch = Field(study), int(study.options["batch"])
    batch = min(batch, 64) if study.quick else batch
    name = str(study.options["problem"])
    with study.stage("bodies"):
        by_bodies(study, field, batch)
    with study.stage("steps"):
        rates = by_steps(study, field, name, min(batch, 64))
    with study.stage("cores"):
        by_cores(study, name)
    with study.stage("roofline"):
        roofline.draw(study, problem(name), field, rates)
    field.say(study)


def by_bodies(study: Study, field: Field, batch: int) -> None:
    costs: dict[str, dict[int, float]] = {}
    who = [*field.ours[:1], *field.peers]
    for bodies in BODIES[:3:2] if study.quick else BODIES:
        machine = problem(f"chain{bodies}")
        what = describe(machine, batch)
        make = lambda e, machine=machine: e.ends(machine, batch, field.steps)
        calls = field.prepare(make, who, what)
        gaps = field.agreed({k: call() for k, call in calls.items()}, TOLERANCE, what)
        timings = race({k: calls[k] for k in gaps}, field.rounds, field.budget)
        for key, timing in timings.items():
            cost = timing.best / (batch * field.steps * bodies) * 1e9
            costs.setdefault(key, {})[bodies] = cost
            own_name = "" if key == "djdyn" else f"{key}."
            metric = f"scaling.chain{bodies}.{own_name}ns_a_body"
            study.metric(metric, cost, unit="ns", note="a body and step")
    for key, by in costs.items():
        own_name = "" if key == "djdyn" else f"{key}."
        spread = max(by.values()) / min(by.values()) - 1
        note = "wanted: under 0.3" if key == "djdyn" else ""
        study.metric(f"scaling.chain.{own_name}spread", spread, note=note)
    lines = {
        field.names[k]: (list(by), [n * cost for n, cost in by.items()])
        for k, by in costs.items()
    }
    curves(
        study,
        f"Cost of a step by bodies: chains in batches of {batch}",
        ("bodies", "1"),
        ("cost of a step", "ns"),
        lines,
        marks={"proportional": _line(*lines[field.names["djdyn"]])},
    )


def by_steps(study: Study, field: Field, name: str, batch: int) -> dict[str, float]:
    """Cost against steps; returns the rates of the longest."""
    machine, lines, rates = problem(name), {}, {}
    for engine in field.ours:
        costs = []
        for steps in LENGTHS[:2] if study.quick else LENGTHS:
            call = engine.ends(machine, batch, steps)
            assert call is not None
            timing = race({"": call}, field.rounds, field.budget)[""]
            rates[engine.key] = batch * steps / timing.best
            costs.append(timing.best / batch * 1e6)
            stem = f"scaling.{name}.steps{steps}"
            stem += "" if engine.key == "djdyn" else f".{engine.key}"
            study.metric(f"{stem}.ns_a_step", 1e9 / rates[engine.key], unit="ns")
        lines[engine.name] = (LENGTHS[: len(costs)], costs)
    curves(
        study,
        f"Cost of a rollout by steps: {machine.title}, batch of {batch}",
        ("steps", "1"),
        ("cost of a rollout", "µs"),
        lines,
        marks={"proportional": _line(*lines[field.names["djdyn"]])},
    )
    return rates


def _line(x: Sequence[float], y: Sequence[float]) -> tuple[list[float], list[float]]:
    """Through the first point and the origin, on logarithmic axes."""
    return [x[0], x[-1]], [y[0], y[0] * x[-1] / x[0]]


def by_cores(study: Study, name: str) -> None:
    """Batches on one core and on more, each in a process that has no others."""
    machine, lines = problem(name), {}
    counts = [1, *(c for c in (2, 4, 8, 16, 32, 64) if c <= (os.cpu_count() or 1))]
    batches = (16, 64) if study.quick else (1, 16, 64, 256, 1024, 4096)
    for _, shown, backend in own.BACKENDS[:1]:
        for cores in counts:
            rates = []
            with tempfile.TemporaryDirectory() as folder:
                for size in batches:
                    job = Job(name, batch=size, backend=backend, cores=cores)
                    found = start(job, Path(folder), 300.0)
                    assert found is not None
                    rates.append(size * job.steps / found["later"])
                    metric = f"scaling.{name}.batch{size}.cores{cores}.rate"
                    study.metric(metric, rates[-1], unit="steps/s")
            lines[f"{shown}, {cores} core{'s' * (cores > 1)}"] = (batches, rates)
    axes = (("batch size", "1"), ("rate", "steps/s"))
    curves(study, f"Throughput by cores: {machine.title}", *axes, lines)
