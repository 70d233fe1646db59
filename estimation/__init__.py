"""From measurements to parameters and states, and how surely they are known."""

from djdyn.manifold import tangent as tangent

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
from .horizon import (
    Horizon as Horizon,
    moving_horizon as moving_horizon,
    window_estimate as window_estimate,
)
from .kalman import (
    Estimate as Estimate,
    Filtered as Filtered,
    kalman_filter as kalman_filter,
    smooth as smooth,
)
from .losses import (
    AbstractLoss as AbstractLoss,
    Cauchy as Cauchy,
    Huber as Huber,
    SoftL1 as SoftL1,
    Squares as Squares,
)
from .marker_files import read_markers as read_markers, write_markers as write_markers
from .marker_set import MarkerSet as MarkerSet
from .markers import MarkerData as MarkerData
from .posterior import Posterior as Posterior, posterior as posterior
from .priors import LogNormal as LogNormal, Normal as Normal
from .problem import Problem as Problem, linear as linear
from .record import lag as lag, noise as noise, static_mean as static_mean
from .registration import (
    Registration as Registration,
    frame_from_three as frame_from_three,
    register as register,
)
from .result import Fit as Fit
from .shooting import multiple_shooting as multiple_shooting
from .state_model import StateModel as StateModel
from .trial import Trial as Trial
from .uncertainty import (
    Profile as Profile,
    bands as bands,
    design as design,
    profile as profile,
)
