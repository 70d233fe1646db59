"""Scaling of the cost with bodies, steps, batch and cores, and a roofline.

The cost is that of the forward rollout by semi-implicit Euler in double precision. The
roofline is that of NumPy's matrix product and of copying memory on this computer.
"""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..harness.study import Study
from . import roofline
from .engines import own
from .problems import problem
from .timing import OPTIONS as COMMON, Engines, curves, describe, time_calls
from .worker import Job, start


TITLE = "Scaling of rollouts"
STAGES = 4
OPTIONS = {**COMMON, "engines": "mujoco", "batch": 1024, "problem": "arm7"}

BODIES = (5, 10, 20, 35, 50)
LENGTHS = (50, 200, 1000, 5000)
TOLERANCE = {"": 1e-9}
SPREAD_AIM = 0.3  # largest over smallest cost of a body and step, less 1


def run(study: Study) -> None:
    """Report scaling with bodies, steps and cores, and the roofline."""
    engines, batch = Engines(study), int(study.options["batch"])
    batch = min(batch, 64) if study.quick else batch
    name = str(study.options["problem"])
    with study.stage("bodies"):
        by_bodies(study, engines, batch)
    with study.stage("steps"):
        rates = by_steps(study, engines, name, min(batch, 64))
    with study.stage("cores"):
        by_cores(study, name)
    with study.stage("roofline"):
        roofline.draw(study, problem(name), engines, rates)
    engines.report_notes(study)


def by_bodies(study: Study, engines: Engines, batch: int) -> None:
    """Report the cost of a step by the number of bodies."""
    costs: dict[str, dict[int, float]] = {}
    who = [*engines.ours[:1], *engines.peers]
    for bodies in BODIES[:3:2] if study.quick else BODIES:
        machine = problem(f"chain{bodies}")
        what = describe(machine, batch)
        make = lambda e, machine=machine: e.ends(machine, batch, engines.steps)
        calls = engines.prepare(make, who, what)
        gaps = engines.agreed({k: call() for k, call in calls.items()}, TOLERANCE, what)
        timings = time_calls(
            {k: calls[k] for k in gaps}, engines.rounds, engines.budget
        )
        for key, timing in timings.items():
            cost = timing.best / (batch * engines.steps * bodies) * 1e9
            costs.setdefault(key, {})[bodies] = cost
            own_name = "" if key == "djdyn" else f"{key}."
            metric = f"scaling.chain{bodies}.{own_name}ns_a_body"
            study.metric(metric, cost, unit="ns", note="cost of a body and step")
    for key, by in costs.items():
        own_name = "" if key == "djdyn" else f"{key}."
        spread = max(by.values()) / min(by.values()) - 1
        aim = SPREAD_AIM if key == "djdyn" else None
        note = (
            "" if aim is None else "aim: "
        ) + "spread of the cost of a body and step"
        study.metric(f"scaling.chain.{own_name}spread", spread, at_most=aim, note=note)
    lines = {
        engines.names[k]: (list(by), [n * cost for n, cost in by.items()])
        for k, by in costs.items()
    }
    curves(
        study,
        f"Cost of a step by bodies: chains in batches of {batch}",
        ("bodies", "1"),
        ("cost of a step", "ns"),
        lines,
        marks={"proportional": _line(*lines[engines.names["djdyn"]])},
    )


def by_steps(study: Study, engines: Engines, name: str, batch: int) -> dict[str, float]:
    """Report the cost by steps; return the rates of the longest rollouts."""
    machine, lines, rates = problem(name), {}, {}
    for engine in engines.ours:
        costs = []
        for steps in LENGTHS[:2] if study.quick else LENGTHS:
            call = engine.ends(machine, batch, steps)
            assert call is not None
            timing = time_calls({"": call}, engines.rounds, engines.budget)[""]
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
        marks={"proportional": _line(*lines[engines.names["djdyn"]])},
    )
    return rates


def _line(x: Sequence[float], y: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the line through the first point and the origin."""
    return [x[0], x[-1]], [y[0], y[0] * x[-1] / x[0]]


def by_cores(study: Study, name: str) -> None:
    """Report the throughput by cores, each measured in a separate process."""
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
