"""What is thought of a parameter before the data speak."""

import abc
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from djdyn.typing import si


Numbers = Float[Array, "..."]


class AbstractPrior(eqx.Module):
    @abc.abstractmethod
    def __call__(self, value: Numbers) -> Numbers:
        """How far a value is from what is thought, in standard deviations."""


class Normal(AbstractPrior):
    """About `mean`, give or take `deviation`."""

    mean: Numbers = eqx.field(converter=si(""))
    deviation: Numbers = eqx.field(converter=si("", above=0.0))

    def __call__(self, value: Numbers) -> Numbers:
        return (value - self.mean) / self.deviation


class LogNormal(AbstractPrior):
    """About `median`, give or take a factor of `exp(spread)`."""

    median: Numbers = eqx.field(converter=si("", above=0.0))
    spread: Numbers = eqx.field(converter=si("", above=0.0))

    def __call__(self, value: Numbers) -> Numbers:
        return jnp.log(value / self.median) / self.spread


def as_priors(priors: Mapping[str, Any] | None) -> dict[str, AbstractPrior]:
    """A pair of numbers is the mean and deviation of a normal one."""
    found = {}
    for path, prior in (priors or {}).items():
        found[path] = prior if isinstance(prior, AbstractPrior) else Normal(*prior)
    return found
