"""frax: its forward dynamics with our Euler steps; its links are constants."""

import importlib
import tempfile
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .. import descriptions
from ..problems import STEP, Problem
from . import jaxed


NAME, PACKAGE = "frax", "frax"
FREE = "initial state, torques"
LIMITS = "machines of hinges"


def _lane(problem: Problem, steps: int) -> tuple[Callable, jax.Array]:
    frax: Any = importlib.import_module("frax")
    mechanism = problem.build().mechanism
    with tempfile.NamedTemporaryFile("w", suffix=".urdf") as file:
        file.write(descriptions.urdf(mechanism))
        file.flush()
        robot = frax.Robot(file.name)
    there, back = jaxed.order(list(robot.joint_names), list(mechanism.joint_names))

    def lane(torques, q, v):
        tau = torques[there]
        acceleration = lambda q, v: robot.forward_dynamics(q, v, tau, None)
        return jaxed.euler(acceleration, q[there], v[there], STEP, steps)[back]

    return lane, jnp.asarray(problem.torques)


ends, gradients = jaxed.makers(_lane)
