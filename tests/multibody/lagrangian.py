r"""Equations of motion by differentiating the Lagrangian: slow, short, independent.

Nothing but the joints' poses is taken from the library. About a state the coordinates
are $\xi$, zero at the state, with $\dot\xi = v$ and $\ddot\xi = \dot v$ there: a vector
joint adds them to its own, a quaternion is turned by their exponential (whose second
derivative brings in no more than $\omega\times\omega = 0$). Then

$$\tau = L_{\dot\xi\dot\xi}\,\ddot\xi + L_{\dot\xi\xi}\,\dot\xi + L_{\dot\xi t}
  - L_\xi .$$
"""

import jax
import jax.numpy as jnp

from djdyn.multibody.joints import Free, Spherical
from djdyn.multibody.spatial import Pose, quat_exp, quat_multiply


def retract(joint, q, xi):
    """Coordinates moved by the speeds' displacements."""
    if isinstance(joint, Free):
        return jnp.concatenate([q[:3] + xi[3:], quat_multiply(q[3:], quat_exp(xi[:3]))])
    if isinstance(joint, Spherical):
        return quat_multiply(q, quat_exp(xi))
    return q + xi


def poses(mechanism, q, xi, t):
    found = {"world": Pose(jnp.eye(3), jnp.zeros(3))}
    for body, name in zip(mechanism.bodies, mechanism.joint_names, strict=True):
        q_j = q[mechanism.q_slice(name)]
        q_j = retract(body.joint, q_j, xi[mechanism.v_slice(name)])
        found[body.name] = found[body.parent] @ body.X_PJ @ body.joint.pose(q_j, t)
    return found


def lagrangian(mechanism, q, xi, xi_dot, t):
    """Kinetic less potential energy, from poses and their rates alone."""
    place = lambda xi, t: poses(mechanism, q, xi, t)
    X, X_dot = jax.jvp(place, (xi, t), (xi_dot, jnp.ones_like(t)))
    total = jnp.zeros(())
    for body in mechanism.bodies:
        R, R_dot = X[body.name].R, X_dot[body.name].R
        W = R.T @ R_dot
        w = jnp.stack([W[2, 1], W[0, 2], W[1, 0]])
        v_B = R.T @ X_dot[body.name].p
        v_C = v_B + W @ body.p_BC
        twist = jnp.concatenate([w, v_B])
        total += (body.mass * v_C @ v_C + w @ body.I_BC @ w) / 2
        if body.A_B is not None:
            total += twist @ body.A_B @ twist / 2
        total += body.mass * mechanism.gravity_W @ X[body.name].act(body.p_BC)
    return total


def inverse_dynamics(mechanism, q, v, v_dot, t):
    """Joint forces from the Lagrangian."""
    L = lambda xi, xi_dot, t: lagrangian(mechanism, q, xi, xi_dot, t)
    slopes = jax.grad(L, (0, 1))
    along = (v, v_dot, jnp.ones_like(t))
    (L_xi, _), (_, p_dot) = jax.jvp(slopes, (jnp.zeros_like(v), v, t), along)
    return p_dot - L_xi
