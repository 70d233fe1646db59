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
    """Import `identify` and `tune` when asked for: studies have no need of them."""
    if name in ("identify", "tune"):
        module = importlib.import_module(f".machine.{name}", __name__)
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
