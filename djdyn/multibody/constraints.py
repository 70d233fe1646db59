r"""Forces that follow from what they must bring about.

Accelerations are affine in the sizes $\lambda$ of such forces and in their magnitudes
$p = |\lambda|$, by which friction goes, and so are the constraints' residuals,

$$r = b + A\lambda + B p .$$

With unknowns $x$, two-sided constraints have $\lambda = x$ and $r = 0$. One-sided
ones have $\lambda = \max(x, 0)$ and $r = d\max(-x, 0)$, where $d$ is the diagonal of
$A + B$, so that one alone has $x = -b/d$. Newton's method solves this small system;
its steps are differentiated.
"""

import abc
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..smooth import eased_ramp, magnitude
from ..typing import Scalar
from . import mass_matrix
from .closing import response
from .kinematics import World
from .mass_matrix import Wrenches


STEPS = 8  # of Newton's method, where one is not enough
SOFTNESS = 1e-9  # relative; shares a load between more constraints than can be told


@runtime_checkable
class BodyLoad(Protocol):
    """Wrenches on the bodies, about their origins."""

    def wrenches(self, world: World, /) -> Wrenches:
        """Return the wrenches on all bodies."""
        ...


class AbstractConstraint(eqx.Module):
    r"""A force of unknown size $\lambda$, and an equation for it.

    Its equation is affine in accelerations, wrenches and $\lambda$. One-sided, it holds
    only where $\lambda > 0$; elsewhere the residual is positive. `slack` is the size
    below which the one passes into the other. Friction is a load per unit of
    $|\lambda|$.
    """

    load: eqx.AbstractVar[BodyLoad]  # per unit of size
    drag: eqx.AbstractVar[BodyLoad | None]  # per unit of its magnitude
    one_sided: eqx.AbstractVar[bool]
    slack: eqx.AbstractVar[Scalar]

    @abc.abstractmethod
    def residual(
        self,
        world: World,
        v_dot: Float[Array, " nv"],
        F_WB: Float[Array, "bodies 6"],
        size: Scalar,
    ) -> Scalar:
        """Zero where the constraint is met; rises with `size`."""


def constrained(
    world: World,
    v_dot: Float[Array, " nv"],
    F_WB: Wrenches,
    constraints: Mapping[str, tuple[AbstractConstraint, ...]],
) -> tuple[Float[Array, " nv"], Wrenches, dict[str, Scalar]]:
    """Accelerations, wrenches of all constraints, and their summed sizes by part.

    `v_dot` are the accelerations without them.
    """
    every = [c for group in constraints.values() for c in group]
    zero = jnp.zeros_like(F_WB)
    loads = [c.load.wrenches(world) for c in every]
    loads += [zero if c.drag is None else c.drag.wrenches(world) for c in every]
    F = jnp.stack(loads)
    forces = [mass_matrix.project_wrenches(world, f) for f in loads]
    solve = lambda force: mass_matrix.solve_mass_matrix(world, force)
    if world.mechanism.loops:
        solve = response(world)
    V = jnp.stack([solve(force) for force in forces])

    def residuals(z: Float[Array, " n"]) -> Float[Array, " k"]:
        """Residuals for sizes and magnitudes, one after the other."""
        now = v_dot + z @ V, F_WB + jnp.einsum("k,kni->ni", z, F)
        rows = [
            c.residual(world, *now, size) for c, size in zip(every, z, strict=False)
        ]
        return jnp.stack(rows)

    nothing, k = jnp.zeros(len(loads), F_WB.dtype), len(every)
    z = _sizes(every, residuals(nothing), jax.jacfwd(residuals)(nothing))
    owners = [name for name, group in constraints.items() for _ in group]
    sizes = {name: jnp.zeros((), z.dtype) for name in owners}
    for name, size in zip(owners, z[:k], strict=True):
        sizes[name] = sizes[name] + size
    return v_dot + z @ V, jnp.einsum("k,kni->ni", z, F), sizes


def _sizes(
    every: list[AbstractConstraint], b: Float[Array, " k"], AB: Float[Array, "k n"]
) -> Float[Array, " n"]:
    """Sizes and magnitudes for which all residuals are as they should be."""
    k, slack = len(every), jnp.stack([c.slack for c in every])
    one_sided = np.array([c.one_sided for c in every])
    d = jnp.stack([AB[i, i] + AB[i, k + i] for i in range(k)])
    held = d <= 0  # nothing moves along the constraint, and any size will do
    d = jnp.where(held, 1.0, d)
    softness = jnp.where(held, 1.0, SOFTNESS if k > 1 else 0.0) * d

    def split(x: Float[Array, " k"]) -> Float[Array, " n"]:
        size = jnp.where(one_sided, eased_ramp(x, slack), x)
        return jnp.concatenate([size, jnp.where(one_sided, size, magnitude(x, slack))])

    def missing(x: Float[Array, " k"]) -> Float[Array, " k"]:
        z = split(x)
        return b + AB @ z + d * (x - z[:k]) + softness * z[:k]

    def newton(x: Float[Array, " k"], _: None) -> tuple[Float[Array, " k"], None]:
        return x - _solve(jax.jacfwd(missing)(x), missing(x)), None

    plain = not one_sided.any() and all(c.drag is None for c in every)
    alone = k == 1 and one_sided.all()
    steps = 1 if plain or alone else STEPS
    return split(jax.lax.scan(newton, jnp.zeros_like(b), None, steps)[0])


def _solve(A: Float[Array, "k k"], b: Float[Array, " k"]) -> Float[Array, " k"]:
    """Solve by Gauss-Jordan elimination, in operations that kernels know."""
    for i, e in enumerate(jnp.eye(len(b), dtype=b.dtype)):
        row, value = A[i] / A[i, i], b[i] / A[i, i]
        above = A[:, i] - e
        A, b = A - above[:, None] * row[None], b - above * value
    return b
