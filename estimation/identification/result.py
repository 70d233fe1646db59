"""The result of a fit: estimates, covariance, and validation."""

import dataclasses
import functools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from djdyn.optimize.problem import entries
from djdyn.system.parameters import parameters
from djdyn.system.transforms import Positive, Sigmoid, Unbounded

from .identifiability import Identifiability
from .problem import Problem, values_and_jacobian


ELEMENTWISE_TRANSFORMS = (Unbounded, Positive, Sigmoid)


@dataclasses.dataclass(frozen=True)
class FitResult:
    """Estimates of a fit, which print as a table with 95 % intervals.

    - `x`: the unknowns, unconstrained, in the order of `problem.names`; `J`: the
      Jacobian of the residuals there; `cost`: half the sum of their squares.
    - `model`: the model with the estimates; `trial_starts`: the start of each trial.
    - `history`: costs of every starting point (columns) after every step; `all_x0`,
      `all_x` and `costs`: where each began and ended, and its cost.
    - `before`, `after`: identifiability at the first starting point and at `x`.
    - `hold_out_error`: the root mean square error on data not fitted, in standard
      deviations of the noise.
    """

    problem: Problem
    x: Float[Array, " k"]
    J: Float[Array, "n k"]
    model: PyTree
    trial_starts: tuple[PyTree, ...]
    cost: float
    converged: bool
    history: Float[np.ndarray, "steps starts"]
    all_x0: Float[np.ndarray, "starts k"]
    all_x: Float[np.ndarray, "starts k"]
    costs: Float[np.ndarray, " starts"]
    before: Identifiability
    after: Identifiability
    hold_out_error: float | None

    @property
    def x0(self) -> Float[Array, " k"]:
        """Starting point of the best descent."""
        return jnp.asarray(self.all_x0[int(np.argmin(self.costs))])

    # Estimates ------------------------------------------------------------------------

    @functools.cached_property
    def values(self) -> dict[str, np.ndarray]:
        """Parameters by path, those of a trial as `trial/path`."""
        return {
            k: np.asarray(v)
            for k, v in values_and_jacobian(self.problem, self.x)[0].items()
        }

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all numbers of `values`, and rows of `covariance`."""
        return entries(self.values)

    @functools.cached_property
    def covariance_x(self) -> Float[np.ndarray, "k k"]:
        """Covariance of the unconstrained unknowns: the inverse Fisher information."""
        scale = np.asarray(self.problem.scale)
        least = np.finfo(float).eps * self.after.singular.max()
        half = self.after.directions / np.maximum(self.after.singular, least)[:, None]
        return (half.T @ half) * np.outer(scale, scale)

    @functools.cached_property
    def covariance(self) -> Float[np.ndarray, "m m"]:
        """Covariance of the parameters, to first order."""
        D = np.asarray(values_and_jacobian(self.problem, self.x)[1])
        return D @ self.covariance_x @ D.T

    @property
    def correlation(self) -> Float[np.ndarray, "m m"]:
        """Correlation of the parameters."""
        deviation = np.sqrt(np.diag(self.covariance))
        safe = np.where(deviation > 0, deviation, 1.0)
        return self.covariance / np.outer(safe, safe)

    @property
    def deviations(self) -> dict[str, np.ndarray]:
        """Standard errors by path, shaped like `values`."""
        sizes = [v.size for v in self.values.values()]
        each = np.split(np.sqrt(np.diag(self.covariance)), np.cumsum(sizes)[:-1])
        pairs = zip(self.values.items(), each, strict=True)
        return {k: sd.reshape(v.shape) for (k, v), sd in pairs}

    def intervals(self, z: float = 1.96) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return intervals of `z` standard errors by path, within the domains."""
        found, at = {}, 0
        for name, f, like in self.problem.unknowns():
            one = slice(at, at + like.size)
            at += like.size
            if isinstance(f.transform, ELEMENTWISE_TRANSFORMS):
                half = z * np.sqrt(np.diag(self.covariance_x)[one])
                ends = [self.x[one] + s * half for s in (-1, 1)]
                inside = [f.transform.constrain(e.reshape(like.shape)) for e in ends]
                found[name] = tuple(np.asarray(e) for e in inside)
        for name, value in self.values.items():
            half = z * self.deviations[name]
            found.setdefault(name, (value - half, value + half))
        return {name: found[name] for name in self.values}

    # Validation -----------------------------------------------------------------------

    @property
    def num_evaluations(self) -> int:
        """Number of predictions with a Jacobian: one a step and start, and two more."""
        return len(self.history) * len(self.costs) + 2

    @property
    def measured(self) -> int:
        """Number of measured values that were fitted."""
        return int(sum(t.present.sum() for t in self.problem.trials))

    @property
    def chi2(self) -> float:
        """Reduced chi-squared: one if the residuals are noise."""
        return 2 * self.cost / max(self.measured - len(self.x), 1)

    def rows(self) -> list[tuple[str, ...]]:
        """Return a table of the estimates as text, its header first."""
        low_high = self.intervals()
        first = {
            k: np.asarray(v)
            for k, v in values_and_jacobian(self.problem, self.x0)[0].items()
        }
        units = _units(self.problem)
        rows = [("parameter", "start", "found", "± (1 sd)", "95 % interval", "unit")]
        for name, value in self.values.items():
            bare = name.split("/", 1)[-1]
            bare = bare if bare in units else bare.split("[")[0]
            columns = (first[name], value, self.deviations[name], *low_high[name])
            labels = entries({name: value})
            for label, *numbers in zip(labels, *map(np.ravel, columns), strict=True):
                a, b, sd, low, high = numbers
                between = f"{low:.5g} to {high:.5g}"
                row = (label, f"{a:.5g}", f"{b:.6g}", f"{sd:.2g}", between)
                rows.append((*row, units.get(bare, "")))
        return rows

    def __str__(self) -> str:
        return self.told()

    def told(self, rename: Callable[[str], str] = str) -> str:
        """Return the table and the verdict as text, with other names of unknowns."""
        rows = [(rename(name), *others) for name, *others in self.rows()]
        wide = [max(len(row[i]) for row in rows) for i in range(6)]
        lines = ["  ".join(f"{c:<{w}}" for c, w in zip(r, wide, strict=True)).rstrip()
                 for r in rows]  # fmt: skip
        return "\n".join([*lines, *map(rename, self._verdict())])

    def _verdict(self) -> list[str]:
        said = f"{'converged' if self.converged else 'not converged'} after "
        said += f"{len(self.history)} steps, chi2 {self.chi2:.3g} over "
        said += f"{self.measured} numbers"
        if len(self.costs) > 1:
            near = int(np.sum(self.costs < self.cost * 1.01 + 1e-9))
            said += f"; {near} of {len(self.costs)} starts ended there"
        lines = [said, self.after.verdict()]
        if self.hold_out_error is not None:
            error = f"{self.hold_out_error:.3g} standard deviations"
            lines.append(f"error on data not fitted: {error}")
        return lines


def _units(problem: Problem) -> dict[str, str]:
    return parameters(problem.model).units
