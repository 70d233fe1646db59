"""Fixed tendons of a MuJoCo model: their transmission, springs, friction and stops."""

from typing import Any

from ..parts.tendon import TendonSpring, TendonStop
from ..parts.transmission import JointTransmission
from .mjcf_draft import SystemDraft
from .mjcf_joints import has, stop_constants
from .unsupported import disabled, import_mujoco, name_of


def tendon_transmission(
    draft: SystemDraft, i: int, gear: float = 1.0
) -> JointTransmission | None:
    """A fixed tendon's length in terms of joints; None if it runs through space."""
    model, first = draft.model, int(draft.model.tendon_adr[i])
    rows = range(first, first + int(model.tendon_num[i]))
    if not is_fixed(model, i):
        return None
    joints = tuple(draft.joint(int(model.wrap_objid[k])) for k in rows)
    return JointTransmission(joints, gear * model.wrap_prm[list(rows)])


def is_fixed(model: Any, i: int) -> bool:
    """Whether a tendon's length is a sum over joints."""
    joint = int(import_mujoco().mjtWrap.mjWRAP_JOINT)
    return int(model.wrap_type[model.tendon_adr[i]]) == joint


def read_tendons(draft: SystemDraft) -> None:
    """Adds the passive parts of all tendons."""
    if draft.wants("tendon"):
        for i in range(draft.model.ntendon):
            _tendon(draft, i)


def _tendon(draft: SystemDraft, i: int) -> None:
    model, name = draft.model, name_of(draft.model, "tendon", i)
    springs = not disabled(model, "SPRING", "PASSIVE")
    dampers = not disabled(model, "DAMPER", "PASSIVE")
    dry = not disabled(model, "CONSTRAINT", "FRICTIONLOSS")
    stops = not disabled(model, "CONSTRAINT", "LIMIT")
    k = springs * model.tendon_stiffness[i] * draft.wants("stiffness")
    c = dampers * model.tendon_damping[i] * draft.wants("damping")
    mu = dry * model.tendon_frictionloss[i] * draft.wants("frictionloss")
    limited = stops and model.tendon_limited[i] and draft.wants("limit")
    odd = ("tendon_stiffnesspoly", "tendon_dampingpoly", "tendon_springyield")
    if has(model, "tendon_armature", i) or any(has(model, f, i) for f in odd):
        draft.refuse("tendon", name)
        return
    if not (k or c or mu or limited):
        return
    path = tendon_transmission(draft, i)
    if path is None:
        draft.refuse("tendon", name)
        return
    label = model.tendon(i).name or f"tendon{i}"
    if k or c or mu:
        rest, end = model.tendon_lengthspring[i]
        slack = end - rest if end > rest else None
        part = TendonSpring(path, k, c, rest, slack, mu)
        draft.add_part(f"{label}:tendon", part)
    if limited:
        inertia = 1 / model.tendon_invweight0[i]
        constants = stop_constants(model, model.tendon_solref_lim[i], inertia)
        (low, high), margin = model.tendon_range[i], model.tendon_margin[i]
        part = TendonStop(path, low + margin, high - margin, *constants)
        draft.add_part(f"{label}:stop", part)
