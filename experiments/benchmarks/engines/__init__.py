"""Engines to compare: final coordinates of a batch, and their gradient.

There is one module for each engine; `own` is djdyn, and `jaxed` is shared by engines in
JAX. A module has `NAME`, `PACKAGE`, `FREE` (parameters of its gradient), `LIMITS` and

- `ends(problem, batch, steps)`: a call that returns the coordinates `[lane, joint]`
  after some steps, or None if the engine does not support the problem;
- `gradients(problem, batch, steps)`: a call that returns the gradient of the sum of
  their squares, first by initial states and then by other parameters, or None.

Both are ready to be timed: built, compiled and with their inputs in place.
"""

import dataclasses
import functools
import importlib
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

from ..problems import Problem
from . import own


Call = Callable[[], Any]
Maker = Callable[[Problem, int, int], Call | None]

PEERS = ("mujoco", "pinocchio", "mjx", "brax", "jaxsim", "frax")
SLOW = ("mjx", "brax", "jaxsim")  # slow to compile, left out of a quick run


@dataclasses.dataclass(frozen=True)
class Engine:
    """An engine; `key` is its name in metrics."""

    key: str
    name: str
    free: str
    limits: str
    ends: Maker
    gradients: Maker


def ours() -> list[Engine]:
    """Return djdyn with kernels and with plain XLA."""
    engines = []
    for key, name, backend in own.BACKENDS:
        ends, gradients = (
            functools.partial(make, backend=backend)
            for make in (own.ends, own.gradients)
        )
        engines.append(Engine(key, name, own.FREE, "", ends, gradients))
    return engines


def placements() -> Engine:
    """Return djdyn with a gradient that includes joint placements."""
    gradients = functools.partial(own.gradients, placements=True)
    name = "djdyn, joints too"
    return Engine("placements", name, own.ALL_FREE, "", own.ends, gradients)


def peers(keys: Sequence[str] = PEERS) -> tuple[list[Engine], list[str]]:
    """Return the installed engines, and a sentence for each missing one."""
    engines, missing = [], []
    for key in keys:
        module = importlib.import_module(f".{key}", __package__)
        if not _installed(module.PACKAGE):
            missing.append(f"{module.NAME} is not installed.")
            continue
        words = (module.NAME, module.FREE, module.LIMITS)
        engines.append(Engine(key, *words, module.ends, module.gradients))
    return engines, missing


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ImportError:  # its parent package is missing
        return False
