"""The Titan 4's tuned loop on conditions not tuned on: costs, limits, margins."""

import jax
import numpy as np
from jaxtyping import Array

import djdyn
from controllers import STABILITY_TOLERANCE, Scenarios, margins

from ...harness.study import Study
from . import model as titan
from .conditions import drawn, machine
from .loop import COST, HOW, SAVES, SIDES, SPAN, STICKS, instrumented, noisy, silent
from .realtime import PERIOD


COUNT, SEED = 16, 6000  # conditions
ALL_MOVE = 1.4  # s, when all sticks are held and all valves are open
VALVES = tuple(f"control.u.{joint}" for joint in titan.JOINTS)
Runs = dict[str, djdyn.Trajectory]


def run(study: Study, gains: dict[str, dict[str, Array]]) -> None:
    """Gains by name, `source` and `tuned` among them, in both loops."""
    built = instrumented(study.customise(machine()))
    others = noisy(built, drawn(SEED, COUNT), SEED)
    runs = {
        name: djdyn.rollout(
            djdyn.with_parameters(built, values), SPAN, others.initial_state,
            parameters=others.parameters, **HOW,
        )
        for name, values in gains.items()
    }  # fmt: skip
    smooth = {
        name: djdyn.rollout(
            djdyn.with_parameters(silent(built), values), SPAN, others.initial_state,
            parameters=others.parameters, saveat=np.linspace(0.0, SPAN, SAVES),
            solver="rk4", dt=SPAN / (SAVES - 1), inputs=STICKS,
        )
        for name, values in gains.items()
    }  # fmt: skip
    costs(study, runs, smooth)
    limits(study, runs["tuned"])
    frozen(study, runs, others)
    figures(study, runs)


def terms(run: djdyn.Trajectory) -> dict[str, float]:
    """Means over conditions."""
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
    """As built, and in a loop without samples, delay and noise."""
    built = {name: terms(run) for name, run in runs.items()}
    ideal = {name: terms(run) for name, run in smooth.items()}
    for where, found, note in (
        ("tuned", built, "samples of 1 ms, a sample of delay, noise"),
        ("continuous", ideal, "no samples, delay or noise"),
    ):
        for name in ("cost", *COST):
            study.metric(
                f"titan4.{where}.{name}_ratio",
                found["tuned"][name] / found["source"][name],
                at_most=0.5 if name == "cost" else None,
                note=f"to the source's gains, on conditions not tuned on; {note}",
            )
    study.metric(
        "titan4.tuned.distance_to_continuous",
        built["tuned"]["distance"] / ideal["tuned"]["distance"],
        note="what samples, delay and noise do to the tuned loop; 1 is nothing",
    )
    study.metric(
        "titan4.completed_fraction",
        np.mean(runs["tuned"].ok),
        at_least=1.0,
        note="fraction of the conditions not tuned on that run to their end, with "
        "sampling, delay and noise",
    )
    study.report.table(
        f"Judged on {COUNT} conditions not tuned on, rad",
        ("loop", "gains", "cost", *COST),
        [
            (where, name, *values.values())
            for where, found in (("as built", built), ("continuous", ideal))
            for name, values in found.items()
        ],
    )


def limits(study: Study, run: djdyn.Trajectory) -> None:
    """Valves and pressures of the tuned loop as built."""
    opened = np.abs(np.asarray(run.sampled["control"]["u"])).max() / titan.FULL
    oil = run.y.parts["oil"]
    bars = np.stack([oil[f"{x}.bar"] for x in SIDES]) * 1e5 / titan.SUPPLY
    for name, value, bound, note in (
        ("largest_opening", opened, {"at_most": 1.0}, "share of a valve's full area"),
        ("lowest_pressure", bars.min(), {"at_least": 0.0}, "share of the supply's"),
        ("highest_pressure", bars.max(), {"at_most": 1.0}, "share of the supply's"),
    ):
        note = f"{note}, tuned loop as built"
        study.metric(f"titan4.{name}", value, **bound, note=note)


def frozen(study: Study, runs: Runs, others: Scenarios) -> None:
    """Poles and margins of the loop as it stands where all joints move.

    A shut valve has no gain, so at rest there is no loop to look at.
    """
    growth, worst = {}, {}
    for name in ("source", "start", "tuned"):
        run = runs[name]
        at = int(np.argmin(np.abs(np.asarray(run.t) - ALL_MOVE)))
        found = []
        for k in range(COUNT):
            y = jax.tree.map(lambda x, k=k, at=at: x[k, at], run.y)
            system = others.put(run.system, k)
            found.append(margins(system, y, VALVES, 1.5 * PERIOD, ALL_MOVE))
        growth[name] = max(m.spectral_abscissa for m in found)
        of = lambda what, found=found: np.min([getattr(m, what) for m in found], 0)
        worst[name] = [of(what) for what in ("phase", "modulus", "delay")]
    phase, modulus, delay = worst["tuned"]
    stable = {"at_most": STABILITY_TOLERANCE}
    note = f"tuned loop frozen at {ALL_MOVE} s, worst of conditions and valves"
    for name, value, unit, bound, more in (
        ("spectral_abscissa", max(growth["tuned"], 0.0), "1/s", stable,
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
        f"Largest real part of a pole at {ALL_MOVE} s, with the delay, 1/s: above "
        "zero the loop is unstable, and its margins above mean nothing",
        ("gains", "growth"),
        list(growth.items()),
    )


def figures(study: Study, runs: Runs) -> None:
    """The first condition."""
    some = {name: runs[name].lane(0) for name in ("source", "tuned")}
    time = ("time", "s", np.asarray(some["tuned"].t)[::5])
    target = np.asarray(some["tuned"].y.parts["guide"]["target"])[::5]
    areas = {
        k: 1e6 * np.asarray(r.sampled["control"]["u"])[::5] for k, r in some.items()
    }
    for i in (1, 2, 4):
        study.report.plot(
            f"Joint {i + 1} as built, on a condition not tuned on",
            time,
            ("angle", "rad"),
            {name: np.asarray(run.y.q)[::5, i] for name, run in some.items()},
            {"target": target[:, i]},
        )
        study.report.plot(
            f"Valve {i + 1} as built, on a condition not tuned on",
            time,
            ("area", "mm^2"),
            {name: x[:, i] for name, x in areas.items()},
        )
