"""Accelerations and states of mechanisms whose loops are kept closed."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..typing import Scalar
from .closures import Tree
from .kinematics import World, forward_kinematics
from .loop_rows import loop_rows
from .loops import LoopRows
from .mass_matrix import default_method, mass_solver, projected_inertia
from .mechanism import Mechanism


def tree(world: World) -> Tree:
    """Return how the mechanism without its loops answers forces."""
    solve, matrix = mass_solver(world), lambda: projected_inertia(world)
    if default_method(world) == "recursion":
        return Tree(jax.vmap(solve, 1, 1), matrix, world.mechanism.v_slice)
    return Tree(solve, matrix, world.mechanism.v_slice)


class Closed(NamedTuple):
    """Accelerations that keep loops closed, the loops' rows and multipliers."""

    v_dot: Float[Array, " nv"]
    rows: LoopRows
    multipliers: Float[Array, " m"]


def close(world: World, v_dot: Float[Array, " nv"]) -> Closed:
    """Return accelerations that keep the loops closed, their rows and multipliers.

    **Arguments:**

    - `v_dot`: accelerations of the tree without loops.
    """
    rows = loop_rows(world)
    v_dot, sizes = world.mechanism.closure.accelerate(tree(world), rows, v_dot)
    return Closed(v_dot, rows, sizes)


def response(world: World) -> Callable[[Array], Array]:
    """Return what takes joint forces to what they add to accelerations.

    Loops included, if there are any.
    """
    solve = mass_solver(world)
    if not world.mechanism.loops:
        return solve
    rows = loop_rows(world)
    none = jnp.zeros_like(rows.gap)
    still = eqx.tree_at(lambda r: (r.gap, r.rate, r.bias), rows, (none, none, none))
    closure = world.mechanism.closure
    return lambda force: closure.accelerate(tree(world), still, solve(force))[0]


def projected_state(
    mechanism: Mechanism,
    t: Scalar,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    sweeps: int,
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """Return the nearest coordinates and speeds that the loops allow.

    **Arguments:**

    - `sweeps`: steps of Newton's method.
    """
    for _ in range(sweeps):
        world = forward_kinematics(mechanism, q, v, t)
        rows = loop_rows(world)
        correct = mechanism.closure.corrector(tree(world), rows)
        q = q + mechanism.q_dot(q, correct(rows.gap))
        v = v + correct(rows.rate)
    return q, v
