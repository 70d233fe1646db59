"""Mechanisms in maximal coordinates: an independent formulation with loops.

Every body has six speeds. Joints and loops are rows in the relative twists of the
frames they join, written from the motions a joint forbids, and bordered by the bodies'
inertias.
"""

import jax
import jax.numpy as jnp
import numpy as np

import djdyn
from djdyn.multibody.kinematics import forward_kinematics


def forbidden(joint, X_A, X_B, V_A, V_B):
    """Relative speeds that a joint forbids; zero, and linear in the twists."""
    d = X_B.p - X_A.p
    w = V_B[:3] - V_A[:3]
    v = V_B[3:] - V_A[3:] - jnp.cross(V_A[:3], d)  # of B's origin, seen from A
    in_A, in_B = lambda x: X_A.R.T @ x, lambda x: X_B.R.T @ x
    across = lambda axis: np.linalg.svd(np.asarray(axis)[None])[2][1:]
    match type(joint).__name__:
        case "Fixed":
            return jnp.concatenate([v, w])
        case "Spherical":
            return v
        case "Revolute":
            return jnp.concatenate([v, across(joint.axis) @ in_B(w)])
        case "Prismatic":
            return jnp.concatenate([across(joint.axis) @ in_A(v), w])
        case "Cylindrical":
            axis = across(joint.axis)
            return jnp.concatenate([axis @ in_A(v), axis @ in_B(w)])
        case "Universal":
            stiff = jnp.cross(X_A.R @ joint.first, X_B.R @ joint.second)
            return jnp.append(v, stiff @ w)
        case "Planar":
            return jnp.append(in_A(w)[:2], in_A(v)[2])
        case "Cartesian":
            return w
        case "PointOnLine":
            return across(joint.axis) @ in_A(v)
        case "PointOnPlane":
            return (joint.normal @ in_A(v))[None]
        case "Distance":
            return (d @ v)[None]
    raise AssertionError(joint)


def place(X, X_BF):
    return djdyn.Pose(X.R @ X_BF.R, X.R @ X_BF.p + X.p)


def moved(X, V, s):
    """A pose after `s` at constant twist."""
    W = jnp.cross(V[None, :3], jnp.eye(3)).T * s
    return djdyn.Pose(X.R + W @ X.R + W @ W @ X.R / 2, X.p + s * V[3:])


def maximal_accelerations(mechanism, q, v, tau_of=None):
    """Accelerations of all bodies and the wrenches on loops' children at their frames.

    `tau_of` are wrenches on bodies about their origins.
    """
    world = forward_kinematics(mechanism, q, v)
    n = len(mechanism.bodies)
    poses = [djdyn.Pose(R, p) for R, p in zip(world.X_WB.R, world.X_WB.p, strict=True)]
    twists = world.V_WB

    def rows(poses, twists):
        ties = []
        for b, body in enumerate(mechanism.bodies, start=1):
            a = mechanism.index(body.parent)
            ties.append((body.joint, a, body.X_PJ, b, djdyn.translation((0, 0, 0))))
        for loop in mechanism.loops:
            A, B = mechanism.frame(loop.parent), mechanism.frame(loop.child)
            ends = (mechanism.index(A.body), A.X_BF, mechanism.index(B.body), B.X_BF)
            ties.append((loop.joint, *ends))

        def at(i, X):
            w, v = twists[i][:3], twists[i][3:]
            return jnp.concatenate([w, v + jnp.cross(w, X.p - poses[i].p)])

        found = []
        for joint, a, X_aA, b, X_bB in ties:
            X_A, X_B = place(poses[a], X_aA), place(poses[b], X_bB)
            V_A, V_B = at(a, X_A), at(b, X_B)
            found.append(forbidden(joint, X_A, X_B, V_A, V_B))
        return found

    flat = lambda V: jnp.concatenate(
        rows(poses, jnp.concatenate([jnp.zeros((1, 6)), V.reshape(n, 6)]))
    )
    J = np.asarray(jax.jacfwd(flat)(twists[1:].ravel()))
    along = lambda s: jnp.concatenate(
        rows([moved(X, V, s) for X, V in zip(poses, twists, strict=True)], twists)
    )
    _, bias = jax.jvp(along, (0.0,), (1.0,))
    M, F = np.zeros((6 * n, 6 * n)), np.zeros(6 * n)
    for i, body in enumerate(mechanism.bodies):
        R, w = np.asarray(poses[i + 1].R), np.asarray(twists[i + 1][:3])
        c, m = R @ np.asarray(body.p_BC), float(body.mass)
        I = R @ np.asarray(body.I_BC) @ R.T
        here = slice(6 * i, 6 * i + 6)
        C = np.array([np.cross(c, e) for e in np.eye(3)]).T
        M[here, here] = np.block([[I - m * C @ C, m * C], [-m * C, m * np.eye(3)]])
        pull = m * (np.asarray(mechanism.gravity_W) - np.cross(w, np.cross(w, c)))
        F[here] = np.concatenate([np.cross(c, pull) - np.cross(w, I @ w), pull])
        if tau_of is not None:
            F[here] += np.asarray(tau_of[i + 1])
    k = len(J)
    K = np.block([[M, J.T], [J, np.zeros((k, k))]])
    wanted, found = np.concatenate([F, -np.asarray(bias)]), np.zeros(len(K))
    pinv = np.linalg.pinv(K, rcond=1e-12)
    for _ in range(3):  # K is ill-conditioned: solve again for what is left
        found = found + pinv @ (wanted - K @ found)
    sizes, start, wrenches = found[6 * n :], k, {}
    for loop in reversed(mechanism.loops):
        A, B = mechanism.frame(loop.parent), mechanism.frame(loop.child)
        a, b = mechanism.index(A.body), mechanism.index(B.body)
        X_A, X_B = place(poses[a], A.X_BF), place(poses[b], B.X_BF)
        own = lambda V, X_A=X_A, X_B=X_B, loop=loop: forbidden(
            loop.joint, X_A, X_B, jnp.zeros(6), V
        )
        G = np.asarray(jax.jacfwd(own)(jnp.zeros(6)))
        start -= len(G)
        F_W = -G.T @ sizes[start : start + len(G)]
        wrenches[loop.name] = (F_W.reshape(2, 3) @ np.asarray(X_B.R)).ravel()
    return found[: 6 * n].reshape(n, 6), wrenches
