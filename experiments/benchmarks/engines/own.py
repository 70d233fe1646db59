"""djdyn, by the kernels it makes or by plain XLA."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import djdyn

from ..problems import STEP, Problem
from . import jaxed


FREE = "initial state, all link parameters"
_OPTIONS = inspect.signature(djdyn.rollout).parameters
BACKENDS: tuple[tuple[str, str, str | None], ...] = (("djdyn", "djdyn", None),)
if "backend" in _OPTIONS:
    BACKENDS += (("xla", "djdyn, plain XLA", "xla"),)
MEMORIES = ("all", "sqrt") if "remember" in _OPTIONS else ()


def end(problem: Problem, steps: int, **options: Any) -> tuple[Callable, list]:
    """From link parameters and starts `[lane, ...]` to final coordinates.

    `options` are those of `djdyn.rollout`; None leaves its default.
    """
    system = problem.build()
    free, fixed = eqx.partition(system.mechanism.bodies, eqx.is_inexact_array)
    leaves, tree = jax.tree.flatten(free)
    parts = system.initial_state().parts
    options = {k: x for k, x in options.items() if x is not None and k in _OPTIONS}

    def ends(leaves: list, q: jax.Array, v: jax.Array) -> jax.Array:
        bodies = eqx.combine(jax.tree.unflatten(tree, leaves), fixed)
        machine = eqx.tree_at(lambda s: s.mechanism.bodies, system, bodies)
        trajectory = djdyn.rollout(
            machine,
            STEP * steps,
            djdyn.State(q, v, parts),
            saveat=np.array([STEP * steps]),
            solver="semi_implicit",
            dt=STEP,
            **options,
        )
        return trajectory.y.q[:, -1]

    return ends, leaves


def gradient(function: Callable) -> Callable:
    """Of the sum of all final coordinates squared, to the starts and the links."""
    loss = lambda q, v, leaves: jnp.sum(function(leaves, q, v) ** 2)
    return jax.grad(loss, argnums=(0, 1, 2))


def ends(problem: Problem, batch: int, steps: int, **options: Any):
    function, leaves = end(problem, steps, **options)
    forward = functools.partial(function, leaves)  # constants, as for the peers
    return jaxed.compiled(forward, *problem.starts(batch))


def gradients(problem: Problem, batch: int, steps: int, **options: Any):
    function, leaves = end(problem, steps, **options)
    return jaxed.compiled(gradient(function), *problem.starts(batch), leaves)
