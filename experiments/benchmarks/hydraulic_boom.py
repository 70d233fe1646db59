"""Speed of a lifted boom under 256 conditions, its gradient, and a valve step.

The boom is that of Baharudin 2016, with stiff oil, air, a leak and friction; it has
linearly implicit steps of 2 ms in kernels. The valve step on 1 ml of oil has adaptive
steps and is compared with Exudyn.
"""

import os
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
from .timing import fastest


TITLE = "Hydraulic boom: batches, gradients, and Exudyn"
STAGES = 4
OPTIONS = {"rounds": 5, "batch": 256}

SPAN, STEP = 2.0, 2e-3  # s
RANGES = {  # of the parameters, over their nominal values
    "oil.oil.bulk_modulus": (0.7, 1.3),
    "oil.valve.gain": (0.8, 1.2),
    "oil.leak.conductance": (0.5, 3.0),
    "oil.lift.friction.viscous": (0.5, 2.0),
    "oil.lift.friction.coulomb": (0.5, 2.0),
}


def conditions(system: djdyn.System, batch: int) -> dict[str, Array]:
    """Return random parameters of a batch."""
    rng = np.random.default_rng(0)
    scales = {k: rng.uniform(low, high, batch) for k, (low, high) in RANGES.items()}
    return {
        k: djdyn.get_parameters(system, k) * jnp.asarray(x) for k, x in scales.items()
    }


@eqx.filter_jit
def lift(system: djdyn.System, lanes: dict[str, Array]) -> Array:
    """Return the final angles of the booms."""
    how: dict[str, Any] = {"solver": "rodas4", "dt": STEP, "saveat": [0.0, SPAN]}
    return djdyn.rollout(system, SPAN, parameters=lanes, **how).y.q[:, -1, 0]


@eqx.filter_jit
def slope(system: djdyn.System, lanes: dict[str, Array]) -> dict[str, Array]:
    """Return the gradient of the mean squared distance from 0.2 rad."""
    miss = lambda lanes: jnp.mean((lift(system, lanes) - 0.2) ** 2)
    return jax.grad(miss)(lanes)


@eqx.filter_jit
def steps_of_a_valve(system: djdyn.System, gains: Array) -> Array:
    """Return pressures after 1 s of valve steps with valves of many sizes, bar."""
    how = {"solver": "rodas4", "rtol": 1e-5, "atol": 1e-5, "max_steps": 2048}
    lanes, saves = {"oil.valve.gain": gains}, [0.0, 1.0]
    run = djdyn.rollout(system, 1.0, parameters=lanes, saveat=saves, **how)
    oil = run.y.parts["oil"]
    return jnp.stack([oil["A.bar"][:, -1], oil["B.bar"][:, -1]], 1)


def run(study: Study) -> None:
    """Time one boom, a batch, its gradients and the valve step."""
    rounds, batch = int(study.options["rounds"]), int(study.options["batch"])
    batch, cores = (16 if study.quick else batch), len(os.sched_getaffinity(0))
    system, stem, steps = machine(), "hydraulic_boom.speed", round(SPAN / STEP)
    study.report.text(
        f"Best of {rounds} runs, double precision, {cores} cores. Times do not include "
        "compilation."
    )
    lanes = conditions(system, batch)
    one = {k: x[:1] for k, x in lanes.items()}
    with study.stage("one boom"):
        taken = fastest(lambda: lift(system, one), rounds)
        note = f"one boom of five states and five outputs, steps of {1e3 * STEP:g} ms"
        study.metric(f"{stem}.one.realtime", SPAN / taken, note=note)
    with study.stage(f"{batch} booms"):
        taken = fastest(lambda: lift(system, lanes), rounds)
        rate = batch * steps / taken
        note = "linearly implicit steps in kernels"
        name = f"{stem}.batch{batch}"
        study.metric(f"{name}.steps_per_s", rate, note=note)
        study.metric(
            f"{name}.realtime",
            batch * SPAN / taken,
            note="simulated over elapsed time, sum of all booms",
        )
    with study.stage("gradients"):
        again = fastest(lambda: slope(system, lanes), rounds)
        note = f"reverse mode, {len(lanes)} parameters of each boom, over a forward run"
        study.metric(f"{name}.gradient_ratio", again / taken, note=note)
        finite = [np.mean(np.isfinite(x)) for x in slope(system, lanes).values()]
        note = "share of finite gradients"
        study.metric(f"{name}.finite", np.mean(finite), at_least=1.0, note=note)
    with study.stage("valve step beside Exudyn"):
        compare_with_exudyn(study)
        many_valves(study, rounds, batch, cores)


def many_valves(study: Study, rounds: int, batch: int, cores: int) -> None:
    """Time a batch of the stiffest valve step with valves of many sizes."""
    system, name = valve_step(1e-6), f"hydraulic_boom.hyd1.batch{batch}"
    gains = jnp.asarray(1e-7 * np.linspace(0.8, 1.2, batch))
    taken = fastest(lambda: steps_of_a_valve(system, gains), rounds)
    v = [np.roots([2 * (2e-3 / g) ** 2, 1e6, -199 * BAR]).max() for g in gains]
    drop = (2e-3 * np.array(v) / np.asarray(gains)) ** 2 / BAR
    known = np.stack([200 - drop, 1 + drop], 1)
    off = np.abs(steps_of_a_valve(system, gains) - known).max()
    note = "largest error of the steady pressures, exact"
    study.metric(f"{name}.max_error_bar", off, at_most=0.01, unit="bar", note=note)
    study.metric(
        f"{name}.realtime",
        batch / taken,
        note="simulated over elapsed time, sum of all runs",
    )
    try:
        theirs = min(peer.valve_step(1e-6, peer.Setting())[1] for _ in range(rounds))
    except ImportError:
        return
    note = f"speed over that of Exudyn, as if it ran on each of {cores} cores"
    study.metric(f"{name}.vs_exudyn", batch / taken * theirs / cores, note=note)
