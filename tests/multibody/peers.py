"""The same mechanism in MuJoCo and in Pinocchio, and the map between conventions.

With $u = T(q)\\,v$ the peer's speeds, its accelerations are $T\\dot v + \\dot T v$, its
joint forces $T^{-\\top}\\tau$ and its mass matrix $T^{-\\top} M T^{-1}$.
"""

import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from djdyn.multibody.joints import (
    AbstractJoint,
    Cartesian,
    Cylindrical,
    Fixed,
    Free,
    Planar,
    Prismatic,
    Revolute,
    RollPitchYaw,
    Spherical,
    Universal,
)
from djdyn.multibody.mechanism import Mechanism
from djdyn.multibody.spatial import quat_to_rotation, rotation_z


def numbers(x) -> str:
    return " ".join(repr(float(value)) for value in np.ravel(x))


def quaternion(R) -> np.ndarray:
    return Rotation.from_matrix(np.asarray(R)).as_quat(scalar_first=True)


# MuJoCo -------------------------------------------------------------------------------


def to_mjcf(mechanism: Mechanism) -> str:
    """The mechanism as MJCF text, with inertias by principal axes."""
    kinds = {Revolute: "hinge", Prismatic: "slide", Spherical: "ball", Free: "free"}

    def below(parent: str) -> str:
        text = ""
        for body in (b for b in mechanism.bodies if b.parent == parent):
            moments, axes = np.linalg.eigh(np.asarray(body.I_BC))
            axes = axes * np.linalg.det(axes)
            joint, kind = "", type(body.joint)
            if kind is not Fixed:
                axis = (
                    f'axis="{numbers(body.joint.axis)}"' if body.joint.nv == 1 else ""
                )
                rotor = "" if body.armature is None else numbers(body.armature[:1])
                rotor = rotor and f'armature="{rotor}"'
                joint = (
                    f'<joint name="{body.name}" type="{kinds[kind]}" {axis} {rotor}/>'
                )
            text += (
                f'<body name="{body.name}" pos="{numbers(body.X_PJ.p)}" '
                f'quat="{numbers(quaternion(body.X_PJ.R))}">{joint}'
                f'<inertial pos="{numbers(body.p_BC)}" mass="{numbers(body.mass)}" '
                f'quat="{numbers(quaternion(axes))}" diaginertia="{numbers(moments)}"/>'
                f"{below(body.name)}</body>"
            )
        return text

    return (
        '<mujoco><compiler angle="radian" inertiafromgeom="false"/>'
        f'<option gravity="{numbers(mechanism.gravity_W)}">'
        '<flag contact="disable" constraint="disable"/></option>'
        f"<worldbody>{below('world')}</worldbody></mujoco>"
    )


def mujoco_rows(model: mujoco.MjModel, mechanism: Mechanism) -> tuple[list, list]:
    """Where our coordinates and speeds are in MuJoCo's, which goes depth first."""
    rows_q, rows_v = [], []
    for body in mechanism.bodies:
        if body.joint.nv:
            joint = model.joint(body.name)
            q, v = joint.qposadr[0], joint.dofadr[0]
            rows_q += range(q, q + body.joint.nq)
            free = [v + k for k in (3, 4, 5, 0, 1, 2)]
            is_free = isinstance(body.joint, Free)
            rows_v += free if is_free else range(v, v + body.joint.nv)
    return rows_q, rows_v


def mujoco_dynamics(model, rows, q, v, tau, v_dot) -> dict[str, np.ndarray]:
    """Forward and inverse dynamics and mass matrix, in our order."""
    data, (rows_q, rows_v) = mujoco.MjData(model), rows
    data.qpos[rows_q], data.qvel[rows_v] = q, v
    data.qfrc_applied[rows_v] = tau
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    found = {"forward": data.qacc[rows_v], "mass": M[np.ix_(rows_v, rows_v)]}
    data.qacc[rows_v] = v_dot
    mujoco.mj_inverse(model, data)
    return {**found, "inverse": data.qfrc_inverse[rows_v]}


# Pinocchio ----------------------------------------------------------------------------


def to_pinocchio(mechanism: Mechanism) -> pin.Model:
    """The mechanism with its joints added depth first, as `crba` needs them."""
    model = pin.Model()
    model.gravity = pin.Motion(np.asarray(mechanism.gravity_W), np.zeros(3))

    def hang(name: str, parent: int, X: pin.SE3):
        for body in (b for b in mechanism.bodies if b.parent == name):
            at = X * pin.SE3(np.asarray(body.X_PJ.R), np.asarray(body.X_PJ.p))
            joint, row = pinocchio_joint(body.joint), parent
            if joint is not None:
                row = model.addJoint(parent, joint, at, body.name)
                at = pin.SE3.Identity()
            inertia = pin.Inertia(
                float(body.mass), np.asarray(body.p_BC), np.asarray(body.I_BC)
            )
            model.appendBodyToJoint(row, inertia, at)
            hang(body.name, row, at)

    hang("world", 0, pin.SE3.Identity())
    rows = pinocchio_rows(model, mechanism)[1]
    rotors = [b.armature for b in mechanism.bodies if b.armature is not None]
    if rotors:
        model.armature[rows] = np.concatenate(rotors)
    return model


def pinocchio_rows(model: pin.Model, mechanism: Mechanism) -> tuple[list, list]:
    """Where our coordinates and speeds are in Pinocchio's."""
    rows_q, rows_v = [], []
    for body in mechanism.bodies:
        if body.joint.nv:
            joint = model.joints[model.getJointId(body.name)]
            rows_q += range(joint.idx_q, joint.idx_q + joint.nq)
            rows_v += range(joint.idx_v, joint.idx_v + joint.nv)
    return rows_q, rows_v


def pinocchio_joint(joint: AbstractJoint):
    match joint:
        case Fixed():
            return None
        case Revolute():
            return pin.JointModelRevoluteUnaligned(np.asarray(joint.axis))
        case Prismatic():
            return pin.JointModelPrismaticUnaligned(np.asarray(joint.axis))
        case Cylindrical():
            both = pin.JointModelComposite(2)
            both.addJoint(pin.JointModelRevoluteUnaligned(np.asarray(joint.axis)))
            both.addJoint(pin.JointModelPrismaticUnaligned(np.asarray(joint.axis)))
            return both
        case Universal():
            return pin.JointModelUniversal(
                np.asarray(joint.first), np.asarray(joint.second)
            )
        case RollPitchYaw():
            return pin.JointModelSphericalZYX()
        case Cartesian():
            return pin.JointModelTranslation()
        case Spherical():
            return pin.JointModelSpherical()
        case Planar():
            return pin.JointModelPlanar()
        case Free():
            return pin.JointModelFreeFlyer()
    raise TypeError(joint)


def pinocchio_q(mechanism: Mechanism, q: np.ndarray) -> np.ndarray:
    """Pinocchio's coordinates, in the order of ours."""
    parts = [np.zeros(0)]
    for body, name in zip(mechanism.bodies, mechanism.joint_names, strict=True):
        x = np.asarray(q[mechanism.q_slice(name)])
        match body.joint:
            case Spherical() | Free():
                x = np.concatenate([x[:-4], x[-3:], x[-4:-3]])
            case RollPitchYaw():
                x = x[::-1]
            case Planar():
                x = np.array([x[0], x[1], np.cos(x[2]), np.sin(x[2])])
        parts.append(x)
    return np.concatenate(parts)


def pinocchio_speeds(mechanism: Mechanism, q, v):
    """Pinocchio's speeds, linear in ours and in their order; differentiable."""
    parts = [jnp.zeros(0)]
    for body, name in zip(mechanism.bodies, mechanism.joint_names, strict=True):
        x, u = q[mechanism.q_slice(name)], v[mechanism.v_slice(name)]
        match body.joint:
            case Free():
                u = jnp.concatenate([u[3:] @ quat_to_rotation(x[3:]), u[:3]])
            case RollPitchYaw():
                u = u[::-1]
            case Planar():
                u = jnp.concatenate([u[:2] @ rotation_z(x[2])[:2, :2], u[2:]])
        parts.append(u)
    return jnp.concatenate(parts)


def pinocchio_dynamics(model, rows, q, u, tau, u_dot) -> dict[str, np.ndarray]:
    """Forward and inverse dynamics and mass matrix in Pinocchio's speeds, our order."""
    data, (q, u, tau, u_dot) = (
        model.createData(),
        _sorted(model, rows, q, u, tau, u_dot),
    )
    M = pin.crba(model, data, q)
    M, (_, r) = np.triu(M) + np.triu(M, 1).T, rows
    return {
        "forward": pin.aba(model, data, q, u, tau)[r],
        "inverse": pin.rnea(model, data, q, u, u_dot)[r],
        "mass": M[np.ix_(r, r)],
    }


def pinocchio_derivatives(model, rows, q, u, tau) -> list[np.ndarray]:
    """Of the acceleration, by tangents of `q`, by `u` and by `tau`, in our order."""
    q, u, tau = _sorted(model, rows, q, u, tau)
    data = model.createData()  # owns what is found
    found = pin.computeABADerivatives(model, data, q, u, tau)
    return [x[np.ix_(rows[1], rows[1])] for x in found]


def _sorted(model, rows, q, *speeds):
    rows_q, rows_v = rows
    out = [np.zeros(model.nq), *(np.zeros(model.nv) for _ in speeds)]
    for x, where, value in zip(
        out, [rows_q, *[rows_v] * len(speeds)], [q, *speeds], strict=True
    ):
        x[where] = value
    return out
