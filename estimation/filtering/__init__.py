"""Filtering: states of systems from measurements, sample by sample.

Read `state_model` (a system with process and measurement noise), then `kalman`
(extended and unscented filters, and a smoother) and `moving_horizon`.
"""

from .kalman import (
    Estimate as Estimate,
    Filtered as Filtered,
    kalman_filter as kalman_filter,
    smooth as smooth,
)
from .moving_horizon import (
    Horizon as Horizon,
    moving_horizon as moving_horizon,
    window_estimate as window_estimate,
)
from .state_model import StateModel as StateModel
