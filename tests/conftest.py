"""Double precision, strict promotion, and a cache of compilations."""

import gc
import os
from pathlib import Path


os.environ.setdefault("EQX_ON_ERROR", "nan")  # host callbacks would bar the cache
# Programs run once here: those of the old emitters compile in half the time, and with
# little optimisation in half of that.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0",
)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # its loader cries wolf on CPUs

import jax
import pytest


jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "djdyn"
jax.config.update("jax_compilation_cache_dir", str(CACHE))  # for all checkouts
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


MAPS = Path("/proc/self/maps")
ENOUGH = 20_000


@pytest.fixture(scope="module", autouse=True)
def few_programs_in_memory():
    """Every compiled program maps pages; Linux kills a process at 65,530 of them."""
    yield
    if MAPS.exists() and len(MAPS.read_text().splitlines()) > ENOUGH:
        jax.clear_caches()
        gc.collect()
