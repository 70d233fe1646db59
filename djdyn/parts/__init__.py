"""Parts of every machine: springs, dampers, friction, stops, drives, sensors.

Read in this order: `base` (the contract of all parts), `loads` (how they act on
bodies), `units` (of what they send), then any of `springs`, `joint`, `friction`,
`external`, `sensors`, `winch`, `coupling`, `point_contact`, `gravity`; `transmission`
before `actuator` and `tendon`.
"""

from .actuator import (
    AbstractActuatorLaw as AbstractActuatorLaw,
    Actuator as Actuator,
    AffineLaw as AffineLaw,
    MotorLaw as MotorLaw,
    PositionLaw as PositionLaw,
    VelocityLaw as VelocityLaw,
)
from .coupling import Grip as Grip, Support as Support
from .external import (
    ExternalWrench as ExternalWrench,
    FrameActuator as FrameActuator,
    JointForce as JointForce,
)
from .friction import (
    GearFriction as GearFriction,
    StribeckFriction as StribeckFriction,
)
from .gravity import GravityCompensation as GravityCompensation
from .joint import (
    JointActuator as JointActuator,
    JointFriction as JointFriction,
    JointSpring as JointSpring,
    JointStop as JointStop,
)
from .point_contact import PointContactFriction as PointContactFriction
from .sensors import (
    FrameSensor as FrameSensor,
    MotionSensor as MotionSensor,
    PoseSensor as PoseSensor,
    SignalSensor as SignalSensor,
    TransmissionSensor as TransmissionSensor,
)
from .springs import SpringDamper as SpringDamper
from .tendon import TendonSpring as TendonSpring, TendonStop as TendonStop
from .transmission import (
    AbstractTransmission as AbstractTransmission,
    FrameTransmission as FrameTransmission,
    JointTransmission as JointTransmission,
)
from .units import (
    DeclaresUnits as DeclaresUnits,
    JointUnit as JointUnit,
    SameUnit as SameUnit,
)
from .winch import Winch as Winch, WinchState as WinchState
