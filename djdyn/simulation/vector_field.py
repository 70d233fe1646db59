"""The equations of motion of a system on one flat array, as solvers take them."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree
from scipy.sparse.csgraph import connected_components

from ..kernels.frontend.jaxpr import eliminate_dead_code
from ..kernels.frontend.trace import depends
from ..kernels.primitive import lift_constants
from ..parts.base import AbstractSignalPart
from ..system.system import State, System
from ..typing import Numbers, Scalar
from .trajectory import input_values


Inputs = Mapping[str, Numbers | Callable[[Scalar], Array]]


class Field(eqx.Module):
    """The vector field on one flat array: few leaves make gradients cheap.

    `sampled` holds the outputs of controllers between their samples.
    """

    system: System
    inputs: dict[str, Any]
    sampled: dict[str, dict[str, Array]]
    unravel: Callable[[Array], PyTree] = eqx.field(static=True)
    ledger: bool = eqx.field(static=True)

    def input_values(self, t: Scalar) -> dict[str, Any]:
        return input_values(self.inputs, t)

    def __call__(self, t: Scalar, flat: Float[Array, " n"]) -> Float[Array, " n"]:
        y, _ = self.unravel(flat)
        given = self.input_values(t)
        rate = self.system.derivative(t, y, given, self.sampled)
        work = jnp.zeros(2 if self.ledger else 0, flat.dtype)
        if self.ledger:
            work = jnp.stack(self.system.powers(t, y, given, self.sampled))
        return ravel_pytree((rate, work))[0]

    def correct_coordinates(self, flat0: Array, flat1: Array, h: Scalar) -> Array:
        """Redoes the step of the coordinates with the new speeds."""
        (y0, _), (y1, work) = self.unravel(flat0), self.unravel(flat1)
        q = y0.q + h * self.system.mechanism.q_dot(y0.q, y1.v)
        return ravel_pytree((State(q, y1.v, y1.parts), work))[0]

    def hold(self, sampled: dict[str, dict[str, Array]]) -> "Field":
        """The same with these outputs of controllers."""
        return Field(self.system, self.inputs, sampled, self.unravel, self.ledger)

    @property
    def controllers(self) -> list[str]:
        parts = self.system.parts.items()
        return [name for name, p in parts if isinstance(p, AbstractSignalPart)]

    def outputs(self, t: Scalar, flat: Array) -> dict[str, dict[str, Array]]:
        """Of controllers that take a sample."""
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


def needed(fn: Callable[[Array], Array], x: Array) -> Callable[[Array], Array]:
    """The same function without what its result does not depend on.

    Outputs of controllers are much dearer than their rates, and their derivatives more
    so; a compiler would drop them only after they were traced.
    """
    only = jaxpr_as_fun(eliminate_dead_code(jax.make_jaxpr(fn)(x)))
    return lambda x: only(x)[0]


SQUARINGS, TERMS = 24, 13


def sampled_step(rates: Callable[[Array], Array], s: Array, period: float) -> Array:
    r"""States of controllers one period on, their inputs held.

    $s + \int_0^T e^{A\tau}d\tau\,\dot s$ with $A = \partial\dot s/\partial s$: exact
    for linear controllers, and stable for filters faster than the samples. States that
    have nothing to do with each other, such as those of different joints, are separate.
    """
    if not s.size:
        return s
    rate, A = rates(s), jax.jacfwd(rates)(s)
    for block in _apart(jax.make_jaxpr(rates)(s), s.size):
        X = jnp.concatenate([A[block][:, block], rate[block, None]], 1)
        s = s.at[block].add(_grown(X * (period / 2**SQUARINGS)))
    return s


def _grown(X: Float[Array, "n m"]) -> Float[Array, " n"]:
    """The last column of $e^X - 1$, doubled `SQUARINGS` times.

    By Taylor's series and doublings that keep small steps exact.
    """
    X = jnp.pad(X, ((0, 1), (0, 0)))
    total = term = X
    for k in range(2, TERMS + 1):
        term = term @ X / k
        total = total + term
    for _ in range(SQUARINGS):
        total = 2 * total + total @ total
    return total[:-1, -1]


def _apart(rates: ClosedJaxpr, n: int) -> list[np.ndarray]:
    """Sets of states whose rates depend on none of another set; all, if unknown."""
    tied = depends(lift_constants(rates)[0])
    if tied is None:
        return [np.arange(n)]
    count, label = connected_components(tied, directed=False)
    return [np.flatnonzero(label == k) for k in range(count)]
