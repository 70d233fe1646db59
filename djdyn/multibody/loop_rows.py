r"""Residuals of all loops at one instant, with their first and second derivatives.

The relative motion of a loop's frames is that of B seen from A: pose $X_{AB}$, twist
and acceleration at B's origin in A's axes. A residual's rate and acceleration are its
derivatives along $X_{AB}(s)$, whose Taylor series to second order is all that counts.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..typing import Scalar, Vec6
from .kinematics import World
from .loop_joints import residual, slip
from .loops import (
    AbstractCoupling,
    AbstractLoop,
    FrameRows,
    Loop,
    LoopRows,
    kinds,
    row_counts,
)
from .spatial import Pose, cross, shift_twist, shift_wrench, skew


def loop_rows(world: World) -> LoopRows:
    """Return the rows of all loops of a mechanism."""
    loops = world.mechanism.loops
    counts = [sum(row_counts(loop)) for loop in loops]
    starts = np.cumsum([0, *counts])
    found, frames, order = [], [], []
    for members in kinds(loops):
        loop = loops[members[0]]
        if isinstance(loop, Loop):
            rows, push = _frame_rows(world, members)
            frames.append(push)
        else:
            assert isinstance(loop, AbstractCoupling)
            rows = _coupling_rows(world, loop)
        found.append(rows)
        for i in members:
            order += range(starts[i], starts[i + 1])
    stacked = [jnp.concatenate(x) for x in zip(*found, strict=True)]
    if order != sorted(order):
        stacked = [x[np.argsort(order)] for x in stacked]
    return LoopRows(*stacked, frames=frames, starts=tuple(map(int, starts)))


def _frame_rows(world: World, members: list[int]) -> tuple[tuple, FrameRows]:
    mechanism = world.mechanism
    loops: list[Any] = [mechanism.loops[i] for i in members]
    parents = [mechanism.frame(loop.parent) for loop in loops]
    children = [mechanism.frame(loop.child) for loop in loops]
    at_A = np.array([mechanism.index(F.body) for F in parents])
    at_B = np.array([mechanism.index(F.body) for F in children])
    X_WA, V_A, A_A = _frame_motion(world, at_A, [F.X_BF for F in parents])
    X_WB, V_B, A_B = _frame_motion(world, at_B, [F.X_BF for F in children])
    X_AB, V_AB, A_AB = _relative_motion(X_WA, V_A, A_A, X_WB, V_B, A_B)
    ties = [(loop.joint, loop.motion) for loop in loops]
    if len(loops) == 1:
        derive = lambda X, V, A: _derivatives(ties[0], X, V, A, world.t)
        one = jax.tree.map(lambda x: x[0], (X_AB, V_AB, A_AB))
        gap, rate, bias, G = (x[None] for x in derive(*one))
    else:
        stacked = jax.tree.map(lambda *x: jnp.stack(x), *ties)
        derive = lambda tie, X, V, A: _derivatives(tie, X, V, A, world.t)
        gap, rate, bias, G = jax.vmap(derive)(stacked, X_AB, V_AB, A_AB)
    J_A = world.point_jacobians(at_A, X_WB.p)  # of A's point that coincides with B
    J = world.point_jacobians(at_B, X_WB.p) - J_A
    J = jnp.einsum("nji,nvaj->nvai", X_WA.R, J.reshape(*J.shape[:2], 2, 3))
    J = jnp.einsum("nmk,nvk->nmv", G, J.reshape(*J.shape[:2], 6))
    rows = gap.ravel(), rate.ravel(), bias.ravel(), J.reshape(-1, J.shape[-1])
    whose = (tuple(members), tuple(at_A.tolist()), tuple(at_B.tolist()))
    return rows, FrameRows(*whose, push=G, R_WA=X_WA.R, p_WB=X_WB.p)


def _frame_motion(
    world: World, bodies: np.ndarray, places: list[Pose]
) -> tuple[Pose, Array, Array]:
    """Poses, twists and accelerations at constant speeds of frames on bodies."""
    X_BF = jax.tree.map(lambda *x: jnp.stack(x), *places)
    X_WB = Pose(world.X_WB.R[bodies], world.X_WB.p[bodies])
    arm = jnp.einsum("nij,nj->ni", X_WB.R, X_BF.p)
    V, A = world.V_WB[bodies], shift_twist(world.A_bias_WB[bodies], arm)
    w = V[:, :3]
    A = A + jnp.pad(cross(w, cross(w, arm)), ((0, 0), (3, 0)))
    return X_WB @ X_BF, shift_twist(V, arm), A


def _relative_motion(
    X_WA: Pose, V_A: Array, A_A: Array, X_WB: Pose, V_B: Array, A_B: Array
) -> tuple[Pose, Array, Array]:
    """Pose, twist and acceleration of B seen from A, in A's axes."""
    d = X_WB.p - X_WA.p
    w, alpha, turning = V_A[:, :3], A_A[:, :3], V_B[:, :3] - V_A[:, :3]
    d_dot = V_B[:, 3:] - V_A[:, 3:]
    v = d_dot - cross(w, d)
    a = A_B[:, 3:] - A_A[:, 3:] - cross(alpha, d)
    a = a - cross(w, cross(w, d)) - 2 * cross(w, v)
    spun = A_B[:, :3] - alpha - cross(w, turning)
    seen = jnp.stack([turning, v, spun, a], 1)
    seen = jnp.einsum("nji,nkj->nki", X_WA.R, seen).reshape(len(d), 2, 6)
    return X_WA.inverse @ X_WB, seen[:, 0], seen[:, 1]


def _moved(X: Pose, V: Vec6, A: Vec6, s: Scalar) -> Pose:
    """A pose after `s`, to second order."""
    step = V * s + A * (s * s / 2)
    W = skew(step[:3])
    return Pose(X.R + (W + W @ W / 2) @ X.R, X.p + step[3:])


def _derivatives(
    tie: tuple, X: Pose, V: Vec6, A: Vec6, t: Scalar
) -> tuple[Array, Array, Array, Array]:
    r"""Residual, rate, acceleration at zero `v_dot`, and rows per unit of twist."""
    joint, motion = tie

    def gap(X: Pose, t: Scalar) -> Array:
        return residual(joint, X if motion is None else motion(t).inverse @ X, t)

    now, one = jnp.zeros_like(t), jnp.ones_like(t)
    path = lambda s: gap(_moved(X, V, A, s), t + s)
    along = lambda s: jax.jvp(path, (s,), (one,))
    (g, g_dot), (_, g_ddot) = jax.jvp(along, (now,), (one,))
    nudged = lambda dX: gap(_moved(X, dX, jnp.zeros_like(dX), one), t)
    G = jax.jacfwd(nudged)(jnp.zeros_like(V))
    rolling = slip(joint, X, V)
    if not rolling.size:
        return g, g_dot, g_ddot, G
    roll = lambda s: slip(joint, _moved(X, V, A, s), V + s * A)
    _, rolled = jax.jvp(roll, (now,), (one,))
    G_slip = jax.jacfwd(lambda V: slip(joint, X, V))(V)
    return (
        jnp.concatenate([g, jnp.zeros_like(rolling)]),
        jnp.concatenate([g_dot, rolling]),
        jnp.concatenate([g_ddot, rolled]),
        jnp.concatenate([G, G_slip]),
    )


def _coupling_rows(world: World, loop: AbstractCoupling) -> tuple:
    mechanism, t = world.mechanism, world.t
    at_q = np.array([mechanism.q_slice(name).start for name in loop.joints])
    at_v = np.array([mechanism.v_slice(name).start for name in loop.joints])
    q, v = world.q[at_q], world.v[at_v]
    now, one = jnp.zeros_like(t), jnp.ones_like(t)
    gap = lambda s: loop.residual(q + s * v, t + s)
    along = lambda s: jax.jvp(gap, (s,), (one,))
    (g, g_dot), (_, g_ddot) = jax.jvp(along, (now,), (one,))
    slopes = jax.jacfwd(lambda q: loop.residual(q, t))(q)
    where = np.zeros((len(at_v), mechanism.nv))
    where[np.arange(len(at_v)), at_v] = 1.0
    return g[None], g_dot[None], g_ddot[None], (slopes @ where.astype(q.dtype))[None]


def multipliers_of(rows: LoopRows, sizes: Array, loop: int) -> Array:
    """Return the multipliers of one loop's rows."""
    return sizes[rows.starts[loop] : rows.starts[loop + 1]]


def loop_wrenches(
    world: World, rows: LoopRows, sizes: Float[Array, " m"]
) -> Float[Array, "bodies 6"]:
    """Return the wrenches of loop joints on all bodies, about their origins."""
    F_WB = jnp.zeros_like(world.V_WB)
    for group in rows.frames:
        F = _child_wrenches(rows, group, sizes)
        for bodies, sign in ((group.children, 1.0), (group.parents, -1.0)):
            here = shift_wrench(F, group.p_WB - world.X_WB.p[np.array(bodies)])
            rows_of = np.arange(len(F_WB))[:, None] == np.array(bodies)
            F_WB = F_WB + jnp.asarray(sign * rows_of, F.dtype) @ here
    return F_WB


def _child_wrenches(rows: LoopRows, group: FrameRows, sizes: Array) -> Array:
    """Wrenches on the children at their frames' origins, in world axes."""
    own = jnp.stack([multipliers_of(rows, sizes, i) for i in group.members])
    F_A = jnp.einsum("nm,nmk->nk", own, group.push).reshape(-1, 2, 3)
    return jnp.einsum("nij,naj->nai", group.R_WA, F_A).reshape(-1, 6)


def loop_reaction(
    world: World, rows: LoopRows, sizes: Float[Array, " m"], name: str
) -> Array:
    """Return the wrench of a loop's joint on its child, at its frame in its axes.

    Of a coupling, the multiplier of its law.
    """
    loops: tuple[AbstractLoop, ...] = world.mechanism.loops
    at = [loop.name for loop in loops].index(name)
    loop = loops[at]
    if not isinstance(loop, Loop):
        return multipliers_of(rows, sizes, at)
    group = next(group for group in rows.frames if at in group.members)
    F = _child_wrenches(rows, group, sizes)[group.members.index(at)]
    R_WB = world.pose(loop.child).R
    return (F.reshape(2, 3) @ R_WB).reshape(6)
