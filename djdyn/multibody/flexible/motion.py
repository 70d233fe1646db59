r"""A flexible body at an instant: places of its nodes, inertia, forces.

With the speeds $\omega, \etȧ$ and the acceleration $a$ of the origin less gravity, in
the axes of the body, with $P = \partial h/\partial\eta$ and $Q = Q_0 + Q_{1i}\eta_i$ of
`shape_integrals`, the body needs the wrench of a rigid body of its present shape and

$$\begin{aligned}
f &\mathrel{+}= P\ddot\eta + \dot P\dot\eta + 2\,\omega\times P\dot\eta,\qquad
\tau \mathrel{+}= Q\ddot\eta + \dot Q\dot\eta + \omega\times Q\dot\eta + \dot J\omega,\\
f_j &= P_j\cdot a + Q_j\cdot\alpha + (M_{ff}\ddot\eta)_j + \omega\cdot(Q_{1ij} -
Q_{1ji})\dot\eta_i - \tfrac12\,\omega\cdot\frac{\partial J}{\partial\eta_j}\omega +
(K\eta + D\dot\eta)_j ,
\end{aligned}$$

which are the Lagrangian equations of the body in quasi-velocities.

A node turns by the rotation with the Rodrigues vector $\theta = \Theta\eta$ (the
quaternion $1, \theta/2$), which equals that of the modes' small angles up to third
order and is a rotation for all.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...typing import Scalar, Vec3, Vec6
from ..mechanism import Mechanism
from ..spatial import Pose, cross, quat_to_rotation, shift_twist
from .body import Reduced, flexible_rows


class Deformation(NamedTuple):
    """What follows from modal coordinates and speeds alone, in the body's axes."""

    shape: Reduced
    eta: Array
    eta_dot: Array
    h: Vec3
    J: Array
    P: Float[Array, "m 3"]
    Q: Float[Array, "m 3"]
    poses: list[Pose]  # X_BN of the nodes
    partials: list[Float[Array, "m 6"]]  # twists per modal speed, in nodes' axes
    drifts: list[Vec6]


class Flexion(eqx.Module):
    """All flexible bodies of a mechanism at an instant, in world axes.

    `N_W` are twists of the nodes per unit of each speed that bends their body, `C_W`
    the wrenches that a body needs per unit of each such acceleration.
    `bias_W` and `force` are what is needed beside at constant speeds.
    """

    nodes: tuple[int, ...] = eqx.field(static=True)
    bodies: tuple[int, ...] = eqx.field(static=True)
    N_W: Float[Array, "nodes nv 6"]
    C_W: Float[Array, "flexible nv 6"]
    M_ff: Float[Array, "nv nv"]
    bias_W: Float[Array, "flexible 6"]
    force: Float[Array, " nv"]
    stored: Scalar
    lost: Scalar

    def twists(self, v_dot: Float[Array, " nv"]) -> dict[int, Vec6]:
        """What speeds of bending add to the twists of nodes, by row."""
        return {n: v_dot @ N for n, N in zip(self.nodes, self.N_W, strict=True)}

    def wrenches(
        self, rows: int, v_dot: Float[Array, " nv"]
    ) -> Float[Array, "bodies 6"]:
        """What accelerations of bending need on the bodies' rows."""
        return self._placed(rows, jnp.einsum("fai,a->fi", self.C_W, v_dot))

    def bias_wrenches(self, rows: int) -> Float[Array, "bodies 6"]:
        """What the bodies need at constant speeds, beside what rigid ones would."""
        return self._placed(rows, self.bias_W)

    def forces(self, A: Float[Array, "bodies 6"]) -> Float[Array, " nv"]:
        """Modal forces that bodies accelerated by `A` need."""
        return jnp.einsum("fai,fi->a", self.C_W, A[np.array(self.bodies)])

    def project(self, total: list[Vec6]) -> Float[Array, " nv"]:
        """Modal forces of what each node carries."""
        rows = zip(self.nodes, self.N_W, strict=True)
        return sum((N @ total[n] for n, N in rows), jnp.zeros_like(self.force))

    def coupling(self, J: Float[Array, "bodies nv 6"]) -> Float[Array, "nv nv"]:
        """What bending adds to the mass matrix."""
        C = jnp.einsum("fai,fbi->ab", J[np.array(self.bodies)], self.C_W)
        return C + C.T + self.M_ff

    def jacobians(
        self, p: Float[Array, "n 3"], p_W: Float[Array, "bodies 3"], carried: np.ndarray
    ) -> Float[Array, "n nv 6"]:
        """What bending adds to twists at points `p`, on bodies `carried` by rows."""
        found = jnp.zeros((len(p), *self.force.shape, 6), p.dtype)
        for n, N in zip(self.nodes, self.N_W, strict=True):
            arms = (p - p_W[n][None])[:, None]
            moved = shift_twist(
                jnp.broadcast_to(N[None], found.shape),
                jnp.broadcast_to(arms, (*found.shape[:2], 3)),
            )
            found = found + moved * jnp.asarray(carried[:, n, None, None], p.dtype)
        return found

    def _placed(self, rows: int, x: Float[Array, "flexible 6"]) -> Array:
        here = np.zeros((rows, len(self.bodies)))
        here[list(self.bodies), range(len(self.bodies))] = 1.0
        return jnp.asarray(here, x.dtype) @ x


def deformations(mechanism: Mechanism, q: Array, v: Array) -> dict[int, Deformation]:
    """Return the deformations of all flexible bodies, by their row."""
    found = {}
    for row, body in flexible_rows(mechanism).items():
        modes = f"{body.name}.modes"
        eta, eta_dot = q[mechanism.q_slice(modes)], v[mechanism.v_slice(modes)]
        found[row] = deformed(body.shape(), eta, eta_dot)
    return found


def deformed(shape: Reduced, eta: Array, eta_dot: Array) -> Deformation:
    """Return a body's deformation."""
    I = shape.integrals
    e_x = jnp.array([1.0, 0.0, 0.0], eta.dtype)
    shortened = I.H @ eta
    h = I.h0 + eta @ I.S + 0.5 * (eta @ shortened) * e_x
    J = I.J0 + jnp.einsum("i,iab->ab", eta, I.J1 + 0.5 * _second(shape, eta))
    P = I.S + shortened[:, None] * e_x[None]
    Q = I.Q0 + jnp.einsum("i,ija->ja", eta, I.Q1)
    poses, partials, drifts = [], [], []
    for k in range(len(shape.nodes.p0)):
        pose, subspace = _node_motion(shape, k)
        S, S_dot = jax.jvp(subspace, (eta,), (eta_dot,))
        poses.append(pose(eta))
        partials.append(S)
        drifts.append(eta_dot @ S_dot)
    return Deformation(shape, eta, eta_dot, h, J, P, Q, poses, partials, drifts)


def _second(shape: Reduced, eta: Array) -> Float[Array, "m 3 3"]:
    return jnp.einsum("ijab,j->iab", shape.integrals.J2, eta)


def _node_motion(shape: Reduced, k: int) -> tuple:
    """Pose of a node in the body, and its twist per modal speed, in its own axes."""
    p0, Psi, Theta, G = (x[k] for x in jax.tree.leaves(shape.nodes))
    e_x = jnp.array([1.0, 0.0, 0.0], p0.dtype)

    def rotation(eta: Array) -> Array:
        return quat_to_rotation(jnp.concatenate([jnp.ones(1), 0.5 * (eta @ Theta)]))

    def pose(eta: Array) -> Pose:
        p = p0 + eta @ Psi + 0.5 * (eta @ G @ eta) * e_x
        return Pose(rotation(eta), p)

    def subspace(eta: Array) -> Float[Array, "m 6"]:
        theta = eta @ Theta
        half = cross(jnp.broadcast_to(0.5 * theta, Theta.shape), Theta)
        turned = (Theta - half) / (1 + theta @ theta / 4)
        moved = (Psi + (G @ eta)[:, None] * e_x[None]) @ rotation(eta)
        return jnp.concatenate([turned, moved], 1)

    return pose, subspace


def flexion(
    mechanism: Mechanism,
    found: dict[int, Deformation],
    X_WB: Pose,
    w_WB: Float[Array, "bodies 3"],
) -> Flexion:
    """Return all flexible bodies in world axes, from the motions of their frames."""
    bodies = flexible_rows(mechanism)
    nodes, N_W, C_W, bias_W = [], [], [], []
    nv, dtype = mechanism.nv, X_WB.p.dtype
    M_ff, force = jnp.zeros((nv, nv), dtype), jnp.zeros(nv, dtype)
    stored = lost = jnp.zeros((), dtype)
    for row, d in found.items():
        own = mechanism.v_slice(f"{bodies[row].name}.modes")
        start, stop = int(own.start), nv - int(own.stop)
        wide = lambda x, start=start, stop=stop: jnp.pad(x, ((start, stop), (0, 0)))
        for k, S in enumerate(d.partials):
            nodes.append(row + 2 + k)
            N_W.append(wide(_turned(X_WB.R[row + 2 + k], S)))
        R = X_WB.R[row]
        C_W.append(wide(_turned(R, jnp.concatenate([d.Q, d.P], 1))))
        wrench, modal = _bias(d, w_WB[row] @ R)
        bias_W.append(_turned(R, wrench[None])[0])
        M_ff = M_ff + jnp.pad(d.shape.integrals.M_ff, ((start, stop), (start, stop)))
        force = force + jnp.pad(modal, (start, stop))
        stored = stored + 0.5 * (d.eta @ d.shape.K @ d.eta)
        lost = lost + d.eta_dot @ d.shape.D @ d.eta_dot
    none = jnp.zeros((0, nv, 6), dtype)
    return Flexion(
        tuple(nodes),
        tuple(found),
        jnp.stack(N_W) if N_W else none,
        jnp.stack(C_W),
        M_ff,
        jnp.stack(bias_W),
        force,
        stored,
        lost,
    )


def _turned(R: Float[Array, "3 3"], x: Float[Array, "n 6"]) -> Float[Array, "n 6"]:
    return jnp.einsum("ij,nkj->nki", R, x.reshape(len(x), 2, 3)).reshape(len(x), 6)


def _bias(d: Deformation, w: Vec3) -> tuple[Vec6, Float[Array, " m"]]:
    """Wrench and modal forces that constant speeds need."""
    I, eta_dot = d.shape.integrals, d.eta_dot
    e_x = jnp.array([1.0, 0.0, 0.0], w.dtype)
    slope = I.J1 + _second(d.shape, d.eta)  # of J
    stretched = eta_dot @ I.H @ eta_dot * e_x
    moved, turned = eta_dot @ d.P, eta_dot @ d.Q
    f = stretched + 2 * cross(w, moved)
    swirl = jnp.einsum("i,ija->ja", eta_dot, I.Q1)
    tau = eta_dot @ swirl + cross(w, turned)
    tau = tau + jnp.einsum("i,iab,b->a", eta_dot, slope, w)
    other = jnp.einsum("jia,i->ja", I.Q1, eta_dot)
    modal = (swirl - other) @ w - 0.5 * jnp.einsum("a,jab,b->j", w, slope, w)
    modal = modal + d.shape.K @ d.eta + d.shape.D @ eta_dot
    return jnp.concatenate([tau, f]), modal
