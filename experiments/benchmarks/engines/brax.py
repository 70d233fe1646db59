"""Brax in generalized coordinates."""

import importlib
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from ..problems import Problem
from . import jaxed


NAME, PACKAGE = "Brax", "brax"
FREE = "initial state, link inertias"
LIMITS = "machines of hinges"


def _lane(problem: Problem, steps: int) -> tuple[Callable, Any]:
    assert problem.text is not None
    mjcf: Any = importlib.import_module("brax.io.mjcf")
    pipeline: Any = importlib.import_module("brax.generalized.pipeline")
    system = mjcf.loads(problem.text)
    # Its check of the model wants a shape; its default inverse is an approximation.
    system = system.replace(mj_model=None, matrix_inv_iterations=0)
    torques = jnp.asarray(problem.torques)

    def lane(inertia, q, v):
        moved = system.replace(link=system.link.replace(inertia=inertia))
        state = pipeline.init(moved, q, v)
        step = lambda y: pipeline.step(moved, y, torques)
        return jaxed.repeat(step, state, steps).q

    return lane, system.link.inertia


ends, gradients = jaxed.makers(_lane)
