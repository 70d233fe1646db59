"""Traced JAX functions as machine code on lanes, or as C. No physics."""

from .march import Remember as Remember, march as march
from .primitive import as_kernel as as_kernel, pattern as pattern
from .trace import UnsupportedError as UnsupportedError
