"""Controllers, references, and their tuning by gradient."""

from .backstepping import Backstepping as Backstepping
from .guidance import Joystick as Joystick, ReferenceModel as ReferenceModel
from .ilqr import (
    Plan as Plan,
    flat_step as flat_step,
    ilqr as ilqr,
    receding_horizon as receding_horizon,
)
from .linear.linearise import Linear as Linear, linearise as linearise, lqr as lqr
from .linear.margins import Margins as Margins, margins as margins
from .model_based import ComputedTorque as ComputedTorque, PDGravity as PDGravity
from .noise import Noisy as Noisy, multisine as multisine
from .pid import JointPID as JointPID, PIDState as PIDState
from .references import Reference as Reference
from .tuning.baselines import (
    BaselineSearch as BaselineSearch,
    compare_searches as compare_searches,
    search as search,
)
from .tuning.objective import Evaluation as Evaluation
from .tuning.result import TuningResult as TuningResult, load_gains as load_gains
from .tuning.scenarios import Scenarios as Scenarios, sample as sample
from .tuning.terms import (
    DamageEquivalentLoad as DamageEquivalentLoad,
    Limit as Limit,
    Mean as Mean,
    MeanSquare as MeanSquare,
    MeanSquareRate as MeanSquareRate,
    Overshoot as Overshoot,
    ParameterValue as ParameterValue,
    Peak as Peak,
    PowerDrawn as PowerDrawn,
    Reaction as Reaction,
    RootMeanSquare as RootMeanSquare,
    Settling as Settling,
)
from .tuning.tune import tune as tune
from .winch import (
    Winch as Winch,
    WinchPID as WinchPID,
    WinchPIDState as WinchPIDState,
    WinchState as WinchState,
)
