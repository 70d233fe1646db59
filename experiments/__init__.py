"""Studies: each runs from the command line and writes a report. Double precision."""

import os


os.environ.setdefault("EQX_ON_ERROR", "nan")  # host callbacks would bar the cache
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA is loud about what it loads

import jax


jax.config.update("jax_enable_x64", True)
