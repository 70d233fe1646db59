"""Controllers, references, and their tuning by gradient."""

from .backstepping import Backstepping as Backstepping
from .guidance import Joystick as Joystick, ReferenceModel as ReferenceModel
from .ilqr import (
    Plan as Plan,
    flat_step as flat_step,
    ilqr as ilqr,
    receding as receding,
)
from .linear.linearise import Linear as Linear, linearise as linearise, lqr as lqr
from .linear.margins import Margins as Margins, margins as margins
from .model_based import ComputedTorque as ComputedTorque, PDGravity as PDGravity
from .noise import Noisy as Noisy, multisine as multisine
from .pid import JointPID as JointPID, PIDState as PIDState
from .references import Reference as Reference
from .tuning.baselines import Search as Search, compare as compare, search as search
from .tuning.objective import Seen as Seen
from .tuning.result import Tuned as Tuned, load_gains as load_gains
from .tuning.scenarios import Scenarios as Scenarios, sample as sample
from .tuning.terms import (
    Drawn as Drawn,
    Limit as Limit,
    LoadRange as LoadRange,
    Mean as Mean,
    MeanSquare as MeanSquare,
    Number as Number,
    Overshoot as Overshoot,
    Peak as Peak,
    Reaction as Reaction,
    RootMeanSquare as RootMeanSquare,
    Roughness as Roughness,
    Settling as Settling,
)
from .tuning.tune import tune as tune
from .winch import (
    Winch as Winch,
    WinchPID as WinchPID,
    WinchPIDState as WinchPIDState,
    WinchState as WinchState,
)
