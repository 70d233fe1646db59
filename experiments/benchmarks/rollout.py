"""Steps a second of rollouts, alone and in batches, beside every installed peer.

All engines step the same machine by semi-implicit Euler at 1 ms in double precision and
must agree on where it ends before they are timed. Figures are the best of interleaved
repetitions.
"""

from ..harness.study import Study
from .engines import Engine
from .problems import PROBLEMS, Problem, problem
from .race import OPTIONS as COMMON, Field, curves, describe, label, race


TITLE = "Rollouts beside the peers"
STAGES = len(PROBLEMS)
OPTIONS = {**COMMON, "problems": ",".join(PROBLEMS)}

OURS = (1, 4, 16, 64, 256, 1024, 4096)
THEIRS = (1, 64, 1024)
QUICK = (1, 64, 1024)
TOLERANCE = {"": 1e-9}
WANTED = {
    "arm7.single.vs_mujoco": "wanted: at least 2",
    "arm7.batch1024": "wanted: at least 10",
}


def run(study: Study) -> None:
    field = Field(study)
    study.report.text(
        f"Rollouts of {field.steps} steps of 1 ms, semi-implicit Euler, in double "
        "precision. A rate counts steps of all lanes. The spread is how far the middle "
        "one of the repetitions lies above the best."
    )
    names = str(study.options["problems"]).split(",")
    names = names[:1] if study.quick else names
    study.progress.update(study.task, total=len(names))
    for name in names:
        machine = problem(name)
        with study.stage(machine.title):
            one_problem(study, field, machine)
    field.say(study)


def one_problem(study: Study, field: Field, machine: Problem) -> None:
    rates: dict[str, dict[int, float]] = {}
    rows, worst = [], 0.0
    for batch in QUICK if study.quick else OURS:
        who: list[Engine] = field.ours[:1]
        if batch in THEIRS:
            who = [*field.ours, *field.peers]
        what = describe(machine, batch)
        make = lambda e, batch=batch: e.ends(machine, batch, field.steps)
        calls = field.prepare(make, who, what)
        results = {key: call() for key, call in calls.items()}
        gaps = field.agreed(results, TOLERANCE, what)
        timings = race({k: calls[k] for k in gaps}, field.rounds, field.budget)
        worst = max(worst, *gaps.values())
        for key, timing in timings.items():
            rates.setdefault(key, {})[batch] = batch * field.steps / timing.best
            ratio = timing.best / timings["djdyn"].best
            row = (field.names[key], batch, rates[key][batch], ratio)
            rows.append((*row, f"{timing.spread:.0%}", f"{gaps[key]:.1e}"))
        metrics(study, machine, batch, {k: rates[k][batch] for k in timings})
    name = f"rollout.{machine.name}.max_gap"
    study.metric(name, worst, at_most=TOLERANCE[""], note="between engines, at the end")
    curves(
        study,
        f"Throughput: {machine.title}",
        ("batch size", "1"),
        ("rate", "steps/s"),
        {field.names[k]: (list(r), list(r.values())) for k, r in rates.items()},
    )
    header = ["engine", "batch", "steps/s", "djdyn is faster by", "spread", "gap"]
    study.report.table(f"Engines: {machine.title}", header, rows)


def metrics(study: Study, machine: Problem, batch: int, rates: dict[str, float]):
    """Rates, and how many times faster djdyn is."""
    stem = f"{machine.name}.{label(batch)}"
    for key, rate in rates.items():
        own = "" if key == "djdyn" else f"{key}."
        study.metric(f"rollout.{stem}.{own}rate", rate, unit="steps/s")
    for key in (k for k in rates if k != "djdyn"):
        note = WANTED.get(f"{stem}.vs_{key}", WANTED.get(stem, ""))
        ratio = rates["djdyn"] / rates[key]
        study.metric(f"rollout.{stem}.vs_{key}", ratio, note=note)
