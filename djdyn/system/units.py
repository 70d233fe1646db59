"""Units of signals: those of joints, and those that parts declare."""

from typing import Any

from ..multibody import joints
from ..multibody.mechanism import Mechanism
from ..parts.units import DeclaresUnits, JointUnit, SameUnit
from .system import System


ANGLE = {
    JointUnit.COORDINATE: "rad",
    JointUnit.SPEED: "rad/s",
    JointUnit.FORCE: "N m",
}
LENGTH = {JointUnit.COORDINATE: "m", JointUnit.SPEED: "m/s", JointUnit.FORCE: "N"}
JOINT_UNITS: dict[type, dict[JointUnit, str]] = {  # the same for all their freedoms
    joints.Revolute: ANGLE,
    joints.Universal: ANGLE,
    joints.RollPitchYaw: ANGLE,
    joints.Spherical: ANGLE | {JointUnit.COORDINATE: "1"},  # a quaternion
    joints.Prismatic: LENGTH,
}


def signal_unit(system: System, name: str) -> str:
    """Return the unit of a signal; empty where it has none, or entries differ.

    !!! example

        ```python
        signal_unit(system, "arm.v")  # "rad/s" for a revolute joint
        ```
    """
    owner, _, what = name.partition(".")
    mechanism, part = system.mechanism, system.parts.get(owner)
    if part is None:
        kinds = {"q": JointUnit.COORDINATE, "v": JointUnit.SPEED}
        if owner not in mechanism.joint_names or what not in kinds:
            return ""
        return _joint_unit(mechanism, owner, kinds[what])
    declared = part.signal_units if isinstance(part, DeclaresUnits) else {}
    match declared.get(what, ""):
        case JointUnit() as unit:
            named = _joints_of(part)
            units = {_joint_unit(mechanism, joint, unit) for joint in named}
            return units.pop() if len(units) == 1 else ""
        case SameUnit(field):
            other = getattr(part, field)
            return signal_unit(system, other) if other else ""
        case unit:
            return unit


def _joints_of(part: Any) -> tuple[str, ...]:
    """Return the joints that a part names."""
    return part.joints if hasattr(part, "joints") else (part.joint,)


def _joint_unit(mechanism: Mechanism, joint: str, unit: JointUnit) -> str:
    """Return the unit of a joint's coordinate, speed or force."""
    kind = type(mechanism.bodies[mechanism.joint_index(joint) - 1].joint)
    return JOINT_UNITS.get(kind, {}).get(unit, "")
