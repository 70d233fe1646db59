"""A mechanism and its parts: one vector field, one energy ledger."""

from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, PyTree

from ..multibody import dynamics
from ..multibody.assembly import close_start
from ..multibody.closing import close
from ..multibody.constraints import constrained
from ..multibody.flexible.body import reduced_mechanism, without_old_shapes
from ..multibody.kinematics import forward_kinematics
from ..multibody.mechanism import Mechanism
from ..parts.base import (
    AbstractPart,
    AbstractPlacedPart,
    MeasuresMotion,
    Response,
)
from ..parts.loads import JointLoad
from ..typing import Numbers, Scalar
from .describe import as_html, as_text
from .instant import AbstractSystem, Instant, with_added_inertia_of
from .process import refuse_fork
from .signals import SignalBoard
from .state import State


def _named(parts: Any) -> dict[str, Any]:
    items = parts.items() if isinstance(parts, Mapping) else parts
    named: dict[str, Any] = {}
    for name, part in items:
        if name in named:
            raise ValueError(f"two parts are called {name!r}")
        named[name] = part
    return named


class System(AbstractSystem):
    """A mechanism, its named parts, and the named inputs that come from outside.

    `parts` is a dictionary or a list of pairs. `inputs` holds default values; a
    simulation may replace them by functions of time.
    """

    mechanism: Mechanism
    parts: dict[str, AbstractPart] = eqx.field(converter=_named, default_factory=dict)
    inputs: dict[str, Array] = eqx.field(
        converter=lambda d: {k: jnp.asarray(x, dtype=float) for k, x in d.items()},
        default_factory=dict,
    )

    def __check_init__(self):
        refuse_fork()
        taken = {"world", *self.mechanism.joint_names}
        taken |= {b.name for b in self.mechanism.bodies}
        taken |= {f.name for f in self.mechanism.frames}
        taken |= {loop.name for loop in self.mechanism.loops}
        for name, part in self.parts.items():
            if not isinstance(part, AbstractPart):
                raise ValueError(
                    f"part {name!r} is a {type(part).__name__}, not a part"
                )
            if name in taken:
                raise ValueError(
                    f"part {name!r} has the name of a body, joint or frame"
                )
            if not name or "." in name:
                raise ValueError(f"a part's name is not empty and has no dot: {name!r}")
        for name in self.inputs:
            if not name or "." in name or name in taken or name in self.parts:
                raise ValueError(
                    f"an input's name is its own, not empty, and has no dot: {name!r}"
                )
        # A dry run finds unknown frames, joints and signals, and cycles, at once.
        run = lambda s: (s.initial_state(), s.derivative(0.0, s.initial_state()))
        state, rate = eqx.filter_eval_shape(run, self)
        for name in self.parts:
            shapes = [jax.tree.map(jnp.shape, x.parts[name]) for x in (state, rate)]
            if shapes[0] != shapes[1]:
                raise ValueError(
                    f"part {name!r}: its state has shapes {shapes[0]}, its rate has "
                    f"{shapes[1]}"
                )

    def __str__(self) -> str:
        return as_text(self, self.inputs, self._signal_shapes())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self, self.inputs, self._signal_shapes())

    def _signal_shapes(self) -> dict[str, Any]:
        everything = lambda s: s.at(0.0, s.initial_state()).signals
        return eqx.filter_eval_shape(everything, self)

    def initial_state(
        self,
        q: Mapping[str, Numbers] | Numbers | None = None,
        v: Mapping[str, Numbers] | Numbers | None = None,
        parts: Mapping[str, PyTree] | None = None,
    ) -> State:
        """A state at rest, with what is given replaced.

        **Arguments:**

        - `q`, `v`: whole vectors, or values by joint name. Joints without a value move
          so that all loops close; of whole vectors everything may move.
        - `parts`: states by part name.
        """
        m = self.mechanism
        named = lambda x: tuple(x) if isinstance(x, Mapping) else ()
        held = named(q), named(v)
        q = _fill("q", q, m.q0(), m.q_slice)
        v = _fill("v", v, jnp.zeros(m.nv), m.v_slice)
        q, v = close_start(m, q, v, *held) if m.loops else (q, v)
        placed = [isinstance(part, AbstractPlacedPart) for part in self.parts.values()]
        world = forward_kinematics(m, q) if any(placed) else None
        states = {
            name: part.start(world)
            if isinstance(part, AbstractPlacedPart) and world is not None
            else part.initial_state()
            for name, part in self.parts.items()
        }
        for name, state in (parts or {}).items():
            if name not in states:
                raise ValueError(f"initial state of unknown part {name!r}")
            states[name] = state
        return State(q, v, states)

    def at(
        self,
        t: ArrayLike,
        y: State,
        inputs: Mapping[str, Array] | None = None,
        sampled: Mapping[str, dict[str, Array]] | None = None,
    ) -> Instant:
        """Evaluates everything at time `t` and state `y`.

        `sampled` gives the outputs of parts that are not evaluated now (a controller
        between two samples).
        """
        t = jnp.asarray(t, y.v.dtype)
        now = _at(self, t, y, dict(inputs or {}), dict(sampled or {}))
        given = lambda i: (i.system, i.y, i.world.mechanism)
        return eqx.tree_at(given, now, (self, y, self.mechanism))

    def respond(
        self,
        names: Iterable[str],
        t: ArrayLike,
        y: State,
        inputs: Mapping[str, Array] | None = None,
    ) -> dict[str, Response]:
        """What some parts do; of the others only those that they read are evaluated."""
        t = jnp.asarray(t, y.v.dtype)
        return _respond(self, tuple(names), t, y, dict(inputs or {}))

    def _board(self, t: ArrayLike, y: State, inputs: Any, sampled: Any) -> SignalBoard:
        world = forward_kinematics(self.mechanism, y.q, y.v, t)
        return SignalBoard(
            self.parts, world, y, {**self.inputs, **(inputs or {})}, sampled or {}
        )

    def derivative(
        self,
        t: ArrayLike,
        y: State,
        inputs: Mapping[str, Array] | None = None,
        sampled: Mapping[str, dict[str, Array]] | None = None,
    ) -> State:
        """The right-hand side of the equations of motion, shaped like `y`."""
        t = jnp.asarray(t, y.v.dtype)
        return _derivative(self, t, y, dict(inputs or {}), dict(sampled or {}))

    # The energy ledger --------------------------------------------------------------

    def energy(self, t: ArrayLike, y: State) -> Scalar:
        """Kinetic, potential, and what the parts store."""
        return self.at(t, y).energy()

    def powers(
        self,
        t: ArrayLike,
        y: State,
        inputs: Mapping[str, Array] | None = None,
        sampled: Mapping[str, dict[str, Array]] | None = None,
    ) -> tuple[Scalar, Scalar]:
        """Power drawn from outside, and power lost."""
        now = self.at(t, y, inputs, sampled)
        power_in = now.boundary_power()
        power_loss = now.constraint_loss() + now.bending_loss()
        for name, part in self.parts.items():
            if name not in (sampled or {}):
                arguments = (now.world.t, y.parts[name], now.world, now.signals)
                power_in += part.power_in(*arguments)
                power_loss += part.power_loss(*arguments)
        return power_in, power_loss


def prepared(system: System) -> System:
    """Return the system with its flexible bodies reduced, to be evaluated often."""
    mechanism = reduced_mechanism(system.mechanism)
    if mechanism is system.mechanism:
        return system
    return eqx.tree_at(lambda s: s.mechanism, system, mechanism)


def prepared_anew(system: System, before: System) -> System:
    """Return a prepared system whose parameters have changed, prepared again where they
    shape flexible bodies.
    """
    mechanism = without_old_shapes(system.mechanism, before.mechanism)
    if mechanism is system.mechanism:
        return system
    return prepared(eqx.tree_at(lambda s: s.mechanism, system, mechanism))


@eqx.filter_jit  # traced once: by the dry run, then found again by whoever asks
def _at(
    system: System,
    t: Scalar,
    y: State,
    inputs: dict[str, Array],
    sampled: dict[str, dict[str, Array]],
) -> Instant:
    board = system._board(t, y, inputs, sampled)
    world = board.world
    responses = {name: board.respond(name) for name in system.parts}
    tau, F_WB = jnp.zeros_like(y.v), jnp.zeros_like(world.V_WB)
    carried = None
    for name, response in responses.items():
        for load in (*response.loads, *response.inertias):
            try:
                if isinstance(load, JointLoad):
                    tau = tau + load.forces(world)
                else:
                    F_WB = F_WB + load.wrenches(world)
            except ValueError as error:
                raise ValueError(f"part {name!r}: {error}") from error
        for inertia in response.inertias:
            more = inertia.matrices(world)
            carried = more if carried is None else carried + more
    with_added_inertia, holding = with_added_inertia_of(world, carried), None
    loops = bool(system.mechanism.loops)
    v_dot, closed = dynamics.forward(with_added_inertia, tau, F_WB), None
    if loops:
        closed = close(with_added_inertia, v_dot)
        v_dot = closed.v_dot
    signals = board.everything()
    if any(response.constraints for response in responses.values()):
        wanted = {name: r.constraints for name, r in responses.items()}
        v_dot, holding, sizes = constrained(with_added_inertia, v_dot, F_WB, wanted)
        F_WB = F_WB + holding
        if loops:  # what they carry follows from all that acts
            v_dot = dynamics.forward(with_added_inertia, tau, F_WB)
            closed = close(with_added_inertia, v_dot)
            v_dot = closed.v_dot
        signals |= {f"{name}.normal_force": size for name, size in sizes.items()}
    now = Instant(
        system, y, world, responses, signals, tau, F_WB, v_dot, carried, holding
    )
    if closed is not None:
        now = now.with_loops(closed.rows, closed.multipliers)
    late = {n: p for n, p in system.parts.items() if isinstance(p, MeasuresMotion)}
    for name, part in late.items():
        found = part.outputs_at(now)
        signals = signals | {f"{name}.{key}": x for key, x in found.items()}
    return eqx.tree_at(lambda i: i.signals, now, signals) if late else now


@eqx.filter_jit  # traced once: by the dry run, then found again by every solver
def _derivative(
    system: System,
    t: Scalar,
    y: State,
    inputs: dict[str, Array],
    sampled: dict[str, dict[str, Array]],
) -> State:
    now = system.at(t, y, inputs, sampled)
    rates = {name: response.rate for name, response in now.responses.items()}
    return State(system.mechanism.q_dot(y.q, y.v), now.v_dot, rates)


@eqx.filter_jit
def _respond(
    system: System,
    names: tuple[str, ...],
    t: Scalar,
    y: State,
    inputs: dict[str, Array],
) -> dict[str, Response]:
    board = system._board(t, y, inputs, None)
    return {name: board.respond(name) for name in names}


def _fill(what: str, given: Any, default: Array, where) -> Array:
    """`default` with what is given, by name or as a whole, put in its place."""
    if given is None:
        return default
    if not isinstance(given, Mapping):
        value = jnp.asarray(given, dtype=float)
        if value.shape != default.shape:
            raise ValueError(
                f"initial {what} has shape {value.shape}, expected {default.shape}"
            )
        return value
    for joint, value in given.items():
        place = where(joint)
        value = jnp.atleast_1d(jnp.asarray(value, dtype=float))
        if value.shape != default[place].shape:
            raise ValueError(
                f"initial {what} of joint {joint!r} has shape {value.shape}, "
                f"expected {default[place].shape}"
            )
        default = default.at[place].set(value)
    return default
