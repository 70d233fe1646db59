"""From measurements to parameters and states."""

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
from .manifold import tangent as tangent
from .marker_files import read_markers as read_markers, write_markers as write_markers
from .marker_set import MarkerSet as MarkerSet
from .markers import MarkerData as MarkerData
from .record import lag as lag, noise as noise, static_mean as static_mean
from .registration import (
    Registration as Registration,
    frame_from_three as frame_from_three,
    register as register,
)
from .state_model import StateModel as StateModel
