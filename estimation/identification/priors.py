"""Prior distributions of parameters."""

import abc
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from djdyn.typing import si


Value = Float[Array, "..."]


class AbstractPrior(eqx.Module):
    """A prior distribution of one parameter."""

    @abc.abstractmethod
    def __call__(self, value: Value) -> Value:
        """Return how far a value is from the prior's centre, in standard deviations."""


class Normal(AbstractPrior):
    """Normal distribution with a `mean` and a standard `deviation`."""

    mean: Value = eqx.field(converter=si(""))
    deviation: Value = eqx.field(converter=si("", above=0.0))

    def __call__(self, value: Value) -> Value:
        return (value - self.mean) / self.deviation


class LogNormal(AbstractPrior):
    """Log-normal distribution: `spread` is the deviation of the logarithm."""

    median: Value = eqx.field(converter=si("", above=0.0))
    spread: Value = eqx.field(converter=si("", above=0.0))

    def __call__(self, value: Value) -> Value:
        return jnp.log(value / self.median) / self.spread


def as_priors(priors: Mapping[str, Any] | None) -> dict[str, AbstractPrior]:
    """Return priors by path, where a pair is the mean and deviation of a normal one."""
    found = {}
    for path, prior in (priors or {}).items():
        found[path] = prior if isinstance(prior, AbstractPrior) else Normal(*prior)
    return found
