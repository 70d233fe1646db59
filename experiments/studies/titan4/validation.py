"""Evaluation of the tuned Titan 4 on other conditions: costs, limits, margins."""

import jax
import numpy as np
from jaxtyping import Array

import djdyn
from controllers import STABILITY_TOLERANCE, Scenarios, margins

from ...harness.study import Study
from . import model as titan
from .conditions import drawn, machine
from .loop import (
    COST,
    INPUTS,
    SAVES,
    SIDES,
    SIMULATION,
    SPAN,
    instrumented,
    noisy,
    silent,
)
from .realtime import PERIOD


COUNT, SEED = 16, 6000  # conditions
ALL_MOVE = 1.4  # s, when all sticks are held and all valves are open
VALVES = tuple(f"control.u.{joint}" for joint in titan.JOINTS)
Runs = dict[str, djdyn.Trajectory]


def run(study: Study, gains: dict[str, dict[str, Array]]) -> None:
    """Evaluate gains by name, among them `source` and `tuned`, in both loops."""
    built = instrumented(study.customise(machine()))
    others = noisy(built, drawn(SEED, COUNT), SEED)
    runs = {
        name: djdyn.rollout(
            djdyn.with_parameters(built, values), SPAN, others.initial_state,
            parameters=others.parameters, **SIMULATION,
        )
        for name, values in gains.items()
    }  # fmt: skip
    smooth = {
        name: djdyn.rollout(
            djdyn.with_parameters(silent(built), values), SPAN, others.initial_state,
            parameters=others.parameters, saveat=np.linspace(0.0, SPAN, SAVES),
            solver="rk4", dt=SPAN / (SAVES - 1), inputs=INPUTS,
        )
        for name, values in gains.items()
    }  # fmt: skip
    costs(study, runs, smooth)
    limits(study, runs["tuned"])
    frozen(study, runs, others)
    figures(study, runs)


def terms(run: djdyn.Trajectory) -> dict[str, float]:
    """Return the mean cost and its terms over conditions."""
    at = lambda part, k: (
        run.sampled[part][k] if run.sampled else run.signal(f"{part}.{k}")
    )
    seen = {
        "distance": run.y.q - run.y.parts["guide"]["target"],
        "speed": run.y.v - at("path", "rate"),
        "effort": at("control", "u"),
    }
    found = {}
    for name, term in COST.items():
        of = lambda x, term=term: term.measure(run.t, x / term.scale)
        found[name] = float(np.mean(jax.vmap(of)(seen[name])))
    return {"cost": sum(found.values()), **found}


def costs(study: Study, runs: Runs, smooth: Runs) -> None:
    """Report costs in the sampled loop and in a continuous one."""
    built = {name: terms(run) for name, run in runs.items()}
    ideal = {name: terms(run) for name, run in smooth.items()}
    for where, found, note in (
        ("tuned", built, "sampling at 1 ms, one sample of delay, noise"),
        ("continuous", ideal, "no sampling, delay or noise"),
    ):
        for name in ("cost", *COST):
            study.metric(
                f"titan4.{where}.{name}_ratio",
                found["tuned"][name] / found["source"][name],
                at_most=0.5 if name == "cost" else None,
                note=f"tuned gains over those of the source, other conditions; {note}",
            )
    study.metric(
        "titan4.tuned.distance_to_continuous",
        built["tuned"]["distance"] / ideal["tuned"]["distance"],
        note="effect of sampling, delay and noise on the tuned loop; 1 is none",
    )
    study.metric(
        "titan4.completed_fraction",
        np.mean(runs["tuned"].ok),
        at_least=1.0,
        note="fraction of the conditions not tuned on that run to their end, with "
        "sampling, delay and noise",
    )
    study.report.table(
        f"Cost on {COUNT} conditions other than the training ones, rad",
        ("loop", "gains", "cost", *COST),
        [
            (where, name, *values.values())
            for where, found in (("sampled", built), ("continuous", ideal))
            for name, values in found.items()
        ],
    )


def limits(study: Study, run: djdyn.Trajectory) -> None:
    """Report valve areas and pressures of the tuned, sampled loop."""
    opened = np.abs(np.asarray(run.sampled["control"]["u"])).max() / titan.FULL
    oil = run.y.parts["oil"]
    bars = np.stack([oil[f"{x}.bar"] for x in SIDES]) * 1e5 / titan.SUPPLY
    for name, value, least, most, note in (
        ("largest_opening", opened, None, 1.0, "share of a valve's full area"),
        ("lowest_pressure", bars.min(), 0.0, None, "share of the supply pressure"),
        ("highest_pressure", bars.max(), None, 1.0, "share of the supply pressure"),
    ):
        note, name = f"{note}, tuned and sampled loop", f"titan4.{name}"
        study.metric(name, value, at_least=least, at_most=most, note=note)


def frozen(study: Study, runs: Runs, others: Scenarios) -> None:
    """Report poles and margins of the loop, linearised while all joints move.

    A closed valve has no gain, so there is no loop at rest.
    """
    abscissa, worst = {}, {}
    for name in ("source", "start", "tuned"):
        run = runs[name]
        at = int(np.argmin(np.abs(np.asarray(run.t) - ALL_MOVE)))
        found = []
        for k in range(COUNT):
            y = jax.tree.map(lambda x, k=k, at=at: x[k, at], run.y)
            system = others.put(run.system, k)
            found.append(margins(system, y, VALVES, 1.5 * PERIOD, ALL_MOVE))
        abscissa[name] = max(m.spectral_abscissa for m in found)
        of = lambda what, found=found: np.min([getattr(m, what) for m in found], 0)
        worst[name] = [of(what) for what in ("phase", "modulus", "delay")]
    phase, modulus, delay = worst["tuned"]
    stable = {"at_most": STABILITY_TOLERANCE}
    note = f"tuned loop linearised at {ALL_MOVE} s, worst of conditions and valves"
    for name, value, unit, bound, more in (
        ("spectral_abscissa", max(abscissa["tuned"], 0.0), "1/s", stable,
         "; zero where all poles have negative real parts"),
        ("delay_margin", 1e3 * delay.min(), "ms", {}, "; further delay it tolerates"),
        ("phase_margin", phase.min(), "deg", {}, ""),
        ("modulus_margin", modulus.min(), "", {"at_least": 0.5}, ""),
    ):  # fmt: skip
        study.metric(f"titan4.{name}", value, **bound, unit=unit, note=note + more)
    study.report.table(
        f"Margins at each valve at {ALL_MOVE} s with 1.5 samples of delay, the other "
        "loops closed, worst of conditions",
        ("gains", "valve", "phase, deg", "modulus", "further delay, ms"),
        [
            (name, i + 1, p, m, 1e3 * d)
            for name, each in worst.items()
            for i, (p, m, d) in enumerate(zip(*each, strict=True))
        ],
    )
    study.report.table(
        f"Largest real part of a pole at {ALL_MOVE} s, with the delay, 1/s; above zero "
        "the loop is unstable and its margins have no meaning",
        ("gains", "spectral abscissa"),
        list(abscissa.items()),
    )


def figures(study: Study, runs: Runs) -> None:
    """Plot joints and valves of the first condition."""
    some = {name: runs[name].lane(0) for name in ("source", "tuned")}
    time = ("time", "s", np.asarray(some["tuned"].t)[::5])
    target = np.asarray(some["tuned"].y.parts["guide"]["target"])[::5]
    areas = {
        k: 1e6 * np.asarray(r.sampled["control"]["u"])[::5] for k, r in some.items()
    }
    for i in (1, 2, 4):
        study.report.plot(
            f"Joint {i + 1}, sampled loop, other condition",
            time,
            ("angle", "rad"),
            {name: np.asarray(run.y.q)[::5, i] for name, run in some.items()},
            {"target": target[:, i]},
        )
        study.report.plot(
            f"Valve {i + 1}, sampled loop, other condition",
            time,
            ("area", "mm^2"),
            {name: x[:, i] for name, x in areas.items()},
        )
