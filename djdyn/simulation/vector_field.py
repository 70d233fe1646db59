"""The equations of motion of a system on one flat array, as solvers take them."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from ..cable.implicit_chain import AbstractLinePart, ChainSolver
from ..multibody.closing import projected_state
from ..parts.base import AbstractSignalPart, HasImpacts
from ..system.signals import input_values
from ..system.state import State
from ..system.system import System, prepared
from ..typing import Numbers, Scalar
from .solvers.sampled_control import needed, sampled_step


Inputs = Mapping[str, Numbers | Callable[[Scalar], Array]]


class Field(eqx.Module):
    """The vector field on one flat array: few leaves make gradients cheap.

    `sampled` holds the outputs of controllers between their samples.
    """

    system: System = eqx.field(converter=prepared)
    inputs: dict[str, Any]
    sampled: dict[str, dict[str, Array]]
    unravel: Callable[[Array], PyTree] = eqx.field(static=True)
    ledger: bool = eqx.field(static=True)

    def input_values(self, t: Scalar) -> dict[str, Any]:
        """Return the inputs at a time."""
        return input_values(self.inputs, t)

    def __call__(self, t: Scalar, flat: Float[Array, " n"]) -> Float[Array, " n"]:
        y, _ = self.unravel(flat)
        given = self.input_values(t)
        rate = self.system.derivative(t, y, given, self.sampled)
        work = jnp.zeros(2 if self.ledger else 0, flat.dtype)
        if self.ledger:
            work = jnp.stack(self.system.powers(t, y, given, self.sampled))
        return ravel_pytree((rate, work))[0]

    @property
    def projects(self) -> bool:
        """Whether states are projected onto closed loops after each step."""
        mechanism = self.system.mechanism
        return bool(mechanism.loops) and mechanism.closure.sweeps > 0

    def project(self, t: Scalar, flat: Array, sweeps: int | None = None) -> Array:
        """Return the nearest state whose loops are closed.

        **Arguments:**

        - `sweeps`: steps of Newton's method, if not those that the closure takes.
        """
        if not self.projects:
            return flat
        mechanism = self.system.mechanism
        sweeps = mechanism.closure.sweeps if sweeps is None else sweeps
        y, work = self.unravel(flat)
        q, v = projected_state(mechanism, t, y.q, y.v, sweeps)
        return ravel_pytree((State(q, v, y.parts), work))[0]

    def correct_coordinates(self, flat0: Array, flat1: Array, h: Scalar) -> Array:
        """Redoes the step of the coordinates with the new speeds."""
        (y0, _), (y1, work) = self.unravel(flat0), self.unravel(flat1)
        q = y0.q + h * self.system.mechanism.q_dot(y0.q, y1.v)
        return ravel_pytree((State(q, y1.v, y1.parts), work))[0]

    def hold(self, sampled: dict[str, dict[str, Array]]) -> "Field":
        """The same with these outputs of controllers."""
        return Field(self.system, self.inputs, sampled, self.unravel, self.ledger)

    def implicit_solver(
        self, t: Scalar, flat: Array, h: Scalar
    ) -> Callable[[Array, float], Array]:
        """Return the solver of $I - hA$ that `ros2` needs; lines are what is stiff."""
        parts = self.system.parts
        lines = {k: p for k, p in parts.items() if isinstance(p, AbstractLinePart)}
        if not lines:
            raise ValueError("ros2 knows what is stiff in cables, and there is none")
        y, _ = self.unravel(flat)
        now = self.system.at(t, y, self.input_values(t), self.sampled)
        chains = {}
        for name, line in lines.items():
            chain = line.chain(t, y.parts[name], now.world, now.signals, h)
            chains[name] = ChainSolver(now.world, now.with_added_inertia, chain, h)

        def solve(b: Array, clock: float) -> Array:
            rates, work = self.unravel(b)
            v, states = rates.v, dict(rates.parts)
            for name, chain in chains.items():
                own = rates.parts[name]
                states[name], more = chain.solve(rates.q, rates.v, own, clock)
                v = v + more
            q = rates.q + h * self.system.mechanism.q_dot(y.q, v)
            return ravel_pytree((State(q, v, states), work))[0]

        return solve

    @property
    def has_impacts(self) -> bool:
        """Whether a part has impacts, which gradients have to resolve."""
        return any(isinstance(p, HasImpacts) for p in self.system.parts.values())

    @property
    def is_data(self) -> bool:
        """Whether inputs are arrays and modules, and no functions with closures."""
        leaves = jax.tree.leaves((self.inputs, self.sampled))
        return all(eqx.is_array_like(x) for x in leaves)

    @property
    def controllers(self) -> list[str]:
        """Names of the parts that take samples."""
        parts = self.system.parts.items()
        return [name for name, p in parts if isinstance(p, AbstractSignalPart)]

    def outputs(self, t: Scalar, flat: Array) -> dict[str, dict[str, Array]]:
        """Outputs of controllers that take a sample."""
        y, _ = self.unravel(flat)
        found = self.system.respond(self.controllers, t, y, self.input_values(t))
        return {name: response.outputs for name, response in found.items()}

    def sample(self, t: Scalar, flat: Array, period: float) -> tuple[Array, dict]:
        """Controllers take a sample: their states a period on, and their outputs."""
        system, names = self.system, self.controllers
        y, work = self.unravel(flat)
        given, sampled = self.input_values(t), self.outputs(t, flat)
        own, shape_own = ravel_pytree({name: y.parts[name] for name in names})

        def rates(own: Array) -> Array:
            states = State(y.q, y.v, {**y.parts, **shape_own(own)})
            found = system.respond(names, t, states, given)
            return ravel_pytree({name: x.rate for name, x in found.items()})[0]

        stepped = sampled_step(needed(rates, own), own, period)
        states = {**y.parts, **shape_own(stepped)}
        return ravel_pytree((State(y.q, y.v, states), work))[0], sampled
