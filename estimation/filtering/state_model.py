"""State-space models with noise, and samples of their outputs."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from djdyn.simulation.options import SimulationOptions
from djdyn.simulation.solvers.fixed_step import METHODS, one_step
from djdyn.simulation.solvers.sampled_control import needed
from djdyn.simulation.vector_field import Field
from djdyn.system.instant import Instant
from djdyn.system.manifold import dimension
from djdyn.system.signals import input_values
from djdyn.system.state import State
from djdyn.system.system import System
from djdyn.typing import Numbers, Scalar, check_values, known, si


class StateModel(eqx.Module):
    r"""A system with process noise, and measurements with noise.

    From one sample to the next, $dt$ later, and at each sample,

    $$x_{k+1} = f(x_k)\oplus G w_k\sqrt{dt},\qquad z_k = h(x_k) + e_k,$$

    with $w_k$ standard normal and $e_k$ normal with the deviations `noise`; $\oplus$
    moves a state by a tangent vector (`djdyn.system.manifold`).

    **Arguments:**

    - `observe`: the measured quantities as a function of an `Instant`, such as a
      `MarkerSet`.
    - `drive`: G, a column per source of noise; `jnp.diag(tangent(system, v=0.1))`
      drives all speeds with 0.1 of their unit per root second.
    - `noise`: deviations of the measurements, one for all or one each.
    - `inputs`: values or functions of time in place of the system's inputs.
    - `options`: the fixed-step `solver`, and its longest step `dt`. Without options
      there is one step of `rk4` from each sample to the next.
    """

    system: System
    observe: Callable[[Instant], Array]
    drive: Float[Array, "k r"] = eqx.field(converter=si("1"))
    noise: Float[Array, "..."] = eqx.field(converter=si("1", above=0.0))
    inputs: dict[str, Any] = eqx.field(converter=dict, default_factory=dict)
    options: SimulationOptions | None = None

    def __check_init__(self):
        check_values(self)
        k = dimension(self.system)
        if self.drive.ndim != 2 or len(self.drive) != k:
            raise ValueError(
                f"drive has shape {self.drive.shape}, but the state has {k} directions"
            )
        mechanism = self.system.mechanism
        if mechanism.loops and not mechanism.closure.sweeps:
            raise ValueError(
                "state estimation with closed loops needs a closure that projects "
                f"states, Projection or Elimination, not "
                f"{type(mechanism.closure).__name__}"
            )
        if self.options is not None:
            check_options(self.options)

    def step(self, t: Scalar, y: State, dt: Scalar, substeps: int = 1) -> State:
        """Return $f$, the state one sample later, after so many steps."""
        flat, shape = ravel_pytree((y, jnp.zeros(0, y.v.dtype)))
        field, h = Field(self.system, self.inputs, {}, shape, False), dt / substeps
        solver = "rk4" if self.options is None else self.options.solver

        def turn(flat: Array, i: Array) -> tuple[Array, None]:
            return one_step(field, solver, t + i * h, flat, h), None

        flat, _ = jax.lax.scan(turn, flat, jnp.arange(substeps, dtype=flat.dtype))
        return shape(flat)[0]

    def substeps(self, times: Numbers) -> int:
        """Return how many steps lead from any sample to the next."""
        if self.options is None or np.shape(times)[0] < 2:
            return 1
        if not known(times):
            raise ValueError("options with dt need times that are known, not traced")
        longest = float(np.max(np.diff(np.asarray(times))))
        return max(1, math.ceil(longest / float(self.options.dt or longest) - 1e-9))

    def output(self, t: Scalar, y: State) -> Float[Array, " m"]:
        """Return $h$, the measurement without noise."""
        flat, shape = ravel_pytree(y)

        def seen(flat: Array) -> Array:
            now = self.system.at(t, shape(flat), input_values(self.inputs, t))
            return jnp.ravel(self.observe(now))

        return needed(seen, flat)(flat)  # markers need no accelerations


def check_options(options: SimulationOptions) -> None:
    """Raise unless the options are those of fixed steps with continuous controllers."""
    if options.solver not in METHODS:
        there = ", ".join(METHODS)
        raise ValueError(f"unknown solver {options.solver!r}; there are {there}")
    if options.dt is None:
        raise ValueError("a state model has fixed steps: its options need dt")
    unused = (options.control_period is not None, options.jumps is not None)
    for name, asked in zip(("control_period", "jumps"), unused, strict=True):
        if asked:
            raise ValueError(f"a state model has no {name}")
    if options.ledger:
        raise ValueError("a state model has no ledger")


class Samples(eqx.Module):
    """Samples: times, steps to the next, values, and which were measured."""

    t: Float[Array, " n"]
    dt: Float[Array, " n"]  # the last is zero
    z: Float[Array, "n m"]
    seen: Bool[Array, "n m"]
    substeps: int = eqx.field(static=True)  # from each to the next


def samples(model: StateModel, times: Numbers, measured: Any, visible: Any) -> Samples:
    """Return measurements as checked, flat samples, zero where not visible."""
    t, z = jnp.asarray(times, dtype=float), jnp.asarray(measured, dtype=float)
    z = z.reshape(len(z), -1)
    m = jax.eval_shape(
        lambda s: model.output(jnp.zeros(()), s.initial_state()), model.system
    ).size
    if z.shape != (len(t), m):
        raise ValueError(
            f"{len(t)} times with {m} numbers each do not fit measurements of shape "
            f"{jnp.shape(measured)}"
        )
    visible = jnp.ones(z.shape, bool) if visible is None else jnp.asarray(visible)
    seen = visible.reshape(len(t), -1, 1)
    if seen.shape[1] == 0 or m % seen.shape[1]:
        raise ValueError(
            f"visibility of shape {visible.shape} does not fit measurements of shape "
            f"{jnp.shape(measured)}"
        )
    seen = jnp.broadcast_to(seen, (*seen.shape[:2], m // seen.shape[1])).reshape(
        z.shape
    )
    if known(t) and np.any(np.diff(t) <= 0):
        raise ValueError("times of measurements must increase")
    if known(z, seen) and not np.all(np.isfinite(z[seen])):
        first = int(np.argwhere(~np.isfinite(np.where(seen, z, 0.0)))[0, 0])
        raise ValueError(f"a measurement at {float(t[first]):g} s is not a number")
    dt = jnp.concatenate([jnp.diff(t), jnp.zeros(1)])
    return Samples(t, dt, jnp.where(seen, z, 0.0), seen, model.substeps(times))
