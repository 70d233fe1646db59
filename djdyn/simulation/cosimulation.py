"""A system as one of several simulators that trade motions and loads step by step."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool

from ..multibody.joints import Prescribed
from ..multibody.time_functions import GuidedMotion
from ..system.instant import Instant
from ..system.state import State
from ..system.system import System
from ..typing import Number, Numbers, Scalar, known
from .checks import check_state
from .options import SimulationOptions
from .solvers import fixed_step as steps
from .solvers.registry import Integrator
from .solvers.solution import advance
from .vector_field import Field


class CoSimulationState(eqx.Module):
    """Where a system is: time, state, and what it was last given from outside.

    `ok` is false once a step has failed; the state then stands still.
    """

    t: Scalar
    y: State
    inputs: dict[str, Array]
    motions: dict[str, Array]
    ok: Bool[Array, ""]


class _Line(eqx.Module):
    """A straight line through an input at two times."""

    t0: Scalar
    dt: Scalar
    start: Array
    end: Array

    def __call__(self, t: Scalar) -> Array:
        return self.start + (t - self.t0) / self.dt * (self.end - self.start)


class CoSimulation(eqx.Module):
    """Steps a system by `dt`, with boundary values passed in and out by the caller.

    What comes in, by name, are the system's inputs (a `FrameActuator` turns one into a
    wrench on a frame) and the motions of bodies whose joint is `Prescribed` with a
    `GuidedMotion`: three rows of six, the place, rate and acceleration of surge, sway,
    heave, roll, pitch, yaw. All are those at the end of the step: motions run smoothly
    from the last ones to these; inputs keep the new value over the step with
    `hold=True`, or go there on a straight line from the last.

    What comes out, by name, are signals, `frame.pose`, `frame.twist` and
    `joint.reaction`, at the end of the step.

    A step is a pure function, compiled once: it can be scanned, batched with `vmap`,
    and differentiated with respect to the state, to what comes in, and to the system.

    **Arguments:**

    - `dt`: the macro step, s.
    - `options`: how the steps inside are solved: of fixed length `options.dt`, which
      differentiate in both modes, or adaptive, which do as `options.adjoint` says.
    """

    system: System
    outputs: tuple[str, ...] = eqx.field(static=True)
    dt: float = eqx.field(static=True)
    hold: bool = eqx.field(static=True)
    integrator: Integrator

    def __init__(
        self,
        system: System,
        outputs: Any = (),
        *,
        dt: Number,
        hold: bool = False,
        options: SimulationOptions | None = None,
    ):
        if not dt > 0:
            raise ValueError(f"the macro step dt must be positive, got {dt}")
        self.system, self.outputs, self.dt, self.hold = (
            system,
            tuple(outputs),
            float(dt),
            hold,
        )
        options = SimulationOptions() if options is None else options
        for name in ("control_period", "jumps", "ledger"):
            if getattr(options, name) not in (None, False):
                raise ValueError(f"a co-simulation has no use for the option {name}")
        self.integrator = options.integrator
        eqx.filter_eval_shape(lambda port: port._read(port.start()), self)

    def start(
        self, initial_state: State | None = None, t0: Numbers = 0.0
    ) -> CoSimulationState:
        """The state to step from; inputs and motions are the system's own."""
        y0 = self.system.initial_state() if initial_state is None else initial_state
        check_state(self.system, y0)
        motions = {name: motion.end for name, motion in self._guided().items()}
        t, inputs = jnp.asarray(t0, float), dict(self.system.inputs)
        return CoSimulationState(t, y0, inputs, motions, jnp.array(True))

    def read(self, state: CoSimulationState) -> dict[str, Any]:
        """The outputs at a state."""
        return _read(self, state)

    def step(
        self, state: CoSimulationState, inputs: Mapping[str, Numbers] | None = None
    ) -> tuple[CoSimulationState, dict[str, Any]]:
        """The state and the outputs one macro step on; what is not given stays."""
        given = {k: jnp.asarray(x, float) for k, x in (inputs or {}).items()}
        for name, value in given.items():
            known_here = {**state.inputs, **state.motions}
            if name not in known_here:
                there = ", ".join(known_here) or "none"
                raise ValueError(f"nothing comes in as {name!r}; there are {there}")
            if value.shape != known_here[name].shape:
                raise ValueError(
                    f"{name!r} has shape {value.shape}, expected "
                    f"{known_here[name].shape}"
                )
        after, found = _step(self, state, given)
        if known(state.ok, after.ok) and state.ok and not after.ok:
            raise RuntimeError(
                f"the step from t = {float(state.t):.6g} s was not solved: try a stiff "
                "solver, looser tolerances or more max_steps"
            )
        return after, found

    def _guided(self) -> dict[str, GuidedMotion]:
        found = {}
        for body in self.system.mechanism.bodies:
            joint = body.joint
            if isinstance(joint, Prescribed) and isinstance(joint.motion, GuidedMotion):
                found[body.name] = joint.motion
        return found

    def _moving(self, state: CoSimulationState, motions: dict[str, Array]) -> System:
        """The system with its motions led from the state's to these."""
        system = self.system
        for name, end in motions.items():
            row = system.mechanism.index(name) - 1
            motion = GuidedMotion(state.motions[name], end, state.t, self.dt)
            system = eqx.tree_at(
                lambda s, row=row: s.mechanism.bodies[row].joint.motion, system, motion
            )
        return system

    def _read(self, state: CoSimulationState) -> dict[str, Any]:
        still = eqx.tree_at(lambda s: s.t, state, state.t - self.dt)
        system = self._moving(still, state.motions)  # at the end of its last piece
        now = system.at(state.t, state.y, state.inputs)
        return {name: _output(now, name) for name in self.outputs}


def _output(now: Instant, name: str) -> Any:
    owner, _, what = name.rpartition(".")
    mechanism = now.world.mechanism
    frames = {f.name for f in mechanism.frames} | {b.name for b in mechanism.bodies}
    if owner in frames and what in ("pose", "twist"):
        return getattr(now.world, what)(owner)
    joints = {*mechanism.joint_names, *(loop.name for loop in mechanism.loops)}
    if owner in joints and what == "reaction":
        return now.reaction(owner)
    if name not in now.signals:
        there = ", ".join(now.signals)
        raise ValueError(
            f"unknown output {name!r}; there are frame.pose, frame.twist, "
            f"joint.reaction, {there}"
        )
    return now.signals[name]


@eqx.filter_jit
def _read(port: CoSimulation, state: CoSimulationState) -> dict[str, Any]:
    return port._read(state)


@eqx.filter_jit
def _step(
    port: CoSimulation, state: CoSimulationState, given: dict[str, Array]
) -> tuple[CoSimulationState, dict[str, Any]]:
    inputs = {k: given.get(k, x) for k, x in state.inputs.items()}
    motions = {k: given.get(k, x) for k, x in state.motions.items()}
    t, dt = state.t, jnp.asarray(port.dt, state.t.dtype)
    line = lambda k: _Line(
        t, dt, inputs[k] if port.hold else state.inputs[k], inputs[k]
    )
    flat, unravel = ravel_pytree((state.y, jnp.zeros(0)))
    system = port._moving(state, motions)
    field = Field(system, {k: line(k) for k in inputs}, {}, unravel, False)
    end, done = _advance(field, flat, t, port.dt, port.integrator)
    ok = state.ok & done
    y, _ = unravel(jnp.where(ok, end, flat))
    after = CoSimulationState(t + dt, y, inputs, motions, ok)
    return after, port._read(after)


def _advance(
    field: Field, flat: Array, t: Scalar, span: float, how: Integrator
) -> tuple[Array, Array]:
    """The state `span` later: by a plain loop if steps are fixed, else by diffrax."""
    if how.dt is None or how.solver not in steps.METHODS:
        end, done, _ = advance(how, field, flat, t, t + span, span, None)
        return end, done
    clock = steps.Clock(0.0, span, how.dt)
    h = jnp.asarray(clock.dt, flat.dtype)

    def turn(flat: Array, k: Array) -> tuple[Array, None]:
        return steps.one_step(
            field, how.solver, t + clock.at(k, t.dtype), flat, h
        ), None

    end, _ = jax.lax.scan(turn, flat, jnp.arange(clock.steps))
    return end, jnp.all(jnp.isfinite(end))
