r"""Springs, dampers, friction and limits of a MuJoCo model's joints, as parts.

A limit is a stop whose spring and damper have MuJoCo's time constant $T$ and damping
ratio $\zeta$ (`solreflimit`) on the inertia $m$ that the joint moves at `qpos0`,

$$K = \frac{m}{(T\zeta)^2},\qquad D = \frac{2m}{T},$$

or, where `solref` is negative, minus its numbers times $m$.
"""

from typing import Any

import numpy as np

from ..parts.joint import JointFriction, JointSpring, JointStop
from .mjcf_draft import SystemDraft, speed_order
from .unsupported import disabled, import_mujoco, name_of


def read_joints(draft: SystemDraft) -> None:
    """Adds the passive parts of all joints."""
    order = speed_order(draft.model)
    for j in range(draft.model.njnt):
        _friction(draft, j, order)
        _spring(draft, j)
        _stop(draft, j)


def _friction(draft: SystemDraft, j: int, order: np.ndarray) -> None:
    model, name = draft.model, name_of(draft.model, "joint", j)
    first = int(model.jnt_dofadr[j])
    rows = order[first : first + int(np.sum(model.dof_jntid == j))]
    viscous, coulomb = model.dof_damping[rows], model.dof_frictionloss[rows]
    if disabled(model, "DAMPER", "PASSIVE") or not draft.wants("damping"):
        viscous = np.zeros_like(viscous)
    elif has(model, "dof_dampingpoly", rows):
        draft.refuse("damping", f"{name} (a polynomial)")
    dry = not disabled(model, "CONSTRAINT", "FRICTIONLOSS")
    if not dry or not draft.wants("frictionloss"):
        coulomb = np.zeros_like(coulomb)
    if viscous.any() or coulomb.any():
        joint = draft.joint(j)
        part = JointFriction(joint, alike(viscous), alike(coulomb))
        draft.add_part(f"{joint}:friction", part)


def _spring(draft: SystemDraft, j: int) -> None:
    model, name = draft.model, name_of(draft.model, "joint", j)
    if disabled(model, "SPRING", "PASSIVE"):
        return
    for field in ("jnt_stiffnesspoly", "jnt_springyield"):
        if has(model, field, j):
            draft.refuse("stiffness", f"{name} (not linear)")
    if not model.jnt_stiffness[j]:
        return
    if not on_one_axis(model, j):
        draft.refuse("stiffness", f"{name} (neither hinge nor slide)")
    elif draft.wants("stiffness"):
        joint, rest = draft.joint(j), model.qpos_spring[model.jnt_qposadr[j]]
        part = JointSpring(joint, model.jnt_stiffness[j], rest=rest)
        draft.add_part(f"{joint}:spring", part)


def _stop(draft: SystemDraft, j: int) -> None:
    model, name = draft.model, name_of(draft.model, "joint", j)
    if not model.jnt_limited[j] or disabled(model, "CONSTRAINT", "LIMIT"):
        return
    if not on_one_axis(model, j):
        draft.refuse("limit", f"{name} (neither hinge nor slide)")
    elif draft.wants("limit"):
        joint, (low, high) = draft.joint(j), model.jnt_range[j]
        inertia = 1 / model.dof_invweight0[model.jnt_dofadr[j]]
        spring, damper = stop_constants(model, model.jnt_solref[j], inertia)
        margin = model.jnt_margin[j]
        part = JointStop(joint, low + margin, high - margin, spring, damper)
        draft.add_part(f"{joint}:stop", part)


def stop_constants(
    model: Any, solref: np.ndarray, inertia: float
) -> tuple[float, float]:
    """Stiffness and damping of a stop that answers with these time constants."""
    if solref[0] <= 0 and solref[1] <= 0:
        return -solref[0] * inertia, -solref[1] * inertia
    time, ratio = float(solref[0]), float(solref[1])
    if not disabled(model, "REFSAFE"):
        time = max(time, 2 * model.opt.timestep)
    return inertia / (time * ratio) ** 2, 2 * inertia / time


def on_one_axis(model: Any, j: int) -> bool:
    """Whether a joint is a hinge or a slide."""
    types = import_mujoco().mjtJoint
    return int(model.jnt_type[j]) in (int(types.mjJNT_HINGE), int(types.mjJNT_SLIDE))


def has(model: Any, field: str, i: Any) -> bool:
    """Whether a field of this version of MuJoCo is not zero in row `i`."""
    return hasattr(model, field) and bool(np.any(getattr(model, field)[i]))


def alike(x: np.ndarray) -> np.ndarray | float:
    """One number where all are the same."""
    return float(x[0]) if np.all(x == x[0]) else x
