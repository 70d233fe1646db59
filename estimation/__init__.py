"""From measurements to parameters and states, and how surely they are known."""

from djdyn.system.manifold import tangent as tangent

from .filtering.kalman import (
    Estimate as Estimate,
    Filtered as Filtered,
    kalman_filter as kalman_filter,
    smooth as smooth,
)
from .filtering.moving_horizon import (
    Horizon as Horizon,
    moving_horizon as moving_horizon,
    window_estimate as window_estimate,
)
from .filtering.state_model import StateModel as StateModel
from .identification.diagnostics import (
    Residuals as Residuals,
    compare as compare,
    cross_validate as cross_validate,
    residuals as residuals,
)
from .identification.fit import fit as fit, scatter as scatter
from .identification.identifiability import (
    Observability as Observability,
    UnobservableError as UnobservableError,
    observability as observability,
)
from .identification.losses import (
    AbstractLoss as AbstractLoss,
    Cauchy as Cauchy,
    Huber as Huber,
    SoftL1 as SoftL1,
    Squares as Squares,
)
from .identification.posterior import Posterior as Posterior, posterior as posterior
from .identification.priors import LogNormal as LogNormal, Normal as Normal
from .identification.problem import Problem as Problem, linear as linear
from .identification.record import (
    lag as lag,
    noise as noise,
    static_mean as static_mean,
)
from .identification.result import Fit as Fit
from .identification.shooting import multiple_shooting as multiple_shooting
from .identification.trial import Trial as Trial
from .identification.uncertainty import (
    Profile as Profile,
    bands as bands,
    design as design,
    profile as profile,
    refit as refit,
)
from .markers.files import read_markers as read_markers, write_markers as write_markers
from .markers.marker_set import MarkerSet as MarkerSet
from .markers.recording import MarkerData as MarkerData
from .markers.registration import (
    Registration as Registration,
    frame_from_three as frame_from_three,
    register as register,
)
