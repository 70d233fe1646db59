"""The Titan 4's gains and bandwidths tuned by gradient, on many conditions."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import controllers
import djdyn
from controllers import RootMeanSquare, Scenarios, Tuned
from controllers.terms import AbstractTerm
from controllers.tune import judge
from djdyn import Bounded, FreeParameter, Positive
from djdyn.system import Instant

from .study import Study
from .titan4_conditions import AREA, MOVES, machine, scenarios
from .titan4_sticks import sticks
from .tuning import gain_table, keep, race


SPAN, SAVES = 3.0, 151  # s
COUNT, STEPS, BUDGET = 16, 60, 100
OTHERS = 1000  # the first seed of conditions held out
STICKS = {"sticks": sticks(MOVES)}
HOW: dict[str, Any] = {"solver": "rk4", "dt": 5e-3, "inputs": STICKS}
PATHS = ("control.kp", "control.ki", "path.frequency", "control.kd", "control.k3")
QUICKEST = 60.0  # rad/s: a third of a radian in a step
FREE = tuple(
    FreeParameter(p, Bounded(1.0, QUICKEST) if p == "path.frequency" else Positive())
    for p in PATHS
)
DAMPED, K3 = 0.1, 0.5  # of critical, 1/s: to begin with, where the source has nothing
PRICE = 0.02  # rad, for the effort of all of `AREA`


def distance(now: Instant) -> Array:
    """Of joints from the sticks' targets, rad."""
    return now.world.q - now.signals["guide.value"]


COST: dict[str, AbstractTerm] = {  # rad
    "distance": RootMeanSquare(distance),
    "effort": RootMeanSquare("control.u", AREA / PRICE),
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
        max_steps=steps, saves=saves, **more, **HOW,
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


def run(study: Study) -> None:
    source = study.customise(machine())
    train, others = (scenarios(source, k, COUNT) for k in (0, OTHERS))
    found = tuned(source, train, others, save=study.out / "tuning")
    keep(study, found)
    beside = against(found, source, others)
    judged(study, beside)
    figures(study, beside)
    race(study, "titan4", found, budget=BUDGET)
    joints(study, {"source": source, "tuned": found.system}, others)


def judged(study: Study, found: Tuned) -> None:
    """Beside the source's gains, on conditions held out."""
    numbers = found.figures()["held out"]
    for name, (before, after) in numbers.items():
        if name in ("cost", *COST):
            study.metric(
                f"titan4.tuned.{name}_ratio",
                after / before,
                *((0.0, 0.5) if name == "cost" else ()),
                note=f"to the source's gains, on {COUNT} conditions not tuned on",
            )
    study.report.table(
        f"Judged on {COUNT} conditions not tuned on",
        ("", "source", "tuned"),
        [(name, *both) for name, both in numbers.items()],
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


def joints(study: Study, systems: dict[str, djdyn.System], others: Scenarios) -> None:
    """The first condition that was not tuned on."""
    some = {
        name: djdyn.rollout(
            system, SPAN, others.initial_state, parameters=others.parameters,
            saveat=np.linspace(0.0, SPAN, SAVES), **HOW,
        ).lane(0)
        for name, system in systems.items()
    }  # fmt: skip
    time = ("time", "s", np.asarray(some["tuned"].t))
    target = np.asarray(some["tuned"].y.parts["guide"]["target"])
    for i in (1, 3, 4):
        study.report.plot(
            f"Joint {i + 1} before and after, on a condition not tuned on",
            time,
            ("angle", "rad"),
            {name: np.asarray(run.y.q)[:, i] for name, run in some.items()},
            {"target": target[:, i]},
        )
