"""Samples of the posterior distribution by NUTS (needs the extra `bayes`)."""

import dataclasses
import importlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from djdyn.optimize.problem import Scaling, scaled_cost

from .problem import Problem
from .result import FitResult


@dataclasses.dataclass(frozen=True)
class Posterior:
    """Samples of the posterior distribution, by path, and checks of their chains.

    `mixing` is R hat, which compares the variance between chains with that within, and
    is close to one where chains agree. `divergent` counts divergent steps.
    """

    values: dict[str, Float[np.ndarray, "chains samples ..."]]
    mixing: dict[str, float]
    divergent: int

    def interval(self, path: str, share: float = 0.95) -> tuple[Any, Any]:
        """Return the credible interval of a parameter, entry by entry."""
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
    """Sample the posterior distribution of the unknowns of a fit by NUTS.

    Without a prior, all values of an unconstrained unknown are equally likely; those of
    a positive parameter are so in its logarithm.

    **Arguments:**

    - `samples`, `warmup`: steps of each chain that are kept, and that adapt it.
    - `chains`: number of chains, which run at once.

    **Returns:** the samples by path, and checks of their chains.
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
    """Sample in coordinates in which the posterior of a linear model is isotropic."""
    units = Scaling(jnp.ones_like(x), jnp.ones(()))
    log_density = lambda z: -scaled_cost(x + half @ z, problem, units)

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
    """Return R hat of split chains, the largest of all entries."""
    n = x.shape[1] // 2
    halves = np.concatenate([x[:, :n], x[:, n : 2 * n]])
    within = halves.var(1, ddof=1).mean(0)
    between = n * halves.mean(1).var(0, ddof=1)
    ratio = ((n - 1) * within + between) / (n * np.where(within > 0, within, 1.0))
    return float(np.sqrt(np.max(ratio)))
