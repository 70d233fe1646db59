"""Tuning of gains by gradient over many scenarios.

Read `scenarios` (conditions to tune on), `terms` (costs and limits; `rainflow` counts
fatigue cycles), `options`, then `evaluate` and `tune`. Behind them stand `objective`
(the number that is minimised), `evaluation`, `loop_limit` (margins as constraints) and
`robustness` (poles and margins before and after); `result` and `baselines` come last.
"""

from .baselines import (
    BASELINE_METHODS as BASELINE_METHODS,
    BaselineSearch as BaselineSearch,
    compare_searches as compare_searches,
    search_baseline as search_baseline,
)
from .evaluate import cost_of as cost_of, evaluate as evaluate
from .evaluation import Evaluation as Evaluation
from .objective import Objective as Objective
from .options import (
    RobustnessMargins as RobustnessMargins,
    SearchOptions as SearchOptions,
)
from .result import (
    SIMULATIONS_PER_GRADIENT as SIMULATIONS_PER_GRADIENT,
    TuningResult as TuningResult,
    load_gains as load_gains,
)
from .scenarios import Scenarios as Scenarios, sample as sample
from .terms import (
    AbstractSquares as AbstractSquares,
    AbstractTerm as AbstractTerm,
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
from .tune import tune as tune
