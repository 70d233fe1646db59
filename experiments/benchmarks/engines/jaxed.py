"""Functions shared by all engines in JAX."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..problems import Problem


# XLA's newer fusion emitters merge many small operations into few large kernels. MJX
# was a thousand times slower with them, and only JaxSim was faster. They are off for
# all engines.
OPTIONS: dict[str, str | bool] = {"xla_cpu_use_fusion_emitters": False}


def compiled(function: Callable, *args: Any) -> functools.partial:
    """Return the function, compiled for these arguments and bound to them."""
    args = jax.tree.map(jnp.asarray, args)
    lowered = jax.jit(function).lower(*args)
    try:
        call = lowered.compile(compiler_options=OPTIONS)
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" not in str(error):
            raise
        call = lowered.compile()
    return functools.partial(call, *args)


def ends(lane: Callable, parameters: Any, problem: Problem, batch: int):
    """Return a batch of `lane(parameters, q, v)` with constant parameters."""
    rollout = jax.vmap(functools.partial(lane, parameters))
    return compiled(rollout, *problem.starts(batch))


def gradients(lane: Callable, parameters: Any, problem: Problem, batch: int):
    """Return the gradient by initial states and shared parameters."""

    def loss(q, v, parameters):
        return jnp.sum(jax.vmap(lane, (None, 0, 0))(parameters, q, v) ** 2)

    grad = jax.grad(loss, argnums=(0, 1, 2))
    return compiled(grad, *problem.starts(batch), parameters)


def makers(lane_of: Callable) -> tuple[Callable, Callable]:
    """Return `ends` and `gradients` of an engine with `lane_of(problem, steps)`."""

    def make(maker: Callable, problem: Problem, batch: int, steps: int):
        if problem.text is None:
            return None
        return maker(*lane_of(problem, steps), problem, batch)

    return functools.partial(make, ends), functools.partial(make, gradients)


def repeat(step: Callable, state: Any, steps: int) -> Any:
    """Return the state after some steps."""
    return jax.lax.scan(lambda y, _: (step(y), None), state, None, length=steps)[0]


def euler(acceleration: Callable, q: jax.Array, v: jax.Array, h: float, steps: int):
    """Return final coordinates by semi-implicit Euler, for engines without a step."""

    def step(state):
        q, v = state
        v = v + h * acceleration(q, v)
        return q + h * v, v

    return repeat(step, (q, v), steps)[0]


def memory(call: Any) -> float | None:
    """Return the temporary memory of a compiled call in bytes."""
    if not isinstance(call, functools.partial):
        return None
    found = call.func.memory_analysis()  # pyright: ignore
    return None if found is None else float(found.temp_size_in_bytes)


def order(theirs: list[str], ours: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return indices from our order of joints to theirs, and back."""
    there = np.array([ours.index(name) for name in theirs])
    return there, np.argsort(there)
