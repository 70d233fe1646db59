"""Controllers, references, and their tuning by gradient."""

from .backstepping import Backstepping as Backstepping
from .guidance import Joystick as Joystick, ReferenceModel as ReferenceModel
from .linear import Linear as Linear, linearise as linearise, lqr as lqr
from .model_based import ComputedTorque as ComputedTorque, PDGravity as PDGravity
from .pid import JointPID as JointPID, PIDState as PIDState
from .reference import Reference as Reference
from .winch import (
    Winch as Winch,
    WinchPID as WinchPID,
    WinchPIDState as WinchPIDState,
    WinchState as WinchState,
)
