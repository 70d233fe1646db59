"""One door to the solver: a system and a span of time give a trajectory."""

import warnings
from typing import Any, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from ..multibody.flexible.beams import Beam
from ..multibody.flexible.body import flexible_rows
from ..multibody.singular import near_gimbal_lock
from ..system.process import refuse_fork
from ..system.state import State
from ..system.system import System, prepared
from ..typing import Number, Numbers, known
from .checks import check_inputs, check_state, check_tolerances
from .options import OptionKeywords, SimulationOptions, resolve_options, save_times
from .sentinel import check_stability, watched
from .solvers.sampled_control import solve_sampled
from .solvers.solution import solve_between
from .trajectory import Run, Trajectory, assemble
from .vector_field import Field, Inputs


SWEEPS_OF_SAVES = 3  # from the solver's tolerance to round-off


class SimulationError(RuntimeError):
    """A solve that did not reach its end; `trajectory` holds what it did reach."""

    def __init__(self, message: str, trajectory: Trajectory):
        super().__init__(message)
        self.trajectory = trajectory


def simulate(
    system: System,
    t1: Number,
    initial_state: State | None = None,
    *,
    t0: Number = 0.0,
    saveat: Numbers | None = None,
    inputs: Inputs | None = None,
    options: SimulationOptions | None = None,
    progress: bool = False,
    **changes: Unpack[OptionKeywords],
) -> Trajectory:
    """Integrate a system from `t0` to `t1`.

    **Arguments:**

    - `initial_state`: state to start from; `system.initial_state()` if not given.
    - `saveat`: times to save at, or how many, evenly spaced (201 if not given).
    - `inputs`: values or functions of time in place of the system's inputs.
    - `options`: the numerical choices. Any field of `SimulationOptions` may also be
      given as a keyword: `solver`, `dt`, `rtol`, `atol`, `control_period`,
      `control_delay`, `adjoint`, `max_steps`, `jumps`, `ledger`.
    - `progress`: shows a progress bar.

    **Returns:**

    The `Trajectory`. A failed solve raises `SimulationError`, which names the time and
    the state that blew up and keeps what was reached. Inside `jit`, `grad` or `vmap`
    nothing is raised: look at `trajectory.ok`.

    !!! example

        ```python
        trajectory = djdyn.simulate(system, 5.0, solver="rk4", dt=1e-3)
        trajectory.q("elbow")
        ```
    """
    refuse_fork()
    chosen = resolve_options(options, **changes)
    y0 = system.initial_state() if initial_state is None else initial_state
    check_state(system, y0, t0)
    check_tolerances(chosen, y0)
    check_inputs(system, inputs)
    check_stability(system, y0, chosen)
    times = jnp.asarray(save_times(chosen, t0, t1, saveat), float)
    span = (float(t0), float(t1))
    ready = prepared(system)
    trajectory = solve(ready, y0, times, span, chosen, dict(inputs or {}), progress)
    if ready is not system:
        trajectory = eqx.tree_at(lambda x: x.system, trajectory, system)
    if known(trajectory.ok) and not trajectory.ok:
        raise SimulationError(trajectory.failure(), trajectory)
    if known(trajectory.y.q):
        warn_of_gimbal_lock(trajectory)
        warn_of_spin(trajectory)
    return trajectory


def warn_of_gimbal_lock(trajectory: Trajectory) -> None:
    """Warn where roll, pitch and yaw do not tell how a body turns."""
    mechanism = trajectory.system.mechanism
    if found := near_gimbal_lock(mechanism, trajectory.y.q):
        joint, i = found
        warnings.warn(
            f"the pitch of joint {joint!r} comes to ninety degrees by "
            f"t = {float(trajectory.t[i]):.6g} s, where roll and yaw coincide: results "
            "and gradients from there on are not reliable; use a Spherical joint",
            stacklevel=3,
        )


FAST = 0.1  # spin over first circular frequency, from which stiffening counts


def warn_of_spin(trajectory: Trajectory) -> None:
    """Warn where flexible bodies turn so fast that stress would stiffen them."""
    mechanism = trajectory.system.mechanism
    for body in flexible_rows(mechanism).values():
        if (
            body.stress_stiffening and isinstance(body.model, Beam)
        ) or not body.n_modes:
            continue
        if not known(*jax.tree.leaves(body)):
            continue
        spin = np.linalg.norm(trajectory.twist(body.name)[:, :3], axis=1).max()
        first = 2 * np.pi * float(np.min(body.frequencies()))
        if spin > FAST * first:
            why = "is switched off" if isinstance(body.model, Beam) else "is not known"
            warnings.warn(
                f"flexible body {body.name!r} turns at {spin:.3g} rad/s and its first "
                f"mode is at {first:.3g} rad/s, but its stress stiffening {why}: it "
                "is too soft, and may diverge",
                stacklevel=3,
            )


@eqx.filter_jit
def solve(
    system: System,
    y0: State,
    times: Float[Array, " n"],
    span: tuple[float, float],
    options: SimulationOptions,
    inputs: dict[str, Any],
    progress: bool = False,
) -> Trajectory:
    """Solve by diffrax; what `simulate` does once its arguments are checked."""
    flat0, unravel = ravel_pytree((y0, jnp.zeros(2 if options.ledger else 0)))
    field = Field(system, inputs, {}, unravel, options.ledger)
    flat0 = field.project(jnp.asarray(span[0], times.dtype), flat0)
    if options.control_period is None:
        found = solve_between(
            options.integrator, field, flat0, times, span, options.jumps, progress
        )
        run = Run(*found, {})
    else:
        period, delay = options.control_period, options.control_delay
        how = (period, delay, options.integrator, options.jumps)
        run = Run(*solve_sampled(field, flat0, times, *how))
    if field.projects:  # states between steps are interpolated
        closed = jax.vmap(lambda t, y: field.project(t, y, SWEEPS_OF_SAVES))
        run = run._replace(flats=closed(times, run.flats))
    return watched(assemble(system, times, run, inputs, unravel, options), options.dt)
