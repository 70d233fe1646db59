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
    compare_fits as compare_fits,
    cross_validate as cross_validate,
    residuals as residuals,
)
from .identification.fit import fit as fit, random_starts as random_starts
from .identification.identifiability import (
    Identifiability as Identifiability,
    UnidentifiableError as UnidentifiableError,
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
from .identification.problem import (
    Problem as Problem,
    linearise_residuals as linearise_residuals,
)
from .identification.record import (
    estimate_noise as estimate_noise,
    lag as lag,
    static_mean as static_mean,
)
from .identification.result import FitResult as FitResult
from .identification.shooting import multiple_shooting as multiple_shooting
from .identification.trial import Trial as Trial
from .identification.uncertainty import (
    Profile as Profile,
    design as design,
    parametric_bootstrap as parametric_bootstrap,
    prediction_bands as prediction_bands,
    profile as profile,
)
from .markers.files import read_markers as read_markers, write_markers as write_markers
from .markers.marker_set import MarkerSet as MarkerSet
from .markers.recording import MarkerData as MarkerData
from .markers.registration import (
    Registration as Registration,
    frame_from_three as frame_from_three,
    register as register,
)
