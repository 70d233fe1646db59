"""Profile likelihoods, bootstrap, prediction bands and experiment design."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from djdyn.system.parameters import get_parameters, with_parameters
from djdyn.typing import Scalar

from .problem import Flat, Problem
from .result import FitResult


COST_RISE_95 = 1.92  # at the ends of a 95 % interval: half the quantile of chi-squared


@dataclasses.dataclass(frozen=True)
class Profile:
    """Profile likelihood: the least cost for given values of one unknown."""

    name: str
    values: Float[np.ndarray, " m"]
    costs: Float[np.ndarray, " m"]
    least: float

    def interval(self, rise: float = COST_RISE_95) -> tuple[float, float]:
        """Return where the cost rises less than `rise`; an open end is infinite."""
        best = int(np.argmin(self.costs))
        ends = []
        for side in (slice(best, None, -1), slice(best, None)):
            x, up = self.values[side], self.costs[side] - self.least
            beyond = np.flatnonzero(up >= rise)
            if not len(beyond):
                ends.append(np.inf * np.sign(x[-1] - x[0] or 1.0))
                continue
            j = int(beyond[0])  # the root of a parabola's rise is linear
            a, b = np.sqrt(np.maximum(up[[j - 1, j]], 0.0))
            share = (np.sqrt(rise) - a) / (b - a)
            ends.append(float(x[j - 1] + share * (x[j] - x[j - 1])))
        return ends[0], ends[1]


def profile(
    fit: FitResult, name: str, *, span: float = 3.0, points: int = 13, steps: int = 8
) -> Profile:
    """Return the profile likelihood of one unknown, with all others fitted again.

    The others start at their linear prediction and take Gauss-Newton steps, which are
    halved while the cost does not fall.

    **Arguments:**

    - `span`: range in standard errors, to both sides.
    - `points`: number of values, which run in one batch.
    - `steps`: Gauss-Newton steps for each.

    **Returns:** the values of the unknown and the least costs.
    """
    names = fit.problem.names
    if name not in names:
        raise ValueError(f"no unknown {name!r}; there are {', '.join(names)}")
    i, C = names.index(name), jnp.asarray(fit.covariance_x)
    away = jnp.linspace(-span, span, points) * jnp.sqrt(C[i, i])
    starts = fit.x[None] + away[:, None] * (C[:, i] / C[i, i])[None]
    costs, xs = _descend_others(fit.problem, starts, i, steps)
    at = fit.names.index(name) if name in fit.names else None
    values = xs[:, i] if at is None else jax.vmap(fit.problem.flat_values)(xs)[:, at]
    return Profile(name, np.asarray(values), np.asarray(costs), fit.cost)


@eqx.filter_jit
def _descend_others(
    problem: Problem, starts: Float[Array, "m k"], i: int, steps: int
) -> tuple[Array, Array]:
    others = np.delete(np.arange(starts.shape[1]), i)

    def one(x: Flat) -> tuple[Scalar, Flat]:
        def turn(carry: tuple, _: None) -> tuple[tuple, None]:
            best, cost, step = carry
            x = best + step
            r, J = problem.linearise_residuals(x)
            now, newton = r @ r / 2, jnp.linalg.lstsq(J[:, others], r)[0]
            better = now < cost
            step = jnp.where(
                better, jnp.zeros_like(x).at[others].set(-newton), step / 2
            )
            return (jnp.where(better, x, best), jnp.minimum(now, cost), step), None

        start = (x, jnp.array(jnp.inf), jnp.zeros_like(x))
        (best, cost, _), _ = jax.lax.scan(turn, start, length=steps)
        return cost, best

    return jax.vmap(one)(starts)


@eqx.filter_jit
def parametric_bootstrap(
    problem: Problem,
    x: Flat,
    J: Float[Array, "n k"],
    noise: Float[Array, "draws n"],
    steps: int = 4,
) -> tuple[Float[Array, "draws k"], Float[Array, "draws k"]]:
    """Fit data with other noise, in one batch, such as to check interval coverage.

    `noise` is in standard deviations, one for each residual, those of priors included.
    The fits take Gauss-Newton steps from `x` with the constant Jacobian `J`.

    **Returns:** the unknowns of each draw, and the last step taken.
    """
    scale = problem.scale
    scaled = J * scale[None]
    gain = scale[:, None] * jnp.linalg.solve(scaled.T @ scaled, scaled.T)

    def one(noise: Array) -> tuple[Array, Array]:
        def turn(x: Array, _: None) -> tuple[Array, Array]:
            step = gain @ (problem.residuals(x) - noise)
            return x - step, step

        found, taken = jax.lax.scan(turn, x, length=steps)
        return found, taken[-1]

    return jax.vmap(one)(noise)


def prediction_bands(fit: FitResult) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Predict each trial with the standard errors that the unknowns cause.

    The noise of the measurement is not included.

    **Returns:** predicted values and standard errors by trial.
    """
    values, slopes = _predictions(fit.problem, fit.x)
    C = fit.covariance_x
    found = {}
    for trial, v, D in zip(fit.problem.trials, values, slopes, strict=True):
        variance = np.einsum("nci,ij,ncj->nc", D, C, D)
        found[trial.name] = np.asarray(v), np.sqrt(np.maximum(variance, 0.0))
    return found


@eqx.filter_jit
def _predictions(problem: Problem, x: Flat) -> tuple[list[Array], list[Array]]:
    def all_of_them(x: Flat) -> list[Array]:
        _, placed = problem.models_at(x)
        pairs = zip(problem.trials, placed, strict=True)
        return [t.predicted(*both, "forward")[0] for t, both in pairs]

    return all_of_them(x), jax.jacfwd(all_of_them)(x)


def design(
    problem: Problem, name: str, over: Sequence[str]
) -> tuple[float, dict[str, np.ndarray]]:
    """Differentiate an unknown's expected variance with respect to the experiment.

    `over` are paths of design parameters in the model (a marker's position, an input's
    amplitude) or, as `predict.path`, in a module that predicts.

    **Returns:** the logarithm of the variance, and its derivatives by path. One of -2
    per metre means that each centimetre makes the variance 2 % smaller.
    """
    if name not in problem.names:
        raise ValueError(f"no unknown {name!r}; there are {', '.join(problem.names)}")
    i = problem.names.index(name)
    start = {path: get_parameters(*_owner(problem, path)) for path in over}
    value, slope = _variance(problem, start, i)
    return float(value), {k: np.asarray(v) for k, v in slope.items()}


def _owner(problem: Problem, path: str) -> tuple[Any, str]:
    """Return the tree that a design parameter belongs to, and its path there."""
    if path.startswith("predict."):
        return {"predict": problem.trials[0].predict}, path
    return problem.model, path


@eqx.filter_jit
def _variance(problem: Problem, start: dict[str, Array], i: int) -> tuple:
    def log_variance(design: dict[str, Array]) -> tuple[Scalar, Scalar]:
        ours = {k: v for k, v in design.items() if k.startswith("predict.")}
        theirs = {k: v for k, v in design.items() if k not in ours}
        predict = lambda t: with_parameters({"predict": t.predict}, ours)["predict"]
        here = eqx.tree_at(
            lambda p: p.model, problem, with_parameters(problem.model, theirs)
        )
        if ours:
            at = lambda p: [t.predict for t in p.trials]
            here = eqx.tree_at(at, here, [predict(t) for t in problem.trials])
        scaled = here.linearise_residuals(here.x)[1] * problem.scale[None]
        inverse = jnp.linalg.inv(scaled.T @ scaled)
        value = jnp.log(inverse[i, i] * problem.scale[i] ** 2)
        return value, value

    slope, value = jax.jacfwd(log_variance, has_aux=True)(start)
    return value, slope
