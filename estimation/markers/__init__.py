"""Markers of motion-capture systems: recorded, simulated, and on rigid bodies.

Read `recording` (positions and visibility; `checks` finds its faults), `marker_set`
(markers on a mechanism), `registration` (poses from markers), then `files`.
"""

from .digitise import (
    Pivot as Pivot,
    digitise as digitise,
    find_pivot as find_pivot,
)
from .files import read_markers as read_markers, write_markers as write_markers
from .marker_set import MarkerSet as MarkerSet
from .recording import MarkerData as MarkerData
from .registration import (
    Registration as Registration,
    frame_from_four as frame_from_four,
    frame_from_three as frame_from_three,
    register as register,
)
