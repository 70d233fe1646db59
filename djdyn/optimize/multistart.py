"""A solver that descends from many starts at once, with progress and checkpoints."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import optimistix as optx
from jaxtyping import Array, Float
from tqdm import tqdm

from .bfgs import BFGS, BFGSState
from .checkpoint import load_checkpoint, save_checkpoint
from .nl2sol import NL2SOL
from .problem import (
    AbstractProblem,
    Flat,
    Scaling,
    cost_and_gradient,
    scaled_cost,
    scaled_residuals,
)


METHODS: dict[str, Callable[[Any], Any]] = {
    "lm": lambda tol: _levenberg_marquardt(tol),
    "dogleg": lambda tol: optx.Dogleg(tol, tol),
    "nl2sol": lambda tol: NL2SOL(tol, tol),
    "bfgs": lambda tol: BFGS(tol, tol),
    "adam": lambda tol: optx.OptaxMinimiser(optax.adam(ADAM_RATE), tol, tol),
}
ADAM_RATE = 0.05
INITIAL_DAMPING = 0.1  # of the Jacobian's largest column, for Levenberg–Marquardt
FIRST_GRADIENT_STEP = 0.3  # of the unknowns' scale, for gradient methods


def _levenberg_marquardt(tol: Any) -> optx.LevenbergMarquardt:
    """Return Levenberg–Marquardt with damping that also falls on fair steps.

    The default of optimistix lowers it only on near-perfect ones.
    """
    trust = optx.ClassicalTrustRegion(0.75, 0.01, 4.0, 0.25)
    plain = optx.LevenbergMarquardt(tol, tol)
    return eqx.tree_at(lambda s: s.search, plain, trust)


def solver_for(method: Any, tolerance: float) -> Any:
    """Return the solver of a method's name; a solver is returned as it is."""
    if not isinstance(method, str):
        return method
    if method not in METHODS:
        raise ValueError(f"method is {', '.join(METHODS)}, not {method!r}")
    return METHODS[method](jnp.asarray(tolerance))  # an array: one compilation for all


def is_least_squares(solver: Any) -> bool:
    """Return whether a solver minimises a sum of squares, not a scalar cost."""
    return isinstance(solver, optx.AbstractLeastSquaresSolver)


def is_self_scaling(solver: Any) -> bool:
    """Return whether a solver needs no derivative beforehand to scale its cost."""
    return isinstance(solver, BFGS | NL2SOL)


def _objective(solver: Any) -> Callable:
    """Return the function that a solver minimises, with the cost as second output."""

    def squares(y: Flat, args: tuple) -> tuple[Array, Array]:
        r = scaled_residuals(y, *args)
        return r, jax.lax.stop_gradient(r @ r / 2)

    def scalar(y: Flat, args: tuple) -> tuple[Array, Array]:
        f = scaled_cost(y, *args)
        return f, jax.lax.stop_gradient(f)

    return squares if is_least_squares(solver) else scalar


class Descent(eqx.Module):
    """The state of one descent.

    `y` is its point, `best` the best one so far with its `cost`, `memory` the arrays of
    the solver's state. `penalties` are the penalty terms at the start and their
    gradient.
    """

    y: Flat
    best: Flat
    cost: Float[Array, ""]
    done: Array
    memory: list[Array]
    penalties: tuple[Float[Array, ""], Flat]


def _leaves(state: Any) -> list[Array]:
    return [jnp.asarray(x) for x in jax.tree.leaves(eqx.filter(state, eqx.is_array))]


def _initialised(solver: Any, y: Flat, args: tuple) -> tuple[Callable, Any, Any]:
    """Return the objective, and the solver's first state as arrays and structure."""
    fn = _objective(solver)
    out, aux = eqx.filter_eval_shape(fn, y, args)
    state = solver.init(fn, y, args, {}, out, aux, frozenset())
    return fn, *eqx.partition(state, eqx.is_array)


def _options(
    solver: Any, problem: AbstractProblem, scaling: Scaling, descent: Descent
) -> dict[str, Any]:
    if not isinstance(solver, BFGS):
        return {}
    low, high = problem.bounds()
    bounds = {"lower": low / scaling.x, "upper": high / scaling.x}
    return {**bounds, "penalties": descent.penalties}


def _scaling(
    solver: Any, problem: AbstractProblem, x: Flat, J: Float[Array, "n k"] | None
) -> Scaling:
    """Return units in which the first step of a solver has a sensible length."""
    scale = problem.scale
    if is_self_scaling(solver):
        return Scaling(scale, jnp.ones(()))
    if J is not None:
        size = INITIAL_DAMPING * jnp.sqrt(jnp.max(jnp.sum((J * scale[None]) ** 2, 0)))
    else:
        _, g = cost_and_gradient(problem, x)
        size = jnp.sqrt(jnp.sqrt(jnp.sum((g * scale) ** 2)) / FIRST_GRADIENT_STEP)
    return Scaling(scale, jnp.where(jnp.isfinite(size) & (size > 0), size, 1.0))


def _begin(solver: Any, problem: AbstractProblem, scaling: Scaling, x: Flat) -> Descent:
    y = x / scaling.x
    _, arrays, _ = _initialised(solver, y, (problem, scaling))
    worst = jnp.array(jnp.inf, y.dtype)  # typed, or the second step compiles again
    none = jnp.zeros((), y.dtype), jnp.zeros_like(y)
    return Descent(y, y, worst, jnp.array(False), _leaves(arrays), none)


def _advance(
    solver: Any, problem: AbstractProblem, scaling: Scaling, descent: Descent
) -> Descent:
    """Return a descent after one more step of the solver, unless it is done."""
    args = (problem, scaling)
    fn, arrays, static = _initialised(solver, descent.y, args)
    arrays = jax.tree.unflatten(jax.tree.structure(arrays), descent.memory)
    options = _options(solver, *args, descent)
    given = (descent.y, args, options, eqx.combine(arrays, static), frozenset())
    y, state, aux = solver.step(fn, *given)
    ended, _ = solver.terminate(fn, y, args, {}, state, frozenset())
    # First-order methods report the cost before their step, the others that after it.
    at, cost = (y, state.aux) if hasattr(state, "aux") else (descent.y, aux)
    cost = cost * scaling.r**2
    better = cost < descent.cost
    new = Descent(
        y,
        jnp.where(better, at, descent.best),
        jnp.where(better, cost, descent.cost),
        ended,
        _leaves(state),
        descent.penalties,
    )
    return jax.tree.map(
        lambda old, new: jnp.where(descent.done, old, new), descent, new
    )


@eqx.filter_jit
def _over_starts(
    function: Callable,
    solver: Any,
    problem: AbstractProblem,
    scaling: Scaling,
    descents: Any,
) -> Any:
    """Return `function` mapped over a leading axis; a single start is not batched."""
    if len(jax.tree.leaves(descents)[0]) > 1:
        over = eqx.filter_vmap(function, in_axes=(None, None, None, 0))
        return over(solver, problem, scaling, descents)
    alone = jax.tree.map(lambda x: x[0], descents)
    return jax.tree.map(lambda x: x[None], function(solver, problem, scaling, alone))


def _with_penalties(
    solver: Any, problem: AbstractProblem, scaling: Scaling, descents: Descent
) -> Descent:
    """Return descents that know their penalties at the start, for `BFGS`.

    One step on the problem of penalties alone finds them with the compiled program of
    all other steps.
    """
    penalties = problem.penalties() if isinstance(solver, BFGS) else None
    if penalties is None:
        return descents
    scalar = jax.ShapeDtypeStruct((), descents.y.dtype)
    given = (problem.cost, descents.y[0], None, {}, scalar, scalar, frozenset())
    structure = jax.tree.structure(solver.init(*given))
    stepped = _over_starts(_advance, solver, penalties, scaling, descents)
    found: BFGSState = jax.tree.unflatten(structure, stepped.memory)
    return eqx.tree_at(lambda x: x.penalties, descents, (found.f, found.g))


def descend(
    problem: AbstractProblem,
    starts: Float[Array, "starts k"],
    J: Float[Array, "n k"] | None,
    solver: Any,
    max_steps: int,
    save: Path | None,
    progress: bool,
    what: str = "fit",
) -> tuple[Array, Array, np.ndarray, np.ndarray]:
    """Minimise a problem from all starts.

    Returns the best unknowns of each start, their costs, whether each converged, and
    the best costs after every step.

    **Arguments:**

    - `J`: the Jacobian at the first start, for least squares.
    - `save`: a file that holds the last step; if it exists, the search resumes there.
    - `what`: label of the progress bar.
    """
    with jax.numpy_dtype_promotion("standard"):  # the solvers mix types
        scaling = _scaling(solver, problem, starts[0], J)
        descents = _over_starts(_begin, solver, problem, scaling, starts)
        descents, history = load_checkpoint(save, problem, descents)
        if not history:
            descents = _with_penalties(solver, problem, scaling, descents)
        bar = tqdm(
            total=max_steps,
            initial=len(history),
            desc=what,
            disable=None if progress else True,
            leave=False,
        )
        with bar:
            while len(history) < max_steps and not np.all(descents.done):
                descents = _over_starts(_advance, solver, problem, scaling, descents)
                history.append(np.asarray(descents.cost))
                ended = int(np.sum(descents.done))
                bar.set_postfix(cost=f"{history[-1].min():.6g}", done=ended)
                bar.update()
                if save is not None:
                    save_checkpoint(save, problem, descents, history)
    return (
        descents.best * scaling.x[None],
        descents.cost,
        np.asarray(descents.done),
        np.array(history),
    )
