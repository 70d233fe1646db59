"""GPU readiness: lowering for CUDA, work per step, and single precision.

No GPU is needed: rollouts and gradients are lowered for CUDA, operations and bytes of a
step are counted in XLA's optimised program, and single precision is compared with
double.
"""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import djdyn

from ..harness.study import Study
from .problems import STEP, Problem, problem


TITLE = "GPU readiness"
STAGES = 3
OPTIONS = {"problem": "arm7", "batch": 1024}

LENGTHS = (1, 10, 100, 200, 500, 1000)
NO_WORK = ("parameter", "tuple", "get-tuple-element", "constant", "bitcast", "copy")


def run(study: Study) -> None:
    """Report lowering, work per step and precision of a problem."""
    machine = problem(str(study.options["problem"]))
    batch = int(study.options["batch"])
    with study.stage("lowering"):
        lowering(study, machine, batch)
    with study.stage("work per step"):
        work(study, machine, batch)
    with study.stage("single precision"):
        precision(study, machine)


def ends(machine: Problem, steps: int):
    """Return a function from initial states to final coordinates, by XLA."""
    system = machine.build()
    parts = system.initial_state().parts

    def fn(q: jax.Array, v: jax.Array) -> jax.Array:
        return djdyn.rollout(
            system,
            STEP * steps,
            djdyn.State(q, v, parts),
            saveat=np.array([STEP * steps]),
            solver="semi_implicit",
            dt=STEP,
            backend="xla",
        ).y.q[:, -1]

    return fn


def lowering(study: Study, machine: Problem, batch: int) -> None:
    """Count host callbacks in rollouts and gradients lowered for CUDA."""
    rows = []
    for bits in (64, 32):
        with jax.enable_x64(bits == 64):
            fn = ends(machine, 200)
            loss = lambda q, v, fn=fn: jnp.sum(fn(q, v) ** 2)
            starts = [jnp.asarray(x, float) for x in machine.starts(batch)]
            for kind, f in {"rollout": fn, "gradient": jax.grad(loss, (0, 1))}.items():
                exported = jax.export.export(jax.jit(f), platforms=["cuda"])(*starts)
                text = exported.mlir_module()
                calls = len(re.findall("callback", text))
                name = f"gpu.{machine.name}.{kind}.float{bits}.callbacks"
                study.metric(name, calls, at_most=0, note="host callbacks")
                rows.append((kind, f"float{bits}", len(text.splitlines()), calls))
    header = ["function", "precision", "lines of StableHLO", "host callbacks"]
    study.report.table("Lowered for CUDA", header, rows)


def work(study: Study, machine: Problem, batch: int) -> None:
    """Count kernel launches and bytes in XLA's optimised program."""
    starts = machine.starts(batch)
    compiled = jax.jit(ends(machine, 200)).lower(*starts).compile()
    text = compiled.as_text() or ""
    body = re.search(r"body=%?([\w.\-]+)", text)
    assert body is not None
    inside = text.split(f"%{body[1]} ", 1)[1].split("\n}", 1)[0]
    ops = re.findall(r"= \S+ ([\w\-]+)\(", inside)
    launches = sum(op not in NO_WORK for op in ops)
    one: Any = jax.jit(ends(machine, 1)).lower(*starts).compile().cost_analysis()
    moved = float(one["bytes accessed"]) / batch
    stem = f"gpu.{machine.name}"
    study.metric(
        f"{stem}.launches_a_step", launches, note="fusions and matrix products"
    )
    study.metric(
        f"{stem}.bytes_a_step", moved, unit="B", note="per lane, between fusions"
    )


def precision(study: Study, machine: Problem) -> None:
    """Report the error of single precision by the number of steps."""
    errors = []
    for steps in LENGTHS:
        found = []
        for bits in (64, 32):
            with jax.enable_x64(bits == 64):
                starts = [jnp.asarray(x, float) for x in machine.starts(1)]
                found.append(np.asarray(ends(machine, steps)(*starts), float))
        errors.append(float(np.abs(found[1] - found[0]).max()))
    stem = f"gpu.{machine.name}.float32"
    study.metric(
        f"{stem}.error1000",
        errors[-1],
        unit="rad",
        note="largest error after 1000 steps of 1 ms",
    )
    study.report.plot(
        f"Single precision against double: {machine.title}",
        ("steps", "1", list(LENGTHS)),
        ("largest error of a coordinate", "rad"),
        {"float32": (list(LENGTHS), errors)},
        log="xy",
    )
