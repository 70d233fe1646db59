"""Identifiability: which unknowns the data can determine, before and after a fit."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .problem import Problem, linearise_residuals


class UnidentifiableError(ValueError):
    """Error that the data cannot determine some unknown; `check` says which and why."""

    def __init__(self, check: "Identifiability"):
        super().__init__(
            f"{check.verdict()}; fix it, give it a prior, measure something else, or "
            "fit with allow_unidentifiable=True"
        )
        self.check = check


@dataclasses.dataclass(frozen=True)
class Identifiability:
    """Singular values of the Jacobian, in units of the noise and the unknowns' scales.

    A singular value below `1 / limit` means: a change of the unknowns by `limit` times
    their scale, in that direction, changes all data by less than one standard deviation
    of the noise.
    """

    names: tuple[str, ...]
    singular: Float[np.ndarray, " k"]
    directions: Float[np.ndarray, "k k"]  # a row each
    limit: float

    @property
    def deviations(self) -> Float[np.ndarray, " k"]:
        """Expected standard deviations of the unknowns, over their scales."""
        tiny = np.finfo(float).tiny ** 0.5
        each = self.directions / np.maximum(self.singular, tiny)[:, None]
        return np.sqrt(np.sum(each**2, 0))

    @property
    def unidentifiable(self) -> tuple[str, ...]:
        """Unknowns that may be off by more than `limit` times their scale."""
        pairs = zip(self.names, self.deviations, strict=True)
        return tuple(name for name, deviation in pairs if deviation > self.limit)

    @property
    def ok(self) -> bool:
        """Whether the data determine all unknowns."""
        return not self.unidentifiable

    def direction(self, i: int) -> str:
        """Return a singular direction in words."""
        d = self.directions[i]
        order = [j for j in np.argsort(-np.abs(d)) if abs(d[j]) > 0.3 * np.abs(d).max()]
        d = d * np.sign(d[order[0]])
        up = " and ".join(self.names[j] for j in order if d[j] > 0)
        down = " and ".join(self.names[j] for j in order if d[j] < 0)
        what = f"raising {up}" + (f" while lowering {down}" if down else "")
        effect = f"{self.singular[i]:.2g} standard deviations"
        return f"{what} by their scale changes all data together by {effect}"

    def verdict(self) -> str:
        """Return one sentence: which unknowns the data determine."""
        if self.ok:
            worst = int(np.argmax(self.deviations))
            return (
                f"the data determine all {len(self.names)} unknowns, worst "
                f"{self.names[worst]}, to {self.deviations[worst]:.2g} of its scale"
            )
        weak = [i for i, s in enumerate(self.singular) if s * self.limit < 1]
        weak = weak or [int(np.argmin(self.singular))]
        return (
            f"the data cannot determine {', '.join(self.unidentifiable)} to within "
            f"{self.limit:.0%} of their scale: "
            + "; ".join(self.direction(i) for i in weak)
        )

    def __str__(self) -> str:
        lines = [self.verdict(), "singular values and their directions:"]
        for i in np.argsort(self.singular):
            lines.append(f"  {self.singular[i]:10.3g}  {self.direction(i)}")
        return "\n".join(lines)


def identifiability(
    problem: Problem, x: Float[Array, " k"] | None = None, limit: float = 1.0
) -> Identifiability:
    """Check which unknowns of a problem the data and priors can determine.

    **Arguments:**

    - `x`: the unknowns, by default as the model has them.
    - `limit`: an unknown is identifiable if its standard deviation is at most so many
      times its scale.

    **Returns:** singular values and directions, which print as a verdict.
    """
    x = problem.x if x is None else x
    return of_jacobian(problem, linearise_residuals(problem, x)[1], limit)


def of_jacobian(
    problem: Problem, J: Float[Array, "n k"], limit: float
) -> Identifiability:
    """Return the identifiability from the Jacobian of the residuals."""
    scaled = np.asarray(J * problem.scale[None])
    if not np.all(np.isfinite(scaled)):
        bad = np.array(problem.names)[~np.isfinite(scaled).all(0)]
        raise ValueError(
            "the prediction or its derivative is not finite where the fit starts, with "
            f"respect to {', '.join(bad)}"
        )
    k = scaled.shape[1]
    padded = jnp.concatenate([jnp.asarray(scaled), jnp.zeros((k, k))])
    _, singular, directions = np.linalg.svd(np.asarray(padded), full_matrices=False)
    return Identifiability(problem.names, singular, directions, limit)
