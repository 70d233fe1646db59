"""Plots, checks and 3-D replays in one HTML file that opens without a network.

Everything here takes NumPy arrays, or what `numpy.asarray` accepts, and knows nothing
of the physics that made them.
"""

from .checks import Check as Check
from .report import Report as Report
from .scene import Scene as Scene
