"""Gains by gradient: one call for any controller, over many scenarios at once."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from djdyn import FreeParameter, State, System
from djdyn.optimize.bfgs import BFGS
from djdyn.optimize.multistart import Flat, descend, has_units, is_squares, solver_for
from djdyn.optimize.nl2sol import NL2SOL
from djdyn.system.parameters import bounds_of

from ..linear.linearise import linearise, signal_of
from ..linear.margins import Margins, margins
from .objective import Evaluation, Loop, Objective, Risk
from .result import GRADIENT, TuningResult
from .scenarios import Scenarios
from .terms import AbstractTerm, Limit


# A state of a system, or the time, s, at which that of a run is meant.
OperatingPoint = Callable[[System], State] | float

KEPT = 1e-3  # of a limit: an excess that is none
STIFFER = 4.0  # from round to round


def tune(
    system: System,
    t1: float,
    *,
    free: Sequence[FreeParameter | str],
    cost: Mapping[str, AbstractTerm],
    scenarios: Scenarios | None = None,
    hold_out: Scenarios | None = None,
    constraints: Mapping[str, Limit] | None = None,
    method: Any = "bfgs",
    risk: Risk = "mean",
    diverged: str = "penalise",
    outer_iterations: int = 1,
    penalty: float = 10.0,
    starts: int = 1,
    spread: float = 1.0,
    seed: int = 0,
    max_steps: int = 50,
    tolerance: float = 1e-6,
    saves: int = 101,
    operating_point: OperatingPoint | None = None,
    loop: str | Sequence[str] | None = None,
    delay: float = 0.0,
    modulus: float | None = None,
    save: str | Path | None = None,
    progress: bool = True,
    **how: Any,
) -> TuningResult:
    """Free numbers of a system with the least cost of simulations from 0 to `t1`.

    **Arguments:**

    - `free`: paths, with transforms that keep them in their domains.
    - `cost`: terms by name (`MeanSquare`, `Peak`, `DamageEquivalentLoad`, ...), which
      are added.
    - `scenarios`: what to cope with, see `sample`; `hold_out`: others, to judge by.
    - `constraints`: limits by name. In one round what exceeds them is penalised; in
      several, multipliers push it out (an augmented Lagrangian).
    - `method`: `"bfgs"`, which keeps bounds of `Box`, `"adam"`, and for costs of
      squares alone `"nl2sol"`, `"lm"` and `"dogleg"`, or a solver of `optimistix`.
    - `risk`: over scenarios the `"mean"`, the `"worst"`, or a number such as 0.9 for
      the mean of the worst tenth.
    - `diverged`: scenarios that do not reach their end are penalised, or excluded.
    - `starts`: how many, scattered by `spread`, run at once in one batch.
    - `saves`: how many times the terms look at.
    - `operating_point`: the state about which a system is linearised, to see if it is
      stable, as a function of it; or a time, s, for the one that each run has then.
    - `loop`: a signal where the loop is opened there, or several, to see its margins
      with a `delay`, s; see `margins`. With `modulus` it is a limit that they stay so
      far from minus one, and that nothing grows: about the states of rest that there
      are to begin with, or about those of the runs, which derivatives take as given.
    - `save`: a file that keeps the last step. If it is there, the tuning goes on.
    - `how`: further arguments of `rollout`, such as `solver` and `dt`.
    """
    _check(cost, risk, diverged, operating_point, loop, modulus)
    if operating_point is not None and not 0 <= _time(operating_point) <= t1:
        raise ValueError(
            f"runs from 0 to {t1:g} s have no state at {operating_point!r} s"
        )
    some, held = scenarios or Scenarios(), None
    if operating_point is not None and loop is not None and modulus is not None:
        held = _opened(system, some, operating_point, loop, delay, modulus)
    objective = Objective(
        system, t1, free, dict(cost), some, dict(constraints or {}), saves, risk,
        diverged, penalty, how, held,
    )  # fmt: skip
    solver = solver_for(method, tolerance)
    _check_method(solver, objective)
    xs = _scattered(objective, starts, spread, seed)
    before = evaluate(objective, objective.x0)
    if not np.any(before.ok):
        raise ValueError("all scenarios diverge with the gains to begin with")
    path, past = None if save is None else Path(save).with_suffix(".npz"), []
    x, after, began = objective.x0, before, time.perf_counter()
    for i in range(outer_iterations):
        kept = None if path is None else path.with_stem(f"{path.stem}-{i}")
        ahead = is_squares(solver) and not has_units(solver)
        J = linearise_residuals(objective, xs[0])[1] if ahead else None
        xs, costs, _, history = descend(
            objective, xs, J, solver, max_steps, kept, progress, "tuning"
        )
        past.append(history)
        x = xs[int(jnp.argmin(costs))]
        after = evaluate(objective, x)
        if all(np.max(g, initial=0.0) < KEPT for g in after.excess.values()):
            break
        if i + 1 < outer_iterations:
            objective = _pushed(objective, after)
    seconds = time.perf_counter() - began
    if outer_iterations > 1:
        _warn_of_limits(after, outer_iterations)
    others = None if hold_out is None else with_scenarios(objective, hold_out)
    seen = {"tuned on": (before, after)}
    if others is not None:
        seen["held out"] = evaluate(others, objective.x0), evaluate(others, x)
    growth, edges = _about_rest(objective, x, operating_point, loop, delay)
    return TuningResult(
        objective=objective,
        x=x,
        seen=seen,
        history=np.concatenate(past),
        simulations=_spent(solver, objective, past),
        spectral_abscissa=growth,
        margins=edges,
        seconds=seconds,
    )


def _check(
    cost: Mapping[str, AbstractTerm],
    risk: Risk,
    diverged: str,
    operating_point: OperatingPoint | None,
    loop: str | Sequence[str] | None,
    modulus: float | None,
) -> None:
    if not cost:
        raise ValueError("the cost has no terms")
    if risk not in ("mean", "worst") and not (isinstance(risk, float) and 0 < risk < 1):
        raise ValueError(f"risk is mean, worst or a number from 0 to 1, not {risk!r}")
    if loop is not None and operating_point is None:
        raise ValueError(f"margins at {loop!r} need a state of rest")
    if modulus is not None and (loop is None or not 0 < modulus < 1):
        raise ValueError(
            f"a modulus from 0 to 1 is kept at a loop, not {modulus!r} at {loop!r}"
        )
    if diverged not in ("penalise", "exclude"):
        raise ValueError(f"diverged is penalise or exclude, not {diverged!r}")


def _check_method(solver: Any, objective: Objective) -> None:
    if not isinstance(solver, BFGS):
        for f in objective.free:
            if any(np.any(np.isfinite(b)) for b in bounds_of(f.transform)):
                raise ValueError(
                    f"bounds of {f.path!r} are kept by method 'bfgs' alone"
                )
    if is_squares(solver):
        if objective.risk != "mean":
            raise ValueError(
                f"least squares are a mean over scenarios, not {objective.risk!r}"
            )
        eqx.filter_eval_shape(objective.residuals, objective.x0)  # refuses other terms


def _about_rest(
    objective: Objective,
    x: Flat,
    operating_point: OperatingPoint | None,
    loop: str | Sequence[str] | None,
    delay: float,
) -> tuple[np.ndarray | None, tuple[Margins, Margins] | None]:
    """Growth in all scenarios, and the worst margins, before and after.

    What has diverged by then has grown without end, and has no margins.
    """
    if operating_point is None:
        return None, None
    both, t = (
        [_resting(objective, x, operating_point) for x in (objective.x0, x)],
        _time(operating_point),
    )
    growth = np.array([[_growth(*at, t) for at in some] for some in both])
    if loop is None:
        return growth, None
    there = [[at for at in some if _finite(at[1])] for some in both]
    of = lambda some: _worst([margins(s, y, loop, delay, t) for s, y in some])
    return growth, (of(there[0]), of(there[1]))


def _spent(
    solver: Any, objective: Objective, past: list[np.ndarray]
) -> Float[np.ndarray, " steps"]:
    """Simulations after each step, where a derivative counts as several.

    `BFGS` needs one more in every round to know what limits do, and other solvers than
    our own to know their units. Where `NL2SOL` takes no step it works out none.
    """
    price = 1 + objective.x0.size if is_squares(solver) else GRADIENT
    more = not has_units(solver)
    if isinstance(solver, BFGS):
        more = objective.penalties() is not None
    spent = []
    for costs in past:  # of every start, step by step
        looks = np.full(costs.shape, float(price))
        if isinstance(solver, NL2SOL):
            looks = 1.0 + price * (np.diff(costs, axis=0, prepend=np.inf) < 0)
            looks[0] = price
        looks[0] += more * price
        spent.append(np.sum(looks, 1))
    return np.cumsum(np.concatenate(spent))


@eqx.filter_jit
def evaluate(objective: Objective, x: Flat) -> Evaluation:
    """Every scenario with these gains."""
    return objective.evaluate(x)


@eqx.filter_jit
def linearise_residuals(objective: Objective, x: Flat) -> tuple[Array, Array]:
    return objective.linearise_residuals(x)


def _scattered(objective: Objective, starts: int, spread: float, seed: int) -> Array:
    away = jax.random.normal(jax.random.key(seed), (starts, objective.x0.size))
    away = away.at[0].set(0.0)
    xs = objective.x0[None] + spread * objective.scale[None] * away
    low, high = objective.bounds()
    return jnp.clip(xs, low[None], high[None])


def _pushed(objective: Objective, seen: Evaluation) -> Objective:
    """With multipliers that hold what was exceeded, and stiffer."""
    mu = objective.penalty
    new = {
        k: jnp.where(seen.ok[:, None], jnp.maximum(held + mu * seen.excess[k], 0), 0.0)
        for k, held in objective.multipliers.items()
    }
    at = lambda o: (o.multipliers, o.stiffness)
    return eqx.tree_at(at, objective, (new, mu * STIFFER))


def _warn_of_limits(seen: Evaluation, outer_iterations: int) -> None:
    """Names limits that no multiplier could hold."""
    for name, g in seen.excess.items():
        worst = np.max(np.where(seen.ok[:, None], g, 0.0), axis=1, initial=0.0)
        if lost := int(np.sum(worst >= KEPT)):
            warnings.warn(
                f"limit {name!r} is not kept: after outer iteration {outer_iterations} "
                f"it is exceeded by up to {worst.max():.2g} of its size in {lost} of "
                f"{len(worst)} scenarios; it may not be feasible within the bounds of "
                "what is free",
                stacklevel=3,
            )


def with_scenarios(objective: Objective, scenarios: Scenarios) -> Objective:
    """The same in other scenarios, without multipliers, and without limits at rest."""
    zero = jnp.zeros((len(scenarios), len(objective.saves)))
    none = dict.fromkeys(objective.probes.limits, zero)
    at = lambda o: (o.scenarios, o.multipliers, o.loop)
    new = (scenarios, none, None)
    return eqx.tree_at(at, objective, new, is_leaf=lambda x: x is None)


def _opened(
    system: System,
    some: Scenarios,
    operating_point: OperatingPoint,
    loop: str | Sequence[str],
    delay: float,
    modulus: float,
) -> Loop:
    """Loops about the states of all scenarios."""
    signals = (loop,) if isinstance(loop, str) else tuple(sorted(loop))
    sent = system.at(0.0, system.initial_state()).signals
    entries = sum(signal_of(sent, name).size for name in signals)
    states = None
    if callable(operating_point):
        each = [operating_point(some.put(system, k)) for k in range(len(some))]
        states = jax.tree.map(lambda *x: jnp.stack(x), *each)
    return Loop(states, _time(operating_point), signals, entries, delay, modulus)


def _time(operating_point: OperatingPoint) -> float:
    return 0.0 if callable(operating_point) else float(operating_point)


def _resting(
    objective: Objective, x: Flat, operating_point: OperatingPoint
) -> list[tuple[System, State]]:
    """All scenarios with these gains, each with its state."""
    tuned, some = objective.placed(x), objective.scenarios
    here = [some.put(tuned, k) for k in range(len(some))]
    if callable(operating_point):
        return [(system, operating_point(system)) for system in here]
    passed = _passed(objective, x, operating_point)
    of = lambda k: jax.tree.map(lambda x: x[k], passed)
    return [(system, of(k)) for k, system in enumerate(here)]


@eqx.filter_jit
def _passed(objective: Objective, x: Flat, t: float) -> State:
    """Where runs with these gains are at a time."""
    return objective.passed(x, t)


def _growth(system: System, y: State, t: float) -> float:
    """The largest real part of a pole, 1/s."""
    if not _finite(y):
        return np.inf
    return float(np.max(np.real(linearise(system, y, t=t).poles())))


def _finite(y: State) -> bool:
    return all(np.all(np.isfinite(x)) for x in jax.tree.leaves(y))


def _worst(some: Sequence[Margins]) -> Margins:
    """Of all scenarios, entry by entry."""
    gains = np.array([m.gain for m in some])
    near = np.argmin(np.abs(np.log(gains)), 0)
    return Margins(
        np.take_along_axis(gains, near[None], 0)[0],
        np.min([m.phase for m in some], 0),
        np.min([m.modulus for m in some], 0),
        np.min([m.delay for m in some], 0),
        max(m.spectral_abscissa for m in some),
    )
