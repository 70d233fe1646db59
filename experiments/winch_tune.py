"""The winch tuned by gradient on a batch of seas, and judged on others."""

import jax.numpy as jnp
import numpy as np

import controllers
import djdyn
from controllers import Scenarios, Tuned
from controllers.tune import elsewhere
from controllers.tuned import GRADIENT, cost_of

from . import winch_loop as loop
from .study import Study
from .tuning import gain_table, race
from .winch_gear import build, rest
from .winch_seas import (
    SAVES,
    SPAN,
    START,
    STEPS,
    conditions,
    figures,
    limits,
    tune,
)


COUNT = 64  # seas to tune on, and as many held out
BUDGET = 200  # runs through all of them, for each search


def run(study: Study) -> None:
    """Tunes on some seas and judges on others."""
    system = study.customise(djdyn.put(build(elements=2), START))
    ready = rest(system)
    train, others = (conditions(ready, first, COUNT) for first in (0, 1000))
    study.report.text(
        f"Three gains and three limits of the drive are tuned on {COUNT} seas, and "
        f"judged on {COUNT} others. The cost is the mean over seas of the rms error of "
        "the tension, and the price of the drive: 2 N for 1 m/s, 1 N for 1 m/s2 up and "
        "down, and a charge where it is asked for more than four fifths of a limit."
    )
    steps = 16 if study.quick else BUDGET // GRADIENT
    found = tune(system, (train, others), steps, STEPS)
    found.save(study.out / "gains.json")
    judged(study, found, others)
    growth(study, found.system, ready)
    if not study.quick:
        beside(study, found, others)


def judged(study: Study, found: Tuned, others: Scenarios) -> None:
    study.metric(
        "winch.tuned.cost_ratio",
        found.cost_ratio,
        0.0,
        0.7 if study.quick else 0.5,
        note=f"held out, to the start; {len(found.history)} gradients",
    )
    before, after = found.figures()["held out"]["tension"]
    study.metric("winch.tuned.rms_ratio", after / before, note="thereof the tension")
    gain_table(study, found)
    runs = {
        name: djdyn.rollout(
            s, SPAN, others.initial_state, parameters=others.parameters,
            saveat=np.linspace(0.0, SPAN, SAVES), **STEPS,
        )
        for name, s in (("start", found.objective.system), ("tuned", found.system))
    }  # fmt: skip
    limits(study, "winch.tuned", found, runs["tuned"])
    figures(study, "Winch on a sea that it was not tuned on", runs)


def growth(study: Study, system: djdyn.System, ready: djdyn.State) -> None:
    """Poles at rest under a deck that does not move, with no error in the tension."""
    tension = system.at(0.0, ready).signals["line.head_tension"]
    still = djdyn.put(system, {"order.path.value": tension})
    poles = np.sort(np.real(controllers.linearise(still, ready).poles()))
    gains = (float(djdyn.get(system, f"pid.{k}")) for k in ("kp", "ki", "kd"))
    by_hand = loop.runaway(*gains)
    study.metric(
        "winch.tuned.largest_growth",
        poles[-1],
        by_hand,
        0.02 * by_hand,
        unit="1/s",
        note="a line let out weighs more, so what holds its tension lets it run; by "
        "hand for a line that does not stretch",
    )
    study.metric(
        "winch.tuned.other_growth",
        max(poles[-2], 0.0),
        0.0,
        1e-6,
        unit="1/s",
        note="above zero, of all other poles; those of a line that swings are undamped",
    )


def beside(study: Study, found: Tuned, others: Scenarios) -> None:
    """What other searches found, on seas held out."""
    runs = race(study, "winch", found, BUDGET, ("CMA-ES", "Nelder-Mead"))
    objective = elsewhere(found.objective, others)
    place = lambda x: objective.x0 + objective.scale * jnp.asarray(x)
    cost = {k: float(cost_of(objective, place(x.x))) for k, x in runs.items()}
    for key, name in (("nelder_mead", "Nelder-Mead"), ("cmaes", "CMA-ES")):
        study.metric(
            f"winch.tuned.vs_{key}",
            cost["gradient"] / cost[name],
            0.0,
            1.05,
            note=f"held-out cost by gradient over that by {name}, {BUDGET} runs each",
        )
