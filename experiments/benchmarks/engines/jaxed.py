"""What all engines in JAX share."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..problems import Problem


# XLA's newer fusion turns code of many tiny operations into a few huge kernels: MJX ran
# a thousand times slower with it, and only one engine was ever faster (JaxSim, alone).
# All engines go without.
OPTIONS: dict[str, str | bool] = {"xla_cpu_use_fusion_emitters": False}


def compiled(function: Callable, *args: Any) -> functools.partial:
    """The function, compiled for these arguments and bound to them."""
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
    """A batch of `lane(parameters, q, v)`; the parameters are constants."""
    rollout = jax.vmap(functools.partial(lane, parameters))
    return compiled(rollout, *problem.starts(batch))


def gradients(lane: Callable, parameters: Any, problem: Problem, batch: int):
    """To the starts of each lane, and to the parameters, which they share."""

    def loss(q, v, parameters):
        return jnp.sum(jax.vmap(lane, (None, 0, 0))(parameters, q, v) ** 2)

    grad = jax.grad(loss, argnums=(0, 1, 2))
    return compiled(grad, *problem.starts(batch), parameters)


def makers(lane_of: Callable) -> tuple[Callable, Callable]:
    """`ends` and `gradients` of an engine that has `lane_of(problem, steps)`."""

    def make(maker: Callable, problem: Problem, batch: int, steps: int):
        if problem.text is None:
            return None
        return maker(*lane_of(problem, steps), problem, batch)

    return functools.partial(make, ends), functools.partial(make, gradients)


def repeat(step: Callable, state: Any, steps: int) -> Any:
    """The state after so many steps."""
    return jax.lax.scan(lambda y, _: (step(y), None), state, None, length=steps)[0]


def euler(acceleration: Callable, q: jax.Array, v: jax.Array, h: float, steps: int):
    """Final coordinates by semi-implicit Euler, for a library without a step."""

    def step(state):
        q, v = state
        v = v + h * acceleration(q, v)
        return q + h * v, v

    return repeat(step, (q, v), steps)[0]


def memory(call: Any) -> float | None:
    """Bytes that a compiled call takes beside its inputs and outputs."""
    if not isinstance(call, functools.partial):
        return None
    found = call.func.memory_analysis()  # pyright: ignore
    return None if found is None else float(found.temp_size_in_bytes)


def order(theirs: list[str], ours: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Rows that bring our joints into their order, and back."""
    there = np.array([ours.index(name) for name in theirs])
    return there, np.argsort(there)
