"""djdyn, with compiled kernels or plain XLA."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import djdyn

from ..problems import STEP, Problem
from . import jaxed


FREE = "initial state; mass, centre and inertia of all links"
ALL_FREE = FREE + "; placement and axis of all joints"
BACKENDS = (("djdyn", "djdyn", None), ("xla", "djdyn, plain XLA", "xla"))
CHECKPOINTS = ("all", "sqrt")


def end(
    problem: Problem, steps: int, placements: bool = False, **options: Any
) -> tuple[Callable, list]:
    """Return a function from parameters and initial states to final coordinates.

    With `placements`, the parameters include those of the joints. `options` are those
    of `djdyn.rollout`; None is its default.
    """
    system = problem.build()
    bodies = lambda s: s.mechanism.bodies
    inertial = lambda bodies: [x for b in bodies for x in (b.mass, b.p_BC, b.I_BC)]
    chosen: Any = eqx.is_inexact_array
    if not placements:
        chosen = jax.tree.map(lambda _: False, bodies(system))
        chosen = eqx.tree_at(inertial, chosen, [True] * len(inertial(chosen)))
    free, fixed = eqx.partition(bodies(system), chosen)
    leaves, tree = jax.tree.flatten(free)
    parts = system.initial_state().parts
    options = {k: x for k, x in options.items() if x is not None}

    def ends(leaves: list, q: jax.Array, v: jax.Array) -> jax.Array:
        links = eqx.combine(jax.tree.unflatten(tree, leaves), fixed)
        machine = eqx.tree_at(bodies, system, links)
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
    """Return the gradient of the sum of squared final coordinates."""
    loss = lambda q, v, leaves: jnp.sum(function(leaves, q, v) ** 2)
    return jax.grad(loss, argnums=(0, 1, 2))


def ends(problem: Problem, batch: int, steps: int, **options: Any):
    """Return the final coordinates of a batch."""
    function, leaves = end(problem, steps, **options)
    forward = functools.partial(function, leaves)  # constants, as for the peers
    return jaxed.compiled(forward, *problem.starts(batch))


def gradients(problem: Problem, batch: int, steps: int, **options: Any):
    """Return the gradient by initial states and parameters."""
    function, leaves = end(problem, steps, **options)
    return jaxed.compiled(gradient(function), *problem.starts(batch), leaves)
