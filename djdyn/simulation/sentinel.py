"""Warnings about impacts that fixed steps do not resolve."""

import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..multibody.kinematics import forward_kinematics
from ..parts.base import HasImpacts
from ..system.parameters import with_parameters
from ..system.state import State
from ..system.system import System
from ..typing import Scalar, known
from .options import SimulationOptions
from .trajectory import Trajectory


STEPS_PER_IMPACT = 20.0  # fewer leave gradients wrong, often in their sign
STEPS_TO_BE_STABLE = 2.0  # fewer than this times pi blow up
WATCHED_LANES, WATCHED_SAVES = 8, 50  # of a batch, looked at for its gradient


def impact_times(system: System, y: State) -> dict[str, Scalar]:
    """Return how long impacts of the parts take, from the speeds in a state, s."""
    parts = {k: p for k, p in system.parts.items() if isinstance(p, HasImpacts)}
    if not parts:
        return {}
    world = forward_kinematics(system.mechanism, y.q, y.v)
    return {name: part.impact_time(world) for name, part in parts.items()}


def check_stability(system: System, y0: State, options: SimulationOptions) -> None:
    """Raise where `ros2` cannot be right: it takes contact explicitly."""
    leaves = jax.tree.leaves(eqx.filter((system, y0), eqx.is_array))
    if options.solver != "ros2" or options.dt is None or not known(*leaves):
        return
    for name, time in _impact_times(system, y0).items():
        longest = float(time) / STEPS_TO_BE_STABLE
        if not options.dt <= longest:
            raise ValueError(
                f"ros2 takes the contact of part {name!r} explicitly, and its impacts "
                f"last about {float(time):.2g} s: take dt below {longest:.2g} s, or "
                "tsit5 without dt"
            )


_impact_times = eqx.filter_jit(impact_times)


def watched(trajectory: Trajectory, dt: float | None) -> Trajectory:
    """Return a trajectory whose gradient warns of impacts left unresolved.

    It costs nothing where nothing is differentiated, or steps are adaptive.
    """
    parts = trajectory.system.parts.values()
    if dt is None or not any(isinstance(part, HasImpacts) for part in parts):
        return trajectory
    watch = (trajectory.y.q, trajectory.system, trajectory.lanes, trajectory.y, dt)
    return eqx.tree_at(lambda x: x.y.q, trajectory, _watched(*watch))


@eqx.filter_custom_jvp
def _watched(q: Array, system: System, lanes: dict, y: State, dt: float) -> Array:
    del system, lanes, y, dt
    return q


@_watched.def_jvp
def _(primals: tuple, tangents: tuple) -> tuple[Array, Any]:
    q, system, lanes, y, dt = primals
    saves = slice(None, None, max(1, q.shape[-2] // WATCHED_SAVES))
    at = jax.vmap(impact_times, (None, 0))
    if q.ndim == 2:
        times = at(system, jax.tree.map(lambda x: x[saves], y))
    else:
        few = jax.tree.map(lambda x: x[:WATCHED_LANES, saves], y)
        some = {k: x[:WATCHED_LANES] for k, x in lanes.items()}
        lane = lambda values, y: at(with_parameters(system, values), y)
        times = jax.vmap(lane)(some, few)
    for name, time in times.items():
        jax.debug.callback(_warn, jnp.nanmin(time) / dt, dt, name=name)
    return q, jnp.zeros_like(q) if tangents[0] is None else tangents[0]


def _warn(steps: Any, dt: Any, *, name: str) -> None:
    fewest, dt = float(np.min(steps)), float(np.min(dt))
    if fewest < STEPS_PER_IMPACT:
        warnings.warn(
            f"a gradient crosses impacts of part {name!r} that last {fewest:.2g} steps "
            f"of {dt:.2g} s: it is that of the steps, not of the motion; take steps "
            f"below {fewest * dt / STEPS_PER_IMPACT:.1g} s, or none fixed",
            stacklevel=2,
        )
