"""The winch tuned by gradient on a batch of seas, and judged on others."""

import dataclasses

import jax.numpy as jnp
import numpy as np

import controllers
import djdyn
from controllers import Scenarios, TuningResult
from controllers.tuning.result import cost_of
from controllers.tuning.tune import with_scenarios

from ...harness.study import Study
from ...harness.tuning_report import gain_table, keep, margin_table, race, without
from . import loop as loop
from .model import rest
from .sea_states import HOW, PERIOD, SPAN, conditions, figures, limits, rig, tune


COUNT, OTHERS = 16, 64  # seas to tune on, all heights and periods once; held out
BUDGET = 1000  # runs through those tuned on, for each other search


def run(study: Study) -> None:
    """Tunes on some seas and judges on others."""
    system = study.customise(rig())
    ready = rest(system)
    count = COUNT if study.quick else OTHERS
    train = conditions(system, ready, 0, COUNT, hardest=True)
    others = conditions(system, ready, 5000, count)
    study.report.text(
        f"Three gains and three limits of the drive are tuned on {COUNT} seas, and "
        f"judged on {count} others. In each a wave slams the payload for 0.2 s, with "
        "250 N in those tuned on and with up to that in the others. The controller "
        "takes samples every 2.5 ms of a tension with 2 N of noise, and its commands "
        "come a sample late. The cost is a sum of mean "
        "squares over what one would accept: an error of the tension of 20 N, a rate "
        "of change of 100 N/s, limits of the drive of 3 m/s and 3 m/s2, and a "
        "hundredth beyond seven tenths of them. It starts from a PI controller by "
        "Skogestad's rule."
    )
    steps = 10 if study.quick else 40
    found = tune(system, (train, others), steps, study.out / "tuning")
    keep(study, found)
    judged(study, found, others)
    at_rest(study, found, ready)
    without(study, "winch", found, others)
    if not study.quick:
        beside(study, found, others)


def judged(study: Study, found: TuningResult, others: Scenarios) -> None:
    study.metric(
        "winch.tuned.cost_ratio",
        found.cost_ratio,
        0.0,
        0.7 if study.quick else 0.5,
        note=f"held out, to the start; {len(found.history)} steps, "
        f"{found.simulations[-1]:.0f} simulations",
    )
    before, after = found.figures()["held out"]["tension"]
    study.metric(
        "winch.tuned.rms_ratio",
        np.sqrt(after / before),
        0.0,
        1.0,
        note="thereof the error of the tension, rms",
    )
    gain_table(study, found)
    runs = {
        name: djdyn.rollout(
            s, SPAN, others.initial_state, parameters=others.parameters, **HOW,
        )
        for name, s in (("start", found.objective.system), ("tuned", found.system))
    }  # fmt: skip
    limits(study, "winch.tuned", found, runs["tuned"])
    figures(study, "Winch on a sea that it was not tuned on", runs)


def calm(system: djdyn.System, ready: djdyn.State) -> djdyn.System:
    """Without noise, and with no error in the tension at rest."""
    tension = system.at(0.0, ready).signals["line.head_tension"]
    return djdyn.with_parameters(
        system, {"order.path.value": tension, "noise.deviation": 0.0}
    )


def at_rest(study: Study, found: TuningResult, ready: djdyn.State) -> None:
    """Margins and poles under a deck that does not move."""
    before, after = (calm(s, ready) for s in (found.objective.system, found.system))
    of = lambda s: controllers.margins(s, ready, "pid.u", 1.5 * PERIOD)
    edges = of(before), of(after)
    margin_table(study, "winch.tuned", dataclasses.replace(found, margins=edges))
    growth(study, after, ready)


def growth(study: Study, still: djdyn.System, ready: djdyn.State) -> None:
    poles = np.sort(np.real(controllers.linearise(still, ready).poles()))
    gains = (float(djdyn.get_parameters(still, f"pid.{k}")) for k in ("kp", "ki", "kd"))
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


def beside(study: Study, found: TuningResult, others: Scenarios) -> None:
    """What other searches found, on seas held out."""
    runs = race(study, "winch", found, BUDGET, ("CMA-ES", "Nelder-Mead"))
    objective = with_scenarios(found.objective, others)
    place = lambda x: objective.x0 + objective.scale * jnp.asarray(x)
    cost = {k: float(cost_of(objective, place(x.x))) for k, x in runs.items()}
    for key, name in (("nelder_mead", "Nelder-Mead"), ("cmaes", "CMA-ES")):
        study.metric(
            f"winch.tuned.vs_{key}",
            cost["gradient"] / cost[name],
            0.0,
            1.02,
            note=f"held-out cost by gradient over that by {name}, {BUDGET} runs each",
        )
