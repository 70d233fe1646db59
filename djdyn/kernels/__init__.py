"""Traced JAX functions as machine code on lanes, or as C. No physics."""

from .frontend.trace import UnsupportedError as UnsupportedError
from .primitive import as_kernel as as_kernel, pattern as pattern
from .time_loop import Checkpoints as Checkpoints, time_loop as time_loop
