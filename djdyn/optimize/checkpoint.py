"""Files that hold the last step of a search, to resume it from."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .problem import AbstractProblem


def save_checkpoint(
    path: Path, problem: AbstractProblem, state: Any, history: list[np.ndarray]
) -> None:
    """Write everything a later run needs to resume from here, in one move."""
    leaves = {f"leaf{i}": np.asarray(x) for i, x in enumerate(jax.tree.leaves(state))}
    temporary = path.with_suffix(".part.npz")
    header = {"names": np.array(problem.names), "history": np.array(history)}
    header["problem"] = _signature(problem)
    np.savez(temporary, allow_pickle=False, **header, **leaves)
    temporary.replace(path)


def load_checkpoint(
    path: Path | None, problem: AbstractProblem, state: Any
) -> tuple[Any, list[np.ndarray]]:
    """Return the saved state and history, or the given state where no file exists."""
    if path is None or not path.exists():
        return state, []
    saved = np.load(path)
    leaves, tree = jax.tree.flatten(state)
    found = [saved[f"leaf{i}"] for i in range(len(leaves)) if f"leaf{i}" in saved]
    fits = len(found) == len(leaves) and tuple(saved["names"]) == problem.names
    if not fits or any(a.shape != b.shape for a, b in zip(found, leaves, strict=True)):
        raise ValueError(
            f"{path} was saved by a search for other unknowns or by another method"
        )
    if not np.allclose(saved["problem"], _signature(problem), rtol=1e-6):
        raise ValueError(f"{path} was saved by a search with other data or settings")
    new = [jnp.asarray(a, b.dtype) for a, b in zip(found, leaves, strict=True)]
    return jax.tree.unflatten(tree, new), list(saved["history"])


def _signature(problem: AbstractProblem) -> np.ndarray:
    """Return sums that tell problems with other numbers apart."""
    arrays = jax.tree.leaves(eqx.filter(problem, eqx.is_inexact_array))
    flat = [np.nan_to_num(np.ravel(x)) for x in arrays]
    return np.array([[np.sum(x), np.sum(x**2)] for x in flat])
