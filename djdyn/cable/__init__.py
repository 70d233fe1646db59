"""Lines: cables, ropes, chains and tethers, with winches at their ends.

Read in this order: `properties` (stiffness, damping, drag), `spline` (positions between
nodes), `ends`, `attached`, `cable` (the part), `snapshot` (a line at one instant),
`chain` and `implicit_chain` (for implicit steps), `start` (a rough shape), `sheave`.
"""

from .attached import PointForce as PointForce, PointMass as PointMass
from .cable import Cable as Cable
from .ends import (
    ClampedEnd as ClampedEnd,
    DrivenEnd as DrivenEnd,
    FixedEnd as FixedEnd,
    FreeEnd as FreeEnd,
    PinnedEnd as PinnedEnd,
)
from .properties import CableProperties as CableProperties
from .sheave import Sheave as Sheave
from .spline import graded as graded
