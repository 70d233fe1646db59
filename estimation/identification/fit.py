"""Parameter estimation: fit a model to trials, and validate the result."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from djdyn.optimize.multistart import descend, is_least_squares, solver_for
from djdyn.simulation.checks import warn_of_single_precision
from djdyn.system.parameters import FreeParameter, get_parameters
from djdyn.system.transforms import Positive
from djdyn.typing import Numbers

from .identifiability import Identifiability, UnidentifiableError, of_jacobian
from .losses import Squares
from .problem import Problem, linearise_residuals
from .result import FitResult
from .trial import Trial


WINDOW_TOLERANCE = 1e-2  # of fits to the first parts of records


def fit(
    model: PyTree,
    trials: Trial | Sequence[Trial],
    free: Sequence[FreeParameter | str] = (),
    *,
    priors: Mapping[str, Any] | None = None,
    loss: Callable[[Array], Array] | None = None,
    method: Any = "lm",
    starts: Mapping[str, Numbers] | None = None,
    growing_windows: Sequence[float] = (),
    hold_out: float | Trial | Sequence[Trial] = 0.1,
    allow_unidentifiable: bool = False,
    limit: float = 1.0,
    tolerance: float = 1e-6,
    max_steps: int = 100,
    save: Path | str | None = None,
    progress: bool = True,
) -> FitResult:
    """Fit the unknown parameters of a model to trials.

    **Arguments:**

    - `free`: paths, or `FreeParameter`s with a domain, of the unknowns that all trials
      share; each trial names its own.
    - `priors`: by path, `(mean, deviation)`, `Normal` or `LogNormal`.
    - `loss`: see `losses`; or a function from all residuals to one number, for `bfgs`
      and `adam`.
    - `method`: `"lm"` (Levenberg-Marquardt), `"dogleg"` or `"nl2sol"` for least
      squares, `"bfgs"` or `"adam"` for any loss, or a solver of Optimistix.
    - `starts`: starting points of the search, as values by path with a leading axis. It
      runs from all of them at once and returns the best. See `random_starts`.
    - `growing_windows`: increasing fractions of every record that are fitted before all
      of it, because the first part of a motion is easier to fit.
    - `hold_out`: the fraction at the end of every record that is not fitted but used
      for validation; or trials for validation.
    - `allow_unidentifiable`: fit even if the data cannot determine all unknowns to
      within `limit` times their scale (their size, or their prior's deviation).
    - `save`: a file that keeps the last step. If it exists, the fit resumes there.

    **Returns:** the estimates, with their uncertainty and errors on held-out data.
    """
    if jnp.zeros(()).dtype == jnp.float32:
        warn_of_single_precision("fits stop early", stacklevel=2)
    whole = Problem(model, trials, free, dict(priors or {}), loss)
    problem, validation = _hold_out(whole, hold_out)
    solver = solver_for(method, tolerance)
    if is_least_squares(solver):
        eqx.filter_eval_shape(problem.apply_loss, jnp.zeros(1))  # refuses a scalar loss
    x0 = _starting_points(problem, starts)
    J = linearise_residuals(_fisher(problem), x0[0])[1]
    identifiability = of_jacobian(problem, J, limit)
    if not identifiability.ok and not allow_unidentifiable:
        raise UnidentifiableError(identifiability)
    path = None if save is None else Path(save).with_suffix(".npz")
    squares = is_least_squares(solver)
    rough = solver_for(method, max(tolerance, WINDOW_TOLERANCE))
    xs, past = x0, []
    for i, share in enumerate(growing_windows):
        part = _first(problem, share)
        J = linearise_residuals(_fisher(part), xs[0])[1] if squares else None
        kept = None if path is None else path.with_stem(f"{path.stem}-{i}")
        xs, _, _, history = descend(part, xs, J, rough, max_steps, kept, progress)
        past.append(history)
    J = linearise_residuals(_fisher(problem), xs[0])[1] if growing_windows else J
    J = J if squares else None
    xs, costs, ended, history = descend(
        problem, xs, J, solver, max_steps, path, progress
    )
    history = np.concatenate([*past, history])
    return _summary(problem, validation, x0, identifiability, xs, costs, ended, history)


def _first(problem: Problem, share: float) -> Problem:
    """Return the problem with the first part of its records alone."""
    if not 0 < share <= 1:
        raise ValueError(f"growing windows are fractions from 0 to 1, not {share}")
    some = [t.keep(np.arange(len(t)) < round(share * len(t))) for t in problem.trials]
    return eqx.tree_at(lambda p: p.trials, problem, tuple(some))


def _fisher(problem: Problem) -> Problem:
    """Return the problem with least squares in place of a scalar loss."""
    r = eqx.filter_eval_shape(problem.loss, jnp.zeros(1))
    if r.ndim:
        return problem
    plain = Squares()
    return eqx.tree_at(lambda p: p.loss, problem, plain)


def _hold_out(problem: Problem, hold_out: Any) -> tuple[Problem, Problem | None]:
    """Return the problem that is fitted, and the one for validation, if any."""
    at = lambda p: p.trials
    if not isinstance(hold_out, float | int):
        others = (hold_out,) if isinstance(hold_out, Trial) else tuple(hold_out)
        return problem, (eqx.tree_at(at, problem, others) if others else None)
    if not 0 <= hold_out < 1:
        raise ValueError(
            f"hold_out is a fraction from 0 to 1 or trials, not {hold_out}"
        )
    if hold_out == 0:
        return problem, None
    used = [np.arange(len(t)) < round((1 - hold_out) * len(t)) for t in problem.trials]
    parts = [
        tuple(t.keep(rows) for t, rows in zip(problem.trials, pick, strict=True))
        for pick in (used, [~rows for rows in used])
    ]
    return eqx.tree_at(at, problem, parts[0]), eqx.tree_at(at, problem, parts[1])


def _starting_points(problem: Problem, starts: Mapping[str, Numbers] | None) -> Array:
    """Return unconstrained starting points, a row each."""
    if not starts:
        return problem.x[None]
    free = {f.path: f for f in problem.free}
    values = {path: jnp.asarray(x, float) for path, x in starts.items()}
    for path in values:
        if path not in free:
            raise ValueError(f"starts for {path!r}, which is not free in all trials")
    sizes = {path: len(x) for path, x in values.items()}
    if len({*sizes.values()}) != 1:
        raise ValueError(f"all must have the same number of starts, got {sizes}")
    shared, own = problem.split(problem.x)
    theta = {p: jax.vmap(free[p].transform.unconstrain)(x) for p, x in values.items()}
    for path, x in theta.items():
        if not np.all(np.isfinite(x)):
            raise ValueError(f"a start of {path!r} is outside its domain")
    row = lambda one: ravel_pytree(({**shared, **one}, own))[0]
    return jax.vmap(row)(theta)


def random_starts(
    model: PyTree,
    free: Sequence[FreeParameter | str],
    count: int,
    *,
    decades: float = 1.0,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Draw `count` starting points about the model's own values.

    Positive parameters are distributed evenly in their logarithm over so many
    `decades`, others evenly over as many times their size.

    **Returns:** values by path with a leading axis, for `fit(starts=...)`.
    """
    rng, found = np.random.default_rng(seed), {}
    for f in free:
        f = FreeParameter(f) if isinstance(f, str) else f
        value = np.asarray(get_parameters(model, f.path))
        u = decades * rng.uniform(-0.5, 0.5, (count, *value.shape))
        positive = isinstance(f.transform, Positive)
        found[f.path] = value * 10.0**u if positive else value * (1 + u)
    return found


def _summary(
    problem: Problem,
    validation: Problem | None,
    x0: Float[Array, "starts k"],
    identifiability: Identifiability,
    xs: Float[Array, "starts k"],
    costs: Float[Array, " starts"],
    converged: np.ndarray,
    history: np.ndarray,
) -> FitResult:
    best = int(jnp.argmin(costs))
    x = xs[best]
    _, J = linearise_residuals(_fisher(problem), x)
    model, placed = problem.models_at(x)
    return FitResult(
        problem=problem,
        x=x,
        J=J,
        model=model,
        trial_starts=tuple(start for _, start in placed),
        cost=float(costs[best]),
        converged=bool(converged[best]),
        history=history,
        all_x0=np.asarray(x0),
        all_x=np.asarray(xs),
        costs=np.asarray(costs),
        before=identifiability,
        after=of_jacobian(problem, J, identifiability.limit),
        hold_out_error=None
        if validation is None
        else rms(validation, _shared_unknowns(problem, validation, x)),
    )


def _shared_unknowns(problem: Problem, validation: Problem, x: Array) -> Array:
    """Return the estimates that trials share, with those of the validation's own."""
    if len(validation.x) == len(x) and validation.names == problem.names:
        return x
    own = validation.split(validation.x)[1]
    return ravel_pytree((problem.split(x)[0], own))[0]


@eqx.filter_jit
def _data(problem: Problem, x: Array) -> Array:
    return problem.data_residuals(x)[0]


def rms(problem: Problem, x: Float[Array, " k"]) -> float:
    """Return the root mean square error of prediction, in standard deviations."""
    r, count = _data(problem, x), sum(int(t.present.sum()) for t in problem.trials)
    return float(jnp.sqrt(r @ r / max(count, 1)))
