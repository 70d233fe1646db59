"""Sensors of a MuJoCo model as parts, whose signal `value` is what they measure."""

from ..parts.base import AbstractPart
from ..parts.sensors import (
    MotionSensor,
    PoseSensor,
    SignalSensor,
    TransmissionSensor,
)
from .mjcf_actuators import part_name
from .mjcf_draft import SystemDraft
from .mjcf_frames import geom_frame, inertia_frame, site_frame
from .mjcf_joints import has
from .mjcf_tendons import tendon_transmission
from .unsupported import import_mujoco, name_of


POSE = {
    "FRAMEPOS": "position",
    "FRAMEQUAT": "quaternion",
    "FRAMEXAXIS": "x_axis",
    "FRAMEYAXIS": "y_axis",
    "FRAMEZAXIS": "z_axis",
    "FRAMELINVEL": "linear_velocity",
    "FRAMEANGVEL": "angular_velocity",
    "GYRO": "gyro",
    "VELOCIMETER": "velocimeter",
}
MOTION = {
    "ACCELEROMETER": "accelerometer",
    "FORCE": "force",
    "TORQUE": "torque",
    "FRAMELINACC": "proper_acceleration",
    "FRAMEANGACC": "angular_acceleration",
}
JOINT = {"JOINTPOS": "q", "JOINTVEL": "v", "BALLQUAT": "q", "BALLANGVEL": "v"}
ACTUATOR = {"ACTUATORPOS": "length", "ACTUATORVEL": "rate", "ACTUATORFRC": "force"}
TENDON = {"TENDONPOS": "length", "TENDONVEL": "rate"}


def read_sensors(draft: SystemDraft) -> None:
    """Adds all sensors that have a counterpart; notes the others."""
    if not draft.wants("sensor"):
        return
    for i in range(draft.model.nsensor):
        part = _sensor(draft, i)
        if part is None:
            draft.skip("sensor", name_of(draft.model, "sensor", i))
        else:
            name = draft.model.sensor(i).name or f"sensor{i}"
            draft.add_part(name if draft.is_free(name) else f"{name}:sensor", part)


def _sensor(draft: SystemDraft, i: int) -> AbstractPart | None:
    model, mujoco = draft.model, import_mujoco()
    kind = mujoco.mjtSensor(int(model.sensor_type[i])).name.removeprefix("mjSENS_")
    target, relative = int(model.sensor_objid[i]), int(model.sensor_refid[i]) >= 0
    odd = any(has(model, f"sensor_{x}", i) for x in ("cutoff", "delay", "interval"))
    if odd or relative:
        return None
    if kind in POSE or kind in MOTION:
        frame = _frame(draft, int(model.sensor_objtype[i]), target)
        if frame is None:
            return None
        make, quantities = (
            (PoseSensor, POSE) if kind in POSE else (MotionSensor, MOTION)
        )
        return make(frame, quantities[kind])
    if kind in JOINT:
        return SignalSensor(f"{draft.joint(target)}.{JOINT[kind]}")
    if kind in ACTUATOR and part_name(model, target) in draft.parts:
        return SignalSensor(f"{part_name(model, target)}.{ACTUATOR[kind]}")
    if kind in TENDON:
        path = tendon_transmission(draft, target)
        if path is not None:
            name = model.tendon(target).name or f"tendon{target}"
            name = draft.add_part(f"{name}:length", TransmissionSensor(path))
            return SignalSensor(f"{name}.{TENDON[kind]}")
    return None


def _frame(draft: SystemDraft, kind: int, i: int) -> str | None:
    """The frame of a site, geom or body; of a body also that of its inertia."""
    model, types = draft.model, import_mujoco().mjtObj
    if kind == int(types.mjOBJ_SITE) and model.site(i).name:
        return site_frame(draft, i)
    if kind == int(types.mjOBJ_XBODY):
        origin = f"{draft.body(i)}:origin"
        known = {frame.name for frame in draft.mechanism.frames}
        return origin if origin in known else draft.body(i)
    if kind == int(types.mjOBJ_BODY):
        return inertia_frame(draft, i)
    if kind == int(types.mjOBJ_GEOM):
        return geom_frame(draft, i)
    return None
