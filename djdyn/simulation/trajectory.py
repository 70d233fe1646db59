"""What a simulation gives: states at times, and everything that follows from them."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from ..multibody.singular import why_singular
from ..multibody.spatial import Pose
from ..parts.base import AbstractPlacedPart
from ..system.instant import Instant
from ..system.parameters import with_parameters
from ..system.signals import input_values
from ..system.state import State
from ..system.system import System
from ..system.units import signal_unit
from ..typing import Scalar, known
from .options import SimulationOptions
from .series import label_series, save_dataset


if TYPE_CHECKING:
    import pandas
    import xarray

NEARLY_SINGULAR = 1e-8  # smallest eigenvalue of a mass matrix scaled to a unit diagonal


class Trajectory(eqx.Module):
    """States of a system at saved times; a batch has one leading axis.

    States not reached are infinite, and `ok` is false. `work` holds the energy that
    came in and that was lost since the start, where it was asked for. `sampled` is what
    controllers sent at each sample, and `applied` what acted from there on.
    """

    system: System
    t: Float[Array, " n"]
    y: State
    ok: Bool[Array, "*batch"]
    steps: Int[Array, "*batch"]
    stopped: tuple[Float[Array, "*batch"], State]
    sampled: dict[str, dict[str, Array]] = eqx.field(default_factory=dict)
    applied: dict[str, dict[str, Array]] = eqx.field(default_factory=dict)
    inputs: dict[str, Any] = eqx.field(default_factory=dict)
    work: Float[Array, "*batch n 2"] | None = None
    lanes: dict[str, Array] = eqx.field(default_factory=dict)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch: empty for a single simulation."""
        return self.ok.shape

    def __len__(self) -> int:
        return len(self.t)

    def lane(self, i: int) -> "Trajectory":
        """One simulation of a batch."""
        if not self.batch:
            raise ValueError("a single simulation has no lanes")
        if not -len(self.ok) <= i < len(self.ok):
            raise ValueError(f"there are {len(self.ok)} lanes, not one numbered {i}")
        pick = lambda tree: jax.tree.map(lambda x: x[i], tree)
        values = {k: x[i] for k, x in self.lanes.items()}
        return Trajectory(
            with_parameters(self.system, values),
            self.t,
            pick(self.y),
            self.ok[i],
            self.steps[i],
            pick(self.stopped),
            pick(self.sampled),
            pick(self.applied),
            self.inputs,
            pick(self.work),
        )

    # Derived quantities --------------------------------------------------------------

    def map(self, fn: Callable[[Instant], PyTree]) -> PyTree:
        """`fn` of everything that happens, at every saved time (and in every lane).

        Signals of controllers are those sent at that time; loads are those of signals
        that act.
        """
        return _map(self, fn)

    def q(self, joint: str) -> Float[Array, "*batch n k"]:
        """Coordinates of a joint."""
        return self.y.q[..., self.system.mechanism.q_slice(joint)]

    def v(self, joint: str) -> Float[Array, "*batch n k"]:
        """Speeds of a joint."""
        return self.y.v[..., self.system.mechanism.v_slice(joint)]

    def pose(self, frame: str) -> Pose:
        """`X_WF` of a frame."""
        self.system.mechanism.frame(frame)
        return self.map(_Query("pose", frame))

    def twist(self, frame: str) -> Float[Array, "*batch n 6"]:
        """`V_WF` of a frame."""
        return self.map(_Query("twist", frame))

    def reaction(self, joint: str) -> Float[Array, "*batch n 6"]:
        """Wrench that a joint transmits to its body, at its origin, in its axes."""
        return self.map(_Query("reaction", joint))

    def signal(self, name: str) -> Float[Array, "..."]:
        """A part's output or state, or an input, by name."""
        return self.map(_Query("signal", name))

    def unit(self, name: str) -> str:
        """Unit of a signal; empty if it has none, or if its entries differ in it."""
        return signal_unit(self.system, name)

    def energy(self) -> Float[Array, "*batch n"]:
        """Energy of the whole system."""
        return self.map(_Query("energy"))

    def failure(self) -> str:
        """In one sentence, what went wrong and where; empty if nothing did."""
        if self.batch:
            bad = np.flatnonzero(~np.asarray(self.ok))
            if not len(bad):
                return ""
            lanes = ", ".join(map(str, bad[:8])) + (", …" if len(bad) > 8 else "")
            count = f"{len(bad)} of {len(self.ok)} lanes failed ({lanes})"
            for path, x in self.lanes.items():
                if known(x) and not np.all(np.isfinite(x[bad[0]])):
                    return f"{count}; the first: {path} is not finite"
            if not known(*jax.tree.leaves((self.stopped, self.system, self.lanes))):
                return count  # in a derivative, where numbers cannot be looked at
            return f"{count}; the first: {self.lane(int(bad[0])).failure()}"
        if self.ok:
            return ""
        t, y = self.stopped
        for name, part in self.system.parts.items():
            if isinstance(part, AbstractPlacedPart):
                if said := part.failure_reason(y.parts[name]):
                    return f"the run stopped at t = {float(t):.6g} s: {name!r}: {said}"
        if said := why_singular(self.system.mechanism, y.q, NEARLY_SINGULAR):
            return f"the run stopped at t = {float(t):.6g} s: {said}"
        last = np.searchsorted(np.asarray(self.t), float(t), "right") - 1
        acting = jax.tree.map(lambda x: x[max(last, 0)], self.applied)
        rate = self.system.derivative(t, y, input_values(self.inputs, t), acting)
        worst, name = -1.0, "q"
        for (path, x), dx in zip(
            jax.tree_util.tree_leaves_with_path(y), jax.tree.leaves(rate), strict=True
        ):
            # What is not finite is to blame, else what changes fastest for its size.
            speed = np.abs(np.asarray(dx)) / (1e-9 + np.abs(np.asarray(x)))
            speed = np.where(np.isfinite(speed), speed, np.inf)
            if speed.size and speed.max() > worst:
                worst, entry = speed.max(), int(speed.argmax())
                name = self._leaf_name(path, entry)
        return (
            f"the solve stopped at t = {float(t):.6g} s after {int(self.steps)} steps, "
            f"where {name} changes fastest; try a stiff solver, looser tolerances or "
            "more max_steps, or look for a discontinuity there"
        )

    def _leaf_name(self, path: tuple, entry: int) -> str:
        keys = [getattr(k, "name", getattr(k, "key", None)) for k in path]
        if keys[0] == "parts":
            return f"state {'.'.join(map(str, keys[2:]))!r} of part {keys[1]!r}"
        mechanism = self.system.mechanism
        starts = mechanism.q_starts if keys[0] == "q" else mechanism.v_starts
        joint = mechanism.joint_names[int(np.searchsorted(starts, entry, "right")) - 1]
        return f"{'coordinate' if keys[0] == 'q' else 'speed'} of joint {joint!r}"

    # Tables, pictures, files ---------------------------------------------------------

    def to_xarray(self, **derived: Any) -> "xarray.Dataset":
        """Return labelled arrays: every signal of the system, by name, with its unit.

        **Arguments:**

        - `derived`: further series by name, with time as the axis after the batch.
        """
        series = {**self.map(_Query("signals")), **derived}
        units = {name: self.unit(name) for name in series if name not in derived}
        if self.work is not None:
            series |= {"work.in": self.work[..., 0], "work.lost": self.work[..., 1]}
            units |= {"work.in": "J", "work.lost": "J"}
        return label_series(self.t, series, units, batched=bool(self.batch))

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a time, one column a number; of a batch, a row a lane too."""
        import pandas as pd

        data, columns = self.to_xarray(), {}
        lead = 1 + len(self.batch)
        for name, values in data.items():
            array = values.values.reshape(*values.shape[:lead], -1)
            for i in range(array.shape[-1]):
                label = name if array.shape[-1] == 1 else f"{name}[{i}]"
                columns[label] = array[..., i].ravel()
        time = np.broadcast_to(np.asarray(self.t), (*self.batch, len(self.t)))
        if not self.batch:
            return pd.DataFrame(columns, index=pd.Index(time, name="time"))
        lanes = np.broadcast_to(np.arange(self.batch[0])[:, None], time.shape)
        rows = pd.MultiIndex.from_arrays(
            [lanes.ravel(), time.ravel()], names=["lane", "time"]
        )
        return pd.DataFrame(columns, index=rows)

    def save(self, path: str | Path, **derived: Any) -> None:
        """Write the labelled series as netCDF (`.nc`) or NumPy (`.npz`)."""
        save_dataset(self.to_xarray(**derived), path)

    def plot(self, *signals: str) -> Any:
        """Return a picture of signals against time, as notebooks show it.

        ```python
        trajectory.plot("pid.u", "arm.q").save("motion.html")
        ```
        """
        return _view().plot_signals(self, signals)

    def show(self, shapes: Sequence[Mapping[str, Any]] = ()) -> Any:
        """Return the machine in motion in three dimensions, as notebooks show it.

        `trajectory.show().save("motion.html")` writes it as a page. `shapes` are those
        of `djdyn.view.machine.draw`.
        """
        return _view().show_motion(self, shapes)


def _view() -> Any:
    """The room of pictures, which lies above this one: opened when it is asked for."""
    return importlib.import_module("djdyn.view.trajectory_views")


class _Query(eqx.Module):
    """A question by name: equal ones are compiled once, which lambdas are not."""

    what: str = eqx.field(static=True)
    name: str = eqx.field(static=True, default="")

    def __call__(self, now: Instant) -> PyTree:
        match self.what:
            case "pose":
                return now.world.pose(self.name)
            case "twist":
                return now.world.twist(self.name)
            case "reaction":
                return now.reaction(self.name)
            case "energy":
                return now.energy()
            case "signals":
                return now.signals
        if self.name not in now.signals:
            known = ", ".join(now.signals)
            raise ValueError(f"unknown signal {self.name!r}; there are {known}")
        return now.signals[self.name]


@eqx.filter_jit
def _map(trajectory: Trajectory, fn: Callable[[Instant], PyTree]) -> PyTree:
    inputs = trajectory.inputs

    def once(values: dict, t: Scalar, y: State, sampled: dict, acting: dict) -> PyTree:
        given = input_values(inputs, t)
        now = with_parameters(trajectory.system, values).at(t, y, given, acting)
        sent = {
            f"{part}.{k}": x for part, out in sampled.items() for k, x in out.items()
        }
        return fn(eqx.tree_at(lambda i: i.signals, now, {**now.signals, **sent}))

    seen = (trajectory.t, trajectory.y, trajectory.sampled, trajectory.applied)
    over_time = jax.vmap(once, in_axes=(None, 0, 0, 0, 0))
    if not trajectory.batch:
        return over_time({}, *seen)
    over_lanes = jax.vmap(over_time, in_axes=(0, None, 0, 0, 0))
    return over_lanes(trajectory.lanes, *seen)


@eqx.filter_jit
def energy_balance(system: System, trajectory: Trajectory) -> Float[Array, "*batch n"]:
    r"""Return the residual of the energy ledger over time, J.

    $$E(t) - E(0) - \int_0^t (P_{in} - P_{lost})\,dt$$

    The trajectory must have been simulated with `ledger=True`.

    !!! example

        ```python
        run = djdyn.simulate(system, 1.0, ledger=True)
        residual = djdyn.energy_balance(system, run)
        ```
    """
    if trajectory.work is None:
        raise ValueError(
            "an energy balance needs a trajectory simulated with ledger=True"
        )
    energy = eqx.tree_at(lambda x: x.system, trajectory, system).energy()
    came, lost = jnp.moveaxis(trajectory.work, -1, 0)
    return energy - energy[..., :1] - (came - lost)


def delayed(sampled: dict[str, dict[str, Array]]) -> dict[str, dict[str, Array]]:
    """What acts if all that is sent acts a sample later."""
    return jax.tree.map(lambda x: jnp.concatenate([x[:1], x[:-1]]), sampled)


class Run(NamedTuple):
    """What a solver gives on flat states: those saved, and how the run ended."""

    flats: Float[Array, "n k"]
    steps: Int[Array, ""]
    ok: Bool[Array, ""]
    t_end: Scalar
    last: Float[Array, " k"]
    sampled: dict[str, dict[str, Array]]


def assemble(
    system: System,
    times: Float[Array, " n"],
    run: Run,
    inputs: dict[str, Any],
    unravel: Callable[[Array], PyTree],
    options: SimulationOptions,
) -> Trajectory:
    """Return the trajectory of a run."""
    ys, works = jax.vmap(unravel)(run.flats)
    sampled = run.sampled
    return Trajectory(
        system,
        times,
        ys,
        ok=run.ok & jnp.all(jnp.isfinite(run.flats)),
        steps=run.steps,
        stopped=(run.t_end, unravel(run.last)[0]),
        sampled=sampled,
        applied=delayed(sampled) if options.control_delay else sampled,
        inputs=inputs,
        work=works if options.ledger else None,
    )
