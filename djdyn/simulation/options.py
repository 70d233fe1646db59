"""All numerical choices of a simulation in one object, and the times it saves."""

import dataclasses
from typing import TypedDict, Unpack

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..typing import Number, Numbers, Scalar, known, optional, si
from .solvers.registry import Integrator


MAX_STEPS = 16384  # of a whole run
MAX_STEPS_BETWEEN_SAMPLES = 256
DEFAULT_SAVES = 201


def _float_or_none(x: Number | None) -> float | None:
    return None if x is None else float(x)


class SimulationOptions(eqx.Module):
    """How a system is integrated, and what is recorded; no physics.

    Tolerances and jumps are arrays: changing them compiles nothing anew.

    **Arguments:**

    - `solver`: `"tsit5"`, `"dopri8"` (not stiff), `"kvaerno3"`, `"kvaerno5"`,
      `"rodas4"` (stiff), `"rk4"`, `"semi_implicit"`, `"ros2"` (fixed steps).
    - `dt`: length of fixed steps, s; without it steps follow `rtol` and `atol`.
    - `control_period`: period at which controllers are sampled, s; their outputs are
      held in between. Without it controllers are continuous. The states of controllers
      follow the exact solution of their linearised equations under held inputs. The
      trajectory is saved at the samples.
    - `control_delay`: controllers' outputs act one period late, as if they needed it to
      compute them; at first, the outputs of the initial state act.
    - `adjoint`: `"reverse"` for `jax.grad`, `"forward"` for `jax.jvp`, `"direct"` for
      both (slow).
    - `max_steps`: limit on steps, of a run or between two samples.
    - `jumps`: times at which a function of time is not smooth, s.
    - `ledger`: also integrates the energy that comes in and is lost, for
      `energy_balance`.
    """

    solver: str = eqx.field(static=True, default="tsit5")
    dt: float | None = eqx.field(static=True, default=None, converter=_float_or_none)
    rtol: Scalar = eqx.field(converter=si("1", at_least=0.0), default=1e-8)
    atol: Float[Array, "..."] = eqx.field(converter=si("", above=0.0), default=1e-8)
    control_period: float | None = eqx.field(
        static=True, default=None, converter=_float_or_none
    )
    control_delay: bool = eqx.field(static=True, default=False)
    adjoint: str = eqx.field(static=True, default="reverse")
    max_steps: int | None = eqx.field(static=True, default=None)
    jumps: Float[Array, " n"] | None = eqx.field(
        converter=optional(si("s")), default=None
    )
    ledger: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        _ = self.integrator  # checks its own fields
        period = self.control_period
        if period is not None and not period > 0:
            raise ValueError(f"the control period must be positive, got {period}")
        if self.control_delay and period is None:
            raise ValueError(
                "a control delay is one period long, and needs control_period"
            )

    @property
    def integrator(self) -> Integrator:
        """The solver and its steps."""
        sampled = self.control_period is not None
        limit = MAX_STEPS_BETWEEN_SAMPLES if sampled else MAX_STEPS
        most = limit if self.max_steps is None else self.max_steps
        return Integrator(
            self.solver, self.dt, self.rtol, self.atol, most, self.adjoint
        )


class OptionKeywords(TypedDict, total=False):
    """Fields of `SimulationOptions` as keywords of `simulate` and `rollout`."""

    solver: str
    dt: Number | None
    rtol: Numbers
    atol: Numbers
    control_period: Number | None
    control_delay: bool
    adjoint: str
    max_steps: int | None
    jumps: Numbers | None
    ledger: bool


def resolve_options(
    options: SimulationOptions | None = None, **changes: Unpack[OptionKeywords]
) -> SimulationOptions:
    """Return `options`, or the default ones, with some fields changed."""
    names = [field.name for field in dataclasses.fields(SimulationOptions)]
    for name in changes:
        if name not in names:
            raise TypeError(f"unknown option {name!r}; there are {', '.join(names)}")
    if options is None:
        return SimulationOptions(**changes)  # pyright: ignore: converters take numbers
    return dataclasses.replace(options, **changes)


def save_times(
    options: SimulationOptions, t0: Number, t1: Number, saveat: Numbers | None
) -> np.ndarray | Array:
    """Return the times to save at, checked; NumPy where they are known."""
    if not t1 > t0:
        raise ValueError(f"a simulation ends after it starts, got {t0} to {t1} s")
    period = options.control_period
    if period is not None:
        if saveat is not None:
            raise ValueError("with a control period the samples are saved: no saveat")
        n, span = round((t1 - t0) / period), t1 - t0
        if abs(n * period - span) > 1e-9 * span:
            raise ValueError(
                f"the span of {t1 - t0} s is not a whole number of control periods of "
                f"{period} s"
            )
        return t0 + period * np.arange(n + 1)
    saveat = DEFAULT_SAVES if saveat is None else saveat
    if np.ndim(saveat) == 0:  # pyright: ignore
        return np.linspace(t0, t1, int(saveat))  # pyright: ignore
    if not known(saveat):
        return jnp.asarray(saveat, dtype=float)
    times = np.asarray(saveat, dtype=float)
    if not times.size or times.ndim != 1 or not np.all(np.diff(times) > 0):
        raise ValueError("save times must be numbers that increase")
    if times[0] < t0 or times[-1] > t1:
        raise ValueError(f"save times must lie between {t0} and {t1} s")
    return times
