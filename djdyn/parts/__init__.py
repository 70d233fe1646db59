"""Parts of every machine: springs, dampers, friction, stops, drives."""

from .external import ExternalWrench as ExternalWrench, JointForce as JointForce
from .joint import (
    JointActuator as JointActuator,
    JointFriction as JointFriction,
    JointSpring as JointSpring,
    JointStop as JointStop,
)
from .spring import SpringDamper as SpringDamper
