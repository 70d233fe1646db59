r"""Equations of motion of a tree of bodies.

At a body's origin, in world axes, with momentum $h = M V$ and ordinary acceleration
$A = [\alpha; a]$, the wrench that a body needs is

$$F = M\bigl(A - [0;\,\omega\times v]\bigr) + V\times^* h ,$$

which holds for any symmetric 6x6 inertia fixed in the body, so added mass is no special
case. Weight is a wrench of its own: gravity does not pull on added mass.

Forward dynamics comes in two ways with one result. `"projection"` solves
$J^\top\mathcal M J\,\dot v = \tau - J^\top(\dots)$ with stacked Jacobians;
`"recursion"` is the articulated-body algorithm (Featherstone, *Rigid Body Dynamics
Algorithms*, 2008), linear in the number of bodies.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import Array, ArrayLike, Float

from .closing import close
from .kinematics import World, forward_kinematics
from .mass_matrix import (
    Method,
    Wrenches,
    added_masses,
    body_masses,
    body_twists,
    default_method,
    mass_solver_by,
    project_wrenches,
    projected_inertia,
    solve_mass_by,
    with_rotors,
)
from .mechanism import Mechanism
from .spatial import cross, cross_wrench


def needed_wrenches(world: World, v_dot: Float[Array, " nv"] | None = None) -> Wrenches:
    r"""What the bodies need, beside gravity, for `v_dot`, or at constant speeds.

    With $h = m c$ and $J$ about the origin, whose acceleration is $a$,

    $$f = m(a - g) + \alpha\times h + \omega\times(\omega\times h),\qquad
    \tau = J\alpha + \omega\times J\omega + h\times(a - g) .$$
    """
    m, h, J = body_masses(world)
    A = world.A_bias_WB if v_dot is None else accelerations(world, v_dot)
    w, alpha, a = world.V_WB[:, :3], A[:, :3], A[:, 3:] - world.gravity_W[None]
    f = m[:, None] * a + cross(alpha, h) + cross(w, cross(w, h))
    turned = jnp.einsum("nij,nj->ni", J, alpha)
    spun = cross(w, jnp.einsum("nij,nj->ni", J, w))
    F = jnp.concatenate([turned + spun + cross(h, a), f], -1)
    if world.flexion is not None:
        F = F + world.flexion.bias_wrenches(len(F))
        F = F if v_dot is None else F + world.flexion.wrenches(len(F), v_dot)
    if world.added_inertia_W is not None:
        F = F + jnp.einsum("nij,nj->ni", world.added_inertia_W, A)
    added = added_masses(world)
    if added is None:
        return F
    V = world.V_WB
    A = A - jnp.pad(cross(V[:, :3], V[:, 3:]), ((0, 0), (3, 0)))
    momentum = jnp.einsum("nij,nj->ni", added, V)
    gyroscopic = jax.vmap(cross_wrench)(V, momentum)
    return F + jnp.einsum("nij,nj->ni", added, A) + gyroscopic


def needed_forces(
    world: World, F: Wrenches, v_dot: Float[Array, " nv"] | None = None
) -> Float[Array, " nv"]:
    """Joint forces that amount to wrenches `F` on the bodies; modal speeds need, beside
    them, what bends their bodies.
    """
    force, flexion = project_wrenches(world, F), world.flexion
    if flexion is None:
        return force
    A = world.A_bias_WB if v_dot is None else accelerations(world, v_dot)
    A = A - jnp.pad(world.gravity_W, (3, 0))[None]
    force = force + flexion.forces(A) + flexion.force
    return force if v_dot is None else force + flexion.M_ff @ v_dot


def accelerations(world: World, v_dot: Float[Array, " nv"]) -> Float[Array, "bodies 6"]:
    """Accelerations of all bodies at their origins."""
    return world.A_bias_WB + body_twists(world, v_dot)


def inverse(
    world: World, v_dot: Float[Array, " nv"], F_WB: Wrenches | None = None
) -> Float[Array, " nv"]:
    """Joint forces that give `v_dot` under gravity and the wrenches `F_WB`."""
    _check_size(world, "v_dot", v_dot)
    F = needed_wrenches(world, v_dot) - (0.0 if F_WB is None else F_WB)
    return with_rotors(world, needed_forces(world, F, v_dot), v_dot)


def forward(
    world: World,
    tau: Float[Array, " nv"],
    F_WB: Wrenches | None = None,
    method: Method | None = None,
) -> Float[Array, " nv"]:
    """`v_dot` under joint forces, wrenches about the bodies' origins, and gravity.

    Loops are left open: see `closing.close`.
    """
    _check_size(world, "tau", tau)
    method = default_method(world) if method is None else method
    if method not in ("projection", "recursion"):
        raise ValueError(f"method is projection or recursion, not {method!r}")
    F_WB = jnp.zeros_like(world.V_WB) if F_WB is None else F_WB
    return _forward(_bare(world), tau, F_WB, method=method)


def _bare(world: World) -> World:
    """The world without what only kinematics needs of the mechanism: nothing is
    differentiated by it again.
    """
    mechanism = world.mechanism
    wanted = jax.tree.map(lambda _: False, mechanism)
    kept = lambda m: [m.gravity_W, *(b.A_B for b in m.bodies if b.A_B is not None)]
    wanted = eqx.tree_at(kept, wanted, [True] * len(kept(mechanism)))
    return eqx.tree_at(lambda w: w.mechanism, world, eqx.filter(mechanism, wanted))


@eqx.filter_custom_jvp
def _forward(
    world: World, tau: Float[Array, " nv"], F_WB: Wrenches, *, method: Method
) -> Float[Array, " nv"]:
    v_dot = _accelerations(world, tau, F_WB, method)
    return checkpoint_name(v_dot, "v_dot")  # a reverse sweep may keep it


@eqx.filter_jit  # traced once, wherever it is used
def _accelerations(
    world: World, tau: Float[Array, " nv"], F_WB: Wrenches, method: Method
) -> Float[Array, " nv"]:
    needed = needed_wrenches(world) - F_WB
    return mass_solver_by(world, method)(tau - needed_forces(world, needed))


@_forward.def_jvp
def _forward_jvp(primals: tuple, tangents: tuple, *, method: Method) -> tuple:
    r"""The equation of motion's tangent: $M\,d\dot v = d\tau - d\,\mathrm{ID}(\dot v)$.

    Inverse dynamics is cheaper to differentiate than any way to solve it (Carpentier
    and Mansard, *Analytical derivatives of rigid body dynamics algorithms*, 2018).
    """
    v_dot = _forward(*primals, method=method)
    if not v_dot.size:
        return v_dot, jnp.zeros_like(v_dot)
    missing = lambda world, tau, F_WB: tau - inverse(world, v_dot, F_WB)
    _, rhs = eqx.filter_jvp(missing, primals, tangents)
    rhs = jnp.zeros_like(v_dot) if rhs is None else rhs  # moved by nothing that counts
    return v_dot, solve_mass_by(primals[0], rhs, method)


def _check_size(world: World, name: str, x: Array) -> None:
    """Raises where a wrong shape would be broadcast."""
    if x.shape != (world.mechanism.nv,):
        raise ValueError(
            f"{name} has shape {x.shape}, but the mechanism has "
            f"{world.mechanism.nv} speeds"
        )


# The same, from coordinates -----------------------------------------------------------


def forward_dynamics(
    mechanism: Mechanism,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    F_WB: Wrenches | None = None,
    *,
    t: ArrayLike = 0.0,
    method: Method | None = None,
) -> Float[Array, " nv"]:
    """Return `v_dot` under joint forces `tau`, gravity and wrenches `F_WB` on bodies.

    **Arguments:**

    - `F_WB`: a row `[torque; force]` per body, the world first, about the bodies'
      origins in world axes.
    - `t`: time, for prescribed joints.
    - `method`: `"projection"`, `"recursion"`, or the faster for the mechanism's size.

    !!! example

        ```python
        v_dot = djdyn.forward_dynamics(mechanism, q, v, tau=jnp.zeros(mechanism.nv))
        ```
    """
    world = forward_kinematics(mechanism, q, v, t)
    v_dot = forward(world, tau, F_WB, method)
    return close(world, v_dot).v_dot if mechanism.loops else v_dot


def inverse_dynamics(
    mechanism: Mechanism,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    v_dot: Float[Array, " nv"],
    F_WB: Wrenches | None = None,
    *,
    t: ArrayLike = 0.0,
) -> Float[Array, " nv"]:
    """Return the joint forces that give `v_dot`; see `forward_dynamics`.

    With loops they are those of the tree: `v_dot` should keep the loops closed, and
    forces that do no work there are left out.

    !!! example

        ```python
        tau = djdyn.inverse_dynamics(mechanism, q, v, v_dot)
        ```
    """
    return inverse(forward_kinematics(mechanism, q, v, t), v_dot, F_WB)


def mass_matrix(
    mechanism: Mechanism, q: Float[Array, " nq"], *, t: ArrayLike = 0.0
) -> Float[Array, "nv nv"]:
    """Return the mass matrix `M`: the kinetic energy is `v @ M @ v / 2`.

    !!! example

        ```python
        M = djdyn.mass_matrix(mechanism, q)
        ```
    """
    return projected_inertia(forward_kinematics(mechanism, q, t=t))


def bias_force(
    mechanism: Mechanism,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    *,
    t: ArrayLike = 0.0,
) -> Float[Array, " nv"]:
    """Return Coriolis, centrifugal and gravity forces: `tau` at zero `v_dot`."""
    return inverse_dynamics(mechanism, q, v, jnp.zeros_like(v), t=t)
