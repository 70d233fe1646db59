"""Probes of simulations, and evaluations of all scenarios."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import djdyn
from djdyn.system.instant import Instant

from .terms import AbstractTerm, Limit, look


class Evaluation(eqx.Module):
    """Cost terms and exceeded constraints of every scenario.

    `excess` is how far each limit is exceeded at each saved time, relative to the
    limit, and negative where it is kept. `ok` is false where a scenario diverged.
    """

    terms: dict[str, Float[Array, " scenarios"]]
    excess: dict[str, Float[Array, "scenarios n"]]
    ok: Bool[Array, " scenarios"]

    @property
    def costs(self) -> Float[Array, " scenarios"]:
        """Sum of the terms of each scenario."""
        return sum(self.terms.values(), start=jnp.zeros(len(self.ok)))


class Probes(eqx.Module):
    """The quantities that all terms and limits look at, evaluated at one instant."""

    terms: dict[str, AbstractTerm]
    limits: dict[str, Limit]

    def __call__(self, now: Instant) -> tuple[dict, dict]:
        seen = {k: look(x.probe, now) / x.scale for k, x in self.terms.items()}
        return seen, {k: look(x.probe, now) for k, x in self.limits.items()}


def every_nth(run: djdyn.Trajectory, count: int) -> djdyn.Trajectory:
    """Return a batch of runs with `count` of its samples, evenly spread."""
    every, left = divmod(len(run.t) - 1, count - 1)
    if left:
        raise ValueError(
            f"{len(run.t) - 1} samples cannot be divided into {count - 1} equal steps; "
            "choose another number of saves"
        )
    some = lambda tree: jax.tree.map(lambda x: x[:, ::every], tree)
    at = lambda r: (r.t, r.y, r.sampled, r.applied)
    seen = (run.t[::every], *map(some, (run.y, run.sampled, run.applied)))
    return eqx.tree_at(at, run, seen)
