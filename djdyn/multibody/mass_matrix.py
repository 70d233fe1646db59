"""Solving with the mass matrix: dense, or by articulated-body recursion."""

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..typing import Mat6, Vec6
from .kinematics import World
from .spatial import mirror, shift_twist, shift_wrench, skew


Wrenches = Float[Array, "bodies 6"]


Method = Literal["projection", "recursion"]


RECURSION_FROM = 4  # bodies; measured, see docs/speed.md


def inertias(world: World) -> Float[Array, "bodies 6 6"]:
    """6x6 inertias about the bodies' origins, in world axes; the world's is zero."""
    m, h, J = body_masses(world)
    one = m[:, None, None] * jnp.eye(3, dtype=m.dtype)[None]
    M = jnp.block([[J, skew(h)], [-skew(h), one]])
    M = M if (added := added_masses(world)) is None else M + added
    return M if world.added_inertia_W is None else M + world.added_inertia_W


def body_masses(world: World) -> tuple[Array, Array, Array]:
    """Mass, first moment and inertia of each body about its origin, in world axes."""
    R = world.X_WB.R
    h = jnp.einsum("nij,nj->ni", R, world.h_B)
    J = jnp.einsum("nij,njk->nik", R, world.J_B)
    return world.m, h, mirror(jnp.einsum("nij,nkj->nik", J, R))


def added_masses(world: World) -> Float[Array, "bodies 6 6"] | None:
    """Added mass in world axes, if any body has some."""
    bodies, R = world.mechanism.bodies, world.X_WB.R
    if all(b.A_B is None for b in bodies):
        return None
    none = jnp.zeros((6, 6), R.dtype)
    A = jnp.stack([none, *(none if b.A_B is None else b.A_B for b in bodies)])
    A = 0.5 * (A + jnp.swapaxes(A, 1, 2)).reshape(-1, 2, 3, 2, 3)
    return jnp.einsum("nij,najbk,nlk->naibl", R, A, R).reshape(-1, 6, 6)


def projected_inertia(world: World) -> Float[Array, "nv nv"]:
    r"""$J^\top\mathcal M J$, and the rotors' inertia on its diagonal."""
    J = world.jacobians()
    M = jnp.einsum("nai,nij,nbj->ab", J, inertias(world), J)
    M = M if world.flexion is None else M + world.flexion.coupling(J)
    return M if world.armature is None else M + jnp.diag(world.armature)


def solve_mass_matrix(world: World, force: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """What forces along the joints add to the accelerations."""
    return solve_mass_by(world, force, default_method(world))


def mass_solver(world: World) -> Callable[[Array], Array]:
    """Solves with the mass matrix, by the way that suits the mechanism."""
    return mass_solver_by(world, default_method(world))


def default_method(world: World) -> Method:
    """Return the faster method for this number of bodies; what bends has only one.

    Loops need the mass matrix for many right-hand sides, which share its factor.
    """
    mechanism = world.mechanism
    tree = not mechanism.loops and world.flexion is None
    large = len(mechanism.bodies) >= RECURSION_FROM
    return "recursion" if tree and large else "projection"


def mass_solver_by(world: World, method: Method) -> Callable[[Array], Array]:
    r"""Solves with $J^\top\mathcal M J$."""
    if method == "projection":
        factor = _factor(projected_inertia(world))
        return lambda b: _solve_factored(factor, b)
    if world.flexion is not None:
        raise ValueError(
            "a mechanism with flexible bodies is solved by projection, not by recursion"
        )
    factors = _articulated(world, inertias(world))
    return lambda b: _substitute(world, factors, b)


def solve_mass_by(
    world: World, rhs: Float[Array, " nv"], method: Method
) -> Float[Array, " nv"]:
    """The same, differentiated implicitly."""
    solve = mass_solver_by(jax.lax.stop_gradient(world), method)

    def matvec(v_dot: Float[Array, " nv"]) -> Float[Array, " nv"]:
        delta = body_twists(world, v_dot)
        F = jnp.einsum("nij,nj->ni", inertias(world), delta)
        if world.flexion is not None:
            F = F + world.flexion.wrenches(len(F), v_dot)
        force = project_wrenches(world, F)
        if world.flexion is not None:
            force = force + world.flexion.forces(delta) + world.flexion.M_ff @ v_dot
        return with_rotors(world, force, v_dot)

    return jax.lax.custom_linear_solve(
        matvec, rhs, lambda _, b: solve(b), symmetric=True
    )


def with_rotors(
    world: World, force: Float[Array, " nv"], v_dot: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """Joint forces, and what the rotors' inertia needs beside them for `v_dot`."""
    return force if world.armature is None else force + world.armature * v_dot


def body_twists(world: World, v_dot: Float[Array, " nv"]) -> Float[Array, "bodies 6"]:
    r"""$J\dot v$: what accelerating speeds add to the bodies' accelerations."""
    mechanism, p = world.mechanism, world.X_WB.p
    parents, starts = mechanism.parents, mechanism.v_starts
    bent = {} if world.flexion is None else world.flexion.twists(v_dot)
    delta = [jnp.zeros(6, v_dot.dtype)]
    for b in range(1, len(p)):
        rows = slice(starts[b - 1], starts[b])
        d = shift_twist(delta[parents[b]], p[b] - p[parents[b]])
        d = d + v_dot[rows] @ world.S_W[rows]
        delta.append(d + bent[b] if b in bent else d)
    return jnp.stack(delta)


def project_wrenches(world: World, F: Wrenches) -> Float[Array, " nv"]:
    r"""$J^\top F$: what wrenches on the bodies amount to along the joints."""
    mechanism, total = world.mechanism, accumulate_wrenches(world, F)
    rows = mechanism.speed_rows
    force = jnp.einsum("ai,ai->a", world.S_W, jnp.stack(total)[rows])
    return force if world.flexion is None else force + world.flexion.project(total)


def accumulate_wrenches(world: World, F: Wrenches) -> list[Vec6]:
    """The wrenches on each body and all it carries, about its origin."""
    total, p, parents = list(F), world.X_WB.p, world.mechanism.parents
    for b in range(len(total) - 1, 0, -1):
        if parents[b]:
            onward = shift_wrench(total[b], p[b] - p[parents[b]])
            total[parents[b]] = total[parents[b]] + onward
    return total


Factors = list[tuple[Array, Array]]


def _articulated(world: World, M: Float[Array, "bodies 6 6"]) -> Factors:
    r"""Factors of bodies: $D^{-1}U$ with $U = S M^A$, and that of $D$.

    With the joint's armature $I_a$, $D = S M^A S^\top + I_a$. The inertia that a body
    shows through its joint to the parent is $M^A - U^\top D^{-1} U$.
    """
    mechanism, p = world.mechanism, world.X_WB.p
    parents, starts = mechanism.parents, mechanism.v_starts
    M_A = list(M)
    kept: Factors = []
    for b in range(len(M_A) - 1, 0, -1):
        S = world.S_W[starts[b - 1] : starts[b]]
        U = S @ M_A[b]
        D = U @ S.T
        if world.armature is not None:
            D = D + jnp.diag(world.armature[starts[b - 1] : starts[b]])
        D = _factor(D)
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
