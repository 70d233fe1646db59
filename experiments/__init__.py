"""Studies: each runs from the command line and writes a report. Double precision."""

import jax


jax.config.update("jax_enable_x64", True)
