"""Compile time of rollouts and their gradients, cold, from the cache, and by bodies.

Each figure is the first call in a fresh process, less a later one: tracing, lowering
and compiling, without imports and without building the model.
"""

import tempfile
from pathlib import Path

import numpy as np

from ..harness.study import Study
from .engines import own
from .race import curves
from .worker import Job, start


TITLE = "Compile time"
STAGES = 3
OPTIONS = {"problem": "arm7", "timeout": 300}

BODIES = (5, 10, 20, 35, 50)
KINDS = {"ends": "seconds", "gradients": "gradient_seconds"}
WANTED = {"seconds": 5.0, "gradient_seconds": 15.0}


def run(study: Study) -> None:
    name, timeout = str(study.options["problem"]), float(study.options["timeout"])
    backends = own.BACKENDS[:1] if study.quick else own.BACKENDS
    with study.stage("cold"), tempfile.TemporaryDirectory() as folder:
        for key, _, backend in backends:
            stem = f"compile.{name}" + ("" if key == "djdyn" else f".{key}")
            for kind, shown in KINDS.items():
                job = Job(name, kind, backend=backend)
                cold = start(job, Path(folder, key), timeout)
                if cold is None:
                    study.report.text(f"{stem}.{shown}: not done in {timeout:g} s.")
                    continue
                seconds, note = cold["first"] - cold["later"], ""
                if key == "djdyn":
                    note = f"wanted: under {WANTED[shown]:g}"
                study.metric(f"{stem}.{shown}", seconds, unit="s", note=note)
                cached(study, job, Path(folder, key), f"{stem}.", shown, timeout)
    with study.stage("bodies, forward"):
        by_bodies(study, "ends", timeout)
    with study.stage("bodies, gradient"):
        if not study.quick:
            by_bodies(study, "gradients", timeout)


def cached(study: Study, job: Job, cache: Path, stem: str, shown: str, timeout: float):
    """The first call of a second process, which finds what the first one left."""
    warm = start(job, cache, timeout)
    if warm is not None:
        name = f"{stem}cached_{shown}"
        note = "first call, wanted: under 0.2" if job.kind == "ends" else "first call"
        study.metric(name, warm["first"], unit="s", note=note)


def by_bodies(study: Study, kind: str, timeout: float) -> None:
    """Chains of more and more bodies; a backend stops where its time runs out."""
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
            study.metric(f"{stem}.{what}", slope, note="in bodies; linear is 1")
    if lines:
        what = {"ends": "rollout", "gradients": "gradient"}[kind]
        axes = (("bodies", "1"), ("compile time", "s"))
        curves(study, f"Compile time of a {what} of a chain", *axes, lines)
