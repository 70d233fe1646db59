"""Files that hold the last step of a search, to resume it from."""

import warnings
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..files import read_arrays, write_arrays
from .problem import AbstractProblem


def save_checkpoint(
    path: Path, problem: AbstractProblem, state: Any, history: list[np.ndarray]
) -> None:
    """Write everything a later run needs to resume from here.

    A disk that refuses costs the file and not the search: a warning says so, once.
    """
    leaves = {f"leaf{i}": np.asarray(x) for i, x in enumerate(jax.tree.leaves(state))}
    header = {"names": np.array(problem.names), "history": np.array(history)}
    header["problem"] = _signature(problem)
    try:
        write_arrays(path, header | leaves)
    except OSError as error:
        warnings.warn(
            f"the search cannot be saved and goes on without: {error}", stacklevel=2
        )


def load_checkpoint(
    path: Path | None, problem: AbstractProblem, state: Any
) -> tuple[Any, list[np.ndarray]]:
    """Return the saved state and history, or the given state where no file exists."""
    if path is None or not path.exists():
        return state, []
    saved = read_arrays(path, "the saved state of a search")
    leaves, tree = jax.tree.flatten(state)
    names = [f"leaf{i}" for i in range(len(leaves))]
    if not {"names", "history", "problem"} <= saved.keys():
        raise ValueError(f"{path} is not the saved state of a search")
    found = [saved[name] for name in names if name in saved]
    fits = len(found) == len(leaves) and tuple(saved["names"]) == problem.names
    if not fits or any(a.shape != b.shape for a, b in zip(found, leaves, strict=True)):
        raise ValueError(
            f"{path} was saved by a search for other unknowns or by another method"
        )
    signature = _signature(problem)
    same = saved["problem"].shape == signature.shape
    if not same or not np.allclose(saved["problem"], signature, rtol=1e-6):
        raise ValueError(f"{path} was saved by a search with other data or settings")
    new = [jnp.asarray(a, b.dtype) for a, b in zip(found, leaves, strict=True)]
    return jax.tree.unflatten(tree, new), list(saved["history"])


def _signature(problem: AbstractProblem) -> np.ndarray:
    """Return sums that tell problems with other numbers apart."""
    arrays = jax.tree.leaves(eqx.filter(problem, eqx.is_inexact_array))
    flat = [np.nan_to_num(np.ravel(x)) for x in arrays]
    return np.array([[np.sum(x), np.sum(x**2)] for x in flat])
