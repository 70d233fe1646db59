r"""Where everything is and how it moves.

All quantities are stacked over bodies, in world axes, each taken at its body's origin.
With $r$ the step from the parent's origin to the body's and $[a; b]$ the twist that the
joint adds,

$$\omega = \omega_p + a,\qquad v = v_p + \omega_p\times r + b,$$

so every velocity and acceleration is a sum of increments over the bodies that carry it.
"""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ..typing import Scalar, Vec3, Vec6
from .flexible.motion import Deformation, Flexion, deformations, flexion
from .joints import (
    AbstractJoint,
    Cylindrical,
    Prescribed,
    Revolute,
    drift,
    prescribed_motion,
)
from .mechanism import Mechanism
from .spatial import Pose, cross, shift_twist, turned


class World(eqx.Module):
    """A read-only view of the mechanism at one instant.

    `S_W` holds the twist per unit of each speed at the origin of the body its joint
    hangs; `A_bias_WB` the accelerations the bodies would have if all speeds were
    constant. `m`, `h_B` and `J_B` are mass, first moment and inertia about the bodies'
    origins, in their axes. `added_inertia_W` are inertias that parts hang on the
    bodies, about the bodies' origins in world axes; they have no weight. `armature` is
    the inertia of the joints' rotors, None where no joint has any. `flexion` is what
    bodies do that bend; there `m`, `h_B` and `J_B` are those of the present shape.
    """

    mechanism: Mechanism
    t: Scalar
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    X_WB: Pose
    V_WB: Float[Array, "bodies 6"]
    A_bias_WB: Float[Array, "bodies 6"]
    S_W: Float[Array, "nv 6"]
    m: Float[Array, " bodies"]
    h_B: Float[Array, "bodies 3"]
    J_B: Float[Array, "bodies 3 3"]
    added_inertia_W: Float[Array, "bodies 6 6"] | None = None
    armature: Float[Array, " nv"] | None = None
    flexion: Flexion | None = None

    @property
    def gravity_W(self) -> Vec3:
        """Acceleration of gravity, m/s^2."""
        return self.mechanism.gravity_W

    def pose(self, frame: str) -> Pose:
        """`X_WF` of a named frame or body."""
        F = self.mechanism.frame(frame)
        b = self.mechanism.index(F.body)
        return Pose(self.X_WB.R[b], self.X_WB.p[b]) @ F.X_BF

    def point(self, frame: str) -> tuple[Vec3, Vec3]:
        """Position and velocity of a frame's origin."""
        return self.pose(frame).p, self.twist(frame)[3:]

    def twist(self, frame: str) -> Vec6:
        """`V_WF = [w; v]` of a frame, at its origin."""
        F = self.mechanism.frame(frame)
        b = self.mechanism.index(F.body)
        return shift_twist(self.V_WB[b], self.X_WB.R[b] @ F.X_BF.p)

    def joint(self, name: str) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
        """Coordinates and speeds of a joint."""
        m = self.mechanism
        return self.q[m.q_slice(name)], self.v[m.v_slice(name)]

    def jacobian(self, frame: str) -> Float[Array, "6 nv"]:
        """Twist of a frame, at its origin, per unit of each speed."""
        body = self.mechanism.index(self.mechanism.frame(frame).body)
        return self.point_jacobians(np.array([body]), self.pose(frame).p[None])[0].T

    def point_jacobians(
        self, bodies: np.ndarray, p_WP: Float[Array, "n 3"]
    ) -> Float[Array, "n nv 6"]:
        """Twists of some bodies, at points of theirs, per unit of each speed."""
        arms = p_WP[:, None] - self.X_WB.p[self.mechanism.speed_rows][None]
        S_W = jnp.broadcast_to(self.S_W, (*arms.shape[:2], 6))
        moves = self.mechanism.moves[bodies][..., None]
        J = shift_twist(S_W, arms) * jnp.asarray(moves, S_W.dtype)
        if self.flexion is None:
            return J
        carried = self.mechanism.supports[bodies]
        return J + self.flexion.jacobians(p_WP, self.X_WB.p, carried)

    def jacobians(self) -> Float[Array, "bodies nv 6"]:
        """Twists of all bodies, at their origins, per unit of each speed."""
        return self.point_jacobians(np.arange(len(self.X_WB.p)), self.X_WB.p)


def forward_kinematics(
    mechanism: Mechanism,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: ArrayLike = 0.0,
) -> World:
    """Return poses, twists and bias accelerations of all bodies.

    !!! example

        ```python
        world = djdyn.forward_kinematics(mechanism, q, v)
        world.pose("tip").p
        ```
    """
    v = jnp.zeros(mechanism.nv, q.dtype) if v is None else v
    mechanism.check_state(q, v)
    t = jnp.asarray(t, q.dtype)
    X_PB, S_M, twist_M, drift_M = _joint_motions(mechanism, q, v, t)
    bent = deformations(mechanism, q, v)
    if bent:
        X_PB, drift_M = _with_nodes(bent, X_PB, drift_M)
    R, p = [jnp.eye(3, dtype=q.dtype)], [jnp.zeros(3, q.dtype)]
    for row, parent in enumerate(mechanism.parents[1:]):
        R.append(R[parent] @ X_PB.R[row])
        p.append(R[parent] @ X_PB.p[row] + p[parent])
    X_WB = Pose(jnp.stack(R), jnp.stack(p))

    parents, rows = mechanism.parents, mechanism.speed_rows
    S_W = jnp.concatenate(_rotate(X_WB.R[rows], S_M), -1)
    # What the joints add, in world axes: by their speeds, or by a given motion.
    hung = (np.arange(len(X_WB.p))[:, None] == rows).astype(q.dtype)
    added = jnp.asarray(hung) @ (v[:, None] * S_W)
    if any(isinstance(body.joint, Prescribed) for body in mechanism.bodies):
        added = added + jnp.concatenate(_turn(X_WB.R, twist_M), -1)
    if bent:
        added = added + jnp.concatenate(_turn(X_WB.R, _node_twists(bent, drift_M)), -1)
    a, b = added[:, :3], added[:, 3:]
    a_drift, b_drift = _turn(X_WB.R, drift_M)
    r = X_WB.p - X_WB.p[parents]
    w = accumulate(mechanism, a)
    r_dot = cross(w[parents], r) + b
    alpha = accumulate(mechanism, cross(w, a) + a_drift)
    b_dot = cross(w, b) + b_drift
    v_dot = cross(alpha[parents], r) + cross(w[parents], r_dot) + b_dot
    linear = accumulate(mechanism, jnp.concatenate([r_dot, v_dot], -1))
    m, h_B, J_B = zip(*_masses(mechanism, bent), strict=True)
    return World(
        mechanism,
        t,
        q,
        v,
        X_WB,
        V_WB=jnp.concatenate([w, linear[:, :3]], -1),
        A_bias_WB=jnp.concatenate([alpha, linear[:, 3:]], -1),
        S_W=S_W,
        m=_stack(list(m)),
        h_B=_stack(list(h_B)),
        J_B=_stack(list(J_B)),
        armature=_armature(mechanism),
        flexion=flexion(mechanism, bent, X_WB, w) if bent else None,
    )


def _masses(
    mechanism: Mechanism, bent: dict[int, Deformation]
) -> Iterator[tuple[Array, Array, Array]]:
    """Mass, first moment and inertia of each body about its origin, in its axes."""
    for row, b in enumerate(mechanism.bodies, start=1):
        if row in bent:
            yield bent[row].shape.integrals.mass, bent[row].h, bent[row].J
        else:
            yield b.mass, b.mass * b.p_BC, b.J_B


def _with_nodes(
    bent: dict[int, Deformation], X_PB: Pose, drift_M: Float[Array, "joints 6"]
) -> tuple[Pose, Float[Array, "joints 6"]]:
    """Poses and drifts of all rows, with those of the nodes in their place."""
    R, p, drifts = list(X_PB.R), list(X_PB.p), list(drift_M)
    for row, d in bent.items():
        for k, (X, rate) in enumerate(zip(d.poses, d.drifts, strict=True)):
            R[row + 1 + k], p[row + 1 + k], drifts[row + 1 + k] = X.R, X.p, rate
    return Pose(jnp.stack(R), jnp.stack(p)), jnp.stack(drifts)


def _node_twists(
    bent: dict[int, Deformation], like: Float[Array, "joints 6"]
) -> Float[Array, "joints 6"]:
    """What bending adds to the twists, in the axes of nodes."""
    rows = [jnp.zeros(6, like.dtype)] * len(like)
    for row, d in bent.items():
        for k, S in enumerate(d.partials):
            rows[row + 1 + k] = d.eta_dot @ S
    return jnp.stack(rows)


def _armature(mechanism: Mechanism) -> Float[Array, " nv"] | None:
    given = [b.armature for b in mechanism.bodies if b.armature is not None]
    if not given:
        return None
    none = lambda body: jnp.zeros(body.joint.nv, given[0].dtype)
    rows = [none(b) if b.armature is None else b.armature for b in mechanism.bodies]
    return jnp.concatenate(rows)


def _stack(rows: list[Array]) -> Array:
    """One row a body, with the world's zeros in front."""
    return jnp.stack([jnp.zeros_like(rows[0]), *rows])


def accumulate(
    mechanism: Mechanism, x: Float[Array, "bodies k"]
) -> Float[Array, "bodies k"]:
    """Each body's sum of `x` over itself and all that carry it."""
    return jnp.asarray(mechanism.supports, x.dtype) @ x


def _rotate(
    R: Float[Array, "n 3 3"], x: Float[Array, "n 6"]
) -> tuple[Float[Array, "n 3"], Float[Array, "n 3"]]:
    rotated = jnp.einsum("nij,nkj->nki", R, x.reshape(-1, 2, 3))
    return rotated[:, 0], rotated[:, 1]


def _turn(
    R: Float[Array, "bodies 3 3"], x_M: Float[Array, "joints 6"]
) -> tuple[Float[Array, "bodies 3"], Float[Array, "bodies 3"]]:
    """Joint quantities into world axes, with the world's row of zeros in front."""
    return _rotate(R, jnp.concatenate([jnp.zeros_like(x_M[:1]), x_M]))


def _joint_motions(
    mechanism: Mechanism, q: Array, v: Array, t: Scalar
) -> tuple[
    Pose, Float[Array, "nv 6"], Float[Array, "joints 6"], Float[Array, "joints 6"]
]:
    """`X_PB`, subspace, given twist and drift of all joints; a kind in one `vmap`."""
    groups: dict = {}
    for i, body in enumerate(mechanism.bodies):
        groups.setdefault(jax.tree.structure(body.joint), []).append(i)
    order, found, subspaces, speed_order = [], [], [], []
    for members in groups.values():
        joints = [mechanism.bodies[i].joint for i in members]
        starts_q, starts_v = mechanism.q_starts[members], mechanism.v_starts[members]
        rows_q = starts_q[:, None] + np.arange(joints[0].nq)
        rows_v = starts_v[:, None] + np.arange(joints[0].nv)
        X_PJ = [mechanism.bodies[i].X_PJ for i in members]
        X_PJ = jax.tree.map(lambda *x: jnp.stack(x), *X_PJ)
        if isinstance(joints[0], Prescribed):
            moved = [prescribed_motion(joint, t) for joint in joints]
            X, twist, rate = jax.tree.map(lambda *x: jnp.stack(x), *moved)
            X = X_PJ @ X
        else:
            stacked = jax.tree.map(lambda *x: jnp.stack(x), *joints)

            def motion(joint, X_PJ, q, v):
                S, rate = joint.subspace(q), drift(joint, q, v)
                return _placed(joint, X_PJ, q, t), S, jnp.zeros_like(rate), rate

            given = (stacked, X_PJ, q[rows_q], v[rows_v])
            X, S, twist, rate = jax.vmap(motion)(*given)
            subspaces.append(S.reshape(-1, 6))
            speed_order += rows_v.ravel().tolist()
        found.append((X, twist, rate))
        order += members
    stack = lambda *x: x[0] if len(x) == 1 else jnp.concatenate(x)
    X, twist, rate = jax.tree.map(stack, *found)
    S = jnp.concatenate([jnp.zeros((0, 6), q.dtype), *subspaces])
    if order != sorted(order):
        X, twist, rate = jax.tree.map(lambda x: x[np.argsort(order)], (X, twist, rate))
    if speed_order != sorted(speed_order):
        S = S[np.argsort(speed_order)]
    return X, S, twist, rate


def _placed(joint: AbstractJoint, X_PJ: Pose, q: Array, t: Scalar) -> Pose:
    """`X_PB`: the joint's pose, seen from the parent."""
    X_JM = joint.pose(q, t)
    if isinstance(joint, Revolute | Cylindrical):
        return Pose(turned(X_PJ.R, joint.axis, q[0]), X_PJ.act(X_JM.p))
    return X_PJ @ X_JM


def frame_pose(
    mechanism: Mechanism, q: Float[Array, " nq"], frame: str, *, t: ArrayLike = 0.0
) -> Pose:
    """Return the pose `X_WF` of a named frame."""
    return forward_kinematics(mechanism, q, t=t).pose(frame)


def frame_jacobian(
    mechanism: Mechanism, q: Float[Array, " nq"], frame: str, *, t: ArrayLike = 0.0
) -> Float[Array, "6 nv"]:
    """Return the twist of a frame, at its origin in world axes, per unit of speed."""
    return forward_kinematics(mechanism, q, t=t).jacobian(frame)
