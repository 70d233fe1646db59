"""The common base of solvers that accept or reject trial steps."""

import abc
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

    @abc.abstractmethod
    def first_state(self, y: Array, out: Any, aux: Any) -> Any:
        """Return the state before the first trial point, which is `y` itself.

        `out` and `aux` are zeros like the two outputs of the objective.
        """

    def init(
        self,
        fn: Callable,
        y: Array,
        args: Any,
        options: dict[str, Any],
        f_struct: Any,
        aux_struct: Any,
        tags: frozenset[object],
    ) -> Any:
        del fn, args, options, tags
        zeros = lambda x: jnp.zeros(x.shape, x.dtype)
        return self.first_state(
            y, jax.tree.map(zeros, f_struct), jax.tree.map(zeros, aux_struct)
        )

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


def select(accepted: Array, new: Any, old: Any) -> Any:
    """Return the new state if the trial step was accepted, else the old one."""
    return jax.tree.map(lambda a, b: jnp.where(accepted, a, b), new, old)
