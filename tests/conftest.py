"""Double precision, strict promotion, quick checks of types, a cache of programs."""

import functools
import gc
import inspect
import os
from collections.abc import Callable
from pathlib import Path


os.environ.setdefault("EQX_ON_ERROR", "nan")  # host callbacks would bar the cache
# Programs run once here: those of the old emitters compile in half the time, and with
# little optimisation in half of that.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0",
)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # its loader cries wolf on CPUs

import hypothesis
import jax
import jaxtyping
import pytest


hypothesis.settings.register_profile("quick", max_examples=20, deadline=None)
hypothesis.settings.register_profile("thorough", max_examples=200, deadline=None)
hypothesis.settings.load_profile("thorough" if os.environ.get("CI") else "quick")
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "djdyn"
jax.config.update("jax_compilation_cache_dir", str(CACHE))  # for all checkouts
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


DECORATE, NAMES = jaxtyping.jaxtyped, jaxtyping.jaxtyped("context")


def jaxtyped(fn: Callable | None = None, *, typechecker: Callable) -> Callable:
    """Stands for jaxtyping's own, which binds each call's arguments to a signature and
    checks them twice: here they are checked once.
    """
    if fn is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    if not inspect.isfunction(fn):
        return DECORATE(fn, typechecker=typechecker)
    checked = typechecker(fn)
    if checked is not fn:  # programs name their sources: none with an address in it
        checked.__code__ = checked.__code__.replace(co_filename=__file__)
    if fn.__module__.startswith("djdyn.kernels"):  # no shapes of arrays to compare
        return checked

    @functools.wraps(fn)
    def call(*args, **kwargs):
        if jaxtyping.config.jaxtyping_disable:
            return fn(*args, **kwargs)
        with NAMES:
            return checked(*args, **kwargs)

    return call


jaxtyping.jaxtyped = jaxtyped  # before the packages are imported


MAPS = Path("/proc/self/maps")
MAX_MAPPED_RANGES = 20_000


@pytest.fixture(scope="module", autouse=True)
def few_programs_in_memory():
    """Every compiled program maps pages; Linux kills a process at 65,530 of them."""
    yield
    if MAPS.exists() and len(MAPS.read_text().splitlines()) > MAX_MAPPED_RANGES:
        jax.clear_caches()
        gc.collect()
