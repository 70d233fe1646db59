"""One module an engine: final coordinates of a batch, and their gradient.

A module has `NAME`, `PACKAGE`, `FREE` (what its gradient is taken to), `LIMITS` and

- `ends(problem, batch, steps)`: a call that gives the coordinates `[lane, joint]` after
  so many steps, or None where the engine cannot do it;
- `gradients(problem, batch, steps)`: a call that gives the gradient of the sum of their
  squares, to the starts first and then to whatever else, or None.

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
SLOW = ("mjx", "brax", "jaxsim")  # to compile: left out of a quick run


@dataclasses.dataclass(frozen=True)
class Engine:
    """`key` is what it is called in the names of metrics."""

    key: str
    name: str
    free: str
    limits: str
    ends: Maker
    gradients: Maker


def ours() -> list[Engine]:
    """djdyn as it comes, and its plain path where that is another."""
    engines = []
    for key, name, backend in own.BACKENDS:
        ends, gradients = (
            functools.partial(make, backend=backend)
            for make in (own.ends, own.gradients)
        )
        engines.append(Engine(key, name, own.FREE, "", ends, gradients))
    return engines


def placements() -> Engine:
    """djdyn with a gradient to where the joints are, too: nothing known to be zero."""
    gradients = functools.partial(own.gradients, placements=True)
    name = "djdyn, joints too"
    return Engine("placements", name, own.ALL_FREE, "", own.ends, gradients)


def peers(keys: Sequence[str] = PEERS) -> tuple[list[Engine], list[str]]:
    """Those that are installed, and a sentence on each that is not."""
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
    except ImportError:  # of the package that it is in
        return False
