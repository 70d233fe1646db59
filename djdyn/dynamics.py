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

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from ._types import Mat6, Scalar, Vec6
from .kinematics import World, look
from .mechanism import Mechanism
from .spatial import cross, cross_wrench, shift_twist, shift_wrench, skew


Wrenches = Float[Array, "bodies 6"]
Method = Literal["projection", "recursion"]
RECURSION_FROM = 7  # bodies; measured, see docs/speed.md


def inertias(world: World) -> Float[Array, "bodies 6 6"]:
    """6x6 inertias about the bodies' origins, in world axes; the world's is zero."""
    M_B = jnp.stack([jnp.zeros((6, 6)), *(b.inertia_B for b in world.mechanism.bodies)])
    R = world.X_WB.R
    blocks = M_B.reshape(-1, 2, 3, 2, 3)
    return jnp.einsum("nij,najbk,nlk->naibl", R, blocks, R).reshape(-1, 6, 6)


def weights(world: World) -> Wrenches:
    """Gravity's wrench on each body, about its origin."""
    bodies = world.mechanism.bodies
    m = jnp.stack([jnp.zeros(()), *(b.mass for b in bodies)])
    c = jnp.stack([jnp.zeros(3), *(b.p_BC for b in bodies)])
    f = m[:, None] * world.gravity_W[None]
    return jnp.concatenate([cross(jnp.einsum("nij,nj->ni", world.X_WB.R, c), f), f], -1)


def needed_wrenches(world: World, M: Float[Array, "bodies 6 6"]) -> Wrenches:
    """What the bodies need, beside gravity, to keep all speeds constant."""
    V = world.V_WB
    A = world.A_WB - jnp.pad(cross(V[:, :3], V[:, 3:]), ((0, 0), (3, 0)))
    h = jnp.einsum("nij,nj->ni", M, V)
    gyroscopic = jax.vmap(cross_wrench)(V, h)
    return jnp.einsum("nij,nj->ni", M, A) + gyroscopic - weights(world)


def inverse(
    world: World, v_dot: Float[Array, " nv"], F_WB: Wrenches | None = None
) -> Float[Array, " nv"]:
    """Joint forces that give `v_dot` under gravity and the wrenches `F_WB`."""
    _check_size(world, "v_dot", v_dot)
    M, J = inertias(world), world.jacobians()
    F = needed_wrenches(world, M) - (0.0 if F_WB is None else F_WB)
    F = F + jnp.einsum("nij,naj,a->ni", M, J, v_dot)
    return jnp.einsum("nai,ni->a", J, F)


def projected_inertia(world: World) -> Float[Array, "nv nv"]:
    r"""$J^\top\mathcal M J$."""
    J = world.jacobians()
    return jnp.einsum("nai,nij,nbj->ab", J, inertias(world), J)


def forward(
    world: World,
    tau: Float[Array, " nv"],
    F_WB: Wrenches | None = None,
    method: Method | None = None,
) -> Float[Array, " nv"]:
    """`v_dot` under joint forces, wrenches about the bodies' origins, and gravity."""
    _check_size(world, "tau", tau)
    if method is None:
        large = len(world.mechanism.bodies) >= RECURSION_FROM
        method = "recursion" if large else "projection"
    if method not in ("projection", "recursion"):
        raise ValueError(f"method is projection or recursion, not {method!r}")
    M = inertias(world)
    needed = needed_wrenches(world, M) - (0.0 if F_WB is None else F_WB)
    if method == "recursion":
        return _recursion(world, M, needed, tau)
    J = world.jacobians()
    rhs = tau - jnp.einsum("nai,ni->a", J, needed)
    return solve_spd(jnp.einsum("nai,nij,nbj->ab", J, M, J), rhs)


def _check_size(world: World, name: str, x: Array) -> None:
    """Raises where a wrong shape would be broadcast."""
    if x.shape != (world.mechanism.nv,):
        raise ValueError(
            f"{name} has shape {x.shape}, but the mechanism has "
            f"{world.mechanism.nv} speeds"
        )


def solve_spd(M: Float[Array, "n n"], b: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
    """Solves with a symmetric positive definite matrix; differentiated implicitly."""
    if M.shape[0] == 1:
        return b / M[0, 0]
    factor = jax.lax.stop_gradient(jnp.linalg.cholesky(M))
    return jax.lax.custom_linear_solve(
        lambda x: M @ x,
        b,
        lambda _, y: jax.scipy.linalg.cho_solve((factor, True), y),
        symmetric=True,
    )


def _recursion(
    world: World,
    M: Float[Array, "bodies 6 6"],
    needed: Wrenches,
    tau: Float[Array, " nv"],
) -> Float[Array, " nv"]:
    r"""Articulated-body algorithm about the bodies' origins, in world axes.

    The unknown is $\delta = J\dot v$, the acceleration beyond that at constant speeds:
    $\delta_b = X\delta_p + S\dot v$ and $F = M\delta$ + `needed`.
    """
    mechanism, p = world.mechanism, world.X_WB.p
    parents, starts = mechanism.parents, mechanism.v_starts
    M_A, F_A = list(M), list(needed)
    kept: list = [None] * len(M_A)
    for b in range(len(M_A) - 1, 0, -1):
        S, t = world.S_W[starts[b - 1] : starts[b]], tau[starts[b - 1] : starts[b]]
        U, u = S @ M_A[b], t - S @ F_A[b]
        if S.shape[0]:
            gain = solve_spd(U @ S.T, jnp.concatenate([U, u[:, None]], 1))
            kept[b] = gain
            M_A[b] = M_A[b] - U.T @ gain[:, :6]
            F_A[b] = F_A[b] + U.T @ gain[:, 6]
        if parents[b]:
            r = p[b] - p[parents[b]]
            M_A[parents[b]] = M_A[parents[b]] + _shift_inertia(M_A[b], r)
            F_A[parents[b]] = F_A[parents[b]] + shift_wrench(F_A[b], r)
    delta, v_dot = [jnp.zeros_like(F_A[0])], [jnp.zeros(0, tau.dtype)]
    for b in range(1, len(M_A)):
        d = shift_twist(delta[parents[b]], p[b] - p[parents[b]])
        if kept[b] is not None:
            a = kept[b][:, 6] - kept[b][:, :6] @ d
            d = d + a @ world.S_W[starts[b - 1] : starts[b]]
            v_dot.append(a)
        delta.append(d)
    return jnp.concatenate(v_dot)


def _shift_inertia(M: Mat6, r: Float[Array, "3"]) -> Mat6:
    """The 6x6 inertia `M`, taken `r` away, about this point."""
    A, B, C = M[:3, :3], M[:3, 3:], M[3:, 3:]
    r = skew(r)
    B_here = B + r @ C
    A_here = A + r @ B.T - B_here @ r
    return jnp.block([[A_here, B_here], [B_here.T, C]])


def reactions(
    world: World, v_dot: Float[Array, " nv"], F_WB: Wrenches | None = None
) -> Wrenches:
    """Wrench that each joint transmits to its body, at the body's origin in its axes.

    By Newton and Euler: what the body and all it carries need beyond gravity and
    `F_WB`. The components along the joint's freedoms are its own forces.
    """
    M = inertias(world)
    F = needed_wrenches(world, M) - (0.0 if F_WB is None else F_WB)
    F = F + jnp.einsum("nij,naj,a->ni", M, world.jacobians(), v_dot)
    total, p, parents = list(F), world.X_WB.p, world.mechanism.parents
    for b in range(len(total) - 1, 0, -1):
        if parents[b]:
            onward = shift_wrench(total[b], p[b] - p[parents[b]])
            total[parents[b]] = total[parents[b]] + onward
    blocks = jnp.stack(total).reshape(-1, 2, 3)
    return jnp.einsum("nji,naj->nai", world.X_WB.R, blocks).reshape(-1, 6)


def constraint_force(
    world: World,
    v_dot: Float[Array, " nv"],
    joint: str,
    directions: Float[Array, "k 6"],
    F_WB: Wrenches | None = None,
) -> Float[Array, " k"]:
    r"""Loads that a joint carries along chosen directions, by auxiliary speeds.

    The body gets one fictitious speed per direction (a twist at its origin, in its
    axes); with $P_c$ the partial velocities of all it carries, the load on the body is

    $$\rho = P_c^\top\bigl(\mathcal M J\,\dot v + F_{needed} - F\bigr)$$

    (Cibicik and Egeland, *Determination of constraint forces for an offshore crane on a
    moving base*, 2018, eq. 50).
    """
    mechanism, M = world.mechanism, inertias(world)
    row = mechanism.joint_index(joint)
    R = world.X_WB.R[row]
    S_c = jnp.einsum("ij,kaj->kai", R, directions.reshape(-1, 2, 3)).reshape(-1, 6)
    arms = world.X_WB.p - world.X_WB.p[row][None]
    carried = jnp.asarray(mechanism.supports[:, row], S_c.dtype)
    P_c = jax.vmap(lambda s: jax.vmap(lambda r: shift_twist(s, r))(arms))(S_c)
    P_c = P_c * carried[None, :, None]
    M_f = jnp.einsum("kni,nij,naj->ka", P_c, M, world.jacobians())
    applied = needed_wrenches(world, M) - (0.0 if F_WB is None else F_WB)
    return M_f @ v_dot + jnp.einsum("kni,ni->k", P_c, applied)


def kinetic_energy(world: World) -> Scalar:
    return 0.5 * jnp.einsum("ni,nij,nj->", world.V_WB, inertias(world), world.V_WB)


def potential_energy(world: World) -> Scalar:
    """Of gravity, zero with all centres of mass in the world's origin."""
    bodies = world.mechanism.bodies
    m = jnp.stack([b.mass for b in bodies])
    p_BC = jnp.stack([b.p_BC for b in bodies])
    p_WC = jnp.einsum("nij,nj->ni", world.X_WB.R[1:], p_BC) + world.X_WB.p[1:]
    return -jnp.einsum("n,ni,i->", m, p_WC, world.gravity_W)


def momentum(world: World) -> Vec6:
    """Angular momentum about the world's origin, and linear momentum."""
    h = jnp.einsum("nij,nj->ni", inertias(world), world.V_WB)
    return jnp.sum(shift_wrench(h, world.X_WB.p), 0)


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
    """`v_dot` under joint forces `tau`, gravity, and wrenches `F_WB` on the bodies.

    **Arguments:**

    - `F_WB`: a row `[torque; force]` per body, the world first, about the bodies'
      origins in world axes.
    - `t`: time, for prescribed joints.
    - `method`: `"projection"`, `"recursion"`, or the faster for the mechanism's size.
    """
    return forward(look(mechanism, q, v, t), tau, F_WB, method)


def inverse_dynamics(
    mechanism: Mechanism,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    v_dot: Float[Array, " nv"],
    F_WB: Wrenches | None = None,
    *,
    t: ArrayLike = 0.0,
) -> Float[Array, " nv"]:
    """Joint forces that give `v_dot`; the arguments are those of `forward_dynamics`."""
    return inverse(look(mechanism, q, v, t), v_dot, F_WB)


def mass_matrix(
    mechanism: Mechanism, q: Float[Array, " nq"], *, t: ArrayLike = 0.0
) -> Float[Array, "nv nv"]:
    """Symmetric positive definite, with `kinetic energy = v @ M @ v / 2`."""
    return projected_inertia(look(mechanism, q, t=t))


def bias_force(
    mechanism: Mechanism,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    *,
    t: ArrayLike = 0.0,
) -> Float[Array, " nv"]:
    """Coriolis, centrifugal and gravity forces: the `tau` that keeps `v` constant."""
    return inverse_dynamics(mechanism, q, v, jnp.zeros_like(v), t=t)
