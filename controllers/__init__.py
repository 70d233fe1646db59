"""Controllers, references, and their tuning by gradient."""

from .pid import JointPID as JointPID, PIDState as PIDState
from .reference import Reference as Reference
from .winch import (
    Winch as Winch,
    WinchPID as WinchPID,
    WinchPIDState as WinchPIDState,
    WinchState as WinchState,
)
