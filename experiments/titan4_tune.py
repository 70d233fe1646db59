"""The Titan 4's gains and bandwidths tuned by gradient, on many conditions."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import controllers
import djdyn
from controllers import MeanSquare, Scenarios, Seen, Tuned
from controllers.terms import AbstractTerm
from controllers.tune import judge
from djdyn import FreeParameter, Positive
from djdyn.system import Instant

from . import titan4_hardened as hard
from .study import Study
from .titan4_conditions import AREA, MOVES, creeping, machine, scenarios
from .titan4_model import FULL
from .titan4_sticks import sticks
from .tuning import gain_table, keep, race


SPAN, SAVES = 3.0, 151  # s
COUNT, STEPS, BUDGET = 16, 60, 100
OTHERS = 1000  # the first seed of conditions held out
STICKS = {"sticks": sticks(MOVES)}
HOW: dict[str, Any] = {"solver": "rk4", "dt": 5e-3, "inputs": STICKS}
PATHS = ("control.kp", "control.ki", "path.frequency", "control.kd", "control.k3")
FREE = tuple(FreeParameter(path, Positive()) for path in PATHS)
DAMPED, K3 = 0.1, 0.5  # of critical, 1/s: to begin with, where the source has nothing
DISTANCE = 0.03  # rad, as dear as the effort of all of `AREA`
PRICE = 0.02  # rad, for the effort of all of `AREA`, where roots are judged


def distance(now: Instant) -> Array:
    """Of joints from the sticks' targets, rad."""
    return now.world.q - now.signals["guide.value"]


COST: dict[str, AbstractTerm] = {
    "distance": MeanSquare(distance, DISTANCE),
    "effort": MeanSquare("control.u", AREA),
}


def begun(source: djdyn.System) -> djdyn.System:
    """With a little of the gains that the source leaves at zero."""
    kp, kd, k3 = (djdyn.get(source, f"control.{k}") for k in ("kp", "kd", "k3"))
    B = jnp.diagonal(djdyn.mass_matrix(source.mechanism, jnp.zeros(6)))
    damping = jnp.where(kd > 0, kd, DAMPED * jnp.sqrt(kp * B))
    return djdyn.put(
        source, {"control.kd": damping, "control.k3": jnp.where(k3 > 0, k3, K3)}
    )


def tuned(
    source: djdyn.System,
    train: Scenarios,
    others: Scenarios,
    *,
    free: tuple[FreeParameter, ...] = FREE,
    span: float = SPAN,
    saves: int = SAVES,
    steps: int = STEPS,
    **more: Any,
) -> Tuned:
    """Tunes on some conditions, and judges on others, beside the start's gains."""
    return controllers.tune(
        begun(source), span, free=free, cost=COST, scenarios=train, held_out=others,
        max_steps=steps, saves=saves, rest=creeping, **more, **HOW,
    )  # fmt: skip


def against(found: Tuned, source: djdyn.System, others: Scenarios) -> Tuned:
    """The same beside the source's gains; the logarithm of none is minus infinity."""
    free = sorted(found.objective.free, key=lambda f: f.path)
    logs = [f.transform.outside(djdyn.get(source, f.path)) for f in free]
    x = jnp.concatenate([jnp.ravel(y) for y in logs])
    elsewhere = eqx.tree_at(lambda o: o.scenarios, found.objective, others)
    seen = {"held out": (judge(elsewhere, x), found.seen["held out"][1])}
    objective = eqx.tree_at(lambda o: o.x0, found.objective, x)
    return dataclasses.replace(found, objective=objective, seen=seen)


def roots(seen: Seen) -> tuple[float, float, float]:
    """Means over conditions: cost, rms distance (both rad) and rms effort."""
    rms = lambda name: float(np.mean(np.sqrt(seen.terms[name])))
    miss, effort = DISTANCE * rms("distance"), rms("effort")
    return miss + PRICE * effort, miss, effort


def in_earnest(
    system: djdyn.System, span: float = SPAN, count: int = COUNT
) -> djdyn.Trajectory:
    """Conditions held out, with samples, delay and noise."""
    loop = hard.hardened(system)
    given = scenarios(loop, OTHERS, count)
    return djdyn.rollout(
        loop, span, given.initial_state, parameters=given.parameters, inputs=STICKS,
        **hard.HOW,
    )  # fmt: skip


def misses(run: djdyn.Trajectory) -> np.ndarray:
    """The rms distance from targets in each condition, rad."""
    away = run.y.q - run.y.parts["guide"]["target"]
    return np.sqrt(np.mean(np.sum(np.asarray(away) ** 2, -1), -1))


def run(study: Study) -> None:
    source = study.customise(machine())
    train, others = (scenarios(source, k, COUNT) for k in (0, OTHERS))
    found = tuned(source, train, others, save=study.out / "tuning")
    keep(study, found)
    beside = against(found, source, others)
    judged(study, beside)
    figures(study, beside)
    race(study, "titan4", found, budget=BUDGET)
    runs = {"source": in_earnest(source), "tuned": in_earnest(found.system)}
    hardened(study, runs)
    joints(study, runs)


def judged(study: Study, found: Tuned) -> None:
    before, after = (roots(seen) for seen in found.seen["held out"])
    study.metric(
        "titan4.tuned.cost_ratio",
        after[0] / before[0],
        0.0,
        0.5,
        note=f"to the source's gains, on {COUNT} conditions not tuned on; roots of "
        "mean squares",
    )
    for k, name in ((1, "distance"), (2, "effort")):
        study.metric(f"titan4.tuned.{name}_ratio", after[k] / before[k], note="thereof")
    assert found.growth is not None
    study.metric(
        "titan4.tuned.largest_growth",
        max(found.growth[1].max(), 0.0),
        0.0,
        1e-6,
        unit="1/s",
        note="above zero, the largest real part of a pole of the tuned loop about a "
        "creep of 0.01 rad/s, in all conditions tuned on",
    )
    study.report.table(
        f"Judged on {COUNT} conditions not tuned on",
        ("gains", "cost, rad", "distance from targets, rad", "effort"),
        [("source", *before), ("tuned", *after)],
    )


def hardened(study: Study, runs: dict[str, djdyn.Trajectory]) -> None:
    before, after = (float(np.mean(misses(run))) for run in runs.values())
    study.metric(
        "titan4.tuned.hardened_distance_ratio",
        after / before,
        0.0,
        1.0,
        note="to the source's gains, with samples of 1 ms, commands a sample late and "
        "noise of encoders of 17 bits",
    )
    study.metric(
        "titan4.tuned.survived",
        np.mean(runs["tuned"].ok),
        1.0,
        0.0,
        note="of conditions not tuned on, with samples, delay and noise",
    )
    area = np.max(np.abs(runs["tuned"].held["control"]["u"]))
    study.metric(
        "titan4.tuned.largest_opening",
        area / FULL,
        0.0,
        1.0,
        note="of a valve's full area, with samples, delay and noise",
    )


def figures(study: Study, found: Tuned) -> None:
    study.report.table(
        f"Gains tuned on {COUNT} conditions in {len(found.history)} steps",
        ("gains", "parameter", *(f"joint {i}" for i in range(1, 7))),
        [
            (name, path, *np.asarray(gains[path]))
            for name, gains in (("source", found.before), ("tuned", found.gains))
            for path in PATHS
        ],
    )
    gain_table(study, found)
    study.report.plot(
        "Tuning: the least cost so far",
        ("step", "", np.arange(1.0, len(found.history) + 1)),
        ("cost", ""),
        {"conditions tuned on": found.history[:, 0]},
        log="y",
    )


def joints(study: Study, runs: dict[str, djdyn.Trajectory]) -> None:
    some = {name: run.lane(0) for name, run in runs.items()}
    time = ("time", "s", np.asarray(some["tuned"].t)[::25])
    target = np.asarray(some["tuned"].y.parts["guide"]["target"])
    for i in (1, 3, 4):
        study.report.plot(
            f"Joint {i + 1} before and after, on a condition not tuned on, with "
            "samples, delay and noise",
            time,
            ("angle", "rad"),
            {name: np.asarray(run.y.q)[::25, i] for name, run in some.items()},
            {"target": target[::25, i]},
        )
