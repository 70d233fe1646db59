"""MJX: MuJoCo in JAX."""

import importlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..problems import Problem
from . import jaxed


NAME, PACKAGE = "MJX", "mujoco.mjx"
FREE = "initial state, link masses, centres and moments"
LIMITS = "machines of hinges"


def _lane(problem: Problem, steps: int) -> tuple[Callable, dict[str, jax.Array]]:
    assert problem.text is not None
    mujoco: Any = importlib.import_module("mujoco")
    mjx: Any = importlib.import_module("mujoco.mjx")
    compiled = mujoco.MjModel.from_xml_string(problem.text)
    model, data = mjx.put_model(compiled), mjx.make_data(compiled)
    data = data.replace(ctrl=jnp.asarray(problem.torques))
    parameters = {k: getattr(model, f"body_{k}") for k in ("mass", "ipos", "inertia")}

    def lane(parameters, q, v):
        moved = model.replace(**{f"body_{k}": x for k, x in parameters.items()})
        state = data.replace(qpos=q, qvel=v)
        return jaxed.repeat(lambda y: mjx.step(moved, y), state, steps).qpos

    return lane, parameters


ends, gradients = jaxed.makers(_lane)
