"""Steps of a solver from many starts at once, shown as they go and kept on disk."""

import abc
from collections.abc import Callable, Mapping
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
from .nl2sol import NL2SOL


Flat = Float[Array, " k"]  # all unknowns, unconstrained


class AbstractProblem(eqx.Module):
    """What is to be as small as possible: half the sum of squares, or a number."""

    names: eqx.AbstractVar[tuple[str, ...]]  # one for every unknown
    scale: eqx.AbstractVar[Flat]  # how much each unknown may well change

    @abc.abstractmethod
    def residuals(self, x: Flat) -> Float[Array, " n"]:
        """Whose squares count."""

    @abc.abstractmethod
    def linearise_residuals(
        self, x: Flat
    ) -> tuple[Float[Array, " n"], Float[Array, "n k"]]:
        """Residuals and their Jacobian."""

    @abc.abstractmethod
    def cost(self, x: Flat) -> Float[Array, ""]:
        """The number."""

    @abc.abstractmethod
    def slope(self, x: Flat) -> tuple[Float[Array, ""], Flat]:
        """Cost and its gradient."""

    @abc.abstractmethod
    def bounds(self) -> tuple[Flat, Flat]:
        """What unknowns lie between, if not infinite; only `BFGS` keeps them."""

    @abc.abstractmethod
    def penalties(self) -> "AbstractProblem | None":
        """The same with nothing but penalties in its cost, if it has some."""


def entries(values: Mapping[str, Any]) -> tuple[str, ...]:
    """A name for every number of some arrays."""
    found = []
    for name, x in values.items():
        where = [f"[{']['.join(map(str, i))}]" for i in np.ndindex(x.shape)]
        found += [name + w for w in where] if x.ndim else [name]
    return tuple(found)


METHODS: dict[str, Callable[[Any], Any]] = {
    "lm": lambda tol: _marquardt(tol),
    "dogleg": lambda tol: optx.Dogleg(tol, tol),
    "nl2sol": lambda tol: NL2SOL(tol, tol),
    "bfgs": lambda tol: BFGS(tol, tol),
    "adam": lambda tol: optx.OptaxMinimiser(optax.adam(0.05), tol, tol),
}
DAMPING = 0.1  # of the largest column: where Levenberg and Marquardt begin
REACH = 0.3  # of an unknown's scale: the first step of a plain gradient method
HOPELESS = 1e8  # residual of a run that did not reach its end


def _marquardt(tol: Any) -> optx.LevenbergMarquardt:
    """Its damping falls on fair steps, not on perfect ones alone."""
    trust = optx.ClassicalTrustRegion(0.75, 0.01, 4.0, 0.25)
    plain = optx.LevenbergMarquardt(tol, tol)
    return eqx.tree_at(lambda s: s.search, plain, trust)


def solver_for(method: Any, tolerance: float) -> Any:
    if not isinstance(method, str):
        return method
    if method not in METHODS:
        raise ValueError(f"method is {', '.join(METHODS)}, not {method!r}")
    return METHODS[method](jnp.asarray(tolerance))  # an array: one compilation for all


def is_squares(solver: Any) -> bool:
    return isinstance(solver, optx.AbstractLeastSquaresSolver)


def has_units(solver: Any) -> bool:
    """Whether it needs no derivative beforehand, to know how large its costs are."""
    return isinstance(solver, BFGS | NL2SOL)


class Units(eqx.Module):
    """What a solver sees: unknowns in `x`, residuals in `r`."""

    x: Flat
    r: Float[Array, ""]


def _safe(value: Array, derivative: Array) -> tuple[Array, Array]:
    ok = jnp.all(jnp.isfinite(value)) & jnp.all(jnp.isfinite(derivative))
    return jnp.where(ok, value, HOPELESS), jnp.where(ok, derivative, 0.0)


# The derivative is worked out with the value, once, however often a solver asks for it.
@eqx.filter_custom_jvp
def _residuals(y: Flat, problem: AbstractProblem, units: Units) -> Array:
    r = problem.residuals(y * units.x) / units.r
    return jnp.where(jnp.all(jnp.isfinite(r)), r, HOPELESS)


@_residuals.def_jvp
def _(primals, tangents):
    (y, problem, units), (dy, _, _) = primals, tangents
    r, J = problem.linearise_residuals(y * units.x)
    r, J = _safe(r / units.r, J * units.x[None] / units.r)
    return r, J @ dy


@eqx.filter_jit
def _slope(problem: AbstractProblem, x: Flat) -> tuple[Array, Flat]:
    """Traced once, for units and for all steps."""
    return problem.slope(x)


@eqx.filter_custom_jvp
def cost_in_units(y: Flat, problem: AbstractProblem, units: Units) -> Array:
    f = problem.cost(y * units.x) / units.r**2
    return jnp.where(jnp.isfinite(f), f, HOPELESS)


@cost_in_units.def_jvp
def _(primals, tangents):
    (y, problem, units), (dy, _, _) = primals, tangents
    f, g = _slope(problem, y * units.x)
    f, g = _safe(f / units.r**2, g * units.x / units.r**2)
    return f, g @ dy


def _objective(solver: Any) -> Callable:
    def squares(y: Flat, args: tuple) -> tuple[Array, Array]:
        r = _residuals(y, *args)
        return r, jax.lax.stop_gradient(r @ r / 2)

    def number(y: Flat, args: tuple) -> tuple[Array, Array]:
        f = cost_in_units(y, *args)
        return f, jax.lax.stop_gradient(f)

    return squares if is_squares(solver) else number


class Lane(eqx.Module):
    """One descent: where it is, the best it saw, the solver's memory, and penalties in
    the cost to begin with, with their gradient."""

    y: Flat
    best: Flat
    cost: Float[Array, ""]
    done: Array
    memory: list[Array]
    penalties: tuple[Float[Array, ""], Flat]


def _leaves(state: Any) -> list[Array]:
    return [jnp.asarray(x) for x in jax.tree.leaves(eqx.filter(state, eqx.is_array))]


def _opened(solver: Any, y: Flat, args: tuple) -> tuple[Callable, Any, Any]:
    fn = _objective(solver)
    out, aux = eqx.filter_eval_shape(fn, y, args)
    state = solver.init(fn, y, args, {}, out, aux, frozenset())
    return fn, *eqx.partition(state, eqx.is_array)


def _options(
    solver: Any, problem: AbstractProblem, units: Units, lane: Lane
) -> dict[str, Any]:
    if not isinstance(solver, BFGS):
        return {}
    low, high = problem.bounds()
    bounds = {"lower": low / units.x, "upper": high / units.x}
    return {**bounds, "penalties": lane.penalties}


def _units(
    solver: Any, problem: AbstractProblem, x: Flat, J: Float[Array, "n k"] | None
) -> Units:
    scale = problem.scale
    if has_units(solver):
        return Units(scale, jnp.ones(()))
    if J is not None:
        size = DAMPING * jnp.sqrt(jnp.max(jnp.sum((J * scale[None]) ** 2, 0)))
    else:
        _, g = _slope(problem, x)
        size = jnp.sqrt(jnp.sqrt(jnp.sum((g * scale) ** 2)) / REACH)
    return Units(scale, jnp.where(jnp.isfinite(size) & (size > 0), size, 1.0))


def _begin(solver: Any, problem: AbstractProblem, units: Units, x: Flat) -> Lane:
    y = x / units.x
    _, arrays, _ = _opened(solver, y, (problem, units))
    worst = jnp.array(jnp.inf, y.dtype)  # typed, or the second step compiles again
    none = jnp.zeros((), y.dtype), jnp.zeros_like(y)
    return Lane(y, y, worst, jnp.array(False), _leaves(arrays), none)


def _advance(solver: Any, problem: AbstractProblem, units: Units, lane: Lane) -> Lane:
    args = (problem, units)
    fn, arrays, static = _opened(solver, lane.y, args)
    arrays = jax.tree.unflatten(jax.tree.structure(arrays), lane.memory)
    options = _options(solver, *args, lane)
    given = (lane.y, args, options, eqx.combine(arrays, static), frozenset())
    y, state, aux = solver.step(fn, *given)
    ended, _ = solver.terminate(fn, y, args, {}, state, frozenset())
    # A first-order method tells the cost of where it was, the others of where they are.
    at, cost = (y, state.aux) if hasattr(state, "aux") else (lane.y, aux)
    cost = cost * units.r**2
    better = cost < lane.cost
    new = Lane(
        y,
        jnp.where(better, at, lane.best),
        jnp.where(better, cost, lane.cost),
        ended,
        _leaves(state),
        lane.penalties,
    )
    return jax.tree.map(lambda old, new: jnp.where(lane.done, old, new), lane, new)


@eqx.filter_jit
def _lanes(
    function: Callable, solver: Any, problem: AbstractProblem, units: Units, lanes: Any
) -> Any:
    """Over a leading axis; a single lane is not batched."""
    if len(jax.tree.leaves(lanes)[0]) > 1:
        over = eqx.filter_vmap(function, in_axes=(None, None, None, 0))
        return over(solver, problem, units, lanes)
    alone = jax.tree.map(lambda x: x[0], lanes)
    return jax.tree.map(lambda x: x[None], function(solver, problem, units, alone))


def _informed(solver: Any, problem: AbstractProblem, units: Units, lanes: Lane) -> Lane:
    """With what penalties are, by one look with the program of all others."""
    penalties = problem.penalties() if isinstance(solver, BFGS) else None
    if penalties is None:
        return lanes
    number = jax.ShapeDtypeStruct((), lanes.y.dtype)
    given = (problem.cost, lanes.y[0], None, {}, number, number, frozenset())
    blank = jax.tree.structure(solver.init(*given))
    looked = _lanes(_advance, solver, penalties, units, lanes)
    seen: BFGSState = jax.tree.unflatten(blank, looked.memory)
    return eqx.tree_at(lambda x: x.penalties, lanes, (seen.f, seen.g))


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
    """Best unknowns, costs and whether it converged of each start, and all costs.

    `J` is the Jacobian at the first start, for least squares.
    """
    with jax.numpy_dtype_promotion("standard"):  # the solvers mix types
        units = _units(solver, problem, starts[0], J)
        lane = _lanes(_begin, solver, problem, units, starts)
        lane, history = _restored(save, problem, lane)
        lane = lane if history else _informed(solver, problem, units, lane)
        bar = tqdm(
            total=max_steps,
            initial=len(history),
            desc=what,
            disable=None if progress else True,
            leave=False,
        )
        with bar:
            while len(history) < max_steps and not np.all(lane.done):
                lane = _lanes(_advance, solver, problem, units, lane)
                history.append(np.asarray(lane.cost))
                ended = int(np.sum(lane.done))
                bar.set_postfix(cost=f"{history[-1].min():.6g}", done=ended)
                bar.update()
                if save is not None:
                    _keep(save, problem, lane, history)
    return (
        lane.best * units.x[None],
        lane.cost,
        np.asarray(lane.done),
        np.array(history),
    )


def _keep(path: Path, problem: AbstractProblem, lane: Lane, history: list) -> None:
    """Everything a later run needs to go on from here."""
    leaves = {f"leaf{i}": np.asarray(x) for i, x in enumerate(jax.tree.leaves(lane))}
    aside = path.with_suffix(".part.npz")
    all_of_it = {"names": np.array(problem.names), "history": np.array(history)}
    all_of_it["problem"] = _signature(problem)
    np.savez(aside, allow_pickle=False, **all_of_it, **leaves)
    aside.replace(path)


def _signature(problem: AbstractProblem) -> np.ndarray:
    """Differs where numbers of the problem do."""
    arrays = jax.tree.leaves(eqx.filter(problem, eqx.is_inexact_array))
    flat = [np.nan_to_num(np.ravel(x)) for x in arrays]
    return np.array([[np.sum(x), np.sum(x**2)] for x in flat])


def _restored(
    path: Path | None, problem: AbstractProblem, lane: Lane
) -> tuple[Lane, list[np.ndarray]]:
    if path is None or not path.exists():
        return lane, []
    kept = np.load(path)
    leaves, tree = jax.tree.flatten(lane)
    found = [kept[f"leaf{i}"] for i in range(len(leaves)) if f"leaf{i}" in kept]
    fits = len(found) == len(leaves) and tuple(kept["names"]) == problem.names
    if not fits or any(a.shape != b.shape for a, b in zip(found, leaves, strict=True)):
        raise ValueError(
            f"{path} was kept by a search for other unknowns or by another method"
        )
    if not np.allclose(kept["problem"], _signature(problem), rtol=1e-6):
        raise ValueError(f"{path} was kept by a search with other data or settings")
    new = [jnp.asarray(a, b.dtype) for a, b in zip(found, leaves, strict=True)]
    return jax.tree.unflatten(tree, new), list(kept["history"])
