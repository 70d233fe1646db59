"""Joint reactions, constraint forces, energies and momentum of a mechanism."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..typing import Scalar, Vec6
from .dynamics import needed_wrenches
from .kinematics import World
from .mass_matrix import Wrenches, accumulate_wrenches, inertias
from .spatial import shift_twist, shift_wrench


def reactions(
    world: World, v_dot: Float[Array, " nv"], F_WB: Wrenches | None = None
) -> Wrenches:
    """Wrench that each joint transmits to its body, at the body's origin in its axes.

    By Newton and Euler: what the body and all it carries need beyond gravity and
    `F_WB`. The components along the joint's freedoms are its own forces, less what its
    armature takes.
    """
    M = inertias(world)
    F = needed_wrenches(world) - (0.0 if F_WB is None else F_WB)
    F = F + jnp.einsum("nij,naj,a->ni", M, world.jacobians(), v_dot)
    if world.flexion is not None:
        F = F + world.flexion.wrenches(len(F), v_dot)
    blocks = jnp.stack(accumulate_wrenches(world, F)).reshape(-1, 2, 3)
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
    if world.flexion is not None:
        applied = applied + world.flexion.wrenches(len(applied), v_dot)
    return M_f @ v_dot + jnp.einsum("kni,ni->k", P_c, applied)


def kinetic_energy(world: World) -> Scalar:
    """Return the kinetic energy of all bodies, J."""
    energy = 0.5 * jnp.einsum("ni,nij,nj->", world.V_WB, inertias(world), world.V_WB)
    if world.flexion is not None:
        bent = world.flexion.forces(world.V_WB) + 0.5 * world.flexion.M_ff @ world.v
        energy = energy + world.v @ bent
    if world.armature is None:
        return energy
    return energy + 0.5 * jnp.sum(world.armature * world.v**2)


def potential_energy(world: World) -> Scalar:
    """Potential of gravity, zero with all centres of mass in the world's origin, and
    of what is bent.
    """
    if world.flexion is not None:
        R_h = jnp.einsum("nij,nj->ni", world.X_WB.R, world.h_B)
        moment = jnp.sum(R_h + world.m[:, None] * world.X_WB.p, 0)
        return world.flexion.stored - moment @ world.gravity_W
    bodies = world.mechanism.bodies
    m = jnp.stack([b.mass for b in bodies])
    p_BC = jnp.stack([b.p_BC for b in bodies])
    p_WC = jnp.einsum("nij,nj->ni", world.X_WB.R[1:], p_BC) + world.X_WB.p[1:]
    return -jnp.einsum("n,ni,i->", m, p_WC, world.gravity_W)


def momentum(world: World) -> Vec6:
    """Angular momentum about the world's origin, and linear momentum."""
    h = jnp.einsum("nij,nj->ni", inertias(world), world.V_WB)
    if world.flexion is not None:
        h = h + world.flexion.wrenches(len(h), world.v)
    return jnp.sum(shift_wrench(h, world.X_WB.p), 0)
