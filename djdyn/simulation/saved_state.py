"""States of a system in files, from which a run goes on.

A file holds arrays of numbers and the names of what they belong to; nothing in it is
executed. It fits every system with the same joints and parts, whatever their numbers.
"""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from ..files import one_line, read_arrays, write_arrays
from ..system.state import State
from ..system.system import System


FORMAT = "djdyn state 1"
WHAT = "a file of a state"


def save_state(path: str | Path, system: System, y: State, t: ArrayLike = 0.0) -> None:
    """Write a state of a system and its time as `.npz`, whole or not at all.

    !!! example

        ```python
        run = djdyn.simulate(system, 2.0, dt=1e-3, solver="rk4")
        djdyn.save_state("half.npz", system, run.stopped[1], run.stopped[0])
        y, t = djdyn.load_state("half.npz", system)
        rest = djdyn.simulate(system, 4.0, y, t0=t, dt=1e-3, solver="rk4")
        ```
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"a state is saved as .npz, not {path.name!r}")
    leaves = _leaves(y)
    if _shapes(leaves) != _shapes(_leaves(system.initial_state())):
        raise ValueError("the state does not fit the system, or is a batch of states")
    if not all(np.all(np.isfinite(x)) for x in (*leaves.values(), np.asarray(t))):
        raise ValueError("a state that is not finite is no start: it is not saved")
    about = json.dumps({"format": FORMAT, "machine": _machine(system)})
    arrays = {f"state:{name}": np.asarray(x) for name, x in leaves.items()}
    write_arrays(path, {"about": np.array(about), "t": np.asarray(t, float), **arrays})


def load_state(path: str | Path, system: System) -> tuple[State, float]:
    """Return the state and the time in a file that `save_state` wrote.

    A file of a system with other joints or parts is refused.
    """
    saved, name = read_arrays(path, WHAT), Path(path).name
    try:
        about = json.loads(str(saved["about"]))
        machine = dict(about["machine"])
        t = float(saved["t"])
        if about["format"] != FORMAT:
            raise ValueError(f"its format is {about['format']!r}")
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"{path} is not {WHAT}: {one_line(error)}") from None
    own = _machine(system)
    for kind, here in own.items():
        there = machine.get(kind)
        if there != here:
            raise ValueError(
                f"{name} is the state of another system: its {kind} are "
                f"{one_line(_listed(there), 150)}, not {one_line(_listed(here), 150)}"
            )
    blank = system.initial_state()
    leaves = _leaves(blank)
    found = {key: saved.get(f"state:{key}") for key in leaves}
    for key, x in leaves.items():
        value = found[key]
        if value is None or value.shape != x.shape or value.dtype.kind not in "fiub":
            raise ValueError(f"{name} is the state of another system: {key!r} differs")
        if not np.all(np.isfinite(value)):
            raise ValueError(f"{name}: {key!r} is not finite")
    if not np.isfinite(t):
        raise ValueError(f"{name}: its time is not finite")
    values = [
        jnp.asarray(found[key], x.dtype)
        for key, x in zip(leaves, jax.tree.leaves(blank), strict=True)
    ]
    return jax.tree.unflatten(jax.tree.structure(blank), values), t


def _leaves(y: State) -> dict[str, Any]:
    """Return the arrays of a state by where they stand."""
    rows = jax.tree_util.tree_leaves_with_path(y)
    return {jax.tree_util.keystr(path).lstrip("."): x for path, x in rows}


def _shapes(leaves: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(np.shape(x)) for name, x in leaves.items()}


def _machine(system: System) -> dict[str, list[str]]:
    """Return what makes a state fit: joints and parts, with their kinds."""
    m = system.mechanism
    joints = zip(m.joint_names, m.bodies, strict=True)
    return {
        "joints": [f"{name} ({type(b.joint).__name__})" for name, b in joints],
        "parts": [f"{k} ({type(p).__name__})" for k, p in system.parts.items()],
    }


def _listed(names: Any) -> str:
    known = isinstance(names, list) and names
    return ", ".join(map(str, names)) if known else "none"
