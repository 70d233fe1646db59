"""Optimisation problems, and their costs in the scales that solvers work in."""

import abc
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


Flat = Float[Array, " k"]  # all unknowns, unconstrained
DIVERGED_RESIDUAL = 1e8  # residual or cost of a run that is not finite


class AbstractProblem(eqx.Module):
    """An objective to be minimised: half a sum of squares, or a scalar cost."""

    names: eqx.AbstractVar[tuple[str, ...]]  # one for every unknown
    scale: eqx.AbstractVar[Flat]  # typical change of each unknown

    @abc.abstractmethod
    def residuals(self, x: Flat) -> Float[Array, " n"]:
        """Return the residuals of a least-squares problem."""

    @abc.abstractmethod
    def linearise_residuals(
        self, x: Flat
    ) -> tuple[Float[Array, " n"], Float[Array, "n k"]]:
        """Return the residuals and their Jacobian."""

    @abc.abstractmethod
    def cost(self, x: Flat) -> Float[Array, ""]:
        """Return the scalar cost."""

    @abc.abstractmethod
    def slope(self, x: Flat) -> tuple[Float[Array, ""], Flat]:
        """Return the cost and its gradient."""

    @abc.abstractmethod
    def bounds(self) -> tuple[Flat, Flat]:
        """Return lower and upper bounds, perhaps infinite; only `BFGS` keeps them."""

    @abc.abstractmethod
    def penalties(self) -> "AbstractProblem | None":
        """Return the problem with only the penalties of its cost, if it has any."""


def entries(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a name for every number of some arrays, such as `gain[0][2]`."""
    found = []
    for name, x in values.items():
        indices = [f"[{']['.join(map(str, i))}]" for i in np.ndindex(x.shape)]
        found += [name + index for index in indices] if x.ndim else [name]
    return tuple(found)


class Scaling(eqx.Module):
    """Units that a solver works in: `x` of the unknowns, `r` of the residuals."""

    x: Flat
    r: Float[Array, ""]


def _finite(value: Array, derivative: Array) -> tuple[Array, Array]:
    """Return both, or a large value without slope where either is not finite."""
    ok = jnp.all(jnp.isfinite(value)) & jnp.all(jnp.isfinite(derivative))
    return jnp.where(ok, value, DIVERGED_RESIDUAL), jnp.where(ok, derivative, 0.0)


# The derivative is computed with the value, once, however often a solver asks for it.
@eqx.filter_custom_jvp
def scaled_residuals(y: Flat, problem: AbstractProblem, scaling: Scaling) -> Array:
    """Return the residuals in the units of a solver; large where not finite."""
    r = problem.residuals(y * scaling.x) / scaling.r
    return jnp.where(jnp.all(jnp.isfinite(r)), r, DIVERGED_RESIDUAL)


@scaled_residuals.def_jvp
def _(primals, tangents):
    (y, problem, scaling), (dy, _, _) = primals, tangents
    r, J = problem.linearise_residuals(y * scaling.x)
    r, J = _finite(r / scaling.r, J * scaling.x[None] / scaling.r)
    return r, J @ dy


@eqx.filter_jit
def cost_and_gradient(problem: AbstractProblem, x: Flat) -> tuple[Array, Flat]:
    """Return `problem.slope(x)`, traced once for scaling and for all steps."""
    return problem.slope(x)


@eqx.filter_custom_jvp
def scaled_cost(y: Flat, problem: AbstractProblem, scaling: Scaling) -> Array:
    """Return the cost in the units of a solver; large where not finite."""
    f = problem.cost(y * scaling.x) / scaling.r**2
    return jnp.where(jnp.isfinite(f), f, DIVERGED_RESIDUAL)


@scaled_cost.def_jvp
def _(primals, tangents):
    (y, problem, scaling), (dy, _, _) = primals, tangents
    f, g = cost_and_gradient(problem, y * scaling.x)
    f, g = _finite(f / scaling.r**2, g * scaling.x / scaling.r**2)
    return f, g @ dy
