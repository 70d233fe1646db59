"""Steps per second of rollouts, single and in batches, beside other engines.

All engines simulate the same system by semi-implicit Euler at 1 ms in double precision
and must agree on the final state before they are timed. Times are the best of
interleaved repetitions.
"""

from ..harness.study import Study
from .engines import Engine
from .problems import PROBLEMS, Problem, problem
from .timing import (
    OPTIONS as COMMON,
    Engines,
    curves,
    describe,
    label,
    time_calls,
)


TITLE = "Rollouts beside other engines"
STAGES = len(PROBLEMS)
OPTIONS = {**COMMON, "problems": ",".join(PROBLEMS)}

BATCHES = (1, 4, 16, 64, 256, 1024, 4096)
COMPARED_BATCHES = (1, 64, 1024)
QUICK = (1, 64, 1024)
TOLERANCE = {"": 1e-9}
AIMS = {"arm7.single.vs_mujoco": 2.0, "arm7.batch1024": 10.0}  # speed over others


def run(study: Study) -> None:
    """Compare rollouts of all problems."""
    engines = Engines(study)
    study.report.text(
        f"Rollouts of {engines.steps} steps of 1 ms, semi-implicit Euler, in double "
        "precision. A rate counts the steps of all lanes. The spread is the relative "
        "excess of the median repetition over the best."
    )
    names = str(study.options["problems"]).split(",")
    names = names[:1] if study.quick else names
    study.progress.update(study.task, total=len(names))
    for name in names:
        machine = problem(name)
        with study.stage(machine.title):
            one_problem(study, engines, machine)
    engines.report_notes(study)


def one_problem(study: Study, engines: Engines, machine: Problem) -> None:
    """Compare all engines on one problem, for all batch sizes."""
    rates: dict[str, dict[int, float]] = {}
    rows, worst = [], 0.0
    for batch in QUICK if study.quick else BATCHES:
        who: list[Engine] = engines.ours[:1]
        if batch in COMPARED_BATCHES:
            who = [*engines.ours, *engines.peers]
        what = describe(machine, batch)
        make = lambda e, batch=batch: e.ends(machine, batch, engines.steps)
        calls = engines.prepare(make, who, what)
        results = {key: call() for key, call in calls.items()}
        gaps = engines.agreed(results, TOLERANCE, what)
        timings = time_calls(
            {k: calls[k] for k in gaps}, engines.rounds, engines.budget
        )
        worst = max(worst, *gaps.values())
        for key, timing in timings.items():
            rates.setdefault(key, {})[batch] = batch * engines.steps / timing.best
            ratio = timing.best / timings["djdyn"].best
            row = (engines.names[key], batch, rates[key][batch], ratio)
            rows.append((*row, f"{timing.spread:.0%}", f"{gaps[key]:.1e}"))
        metrics(study, machine, batch, {k: rates[k][batch] for k in timings})
    name = f"rollout.{machine.name}.max_gap"
    study.metric(
        name,
        worst,
        at_most=TOLERANCE[""],
        note="largest relative difference between engines",
    )
    curves(
        study,
        f"Throughput: {machine.title}",
        ("batch size", "1"),
        ("rate", "steps/s"),
        {engines.names[k]: (list(r), list(r.values())) for k, r in rates.items()},
    )
    header = [
        "engine",
        "batch",
        "steps/s",
        "speed of djdyn over it",
        "spread",
        "difference",
    ]
    study.report.table(f"Engines: {machine.title}", header, rows)


def metrics(study: Study, machine: Problem, batch: int, rates: dict[str, float]):
    """Report rates, and the speed of djdyn over that of other engines."""
    stem = f"{machine.name}.{label(batch)}"
    for key, rate in rates.items():
        own = "" if key == "djdyn" else f"{key}."
        study.metric(f"rollout.{stem}.{own}rate", rate, unit="steps/s")
    for key in (k for k in rates if k != "djdyn"):
        aim = AIMS.get(f"{stem}.vs_{key}", AIMS.get(stem))
        note = ("" if aim is None else "aim: ") + f"speed of djdyn over that of {key}"
        ratio = rates["djdyn"] / rates[key]
        study.metric(f"rollout.{stem}.vs_{key}", ratio, at_least=aim, note=note)
