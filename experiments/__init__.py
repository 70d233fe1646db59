"""Studies and benchmarks, in double precision; `__main__` is the `djdyn` command.

Read `harness.study` (what a run records), then a study such as `studies.crane`;
`benchmarks` measure speed.
"""

import importlib
import os


os.environ.setdefault("EQX_ON_ERROR", "nan")  # host callbacks would bar the cache
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA is loud about what it loads

import jax


jax.config.update("jax_enable_x64", True)


def __getattr__(name: str) -> object:
    """Import `identify` when it is asked for: studies have no need of it."""
    if name == "identify":
        return importlib.import_module(".machine.identify", __name__).identify
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

