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

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import Array, ArrayLike, Float

from ..typing import Mat6, Scalar, Vec6
from .kinematics import World, forward_kinematics
from .mechanism import Mechanism
from .spatial import cross, cross_wrench, mirror, shift_twist, shift_wrench, skew


Wrenches = Float[Array, "bodies 6"]
Method = Literal["projection", "recursion"]
RECURSION_FROM = 4  # bodies; measured, see docs/speed.md


def inertias(world: World) -> Float[Array, "bodies 6 6"]:
    """6x6 inertias about the bodies' origins, in world axes; the world's is zero."""
    m, h, J = _masses(world)
    one = m[:, None, None] * jnp.eye(3, dtype=m.dtype)[None]
    M = jnp.block([[J, skew(h)], [-skew(h), one]])
    M = M if (added := _added(world)) is None else M + added
    return M if world.added_inertia_W is None else M + world.added_inertia_W


def _masses(world: World) -> tuple[Array, Array, Array]:
    """Mass, first moment and inertia of each body about its origin, in world axes."""
    R = world.X_WB.R
    h = jnp.einsum("nij,nj->ni", R, world.h_B)
    J = jnp.einsum("nij,njk->nik", R, world.J_B)
    return world.m, h, mirror(jnp.einsum("nij,nkj->nik", J, R))


def _added(world: World) -> Float[Array, "bodies 6 6"] | None:
    """Added mass in world axes, if any body has some."""
    bodies, R = world.mechanism.bodies, world.X_WB.R
    if all(b.A_B is None for b in bodies):
        return None
    none = jnp.zeros((6, 6), R.dtype)
    A = jnp.stack([none, *(none if b.A_B is None else b.A_B for b in bodies)])
    A = 0.5 * (A + jnp.swapaxes(A, 1, 2)).reshape(-1, 2, 3, 2, 3)
    return jnp.einsum("nij,najbk,nlk->naibl", R, A, R).reshape(-1, 6, 6)


def needed_wrenches(world: World, v_dot: Float[Array, " nv"] | None = None) -> Wrenches:
    r"""What the bodies need, beside gravity, for `v_dot`, or at constant speeds.

    With $h = m c$ and $J$ about the origin, whose acceleration is $a$,

    $$f = m(a - g) + \alpha\times h + \omega\times(\omega\times h),\qquad
    \tau = J\alpha + \omega\times J\omega + h\times(a - g) .$$
    """
    m, h, J = _masses(world)
    A = world.A_bias_WB if v_dot is None else accelerations(world, v_dot)
    w, alpha, a = world.V_WB[:, :3], A[:, :3], A[:, 3:] - world.gravity_W[None]
    f = m[:, None] * a + cross(alpha, h) + cross(w, cross(w, h))
    turned = jnp.einsum("nij,nj->ni", J, alpha)
    spun = cross(w, jnp.einsum("nij,nj->ni", J, w))
    F = jnp.concatenate([turned + spun + cross(h, a), f], -1)
    if world.added_inertia_W is not None:
        F = F + jnp.einsum("nij,nj->ni", world.added_inertia_W, A)
    added = _added(world)
    if added is None:
        return F
    V = world.V_WB
    A = A - jnp.pad(cross(V[:, :3], V[:, 3:]), ((0, 0), (3, 0)))
    momentum = jnp.einsum("nij,nj->ni", added, V)
    gyroscopic = jax.vmap(cross_wrench)(V, momentum)
    return F + jnp.einsum("nij,nj->ni", added, A) + gyroscopic


def accelerations(world: World, v_dot: Float[Array, " nv"]) -> Float[Array, "bodies 6"]:
    """Of all bodies, at their origins."""
    return world.A_bias_WB + body_twists(world, v_dot)


def inverse(
    world: World, v_dot: Float[Array, " nv"], F_WB: Wrenches | None = None
) -> Float[Array, " nv"]:
    """Joint forces that give `v_dot` under gravity and the wrenches `F_WB`."""
    _check_size(world, "v_dot", v_dot)
    F = needed_wrenches(world, v_dot) - (0.0 if F_WB is None else F_WB)
    return project_wrenches(world, F)


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
    method = _default(world) if method is None else method
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
    return _mass_solver(world, method)(tau - project_wrenches(world, needed))


@_forward.def_jvp
def _forward_jvp(primals: tuple, tangents: tuple, *, method: Method) -> tuple:
    r"""By the equation of motion: $M\,d\dot v = d\tau - d\,\mathrm{ID}(\dot v)$.

    Inverse dynamics is cheaper to differentiate than any way to solve it (Carpentier
    and Mansard, *Analytical derivatives of rigid body dynamics algorithms*, 2018).
    """
    v_dot = _forward(*primals, method=method)
    if not v_dot.size:
        return v_dot, jnp.zeros_like(v_dot)
    missing = lambda world, tau, F_WB: tau - inverse(world, v_dot, F_WB)
    _, rhs = eqx.filter_jvp(missing, primals, tangents)
    rhs = jnp.zeros_like(v_dot) if rhs is None else rhs  # moved by nothing that counts
    return v_dot, _solve_mass(primals[0], rhs, method)


def _check_size(world: World, name: str, x: Array) -> None:
    """Raises where a wrong shape would be broadcast."""
    if x.shape != (world.mechanism.nv,):
        raise ValueError(
            f"{name} has shape {x.shape}, but the mechanism has "
            f"{world.mechanism.nv} speeds"
        )


def solve_mass_matrix(world: World, force: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """What forces along the joints add to the accelerations."""
    return _solve_mass(world, force, _default(world))


def mass_solver(world: World) -> Callable[[Array], Array]:
    """Solves with the mass matrix, by the way that suits the mechanism."""
    return _mass_solver(world, _default(world))


def _default(world: World) -> Method:
    large = len(world.mechanism.bodies) >= RECURSION_FROM
    return "recursion" if large else "projection"


def _mass_solver(world: World, method: Method) -> Callable[[Array], Array]:
    r"""Solves with $J^\top\mathcal M J$."""
    if method == "projection":
        factor = _factor(projected_inertia(world))
        return lambda b: _solve_factored(factor, b)
    factors = _articulated(world, inertias(world))
    return lambda b: _substitute(world, factors, b)


def _solve_mass(
    world: World, rhs: Float[Array, " nv"], method: Method
) -> Float[Array, " nv"]:
    """The same, differentiated implicitly."""
    solve = _mass_solver(jax.lax.stop_gradient(world), method)

    def matvec(v_dot: Float[Array, " nv"]) -> Float[Array, " nv"]:
        delta = body_twists(world, v_dot)
        F = jnp.einsum("nij,nj->ni", inertias(world), delta)
        return project_wrenches(world, F)

    return jax.lax.custom_linear_solve(
        matvec, rhs, lambda _, b: solve(b), symmetric=True
    )


def body_twists(world: World, v_dot: Float[Array, " nv"]) -> Float[Array, "bodies 6"]:
    r"""$J\dot v$: what accelerating speeds add to the bodies' accelerations."""
    mechanism, p = world.mechanism, world.X_WB.p
    parents, starts = mechanism.parents, mechanism.v_starts
    delta = [jnp.zeros(6, v_dot.dtype)]
    for b in range(1, len(p)):
        rows = slice(starts[b - 1], starts[b])
        d = shift_twist(delta[parents[b]], p[b] - p[parents[b]])
        delta.append(d + v_dot[rows] @ world.S_W[rows])
    return jnp.stack(delta)


def project_wrenches(world: World, F: Wrenches) -> Float[Array, " nv"]:
    r"""$J^\top F$: what wrenches on the bodies amount to along the joints."""
    mechanism, total = world.mechanism, _carried(world, F)
    rows = mechanism.speed_rows
    return jnp.einsum("ai,ai->a", world.S_W, jnp.stack(total)[rows])


def _carried(world: World, F: Wrenches) -> list[Vec6]:
    """The wrenches on each body and all it carries, about its origin."""
    total, p, parents = list(F), world.X_WB.p, world.mechanism.parents
    for b in range(len(total) - 1, 0, -1):
        if parents[b]:
            onward = shift_wrench(total[b], p[b] - p[parents[b]])
            total[parents[b]] = total[parents[b]] + onward
    return total


Factors = list[tuple[Array, Array]]


def _articulated(world: World, M: Float[Array, "bodies 6 6"]) -> Factors:
    r"""Of each body $D^{-1}U$ with $U = S M^A$, and the factor of $D = S M^A S^\top$.

    The inertia that a body shows through its joint to the parent is
    $M^A - U^\top D^{-1} U$.
    """
    mechanism, p = world.mechanism, world.X_WB.p
    parents, starts = mechanism.parents, mechanism.v_starts
    M_A = list(M)
    kept: Factors = []
    for b in range(len(M_A) - 1, 0, -1):
        S = world.S_W[starts[b - 1] : starts[b]]
        U = S @ M_A[b]
        D = _factor(U @ S.T)
        gain = _solve_factored(D, U)
        kept.append((gain, D))
        if parents[b]:
            shown = M_A[b] - mirror(U.T @ gain) if len(S) else M_A[b]
            r = p[b] - p[parents[b]]
            M_A[parents[b]] = M_A[parents[b]] + _shift_inertia(shown, r)
    return kept[::-1]


def _substitute(
    world: World, factors: Factors, rhs: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """Inward with the forces, outward with the accelerations."""
    mechanism, p = world.mechanism, world.X_WB.p
    parents, starts = mechanism.parents, mechanism.v_starts
    F = [jnp.zeros(6, rhs.dtype) for _ in p]
    pushed: list = [None] * len(p)
    for b in range(len(p) - 1, 0, -1):
        rows = slice(starts[b - 1], starts[b])
        gain, D = factors[b - 1]
        u = rhs[rows] - world.S_W[rows] @ F[b]
        pushed[b] = _solve_factored(D, u)
        if parents[b]:
            onward = shift_wrench(F[b] + u @ gain, p[b] - p[parents[b]])
            F[parents[b]] = F[parents[b]] + onward
    delta, v_dot = [jnp.zeros(6, rhs.dtype)], [jnp.zeros(0, rhs.dtype)]
    for b in range(1, len(p)):
        d = shift_twist(delta[parents[b]], p[b] - p[parents[b]])
        a = pushed[b] - factors[b - 1][0] @ d
        delta.append(d + a @ world.S_W[starts[b - 1] : starts[b]])
        v_dot.append(a)
    return jnp.concatenate(v_dot)


def _factor(D: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Cholesky's factor; of one by one the inverse, so that it is divided by once."""
    return 1.0 / D if D.shape[0] == 1 else jnp.linalg.cholesky(D)


def _solve_factored(
    D: Float[Array, "n n"], b: Float[Array, "n *k"]
) -> Float[Array, "n *k"]:
    if D.shape[0] <= 1:
        return b * D[0, 0] if D.size else b
    return jax.scipy.linalg.cho_solve((D, True), b)


def _shift_inertia(M: Mat6, r: Float[Array, "3"]) -> Mat6:
    """The 6x6 inertia `M`, taken `r` away, about this point."""
    A, B, C = M[:3, :3], M[:3, 3:], M[3:, 3:]
    r = skew(r)
    B_here = B + r @ C
    A_here = A + mirror(r @ B.T - B_here @ r)
    return jnp.block([[A_here, B_here], [B_here.T, C]])


def reactions(
    world: World, v_dot: Float[Array, " nv"], F_WB: Wrenches | None = None
) -> Wrenches:
    """Wrench that each joint transmits to its body, at the body's origin in its axes.

    By Newton and Euler: what the body and all it carries need beyond gravity and
    `F_WB`. The components along the joint's freedoms are its own forces.
    """
    M = inertias(world)
    F = needed_wrenches(world) - (0.0 if F_WB is None else F_WB)
    F = F + jnp.einsum("nij,naj,a->ni", M, world.jacobians(), v_dot)
    blocks = jnp.stack(_carried(world, F)).reshape(-1, 2, 3)
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
    applied = needed_wrenches(world) - (0.0 if F_WB is None else F_WB)
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
    return forward(forward_kinematics(mechanism, q, v, t), tau, F_WB, method)


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
    return inverse(forward_kinematics(mechanism, q, v, t), v_dot, F_WB)


def mass_matrix(
    mechanism: Mechanism, q: Float[Array, " nq"], *, t: ArrayLike = 0.0
) -> Float[Array, "nv nv"]:
    """Symmetric positive definite, with `kinetic energy = v @ M @ v / 2`."""
    return projected_inertia(forward_kinematics(mechanism, q, t=t))


def bias_force(
    mechanism: Mechanism,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    *,
    t: ArrayLike = 0.0,
) -> Float[Array, " nv"]:
    """Coriolis, centrifugal and gravity forces: the `tau` that keeps `v` constant."""
    return inverse_dynamics(mechanism, q, v, jnp.zeros_like(v), t=t)
