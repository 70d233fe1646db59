"""Parameters of a model from measurements, and how surely they are known."""

from .diagnostics import (
    Residuals as Residuals,
    compare as compare,
    cross_validate as cross_validate,
    residuals as residuals,
)
from .fit import fit as fit, scatter as scatter
from .gate import (
    Observability as Observability,
    UnobservableError as UnobservableError,
    observability as observability,
)
from .losses import (
    AbstractLoss as AbstractLoss,
    Cauchy as Cauchy,
    Huber as Huber,
    SoftL1 as SoftL1,
    Squares as Squares,
)
from .posterior import Posterior as Posterior, posterior as posterior
from .priors import LogNormal as LogNormal, Normal as Normal
from .problem import Problem as Problem, linear as linear
from .result import Fit as Fit
from .shooting import multiple_shooting as multiple_shooting
from .trial import Trial as Trial
from .uncertainty import (
    Profile as Profile,
    bands as bands,
    design as design,
    profile as profile,
)
