"""Compile time of rollouts and gradients: cold, from the cache, and by bodies.

The compile time is that of the first call in a new process less a later one: tracing,
lowering and compiling, without imports and without building the model.
"""

import tempfile
from pathlib import Path

import numpy as np

from ..harness.study import Study
from .engines import own
from .timing import curves
from .worker import Job, start


TITLE = "Compile time"
STAGES = 3
OPTIONS = {"problem": "arm7", "timeout": 300}

BODIES = (5, 10, 20, 35, 50)
KINDS = {"ends": "seconds", "gradients": "gradient_seconds"}
AIMS = {"seconds": 5.0, "gradient_seconds": 15.0}  # s
CACHED_AIM = 0.2  # s


def run(study: Study) -> None:
    """Measure cold and cached compile times, and their growth with bodies."""
    name, timeout = str(study.options["problem"]), float(study.options["timeout"])
    backends = own.BACKENDS[:1] if study.quick else own.BACKENDS
    with study.stage("cold"), tempfile.TemporaryDirectory() as folder:
        for key, _, backend in backends:
            stem = f"compile.{name}" + ("" if key == "djdyn" else f".{key}")
            for kind, shown in KINDS.items():
                job = Job(name, kind, backend=backend)
                cold = start(job, Path(folder, key), timeout)
                if cold is None:
                    study.report.text(f"{stem}.{shown} took more than {timeout:g} s.")
                    continue
                seconds, ours = cold["first"] - cold["later"], key == "djdyn"
                study.metric(
                    f"{stem}.{shown}",
                    seconds,
                    at_most=AIMS[shown] if ours else None,
                    unit="s",
                    note="aim: cold compile time" if ours else "cold compile time",
                )
                cached(study, job, Path(folder, key), f"{stem}.", shown, timeout)
    with study.stage("bodies, forward"):
        by_bodies(study, "ends", timeout)
    with study.stage("bodies, gradient"):
        if not study.quick:
            by_bodies(study, "gradients", timeout)


def cached(study: Study, job: Job, cache: Path, stem: str, shown: str, timeout: float):
    """Report the first call of a second process, which uses the cache of the first."""
    warm = start(job, cache, timeout)
    if warm is not None:
        name = f"{stem}cached_{shown}"
        forward = job.kind == "ends"
        study.metric(
            name,
            warm["first"],
            at_most=CACHED_AIM if forward else None,
            unit="s",
            note="aim: first call with a filled cache" if forward else "first call",
        )


def by_bodies(study: Study, kind: str, timeout: float) -> None:
    """Report compile times of chains by bodies, up to the time limit."""
    lines = {}
    for key, name, backend in own.BACKENDS[:1] if study.quick else own.BACKENDS:
        sizes, seconds = [], []
        for bodies in BODIES[:2] if study.quick else BODIES:
            with tempfile.TemporaryDirectory() as folder:
                job = Job(f"chain{bodies}", kind, backend=backend)
                cold = start(job, Path(folder), timeout)
            if cold is None:
                study.report.text(
                    f"{name}: {bodies} bodies took more than {timeout:g} s."
                )
                break
            sizes.append(bodies)
            seconds.append(cold["first"] - cold["later"])
            stem = f"compile.chain{bodies}" + ("" if key == "djdyn" else f".{key}")
            study.metric(f"{stem}.{KINDS[kind]}", seconds[-1], unit="s")
        if len(sizes) > 1:
            lines[name] = (sizes, seconds)
            slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
            stem = "compile.chain" + ("" if key == "djdyn" else f".{key}")
            what = KINDS[kind].replace("seconds", "exponent")
            study.metric(
                f"{stem}.{what}",
                slope,
                note="exponent in the number of bodies; 1 is linear",
            )
    if lines:
        what = {"ends": "rollout", "gradients": "gradient"}[kind]
        axes = (("bodies", "1"), ("compile time", "s"))
        curves(study, f"Compile time of a {what} of a chain", *axes, lines)
