"""From measurements to parameters and states."""

from .marker_files import read_markers as read_markers, write_markers as write_markers
from .marker_set import MarkerSet as MarkerSet
from .markers import MarkerData as MarkerData
from .record import lag as lag, noise as noise, static_mean as static_mean
from .registration import (
    Registration as Registration,
    frame_from_three as frame_from_three,
    register as register,
)
