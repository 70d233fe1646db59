"""Parts of every machine: springs, dampers, friction, stops, drives, sensors.

Read in this order: `base` (the contract of all parts), `loads` (how they act on
bodies), `units` (of what they send), then any of `springs`, `joint`, `external`,
`sensors`, `winch`, `point_contact`.
"""

from .external import (
    ExternalWrench as ExternalWrench,
    FrameActuator as FrameActuator,
    JointForce as JointForce,
)
from .joint import (
    JointActuator as JointActuator,
    JointFriction as JointFriction,
    JointSpring as JointSpring,
    JointStop as JointStop,
)
from .point_contact import PointContactFriction as PointContactFriction
from .sensors import FrameSensor as FrameSensor
from .springs import SpringDamper as SpringDamper
from .units import (
    DeclaresUnits as DeclaresUnits,
    JointUnit as JointUnit,
    SameUnit as SameUnit,
)
from .winch import Winch as Winch, WinchState as WinchState
