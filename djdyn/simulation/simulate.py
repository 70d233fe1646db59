"""One door to the solver: a system and a span of time give a trajectory."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from ..multibody.kinematics import forward_kinematics
from ..parts.base import ChecksStart
from ..system.system import State, System
from ..typing import Number, Numbers, known
from .solvers.registry import Integrator
from .trajectory import Trajectory, input_values
from .vector_field import Field, Inputs


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
    solver: str = "tsit5",
    dt: Number | None = None,
    rtol: Numbers = 1e-8,
    atol: Numbers = 1e-8,
    control_period: Number | None = None,
    control_delay: bool = False,
    inputs: Inputs | None = None,
    jumps: Numbers | None = None,
    ledger: bool = False,
    adjoint: str = "reverse",
    max_steps: int | None = None,
    progress: bool = False,
) -> Trajectory:
    """Integrates a system from `t0` to `t1`.

    **Arguments:**

    - `saveat`: times to save at, or how many, evenly spaced (201 if not given).
    - `solver`: `"tsit5"`, `"dopri8"` (not stiff), `"kvaerno3"`, `"kvaerno5"`,
      `"rodas4"` (stiff), `"rk4"`, `"semi_implicit"` (fixed steps).
    - `dt`: fixed steps of this length; without it steps follow `rtol` and `atol`.
    - `control_period`: evaluates controllers at this period and holds their outputs in
      between; without it they are continuous. Their own states follow the exact
      solution of their linearised equations under held inputs. Saves at the samples.
    - `control_delay`: what controllers send at a sample acts from the next one on, as
      if they needed their period to work it out; at first, what they send at rest.
    - `inputs`: values or functions of time in place of the system's inputs.
    - `jumps`: times at which a function of time is not smooth.
    - `ledger`: integrates the energy that comes in and is lost, for `energy_balance`.
    - `adjoint`: `"reverse"` for `jax.grad`, `"forward"` for `jax.jvp`.

    A failed solve raises `SimulationError`, which names the time and the state that
    blew up and keeps what was reached. Inside `jit`, `grad` or `vmap` nothing is
    raised: look at `trajectory.ok`.
    """
    integrator = integrator_for(
        solver, dt, rtol, atol, max_steps, adjoint, control_period
    )
    y0 = system.initial_state() if initial_state is None else initial_state
    check_state(system, y0)
    check_inputs(system, inputs)
    times = save_times(t0, t1, saveat, control_period, control_delay)
    trajectory = solve(
        system,
        y0,
        jnp.asarray(times, float),
        (float(t0), float(t1)),
        integrator,
        as_float(control_period),
        control_delay,
        dict(inputs or {}),
        None if jumps is None else jnp.asarray(jumps, float),
        ledger,
        progress,
    )
    if known(trajectory.ok) and not trajectory.ok:
        raise SimulationError(trajectory.failure(), trajectory)
    return trajectory


def integrator_for(solver, dt, rtol, atol, max_steps, adjoint, control_period):
    """Between two samples fewer steps are allowed than in a whole run."""
    most = max_steps or (16384 if control_period is None else 256)
    return Integrator(solver, as_float(dt), rtol, atol, most, adjoint)


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


def as_float(x: Number | None) -> float | None:
    return None if x is None else float(x)


def check_state(system: System, y: State) -> None:
    """Raises unless `y` is finite and has the system's shapes."""
    system.mechanism.check_state(y.q, y.v)
    like = jax.eval_shape(lambda: system.initial_state())
    if jax.tree.structure(y) != jax.tree.structure(like):
        raise ValueError(
            "the initial state does not fit the system: start from initial_state()"
        )
    for (path, x), z in zip(
        jax.tree_util.tree_leaves_with_path(y), jax.tree.leaves(like), strict=True
    ):
        name = jax.tree_util.keystr(path).lstrip(".")
        if x.shape != z.shape:
            raise ValueError(f"initial {name} has shape {x.shape}, expected {z.shape}")
        if known(x) and not np.all(np.isfinite(x)):
            raise ValueError(f"initial {name} is not finite: {np.asarray(x)}")
    for name, part in system.parts.items():
        if isinstance(part, ChecksStart) and known(*jax.tree.leaves((system, y))):
            part.check_start(
                y.parts[name], _forward_kinematics(system.mechanism, y.q, y.v)
            )


def save_times(t0, t1, saveat, control_period, control_delay) -> np.ndarray | Array:
    """The times to save at, checked; NumPy where they are known."""
    if not t1 > t0:
        raise ValueError(f"a simulation ends after it starts, got {t0} to {t1} s")
    if control_period is not None:
        if not control_period > 0:
            raise ValueError(
                f"the control period must be positive, got {control_period}"
            )
        if saveat is not None:
            raise ValueError("with a control period the samples are saved: no saveat")
        n, span = round((t1 - t0) / control_period), t1 - t0
        if abs(n * control_period - span) > 1e-9 * span:
            raise ValueError(
                f"the span of {t1 - t0} s is not a whole number of control periods of "
                f"{control_period} s"
            )
        return t0 + control_period * np.arange(n + 1)
    if control_delay:
        raise ValueError("a control delay is one period long, and needs control_period")
    saveat = 201 if saveat is None else saveat
    if np.ndim(saveat) == 0:
        return np.linspace(t0, t1, int(saveat))
    if not known(saveat):
        return jnp.asarray(saveat, dtype=float)
    times = np.asarray(saveat, dtype=float)
    if not times.size or times.ndim != 1 or not np.all(np.diff(times) > 0):
        raise ValueError("save times must be numbers that increase")
    if times[0] < t0 or times[-1] > t1:
        raise ValueError(f"save times must lie between {t0} and {t1} s")
    return times


_forward_kinematics = eqx.filter_jit(forward_kinematics)


@eqx.filter_checkpoint  # less to trace, less to store
def _vector_field(t: Any, flat: Array, field: Field) -> Array:
    return field(t, flat)


@eqx.filter_jit
def solve(
    system: System,
    y0: State,
    times: Float[Array, " n"],
    span: tuple[float, float],
    integrator: Integrator,
    control_period: float | None,
    control_delay: bool,
    inputs: dict[str, Any],
    jumps: Array | None,
    ledger: bool,
    progress: bool,
) -> Trajectory:
    flat0, unravel = ravel_pytree((y0, jnp.zeros(2 if ledger else 0)))
    field = Field(system, inputs, {}, unravel, ledger)
    sampled: dict = {}
    if control_period is None:
        t0, t1 = span
        sol = integrator.run(
            _vector_field,
            t0,
            t1,
            flat0,
            field,
            times,
            integrator.steps(t0, t1),
            jumps,
            progress,
        )
        (_, (t_end,)), (flats, (last,)) = sol.ts, sol.ys  # pyright: ignore
        steps = sol.stats["num_steps"]
        done = integrator.done(sol.result, t_end, t1)
    else:
        how = (control_period, control_delay, integrator, jumps)
        found = _sampled(field, flat0, times, *how)
        flats, sampled, steps, done, t_end, last = found
    ys, works = jax.vmap(unravel)(flats)
    ok = done & jnp.all(jnp.isfinite(flats))
    return Trajectory(
        system,
        times,
        ys,
        ok=ok,
        steps=steps,
        stopped=(t_end, unravel(last)[0]),
        sampled=sampled,
        applied=delayed(sampled) if control_delay else sampled,
        inputs=inputs,
        work=works if ledger else None,
    )


def advance(field: Field, flat, t0, t1, length: float, integrator: Integrator, jumps):
    """State at `t1`, whether it was reached, and steps; the span is `length` long."""
    steps = integrator.steps(0.0, length)
    sol = integrator.run(_vector_field, t0, t1, flat, field, None, steps, jumps, False)
    ((end,),), ((t_end,),) = sol.ys, sol.ts  # pyright: ignore
    done = integrator.done(sol.result, t_end, t1) & jnp.all(jnp.isfinite(end))
    return end, done, sol.stats["num_steps"]


def delayed(sampled: dict[str, dict[str, Array]]) -> dict[str, dict[str, Array]]:
    """What acts if all that is sent acts a sample later."""
    return jax.tree.map(lambda x: jnp.concatenate([x[:1], x[:-1]]), sampled)


def _sampled(
    field: Field,
    flat0,
    times,
    period: float,
    control_delay: bool,
    integrator: Integrator,
    jumps,
):
    """Zero-order hold: controllers step at samples, the rest is solved in between."""

    def interval(carry, span):
        flat, ok, sent = carry
        stepped, sampled = field.sample(span[0], flat, period)
        acting = field.hold(sent if control_delay else sampled)
        end, done, count = advance(
            acting, stepped, span[0], span[1], period, integrator, jumps
        )
        good = ok & done
        end = jnp.where(good, end, flat)  # a failed lane stands still at its last state
        return (end, good, sampled), (flat, sampled, count, good)

    spans = jnp.stack([times[:-1], times[1:]], 1)
    start = (flat0, jnp.array(True), field.outputs(times[0], flat0))
    (last, _, _), (flats, sampled, steps, good) = jax.lax.scan(interval, start, spans)
    flats = jnp.concatenate([flats, last[None]])
    sampled = jax.tree.map(lambda x: jnp.concatenate([x, x[-1:]]), sampled)
    reached = jnp.concatenate([jnp.array([True]), good])
    flats = jnp.where(reached[:, None], flats, jnp.inf)
    done = jnp.all(good)
    t_end = jnp.where(done, times[-1], times[jnp.argmin(good)])
    return flats, sampled, jnp.sum(steps), done, t_end, last
