"""Estimation: parameters and states from measurements, and how well they are known.

`identification` fits the parameters of a model to trials, `filtering` estimates states
sample by sample, `measurements` reads tables of any kind and `markers` the data of
motion-capture systems. `scenario` brings them together for machines in files. Read
`identification` first.
"""

from djdyn.system.manifold import tangent as tangent

from .filtering import (
    Estimate as Estimate,
    Filtered as Filtered,
    Horizon as Horizon,
    StateModel as StateModel,
    kalman_filter as kalman_filter,
    moving_horizon as moving_horizon,
    smooth as smooth,
    window_estimate as window_estimate,
)
from .identification import (
    AbstractLoss as AbstractLoss,
    AbstractPrior as AbstractPrior,
    Cauchy as Cauchy,
    FitResult as FitResult,
    Huber as Huber,
    Identifiability as Identifiability,
    LogNormal as LogNormal,
    Normal as Normal,
    Posterior as Posterior,
    Problem as Problem,
    Profile as Profile,
    Residuals as Residuals,
    SoftL1 as SoftL1,
    Squares as Squares,
    StaticMean as StaticMean,
    Trial as Trial,
    UnidentifiableError as UnidentifiableError,
    compare_fits as compare_fits,
    cross_validate as cross_validate,
    design as design,
    estimate_noise as estimate_noise,
    fit as fit,
    identifiability as identifiability,
    lag as lag,
    linearise_residuals as linearise_residuals,
    multiple_shooting as multiple_shooting,
    parametric_bootstrap as parametric_bootstrap,
    posterior as posterior,
    prediction_bands as prediction_bands,
    profile as profile,
    random_starts as random_starts,
    residuals as residuals,
    static_mean as static_mean,
)
from .markers import (
    MarkerData as MarkerData,
    MarkerSet as MarkerSet,
    Pivot as Pivot,
    Registration as Registration,
    digitise as digitise,
    find_pivot as find_pivot,
    frame_from_four as frame_from_four,
    frame_from_three as frame_from_three,
    read_markers as read_markers,
    register as register,
    write_markers as write_markers,
)
from .measurements import (
    MeasurementTable as MeasurementTable,
    damping_from_peaks as damping_from_peaks,
    read_table as read_table,
)
