"""Checks of what a simulation starts from and is driven by."""

import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ..multibody.assembly import open_loop
from ..multibody.kinematics import forward_kinematics
from ..multibody.singular import may_be_singular, why_singular
from ..parts.base import ChecksStart
from ..system.signals import input_values
from ..system.state import State
from ..system.system import System
from ..typing import Number, known
from .options import SimulationOptions
from .vector_field import Inputs


STATE_MISFIT = "the initial state does not fit the system: start from initial_state()"

SINGLE_TOLERANCE = 1e-6  # the least that steps in single precision can keep

_warned_of_single: set[str] = set()


def warn_of_single_precision(what: str, instead: str = "", stacklevel: int = 2) -> None:
    """Warn, once for each of `what`, that it needs double precision.

    **Arguments:**

    - `instead`: what else would help.
    """
    if what not in _warned_of_single:
        _warned_of_single.add(what)
        warnings.warn(
            f"in single precision {what}: call jax.config.update('jax_enable_x64', "
            f"True) before the first array is made{instead}",
            stacklevel=stacklevel + 1,
        )


def check_tolerances(options: SimulationOptions, y: State) -> None:
    """Warn where steps are to follow tolerances that single precision cannot keep."""
    rtol, atol = options.rtol, options.atol
    if options.dt is None and known(rtol, atol) and y.v.dtype == jnp.float32:
        least = min(float(rtol), float(np.min(atol)))
        if least < SINGLE_TOLERANCE:
            what = f"steps cannot keep a tolerance of {least:.2g}"
            instead = ", or ask for rtol=1e-5, atol=1e-5"
            warn_of_single_precision(what, instead, stacklevel=3)


def check_inputs(system: System, inputs: Inputs | None) -> None:
    """Raises unless every input that is given is one of the system's."""
    for name, value in (inputs or {}).items():
        if name not in system.inputs:
            there = ", ".join(system.inputs) or "none"
            raise ValueError(f"the system has no input {name!r}; there are {there}")
        at = lambda v=value: input_values({"x": v}, jnp.zeros(()))["x"]
        shape, wanted = jax.eval_shape(at).shape, system.inputs[name].shape
        if shape != wanted:
            raise ValueError(f"input {name!r} has shape {shape}, expected {wanted}")


_shapes: dict[Any, PyTree] = {}


def state_shapes(system: System) -> PyTree:
    """Shapes of one state, remembered: they follow from the system's structure."""
    leaves, tree = jax.tree.flatten(eqx.filter(system, eqx.is_array))
    key = (tree, tuple(x.shape for x in leaves))
    if key not in _shapes:
        _shapes[key] = jax.eval_shape(lambda: system.initial_state())
    return _shapes[key]


def check_state(system: System, y: State, t0: Number = 0.0) -> None:
    """Raises unless `y` is finite and has the system's shapes."""
    system.mechanism.check_state(y.q, y.v)
    like = state_shapes(system)
    if jax.tree.structure(y) != jax.tree.structure(like):
        raise ValueError(STATE_MISFIT)
    for (path, x), z in zip(
        jax.tree_util.tree_leaves_with_path(y), jax.tree.leaves(like), strict=True
    ):
        name = jax.tree_util.keystr(path).lstrip(".")
        if x.shape != z.shape:
            raise ValueError(f"initial {name} has shape {x.shape}, expected {z.shape}")
        if known(x) and not np.all(np.isfinite(x)):
            raise ValueError(f"initial {name} is not finite: {np.asarray(x)}")
    mechanism = system.mechanism
    if known(*jax.tree.leaves((mechanism, y.q))) and may_be_singular(mechanism):
        if said := why_singular(mechanism, y.q):
            raise ValueError(f"the system cannot start from there: {said}")
    if mechanism.loops and known(*jax.tree.leaves((mechanism, y.q, y.v))):
        if said := open_loop(mechanism, y.q, y.v, t0):
            raise ValueError(f"the initial state has open loops: {said}")
    for name, part in system.parts.items():
        if isinstance(part, ChecksStart) and known(*jax.tree.leaves((system, y))):
            part.check_start(
                y.parts[name], _forward_kinematics(system.mechanism, y.q, y.v)
            )


_forward_kinematics = eqx.filter_jit(forward_kinematics)
