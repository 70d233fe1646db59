"""The Titan 4 at the pace of its sticks: how long a sample of a millisecond takes."""

import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from djdyn.simulation.solvers.fixed_step import Clock, march_sampled
from djdyn.simulation.vector_field import Field

from ...harness.study import Study
from . import model as titan
from .operator_inputs import sticks


PERIOD = 1e-3  # s


def run(study: Study) -> None:
    """Arm, circuits and sampled controller, sample by sample, sticks in, state out."""
    system = study.customise(titan.build())
    flat, unravel = ravel_pytree((system.initial_state(), jnp.zeros(0)))

    @jax.jit
    def tick(flat: Array, held: Array) -> Array:
        field = Field(system, {"sticks": held}, {}, unravel, False)
        clock = Clock(0.0, PERIOD, PERIOD)
        return march_sampled(field, flat, "rk4", clock, PERIOD)[0][-1]

    count = 1000 if study.quick else 5000
    operator = jax.vmap(sticks())(PERIOD * jnp.arange(float(count)))
    orders = list(np.asarray(operator))
    tick(flat, orders[0]).block_until_ready()
    taken = []
    for held in orders:
        began = time.perf_counter()
        flat = tick(flat, held).block_until_ready()
        taken.append(time.perf_counter() - began)
    worst = 1e3 * np.percentile(taken, 99)
    study.metric(
        "titan4.realtime_factor",
        count * PERIOD / sum(taken),
        note=f"{count} samples of 1 ms on one core, one call each; wanted: above 1",
    )
    study.metric(
        "titan4.step_99th_percentile", worst, unit="ms", note="of a sample of 1 ms"
    )
    study.report.plot(
        "How long a sample of a millisecond takes",
        ("share of samples", "", np.linspace(0.0, 1.0, 200)),
        ("time", "ms"),
        {"sample": 1e3 * np.quantile(taken, np.linspace(0.0, 1.0, 200))},
        log="y",
    )
