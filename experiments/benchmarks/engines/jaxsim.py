"""JaxSim: its articulated-body algorithm with our Euler steps."""

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import descriptions
from ..problems import STEP, Problem
from . import jaxed


NAME, PACKAGE = "JaxSim", "jaxsim"
FREE = "initial state, link masses, centres and moments"
LIMITS = "machines of hinges"


def _lane(problem: Problem, steps: int) -> tuple[Callable, Any]:
    said = np.get_printoptions()
    js: Any = importlib.import_module("jaxsim.api")
    rbda: Any = importlib.import_module("jaxsim.rbda")
    np.set_printoptions(**said)  # it sets its own on import
    mechanism = problem.build().mechanism
    model = js.model.JaxSimModel.build_from_model_description(
        descriptions.sdf(mechanism), is_urdf=False, gravity=9.81
    )
    names = list(model.joint_names())
    there, back = jaxed.order(names, list(mechanism.joint_names))
    torques = jnp.asarray(problem.torques[there])
    zero, links = jnp.zeros(3), model.kin_dyn_parameters.link_parameters

    def lane(parameters, q, v):
        moved = dataclasses.replace(links, **parameters)
        numbers = dataclasses.replace(model.kin_dyn_parameters, link_parameters=moved)
        changed = dataclasses.replace(model, kin_dyn_parameters=numbers)

        def acceleration(q, v):  # as `forward_dynamics_aba`, without its kinematics
            base = {"base_position": zero, "base_quaternion": jnp.eye(4)[0]}
            base |= {"base_linear_velocity": zero, "base_angular_velocity": zero}
            return rbda.aba(
                changed,
                **base,
                joint_positions=q,
                joint_velocities=v,
                joint_forces=torques,
                joint_transforms=numbers.joint_transforms(q, jnp.eye(4)),
                standard_gravity=changed.gravity,
            )[1]

        return jaxed.euler(acceleration, q[there], v[there], STEP, steps)[back]

    free = ("mass", "center_of_mass", "inertia_elements")
    return lane, {name: getattr(links, name) for name in free}


ends, gradients = jaxed.makers(_lane)
