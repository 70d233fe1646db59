"""Many simulations at once, on lanes, threads and devices."""

import warnings
from collections.abc import Mapping
from typing import Any, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, PyTree

from ..multibody.assembly import gaps, why_open
from ..system.parameters import check_lanes, get_parameters, with_parameters
from ..system.process import refuse_fork
from ..system.state import State
from ..system.system import System, prepared, prepared_anew
from ..typing import Number, Numbers, known
from .checks import STATE_MISFIT, check_inputs, check_tolerances, state_shapes
from .options import (
    OptionKeywords,
    SimulationOptions,
    resolve_options,
    save_times,
)
from .sentinel import watched
from .simulate import SWEEPS_OF_SAVES, solve
from .solvers import fixed_step as steps
from .trajectory import Run, Trajectory, assemble
from .vector_field import Field, Inputs


def rollout(
    system: System,
    t1: Number,
    initial_state: State | None = None,
    *,
    parameters: Mapping[str, Numbers] | None = None,
    t0: Number = 0.0,
    saveat: Numbers | None = None,
    inputs: Inputs | None = None,
    options: SimulationOptions | None = None,
    backend: str | None = None,
    checkpoints: str = "all",
    mesh: Mesh | None = None,
    **changes: Unpack[OptionKeywords],
) -> Trajectory:
    """Return many simulations at once: `simulate` over a leading batch axis.

    **Arguments:**

    - `initial_state`: its arrays may have a leading batch axis, all or some of them.
    - `parameters`: values with a leading batch axis, by path.
    - `backend`: `"kernel"` compiles fixed steps (`dt` with `semi_implicit`, `rk4` or
      `tsit5`, saved at the ends of steps) to vector code for CPUs, `"xla"` leaves all
      to XLA. By default kernels run wherever they can.
    - `checkpoints`: which states the reverse sweep through fixed steps keeps: `"all"`,
      or `"sqrt"`, one in the square root of their number, for less memory.
    - `mesh`: devices to spread the batch over, along the mesh's first axis.

    The others, `options` and its fields as keywords among them, are those of
    `simulate`. A lane that diverges is reported by a warning and in `trajectory.ok`;
    the other lanes are not touched by it.

    !!! example

        ```python
        lanes = {"bearing.viscous": jnp.linspace(0.1, 1.0, 64)}
        runs = djdyn.rollout(system, 1.0, parameters=lanes, solver="rk4", dt=1e-3)
        ```
    """
    refuse_fork()
    chosen = resolve_options(options, **changes)
    lanes = {k: jnp.asarray(x, float) for k, x in (parameters or {}).items()}
    check_lanes(system, lanes)
    if initial_state is None and lanes and system.mechanism.loops:
        y0 = _starts(system, lanes, system.initial_state())  # other lengths
    else:
        y0 = system.initial_state() if initial_state is None else initial_state
    check_inputs(system, inputs)
    check_tolerances(chosen, y0)
    axes, batch = _batch(system, y0, lanes)
    _check_loops(system, y0, lanes, axes, t0)
    times = save_times(chosen, t0, t1, saveat)
    span, given = (float(t0), float(t1)), dict(inputs or {})
    ready = prepared(system)
    how = _marching(chosen, times, span, backend, checkpoints)
    if how is not None and how["compiled"]:
        how["patterns"] = _patterns(ready, lanes, given)
    if mesh is not None and batch % mesh.devices.shape[0]:
        raise ValueError(
            f"a batch of {batch} does not divide over {mesh.devices.shape[0]} devices"
        )
    trajectory = _solve_batch(
        ready,
        y0,
        lanes,
        axes,
        jnp.asarray(times, float),
        span,
        chosen,
        given,
        None if how is None else _Static(how),
        mesh,
    )
    if ready is not system:
        trajectory = eqx.tree_at(lambda x: x.system, trajectory, system)
    if _here(trajectory.ok) and not np.all(trajectory.ok):
        warnings.warn(trajectory.failure(), stacklevel=2)
    return trajectory


def _here(x: Array) -> bool:
    """Whether all of an array is known and on this machine."""
    return known(x) and getattr(x, "is_fully_addressable", True)


def _batch(system: System, y0: State, lanes: dict[str, Array]) -> tuple[PyTree, int]:
    """Which arrays of the state have a batch axis, and its one size."""
    one = state_shapes(system)
    if jax.tree.structure(y0) != jax.tree.structure(one):
        raise ValueError(STATE_MISFIT)
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
        if _here(x) and not np.any(_finite_lanes(np.asarray(x), axis)):
            raise ValueError(f"{where} is not finite")
    if len({*sizes.values()}) != 1:
        said = ", ".join(f"{k} {v}" for k, v in sizes.items())
        raise ValueError(
            "a rollout needs one batch size"
            + (f", got {said}" if said else ": neither state nor parameters have one")
        )
    return axes, next(iter(sizes.values()))[0]


@eqx.filter_jit
def _starts(system: System, lanes: dict[str, Array], near: State) -> State:
    """Initial states of lanes, each with its own loops closed."""
    start = lambda x: with_parameters(system, x).initial_state(near.q, near.v)
    return jax.vmap(start)(lanes)


def _check_loops(
    system: System, y0: State, lanes: dict[str, Array], axes: PyTree, t0: Number
) -> None:
    """Raise if a lane that is finite starts with open loops."""
    if not system.mechanism.loops or not known(*jax.tree.leaves((system, y0, lanes))):
        return
    gaps, rates = _gaps(system, y0, lanes, axes, jnp.asarray(t0, y0.v.dtype))
    for i, (gap, rate) in enumerate(zip(*map(np.asarray, (gaps, rates)), strict=True)):
        if np.all(np.isfinite(gap)) and np.all(np.isfinite(rate)):
            if said := why_open(system.mechanism, gap, rate):
                raise ValueError(
                    f"the initial state of lane {i} has open loops: {said}; start from "
                    "initial_state() of each lane's system, or from none"
                )


@eqx.filter_jit
def _gaps(
    system: System, y0: State, lanes: dict[str, Array], axes: PyTree, t: Array
) -> tuple[Array, Array]:
    """Gaps of all loops and their rates, by lane."""

    def one(y: State, values: dict[str, Array]) -> tuple[Array, Array]:
        return gaps(with_parameters(system, values).mechanism, y.q, y.v, t)

    return jax.vmap(one, in_axes=(axes, 0))(y0, lanes)


def _finite_lanes(x: np.ndarray, axis: int | None) -> np.ndarray:
    """Whether each lane of an array is finite, or the whole without an axis."""
    finite = np.asarray(np.isfinite(x))
    return np.all(finite.reshape(1 if axis is None else len(x), -1), 1)


# Fixed steps --------------------------------------------------------------------------


class _Static:
    """A dictionary that stands in the key of a compilation."""

    def __init__(self, items: dict[str, Any]):
        self.items = items
        plain = lambda x: x.tobytes() if isinstance(x, np.ndarray) else x
        self._key = tuple((k, plain(items[k])) for k in sorted(items))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and self._key == other._key


def _marching(
    options: SimulationOptions,
    times: Any,
    span: tuple[float, float],
    backend: str | None,
    checkpoints: str,
) -> dict[str, Any] | None:
    """How to march by fixed steps, or None if that is not possible."""
    if backend not in (None, "kernel", "xla"):
        raise ValueError(f"backend is kernel or xla, not {backend!r}")
    if checkpoints not in ("all", "sqrt"):
        raise ValueError(f"checkpoints is all or sqrt, not {checkpoints!r}")
    dt, why, counts = options.dt, "", None
    if dt is None or options.solver not in steps.METHODS:
        why = f"kernels take fixed steps (dt) of {', '.join(steps.METHODS)}"
    elif options.control_period is None:
        if known(times):
            counts = steps.Clock(*span, dt).counts(np.asarray(times))
        if counts is None:
            why = f"kernels save at the ends of steps, multiples of {dt:g} s"
    if why and backend == "kernel":
        raise ValueError(why)
    compiled = backend != "xla" and jax.default_backend() == "cpu"
    how = {"counts": counts, "checkpoints": checkpoints, "compiled": compiled}
    return None if why else how


def _patterns(system: System, lanes: dict, inputs: dict) -> tuple[bytes | None, ...]:
    """Entries of the parameters that are zero or one, where no lane changes them."""
    if not lanes:
        return steps.patterns(Field(system, inputs, {}, _nothing, False))
    found = []

    def look_up(values: dict[str, Array]) -> int:
        here = prepared_anew(with_parameters(system, values), system)
        field = Field(here, inputs, {}, _nothing, False)
        found.append(steps.patterns(field))
        return 0

    jax.eval_shape(look_up, {k: x[0] for k, x in lanes.items()})
    return found[0]


def _nothing(x: Array) -> Array:
    return x


def _march(
    system: System,
    y0: State,
    times: Array,
    span: tuple[float, float],
    options: SimulationOptions,
    inputs: dict[str, Any],
    how: dict[str, Any],
) -> Trajectory:
    """Return one lane by fixed steps."""
    flat0, unravel = ravel_pytree((y0, jnp.zeros(2 if options.ledger else 0)))
    field = Field(system, inputs, {}, unravel, options.ledger)
    flat0 = field.project(jnp.asarray(span[0], flat0.dtype), flat0)
    compiled = {k: x for k, x in how.items() if k != "counts"}
    sampled: dict = {}
    dt, period = options.dt, options.control_period
    assert dt is not None
    if period is None:
        clock = steps.Clock(*span, dt)
        counts, total = how["counts"], clock.steps
        flats = steps.integrate_fixed(
            field, flat0, options.solver, clock, counts, **compiled
        )
    else:
        clock = steps.Clock(*span, period)
        total = clock.steps * steps.Clock(0.0, period, dt).steps
        flats, sampled = steps.march_sampled(
            field, flat0, options.solver, clock, dt, options.control_delay, **compiled
        )
    finite = jnp.cumprod(jnp.all(jnp.isfinite(flats), 1)).astype(bool)
    if field.projects:  # speeds were projected before the coordinates were
        closed = jax.vmap(lambda t, y: field.project(t, y, SWEEPS_OF_SAVES))
        flats = jnp.where(finite[:, None], flats, flat0[None])
        flats = closed(times.astype(flats.dtype), flats)
    last = jnp.maximum(jnp.sum(finite) - 1, 0)  # the last state worth looking at
    flats = jnp.where(finite[:, None], flats, jnp.inf)
    end = (finite[-1], times[last], flats[last])
    run = Run(flats, jnp.asarray(total), *end, sampled)
    return assemble(system, times, run, inputs, unravel, options)


def _without_bad_numbers(
    system: System, values: dict[str, Array], y0: State, axes: PyTree
) -> tuple[dict[str, Array], State, Array]:
    """Return a lane's parameters and initial state, and whether all were finite.

    If not, those of the system take their place: the lane fails, and its derivatives
    do not make those of other lanes NaN.
    """
    given = jax.tree.leaves((values, y0))
    good = jnp.all(jnp.stack([jnp.all(jnp.isfinite(x)) for x in given]))
    keep = lambda x, safe: jnp.where(good, x, safe)
    values = {k: keep(x, get_parameters(system, k)) for k, x in values.items()}
    if jax.tree.leaves(axes):  # else the state is the same in all lanes, and finite
        y0 = jax.tree.map(keep, y0, system.initial_state())
    return values, y0, good


def _marked(trajectory: Trajectory, good: Array) -> Trajectory:
    """Return a trajectory that did not get anywhere unless its numbers were good."""
    y = jax.tree.map(lambda x: jnp.where(good, x, jnp.inf), trajectory.y)
    return eqx.tree_at(lambda x: (x.ok, x.y), trajectory, (trajectory.ok & good, y))


@eqx.filter_jit
def _solve_batch(
    system: System,
    y0: State,
    lanes: dict[str, Array],
    axes: PyTree,
    times: Array,
    span: tuple[float, float],
    options: SimulationOptions,
    inputs: dict[str, Any],
    how: _Static | None,
    mesh: Mesh | None,
) -> Trajectory:
    def lane(system: System, y0: State, values: dict[str, Array]) -> Trajectory:
        values, y0, good = _without_bad_numbers(system, values, y0, axes)
        here = prepared_anew(with_parameters(system, values), system)
        if how is None:
            trajectory = solve(here, y0, times, span, options, inputs)
        else:
            trajectory = _march(here, y0, times, span, options, inputs, how.items)
        trajectory = _marked(trajectory, good)
        bare = lambda x: (x.system, x.t, x.inputs)
        return eqx.tree_at(bare, trajectory, (None, None, None))

    run = jax.vmap(lane, in_axes=(None, axes, 0))
    if mesh is not None:
        # Placed by us, not by the types of the arrays.
        types = (AxisType.Auto,) * len(mesh.axis_names)
        mesh = Mesh(mesh.devices, mesh.axis_names, axis_types=types)
        split, whole = PartitionSpec(mesh.axis_names[0]), PartitionSpec()
        at = lambda a: whole if a is None else split
        specs = jax.tree.map(at, axes, is_leaf=lambda a: a is None)
        if how is None:  # Equinox's loops have no gradient inside of `shard_map`
            placed = lambda x, s: jax.lax.with_sharding_constraint(
                x, NamedSharding(mesh, s)
            )
            y0 = jax.tree.map(placed, y0, specs)
            lanes = {k: placed(x, split) for k, x in lanes.items()}
        else:
            specs = (whole, specs, split)
            run = jax.shard_map(
                run, mesh=mesh, in_specs=specs, out_specs=split, check_vma=False
            )
    trajectory = run(system, y0, lanes)
    trajectory = eqx.tree_at(
        lambda x: (x.system, x.t, x.lanes, x.inputs),
        trajectory,
        (system, times, lanes, inputs),
        is_leaf=lambda x: x is None,
    )
    return watched(trajectory, None if how is None else options.dt)
