"""A boom lifted under 256 conditions, its gradient, and HYD-1 beside Exudyn.

The boom is V15 with stiff oil, air, a leak and friction, by linearly implicit steps of
2 ms in kernels; HYD-1 is a valve that opens on 1 ml, by steps that adapt.
"""

import os
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn

from ..harness import exudyn_peer as peer
from ..harness.study import Study
from ..studies.hydraulic_boom.comparison import compare_with_exudyn
from ..studies.hydraulic_boom.energy_balance import machine
from ..studies.hydraulic_boom.model import BAR, valve_step


TITLE = "Hydraulic boom: batches, gradients, and Exudyn"
STAGES = 4
OPTIONS = {"rounds": 5, "batch": 256}

SPAN, STEP = 2.0, 2e-3  # s
RANGES = {  # of the conditions, over the machine's own
    "oil.oil.bulk_modulus": (0.7, 1.3),
    "oil.valve.gain": (0.8, 1.2),
    "oil.leak.conductance": (0.5, 3.0),
    "oil.lift.friction.viscous": (0.5, 2.0),
    "oil.lift.friction.coulomb": (0.5, 2.0),
}


def conditions(system: djdyn.System, batch: int) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    scales = {k: rng.uniform(low, high, batch) for k, (low, high) in RANGES.items()}
    return {
        k: djdyn.get_parameters(system, k) * jnp.asarray(x) for k, x in scales.items()
    }


@eqx.filter_jit
def lift(system: djdyn.System, lanes: dict[str, Array]) -> Array:
    """Angles of the boom at the end."""
    how: dict[str, Any] = {"solver": "rodas4", "dt": STEP, "saveat": [0.0, SPAN]}
    return djdyn.rollout(system, SPAN, parameters=lanes, **how).y.q[:, -1, 0]


@eqx.filter_jit
def slope(system: djdyn.System, lanes: dict[str, Array]) -> dict[str, Array]:
    """Of how far the booms end from 0.2 rad, by everything that differs."""
    miss = lambda lanes: jnp.mean((lift(system, lanes) - 0.2) ** 2)
    return jax.grad(miss)(lanes)


@eqx.filter_jit
def steps_of_a_valve(system: djdyn.System, gains: Array) -> Array:
    """HYD-1 with valves of many sizes; pressures after 1 s, bar."""
    how = {"solver": "rodas4", "rtol": 1e-5, "atol": 1e-5, "max_steps": 2048}
    lanes, saves = {"oil.valve.gain": gains}, [0.0, 1.0]
    run = djdyn.rollout(system, 1.0, parameters=lanes, saveat=saves, **how)
    oil = run.y.parts["oil"]
    return jnp.stack([oil["A.bar"][:, -1], oil["B.bar"][:, -1]], 1)


def best(rounds: int, run: Callable[[], Any]) -> float:
    """Seconds of the fastest of some runs, after one that compiles."""
    jax.block_until_ready(run())
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - began)
    return min(times)


def run(study: Study) -> None:
    rounds, batch = int(study.options["rounds"]), int(study.options["batch"])
    batch, cores = (16 if study.quick else batch), len(os.sched_getaffinity(0))
    system, stem, steps = machine(), "hydraulic_boom.speed", round(SPAN / STEP)
    study.report.text(
        f"Best of {rounds} runs, double precision, {cores} cores; compiling is not in "
        "the times."
    )
    lanes = conditions(system, batch)
    one = {k: x[:1] for k, x in lanes.items()}
    with study.stage("one boom"):
        taken = best(rounds, lambda: lift(system, one))
        note = f"one boom of five states and five outputs, steps of {1e3 * STEP:g} ms"
        study.metric(f"{stem}.one.realtime", SPAN / taken, note=note)
    with study.stage(f"{batch} booms"):
        taken = best(rounds, lambda: lift(system, lanes))
        rate = batch * steps / taken
        note = "linearly implicit steps in kernels"
        name = f"{stem}.batch{batch}"
        study.metric(f"{name}.steps_per_s", rate, note=note)
        study.metric(f"{name}.realtime", batch * SPAN / taken, note="sum of all booms")
    with study.stage("gradients"):
        again = best(rounds, lambda: slope(system, lanes))
        note = f"reverse, by {len(lanes)} numbers of each boom, over the run alone"
        study.metric(f"{name}.gradient_ratio", again / taken, note=note)
        finite = [np.mean(np.isfinite(x)) for x in slope(system, lanes).values()]
        note = "share of the gradients that are finite"
        study.metric(f"{name}.finite", np.mean(finite), at_least=1.0, note=note)
    with study.stage("HYD-1 beside Exudyn"):
        compare_with_exudyn(study)
        many_valves(study, rounds, batch, cores)


def many_valves(study: Study, rounds: int, batch: int, cores: int) -> None:
    """The stiffest HYD-1 with valves of many sizes."""
    system, name = valve_step(1e-6), f"hydraulic_boom.hyd1.batch{batch}"
    gains = jnp.asarray(1e-7 * np.linspace(0.8, 1.2, batch))
    taken = best(rounds, lambda: steps_of_a_valve(system, gains))
    v = [np.roots([2 * (2e-3 / g) ** 2, 1e6, -199 * BAR]).max() for g in gains]
    drop = (2e-3 * np.array(v) / np.asarray(gains)) ** 2 / BAR
    known = np.stack([200 - drop, 1 + drop], 1)
    off = np.abs(steps_of_a_valve(system, gains) - known).max()
    note = "from the steady pressures, exact"
    study.metric(f"{name}.max_error_bar", off, at_most=0.01, unit="bar", note=note)
    study.metric(f"{name}.realtime", batch / taken, note="sum of all runs")
    try:
        theirs = min(peer.valve_step(1e-6, peer.Setting())[1] for _ in range(rounds))
    except ImportError:
        return
    note = f"as if Exudyn ran on {cores} cores, one run each: it has no batches"
    study.metric(f"{name}.vs_exudyn", batch / taken * theirs / cores, note=note)
