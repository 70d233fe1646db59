"""Actuators of a MuJoCo model as parts, each with a command named after it."""

from typing import Any

import numpy as np

from ..parts.actuator import (
    AbstractActuatorLaw,
    Actuator,
    AffineLaw,
    MotorLaw,
    PositionLaw,
    VelocityLaw,
)
from ..parts.transmission import (
    AbstractTransmission,
    FrameTransmission,
    JointTransmission,
)
from .mjcf_draft import SystemDraft, plain
from .mjcf_frames import site_frame
from .mjcf_joints import has, on_one_axis
from .mjcf_tendons import tendon_transmission
from .unsupported import disabled, import_mujoco, name_of


def read_actuators(draft: SystemDraft) -> None:
    """Adds all actuators, and an input for each."""
    model = draft.model
    shared = _joint_bounds(draft)
    if draft.wants("actuator") and not disabled(model, "ACTUATION"):
        for i in range(len(model.actuator_trntype)):
            if not is_off(model, i):
                _actuator(draft, i, shared)


def is_off(model: Any, i: int) -> bool:
    """Whether the actuator's group is switched off."""
    group = int(model.actuator_group[i])
    return 0 <= group < 31 and bool(model.opt.disableactuator & (1 << group))


def command_names(draft: SystemDraft) -> dict[int, str]:
    """Inputs of the draft by the number of their actuator."""
    return {
        i: part.command
        for i in range(len(draft.model.actuator_trntype))
        if isinstance(part := draft.parts.get(part_name(draft.model, i)), Actuator)
    }


def command_row(model: Any, i: int) -> int:
    """Where an actuator's command is in MuJoCo's `ctrl`."""
    return int(model.actuator_ctrladr[i]) if hasattr(model, "actuator_ctrladr") else i


def part_name(model: Any, i: int) -> str:
    """The name of an actuator's part."""
    return plain(f"{actuator_name(model, i)}:actuator")


def actuator_name(model: Any, i: int) -> str:
    """The actuator's name, or a number."""
    return model.actuator(i).name or f"actuator{i}"


def _joint_bounds(draft: SystemDraft) -> dict[int, np.ndarray]:
    """Bounds on the force of a joint's actuators together, by the one actuator."""
    model, bounds = draft.model, {}
    if not draft.wants("saturation") or disabled(model, "ACTUATION"):
        return bounds
    trn = import_mujoco().mjtTrn
    on_joint = np.isin(
        model.actuator_trntype, [int(trn.mjTRN_JOINT), int(trn.mjTRN_JOINTINPARENT)]
    )
    through_tendon = model.actuator_trntype == int(trn.mjTRN_TENDON)
    pulled = {
        int(model.wrap_objid[k])
        for i in model.actuator_trnid[through_tendon, 0]
        for k in range(model.tendon_adr[i], model.tendon_adr[i] + model.tendon_num[i])
    }
    for j in np.flatnonzero(model.jnt_actfrclimited):
        drives = np.flatnonzero(on_joint & (model.actuator_trnid[:, 0] == j))
        if len(drives) > 1 or j in pulled:
            draft.refuse("saturation", name_of(model, "joint", j))
        elif len(drives):
            gear = model.actuator_gear[drives[0], 0]
            if gear:
                bounds[int(drives[0])] = np.sort(model.jnt_actfrcrange[j] / gear)
            if model.jnt_actgravcomp[j] and draft.wants("gravcomp"):
                draft.refuse("saturation", f"{name_of(model, 'joint', j)} (gravcomp)")
    return bounds


def _actuator(draft: SystemDraft, i: int, shared: dict[int, np.ndarray]) -> None:
    model, mujoco = draft.model, import_mujoco()
    name, label = name_of(model, "actuator", i), actuator_name(model, i)
    transmission, law = _transmission(draft, i), actuator_law(model, i)
    dyn, kind = mujoco.mjtDyn, int(model.actuator_dyntype[i])
    filters = (int(dyn.mjDYN_FILTER), int(dyn.mjDYN_FILTEREXACT))
    known = (int(dyn.mjDYN_NONE), int(dyn.mjDYN_INTEGRATOR), *filters)
    odd = ("actuator_delay", "actuator_armature", "actuator_damping")
    special = (
        any(has(model, field, i) for field in odd) or model.actuator_plugin[i] >= 0
    )
    one_command = (
        not hasattr(model, "actuator_ctrlnum") or model.actuator_ctrlnum[i] == 1
    )
    if not transmission or not law or kind not in known or special or not one_command:
        draft.refuse("actuator", name)
        return
    limits, saturates = {}, draft.wants("saturation")
    if saturates and model.actuator_forcelimited[i]:
        limits["force_range"] = model.actuator_forcerange[i]
    if i in shared:
        low, high = limits.get("force_range", (-np.inf, np.inf))
        limits["force_range"] = (max(low, shared[i][0]), min(high, shared[i][1]))
    clamped = not disabled(model, "CLAMPCTRL")
    if saturates and clamped and model.actuator_ctrllimited[i]:
        limits["command_range"] = model.actuator_ctrlrange[i]
    if kind in filters:
        limits["time_constant"] = max(model.actuator_dynprm[i, 0], mujoco.mjMINVAL)
    limits["integrates"] = kind == int(dyn.mjDYN_INTEGRATOR)
    if model.actuator_actlimited[i] and (limits["integrates"] or kind in filters):
        limits["state_range"] = model.actuator_actrange[i]
        limits["start"] = np.clip(0.0, *model.actuator_actrange[i])
    command = draft.add_input(label, f"{label}:command")
    draft.add_part(part_name(model, i), Actuator(transmission, command, law, **limits))


def _transmission(draft: SystemDraft, i: int) -> AbstractTransmission | None:
    """What the actuator acts through; None where there is no counterpart."""
    model, trn = draft.model, import_mujoco().mjtTrn
    kind, target = int(model.actuator_trntype[i]), int(model.actuator_trnid[i, 0])
    gear = model.actuator_gear[i]
    if kind in (int(trn.mjTRN_JOINT), int(trn.mjTRN_JOINTINPARENT)):
        if on_one_axis(model, target):
            return JointTransmission(draft.joint(target), gear[:1])
    if kind == int(trn.mjTRN_TENDON):
        return tendon_transmission(draft, target, float(gear[0]))
    if kind == int(trn.mjTRN_SITE) and model.actuator_trnid[i, 1] < 0:
        wrench = np.concatenate([gear[3:], gear[:3]])
        return FrameTransmission(site_frame(draft, target), wrench)
    return None


def actuator_law(model: Any, i: int) -> AbstractActuatorLaw | None:
    """The law of an actuator's force; None where there is no counterpart."""
    mujoco = import_mujoco()
    gains, biases = mujoco.mjtGain, mujoco.mjtBias
    gain, bias = model.actuator_gainprm[i, :3].copy(), model.actuator_biasprm[i, :3]
    kinds = int(model.actuator_gaintype[i]), int(model.actuator_biastype[i])
    if kinds[0] not in (int(gains.mjGAIN_FIXED), int(gains.mjGAIN_AFFINE)):
        return None
    if kinds[1] not in (int(biases.mjBIAS_NONE), int(biases.mjBIAS_AFFINE)):
        return None
    gain[1:] *= kinds[0] == int(gains.mjGAIN_AFFINE)
    bias = bias * (kinds[1] == int(biases.mjBIAS_AFFINE))
    if gain[1:].any() or bias[0]:
        return AffineLaw(gain, bias)
    if not bias.any():
        return MotorLaw(gain[0])
    if bias[1] == -gain[0]:
        return PositionLaw(gain[0], -bias[2])
    if not bias[1] and bias[2] == -gain[0]:
        return VelocityLaw(gain[0])
    return AffineLaw(gain, bias)
