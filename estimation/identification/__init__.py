"""Identification: parameters of models from trials, and how well they are known.

Read `trial` (one run and its prediction), `problem` (the residuals of all trials),
`fit` and `result`. `losses` and `priors` shape the problem, `identifiability` says what
the data can determine, `shooting` is for long or chaotic records. `diagnostics`,
`uncertainty` and `posterior` examine a fit; `record` looks at raw recordings.
"""

from .diagnostics import (
    Residuals as Residuals,
    compare_fits as compare_fits,
    cross_validate as cross_validate,
    residuals as residuals,
)
from .fit import fit as fit, random_starts as random_starts
from .identifiability import (
    Identifiability as Identifiability,
    UnidentifiableError as UnidentifiableError,
    identifiability as identifiability,
)
from .losses import (
    AbstractLoss as AbstractLoss,
    Cauchy as Cauchy,
    Huber as Huber,
    SoftL1 as SoftL1,
    Squares as Squares,
)
from .posterior import Posterior as Posterior, posterior as posterior
from .priors import (
    AbstractPrior as AbstractPrior,
    LogNormal as LogNormal,
    Normal as Normal,
)
from .problem import Problem as Problem, linearise_residuals as linearise_residuals
from .record import (
    StaticMean as StaticMean,
    estimate_noise as estimate_noise,
    lag as lag,
    static_mean as static_mean,
)
from .result import FitResult as FitResult
from .shooting import multiple_shooting as multiple_shooting
from .trial import Trial as Trial
from .uncertainty import (
    Profile as Profile,
    design as design,
    parametric_bootstrap as parametric_bootstrap,
    prediction_bands as prediction_bands,
    profile as profile,
)
