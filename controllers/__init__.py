"""Controllers, references, and their tuning by gradient.

Read `pid` first, the shape of every controller, then `references` and `guidance` (what
controllers follow), `model_based`, `backstepping`, `winch`, and for vehicles
with arms `vehicle` and `arm`. `noise` adds noise to
signals, `ilqr` plans trajectories. `linear` linearises systems and returns stability
margins, `tuning` finds gains by gradient over many scenarios.
"""

from .arm import ArmPID as ArmPID, EndEffectorControl as EndEffectorControl
from .backstepping import Backstepping as Backstepping
from .guidance import Joystick as Joystick, ReferenceModel as ReferenceModel
from .ilqr import (
    Plan as Plan,
    flat_step as flat_step,
    ilqr as ilqr,
    receding_horizon as receding_horizon,
)
from .linear import (
    STABILITY_TOLERANCE as STABILITY_TOLERANCE,
    Linear as Linear,
    Margins as Margins,
    linearise as linearise,
    lqr as lqr,
    margins as margins,
)
from .model_based import ComputedTorque as ComputedTorque, PDGravity as PDGravity
from .noise import Noisy as Noisy, multisine as multisine
from .pid import JointPID as JointPID, PIDState as PIDState
from .references import Reference as Reference
from .tuning import (
    BASELINE_METHODS as BASELINE_METHODS,
    SIMULATIONS_PER_GRADIENT as SIMULATIONS_PER_GRADIENT,
    AbstractSquares as AbstractSquares,
    AbstractTerm as AbstractTerm,
    BaselineSearch as BaselineSearch,
    DamageEquivalentLoad as DamageEquivalentLoad,
    Evaluation as Evaluation,
    Limit as Limit,
    Mean as Mean,
    MeanSquare as MeanSquare,
    MeanSquareRate as MeanSquareRate,
    Objective as Objective,
    Overshoot as Overshoot,
    ParameterValue as ParameterValue,
    Peak as Peak,
    PowerDrawn as PowerDrawn,
    Reaction as Reaction,
    RobustnessMargins as RobustnessMargins,
    RootMeanSquare as RootMeanSquare,
    Scenarios as Scenarios,
    SearchOptions as SearchOptions,
    Settling as Settling,
    TuningResult as TuningResult,
    compare_searches as compare_searches,
    cost_of as cost_of,
    evaluate as evaluate,
    load_gains as load_gains,
    sample as sample,
    search_baseline as search_baseline,
    tune as tune,
)
from .vehicle import (
    SecondOrderReference as SecondOrderReference,
    VehiclePID as VehiclePID,
    angle_rates as angle_rates,
    roll_pitch_yaw as roll_pitch_yaw,
)
from .winch import WinchPID as WinchPID, WinchPIDState as WinchPIDState
