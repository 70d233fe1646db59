"""Real-time factor of the Titan 4, simulated one sample at a time."""

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
    """Time arm, circuits and sampled controller, with one call per sample."""
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
        at_least=1.0,
        note=f"aim: simulated over elapsed time, {count} samples of 1 ms on one core",
    )
    study.metric(
        "titan4.step_99th_percentile", worst, unit="ms", note="time of a sample of 1 ms"
    )
    study.report.plot(
        "Distribution of the time for a sample of 1 ms",
        ("share of samples", "", np.linspace(0.0, 1.0, 200)),
        ("time", "ms"),
        {"sample": 1e3 * np.quantile(taken, np.linspace(0.0, 1.0, 200))},
        log="y",
    )
