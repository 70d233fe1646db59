"""The equations of motion of a system on one flat array, as solvers take them."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from ._types import Numbers, Scalar
from .part import AbstractSignalPart
from .system import State, System
from .trajectory import input_values


Inputs = Mapping[str, Numbers | Callable[[Scalar], Array]]


class Field(eqx.Module):
    """The vector field on one flat array: few leaves make gradients cheap.

    `held` holds the outputs of controllers between their samples.
    """

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

    def hold(self, held: dict[str, dict[str, Array]]) -> "Field":
        """The same with these outputs of controllers."""
        return Field(self.system, self.inputs, held, self.unravel, self.ledger)

    def sample(self, t: Scalar, flat: Array, period: float) -> tuple[Array, dict]:
        """Controllers take a sample: their states a period on, and their outputs."""
        system = self.system
        names = [
            k for k, p in system.parts.items() if isinstance(p, AbstractSignalPart)
        ]
        y, work = self.unravel(flat)
        given = self.input_values(t)
        now = system.at(t, y, given)
        held = {name: now.responses[name].outputs for name in names}
        own, shape_own = ravel_pytree({name: y.parts[name] for name in names})

        def rates(own: Array) -> Array:
            states = State(y.q, y.v, {**y.parts, **shape_own(own)})
            now = system.at(t, states, given)
            return ravel_pytree({name: now.responses[name].rate for name in names})[0]

        states = {**y.parts, **shape_own(held_step(rates, own, period))}
        return ravel_pytree((State(y.q, y.v, states), work))[0], held


SQUARINGS, TERMS = 24, 13


def held_step(rates: Callable[[Array], Array], s: Array, period: float) -> Array:
    r"""States of controllers one period on, their inputs held.

    $s + \int_0^T e^{A\tau}d\tau\,\dot s$ with $A = \partial\dot s/\partial s$: exact
    for linear controllers, and stable for filters faster than the samples. By Taylor's
    series over a small part of the period and doublings of $e^X - 1$, which keep small
    steps exact and zeros of $A$ zero.
    """
    if not s.size:
        return s
    rate, A = rates(s), jax.jacfwd(rates)(s)
    X = jnp.concatenate([A, rate[:, None]], 1) * (period / 2**SQUARINGS)
    X = jnp.pad(X, ((0, 1), (0, 0)))
    total = term = X
    for k in range(2, TERMS + 1):
        term = term @ X / k
        total = total + term
    for _ in range(SQUARINGS):
        total = 2 * total + total @ total
    return s + total[:-1, -1]
