"""What solvers that accept or reject trial steps have in common."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Bool


MIN_STEP = 1e-9  # a solver ends where its steps have become shorter


class AbstractTrialStepSolver(optx.AbstractIterativeSolver):
    """A solver that evaluates one trial point a step, and accepts or rejects it.

    Its state says in `ended` whether it has converged or cannot make progress.
    """

    def converged(self, step: Array, y: Array, reduction: Array, cost: Array) -> Array:
        """Return whether a full step from `y` is short and predicts a small gain."""
        size = self.atol + self.rtol * self.norm(y)
        return (reduction <= self.rtol * cost) & (self.norm(step) <= size)

    def terminate(
        self,
        fn: Callable,
        y: Array,
        args: Any,
        options: dict[str, Any],
        state: Any,
        tags: frozenset[object],
    ) -> tuple[Bool[Array, ""], optx.RESULTS]:
        del fn, y, args, options, tags
        return state.ended, optx.RESULTS.successful

    def postprocess(
        self,
        fn: Callable,
        y: Array,
        aux: Any,
        args: Any,
        options: dict[str, Any],
        state: Any,
        tags: frozenset[object],
        result: optx.RESULTS,
    ) -> tuple[Array, Any, dict[str, Any]]:
        del fn, args, options, state, tags, result
        return y, aux, {}


def zeros_like_struct(struct: Any) -> Any:
    """Return zeros with the shapes and types of `jax.ShapeDtypeStruct`s."""
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), struct)


def select(accepted: Array, new: Any, old: Any) -> Any:
    """Return the new state if the trial step was accepted, else the old one."""
    return jax.tree.map(lambda a, b: jnp.where(accepted, a, b), new, old)
