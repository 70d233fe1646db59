"""Measurement in a separate process, with its own caches, cores and imports.

`python -m experiments.benchmarks.worker '{"problem": "arm7", ...}'` prints JSON.
"""

import dataclasses
import functools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True)
class Job:
    """A measurement: `kind` is `ends` or `gradients`; `cores` is None for all."""

    problem: str
    kind: str = "ends"
    batch: int = 1
    steps: int = 200
    backend: str | None = None
    cores: int | None = None


def start(job: Job, cache: Path, timeout: float) -> dict[str, float] | None:
    """Return the seconds of the first and of later calls, or None after the timeout.

    `cache` is the folder of the compilation cache, shared between processes.
    """
    command = [sys.executable, "-m", __name__, json.dumps(dataclasses.asdict(job))]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "XDG_CACHE_HOME": str(cache)},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise RuntimeError(f"{job} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(job: Job) -> dict[str, float]:
    """Return the seconds of the first and of later calls in this process."""
    if job.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: job.cores])
    import jax  # it counts cores on import

    from .engines import jaxed, own
    from .problems import problem

    cache = Path(os.environ["XDG_CACHE_HOME"]) / "djdyn"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.block_until_ready(jax.jit(lambda x: x + 1)(1.0))  # starts the backend
    machine = problem(job.problem)
    function, leaves = own.end(machine, job.steps, backend=job.backend)
    args: list[Any] = [*machine.starts(job.batch)]
    if job.kind == "gradients":
        function, args = own.gradient(function), [*args, leaves]
    else:
        function = functools.partial(function, leaves)
    began = time.perf_counter()
    call = jaxed.compiled(function, *args)
    jax.block_until_ready(call())
    first, taken = time.perf_counter() - began, []
    while len(taken) < 5 or sum(taken) < 0.3:
        began = time.perf_counter()
        jax.block_until_ready(call())
        taken.append(time.perf_counter() - began)
    return {"first": first, "later": min(taken)}


if __name__ == "__main__":
    print(json.dumps(measure(Job(**json.loads(sys.argv[1])))))
