"""Gradient tuning of the winch on a batch of seas, evaluated on other seas."""

import dataclasses

import jax.numpy as jnp
import numpy as np

import controllers
import djdyn
from controllers import Scenarios, TuningResult, cost_of

from ...harness.study import Study
from ...harness.tuning_report import (
    compare_continuous,
    compare_searches,
    gain_table,
    margin_table,
    save_gains,
)
from . import loop as loop
from .model import static_state
from .sea_states import (
    PERIOD,
    SIMULATION,
    SPAN,
    conditions,
    figures,
    limits,
    rig,
    tune,
)


COUNT, HELD_OUT = 16, 64  # training seas, held-out seas
HELD_OUT_SEA = "Winch on a held-out sea"  # title of plots
BUDGET = 1000  # runs through the training seas, for each other search


def run(study: Study) -> None:
    """Tune on some seas and evaluate on others."""
    system = study.customise(rig())
    ready = static_state(system)
    count = COUNT if study.quick else HELD_OUT
    train = conditions(system, ready, 0, COUNT, hardest=True)
    others = conditions(system, ready, 5000, count)
    study.report.text(
        f"Three gains and three limits of the drive are tuned on {COUNT} seas and "
        f"evaluated on {count} others. In each sea a wave slams the payload for 0.2 s, "
        "with 250 N in the training seas and up to 250 N in the others. The controller "
        "samples a tension with 2 N of noise every 2.5 ms, and its commands act one "
        "sample late. The cost is a sum of mean squares, each over its largest "
        "acceptable value: 20 N of tension error, 100 N/s of its rate, drive limits of "
        "3 m/s and 3 m/s2, and 0.01 of demand beyond 0.7 of these limits. The tuning "
        "starts from a PI controller by Skogestad's rule."
    )
    steps = 10 if study.quick else 40
    found = tune(system, (train, others), steps, study.out / "tuning")
    save_gains(study, found)
    report_result(study, found, others)
    report_stability(study, found, ready)
    compare_continuous(study, "winch", found, others)
    if not study.quick:
        report_searches(study, found, others)


def report_result(study: Study, found: TuningResult, others: Scenarios) -> None:
    """Report costs and limits on the held-out seas."""
    study.metric(
        "winch.tuned.cost_ratio",
        found.cost_ratio,
        at_most=0.7 if study.quick else 0.5,
        note="cost after tuning over before, on held-out seas; "
        f"{len(found.history)} steps, {found.simulations[-1]:.0f} simulations",
    )
    before, after = found.summary()["held out"]["tension"]
    study.metric(
        "winch.tuned.rms_ratio",
        np.sqrt(after / before),
        at_most=1.0,
        note="rms error of the tension, after tuning over before",
    )
    runs = {
        name: djdyn.rollout(
            s, SPAN, others.initial_state, parameters=others.parameters, **SIMULATION,
        )
        for name, s in (("start", found.objective.system), ("tuned", found.system))
    }  # fmt: skip
    limits(study, "winch.tuned", found, runs["tuned"])
    figures(study, HELD_OUT_SEA, runs)
    gain_table(study, found)


def calm(system: djdyn.System, ready: djdyn.State) -> djdyn.System:
    """Return the system without noise and with zero static error of the tension."""
    tension = system.at(0.0, ready).signals["line.head_tension"]
    return djdyn.with_parameters(
        system, {"order.path.value": tension, "noise.deviation": 0.0}
    )


def report_stability(study: Study, found: TuningResult, ready: djdyn.State) -> None:
    """Report margins and poles under a deck at rest."""
    before, after = (calm(s, ready) for s in (found.objective.system, found.system))
    of = lambda s: controllers.margins(s, ready, "pid.u", 1.5 * PERIOD)
    edges = of(before), of(after)
    margin_table(study, "winch.tuned", dataclasses.replace(found, margins=edges))
    report_poles(study, after, ready)


def report_poles(study: Study, still: djdyn.System, ready: djdyn.State) -> None:
    """Compare the unstable pole with that of a model with a rigid line."""
    poles = np.sort(np.real(controllers.linearise(still, ready).poles()))
    gains = (float(djdyn.get_parameters(still, f"pid.{k}")) for k in ("kp", "ki", "kd"))
    by_hand = loop.unstable_root(*gains)
    study.metric(
        "winch.tuned.spectral_abscissa",
        poles[-1],
        by_hand,
        0.02 * by_hand,
        unit="1/s",
        note="largest real part of a pole: a longer line weighs more, so holding its "
        "tension is unstable; reference: a model with an inextensible line",
    )
    study.metric(
        "winch.tuned.other_growth",
        max(poles[-2], 0.0),
        at_most=1e-6,
        unit="1/s",
        note="largest real part of all other poles, or zero where all are negative; "
        "the swinging line is undamped",
    )


def report_searches(study: Study, found: TuningResult, others: Scenarios) -> None:
    """Compare with other searches on the held-out seas."""
    methods = ("CMA-ES", "Nelder-Mead")
    runs = compare_searches(study, "winch", found, BUDGET, methods)
    objective = found.objective.with_scenarios(others)
    place = lambda x: objective.x0 + objective.scale * jnp.asarray(x)
    cost = {k: float(cost_of(objective, place(x.x))) for k, x in runs.items()}
    for key, name in (("nelder_mead", "Nelder-Mead"), ("cmaes", "CMA-ES")):
        study.metric(
            f"winch.tuned.vs_{key}",
            cost["gradient"] / cost[name],
            at_most=1.02,
            note=f"held-out cost by gradient over that by {name}, {BUDGET} runs each",
        )
