"""One door to the solver: a system and a span of time give a trajectory."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from ._types import Number, Numbers, Scalar, known
from .parameters import check_lanes, put
from .part import AbstractSignalPart
from .solvers import Integrator
from .system import State, System
from .trajectory import Trajectory, input_values


Inputs = Mapping[str, Numbers | Callable[[Scalar], Array]]


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
    - `solver`: `"tsit5"`, `"dopri8"` (not stiff), `"kvaerno3"`, `"kvaerno5"` (stiff),
      `"rk4"`, `"semi_implicit"` (fixed steps).
    - `dt`: fixed steps of this length; without it steps follow `rtol` and `atol`.
    - `control_period`: evaluates controllers at this period and holds their outputs in
      between; without it they are continuous. Their own states follow the exact
      solution of their linearised equations under held inputs. Saves at the samples.
    - `inputs`: values or functions of time in place of the system's inputs.
    - `jumps`: times at which a function of time is not smooth.
    - `ledger`: integrates the energy that comes in and is lost, for `audit`.
    - `adjoint`: `"reverse"` for `jax.grad`, `"forward"` for `jax.jvp`.

    A failed solve raises `SimulationError`, which names the time and the state that
    blew up and keeps what was reached. Inside `jit`, `grad` or `vmap` nothing is
    raised: look at `trajectory.ok`.
    """
    integrator = _integrator(solver, dt, rtol, atol, max_steps, adjoint, control_period)
    y0 = system.initial_state() if initial_state is None else initial_state
    check_state(system, y0)
    check_inputs(system, inputs)
    times = _times(t0, t1, saveat, control_period)
    trajectory = _solve(
        system,
        y0,
        times,
        (float(t0), float(t1)),
        integrator,
        _float(control_period),
        dict(inputs or {}),
        None if jumps is None else jnp.asarray(jumps, float),
        ledger,
        progress,
    )
    if known(trajectory.ok) and not trajectory.ok:
        raise SimulationError(trajectory.failure(), trajectory)
    return trajectory


def rollout(
    system: System,
    t1: Number,
    initial_state: State | None = None,
    *,
    parameters: Mapping[str, Numbers] | None = None,
    t0: Number = 0.0,
    saveat: Numbers | None = None,
    solver: str = "tsit5",
    dt: Number | None = None,
    rtol: Numbers = 1e-8,
    atol: Numbers = 1e-8,
    control_period: Number | None = None,
    inputs: Inputs | None = None,
    jumps: Numbers | None = None,
    adjoint: str = "reverse",
    max_steps: int | None = None,
) -> Trajectory:
    """Many simulations at once: `simulate` over a leading batch axis.

    **Arguments:**

    - `initial_state`: its arrays may have a leading batch axis, all or some of them.
    - `parameters`: values with a leading batch axis, by path.

    The others are those of `simulate`. A lane that diverges is reported by a warning
    and in `trajectory.ok`; the other lanes are not touched by it.
    """
    integrator = _integrator(solver, dt, rtol, atol, max_steps, adjoint, control_period)
    y0 = system.initial_state() if initial_state is None else initial_state
    check_inputs(system, inputs)
    lanes = {k: jnp.asarray(x, float) for k, x in (parameters or {}).items()}
    check_lanes(system, lanes)
    one = jax.eval_shape(lambda: system.initial_state())
    axes = jax.tree.map(lambda x, like: 0 if x.ndim > like.ndim else None, y0, one)
    sizes = {f"parameter {k!r}": x.shape[:1] for k, x in lanes.items()}
    for (path, x), axis in zip(
        jax.tree_util.tree_leaves_with_path(y0),
        jax.tree.leaves(axes, is_leaf=lambda a: a is None),
        strict=True,
    ):
        where = f"initial state{jax.tree_util.keystr(path)}"
        if axis == 0:
            sizes[where] = x.shape[:1]
        if known(x) and not np.all(np.isfinite(x)):
            raise ValueError(f"{where} is not finite")
    if len({*sizes.values()}) != 1:
        said = ", ".join(f"{k} {v}" for k, v in sizes.items())
        raise ValueError(
            "a rollout needs one batch size"
            + (f", got {said}" if said else ": neither state nor parameters have one")
        )
    trajectory = _solve_batch(
        system,
        y0,
        lanes,
        axes,
        _times(t0, t1, saveat, control_period),
        (float(t0), float(t1)),
        integrator,
        _float(control_period),
        dict(inputs or {}),
        None if jumps is None else jnp.asarray(jumps, float),
    )
    if known(trajectory.ok) and not np.all(trajectory.ok):
        warnings.warn(trajectory.failure(), stacklevel=2)
    return trajectory


def _integrator(solver, dt, rtol, atol, max_steps, adjoint, control_period):
    """Between two samples fewer steps are allowed than in a whole run."""
    most = max_steps or (16384 if control_period is None else 256)
    return Integrator(solver, _float(dt), rtol, atol, most, adjoint)


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


def _float(x: Number | None) -> float | None:
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


def _times(t0, t1, saveat, control_period) -> Float[Array, " n"]:
    """The times to save at, checked where they are known."""
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
        return t0 + control_period * jnp.arange(n + 1, dtype=float)
    saveat = 201 if saveat is None else saveat
    if np.ndim(saveat) == 0:  # pyright: ignore
        return jnp.linspace(t0, t1, int(saveat))  # pyright: ignore
    times = jnp.asarray(saveat, dtype=float)
    if known(times):
        saved = np.asarray(times)
        if not saved.size or saved.ndim != 1 or not np.all(np.diff(saved) > 0):
            raise ValueError("save times must be numbers that increase")
        if saved[0] < t0 or saved[-1] > t1:
            raise ValueError(f"save times must lie between {t0} and {t1} s")
    return times


class _Field(eqx.Module):
    """The vector field on one flat array: few leaves make gradients cheap."""

    system: System
    inputs: dict[str, Any]
    held: dict[str, dict[str, Array]]
    unravel: Callable[[Array], PyTree] = eqx.field(static=True)
    ledger: bool = eqx.field(static=True)

    def input_values(self, t: Scalar) -> dict[str, Any]:
        return input_values(self.inputs, t)

    def __call__(self, t: Scalar, flat: Float[Array, " n"]) -> Float[Array, " n"]:
        y, _ = self.unravel(flat)
        given = self.input_values(t)
        rate = self.system.derivative(t, y, given, self.held)
        work = jnp.zeros(2 if self.ledger else 0, flat.dtype)
        if self.ledger:
            work = jnp.stack(self.system.powers(t, y, given, self.held))
        return ravel_pytree((rate, work))[0]

    def correct_coordinates(self, flat0: Array, flat1: Array, h: Scalar) -> Array:
        """Redoes the step of the coordinates with the new speeds."""
        (y0, _), (y1, work) = self.unravel(flat0), self.unravel(flat1)
        q = y0.q + h * self.system.mechanism.q_dot(y0.q, y1.v)
        return ravel_pytree((State(q, y1.v, y1.parts), work))[0]


@eqx.filter_checkpoint  # less to trace, less to store
def _vector_field(t: Any, flat: Array, field: _Field) -> Array:
    return field(t, flat)


@eqx.filter_jit
def _solve(
    system: System,
    y0: State,
    times: Float[Array, " n"],
    span: tuple[float, float],
    integrator: Integrator,
    control_period: float | None,
    inputs: dict[str, Any],
    jumps: Array | None,
    ledger: bool,
    progress: bool,
) -> Trajectory:
    flat0, unravel = ravel_pytree((y0, jnp.zeros(2 if ledger else 0)))
    field = _Field(system, inputs, {}, unravel, ledger)
    held: dict = {}
    if control_period is None:
        t0, t1 = span
        saves = dfx.SaveAt(
            subs=[dfx.SubSaveAt(ts=times), dfx.SubSaveAt(t1=True)]  # pyright: ignore
        )
        sol = integrator.run(
            _vector_field,
            t0,
            t1,
            flat0,
            field,
            saves,
            integrator.steps(t0, t1),
            jumps,
            progress,
        )
        (_, (t_end,)), (flats, (last,)) = sol.ts, sol.ys  # pyright: ignore
        steps = sol.stats["num_steps"]
        done = integrator.done(sol.result, t_end, t1)
    else:
        sampled = _sampled(field, flat0, times, control_period, integrator, jumps)
        flats, held, steps, done, t_end, last = sampled
    ys, works = jax.vmap(unravel)(flats)
    ok = done & jnp.all(jnp.isfinite(flats))
    return Trajectory(
        system,
        times,
        ys,
        ok=ok,
        steps=steps,
        stopped=(t_end, unravel(last)[0]),
        held=held,
        inputs=inputs,
        work=works if ledger else None,
    )


@eqx.filter_jit
def _solve_batch(
    system: System,
    y0: State,
    lanes: dict[str, Array],
    axes: PyTree,
    times: Float[Array, " n"],
    span: tuple[float, float],
    integrator: Integrator,
    control_period: float | None,
    inputs: dict[str, Any],
    jumps: Array | None,
) -> Trajectory:
    how = (span, integrator, control_period, inputs, jumps, False, False)

    def lane(y0: State, values: dict[str, Array]) -> Trajectory:
        trajectory = _solve(put(system, values), y0, times, *how)
        bare = lambda x: (x.system, x.t, x.inputs)
        return eqx.tree_at(bare, trajectory, (None, None, None))

    trajectory = jax.vmap(lane, in_axes=(axes, 0))(y0, lanes)
    return eqx.tree_at(
        lambda x: (x.system, x.t, x.lanes, x.inputs),
        trajectory,
        (system, times, lanes, inputs),
        is_leaf=lambda x: x is None,
    )


def _held_step(rates: Callable[[Array], Array], s: Array, period: float) -> Array:
    r"""States of controllers one period on, their inputs held.

    $s + \int_0^T e^{A\tau}d\tau\,\dot s$ with $A = \partial\dot s/\partial s$: exact
    for linear controllers, and stable for filters faster than the samples.
    """
    if not s.size:
        return s
    rate, A = rates(s), jax.jacfwd(rates)(s)
    block = jnp.zeros((s.size + 1, s.size + 1), s.dtype)
    block = block.at[:-1, :-1].set(A * period).at[:-1, -1].set(rate * period)
    return s + jax.scipy.linalg.expm(block)[:-1, -1]


def _sampled(field: _Field, flat0, times, period: float, integrator: Integrator, jumps):
    """Zero-order hold: controllers step at samples, the rest is solved in between."""
    system = field.system
    names = [k for k, p in system.parts.items() if isinstance(p, AbstractSignalPart)]

    def sample(flat: Array, t: Scalar) -> tuple[Array, dict]:
        y, work = field.unravel(flat)
        now = system.at(t, y, field.input_values(t))
        held = {name: now.responses[name].outputs for name in names}
        own, shape_own = ravel_pytree({name: y.parts[name] for name in names})

        def rates(own: Array) -> Array:
            states = State(y.q, y.v, {**y.parts, **shape_own(own)})
            now = system.at(t, states, field.input_values(t))
            return ravel_pytree({name: now.responses[name].rate for name in names})[0]

        states = {**y.parts, **shape_own(_held_step(rates, own, period))}
        return ravel_pytree((State(y.q, y.v, states), work))[0], held

    def interval(carry, span):
        flat, ok = carry
        stepped, held = sample(flat, span[0])
        holding = _Field(system, field.inputs, held, field.unravel, field.ledger)
        sol = integrator.run(
            _vector_field,
            span[0],
            span[1],
            stepped,
            holding,
            dfx.SaveAt(t1=True),
            integrator.steps(0.0, period),
            jumps,
            False,
        )
        (end,), (t_end,) = sol.ys, sol.ts  # pyright: ignore
        good = ok & integrator.done(sol.result, t_end, span[1])
        good = good & jnp.all(jnp.isfinite(end))
        end = jnp.where(good, end, flat)  # a failed lane stands still at its last state
        return (end, good), (flat, held, sol.stats["num_steps"], good)

    spans = jnp.stack([times[:-1], times[1:]], 1)
    start = (flat0, jnp.array(True))
    (last, _), (flats, held, steps, good) = jax.lax.scan(interval, start, spans)
    flats = jnp.concatenate([flats, last[None]])
    held = jax.tree.map(lambda x: jnp.concatenate([x, x[-1:]]), held)
    reached = jnp.concatenate([jnp.array([True]), good])
    flats = jnp.where(reached[:, None], flats, jnp.inf)
    done = jnp.all(good)
    t_end = jnp.where(done, times[-1], times[jnp.argmin(good)])
    return flats, held, jnp.sum(steps), done, t_end, last
