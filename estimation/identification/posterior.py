"""Samples of what the data leave possible, by NUTS (the extra `bayes`)."""

import dataclasses
import importlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from djdyn.optimize.multistart import Units, cost_in_units

from .problem import Problem
from .result import FitResult


@dataclasses.dataclass(frozen=True)
class Posterior:
    """Chains of parameters by path, and whether they can be trusted.

    `mixing` compares the variance between chains with that within (R hat): close to
    one where all chains tell the same.
    """

    values: dict[str, Float[np.ndarray, "chains samples ..."]]
    mixing: dict[str, float]
    divergent: int

    def interval(self, path: str, share: float = 0.95) -> tuple[Any, Any]:
        """Quantiles, entry by entry."""
        flat = self.values[path].reshape(-1, *self.values[path].shape[2:])
        low, high = np.quantile(flat, [(1 - share) / 2, (1 + share) / 2], axis=0)
        return low, high

    def __str__(self) -> str:
        lines = []
        for path, x in self.values.items():
            mean, sd = x.mean((0, 1)), x.std((0, 1))
            low, high = self.interval(path)
            lines.append(
                f"{path}: {mean} ± {sd}, 95 % {low} to {high}, mixing "
                f"{self.mixing[path]:.3f}"
            )
        return "\n".join([*lines, f"{self.divergent} divergent steps"])


def posterior(
    fit: FitResult,
    *,
    samples: int = 500,
    warmup: int = 300,
    chains: int = 4,
    seed: int = 0,
) -> Posterior:
    """Samples about a fit, all chains at once.

    Where no prior stands, unconstrained numbers are thought equally likely: a positive
    number evenly in its logarithm.
    """
    try:
        blackjax: Any = importlib.import_module("blackjax")
    except ImportError:
        raise ImportError("posterior samples need the extra djdyn[bayes]") from None
    half = jnp.asarray(np.linalg.cholesky(fit.covariance_x))
    with jax.numpy_dtype_promotion("standard"):  # blackjax mixes types
        z, divergent = _sample(
            blackjax, fit.problem, fit.x, half, jax.random.key(seed), samples, warmup,
            chains,
        )  # fmt: skip
    x = fit.x[None, None] + jnp.einsum("ij,csj->csi", half, z)
    values = jax.vmap(jax.vmap(fit.problem.values))(x)
    plain = {k: np.asarray(v) for k, v in values.items()}
    mixing = {k: _mixing(v) for k, v in plain.items()}
    return Posterior(plain, mixing, int(jnp.sum(divergent)))


@eqx.filter_jit
def _sample(
    blackjax: Any,
    problem: Problem,
    x: Float[Array, " k"],
    half: Float[Array, "k k"],
    key: Array,
    samples: int,
    warmup: int,
    chains: int,
) -> tuple[Float[Array, "chains samples k"], Array]:
    """In coordinates where the posterior would be round if the model were linear."""
    units = Units(jnp.ones_like(x), jnp.ones(()))
    log_density = lambda z: -cost_in_units(x + half @ z, problem, units)

    def chain(key: Array) -> tuple[Array, Array]:
        first, second, third = jax.random.split(key, 3)
        start = jax.random.normal(first, x.shape, x.dtype)
        adapt = blackjax.window_adaptation(blackjax.nuts, log_density)
        (state, tuned), _ = adapt.run(second, start, num_steps=warmup)
        kernel = blackjax.nuts(log_density, **tuned).step

        def turn(state: Any, key: Array) -> tuple[Any, tuple[Array, Array]]:
            state, info = kernel(key, state)
            return state, (state.position, info.is_divergent)

        _, found = jax.lax.scan(turn, state, jax.random.split(third, samples))
        return found

    return jax.vmap(chain)(jax.random.split(key, chains))


def _mixing(x: Float[np.ndarray, "chains samples ..."]) -> float:
    """R hat of halved chains, the worst entry."""
    n = x.shape[1] // 2
    halves = np.concatenate([x[:, :n], x[:, n : 2 * n]])
    within = halves.var(1, ddof=1).mean(0)
    between = n * halves.mean(1).var(0, ddof=1)
    ratio = ((n - 1) * within + between) / (n * np.where(within > 0, within, 1.0))
    return float(np.sqrt(np.max(ratio)))
