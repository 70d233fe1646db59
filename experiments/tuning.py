"""What studies of tuning share: hardened loops, and races with other searches."""

from collections.abc import Sequence

import numpy as np

import controllers
import djdyn
from controllers import Scenarios, Search, Tuned
from controllers.objective import Objective
from controllers.rivals import RIVALS
from controllers.tune import judge
from controllers.tuned import percent

from .study import Study


def without(
    study: Study, name: str, found: Tuned, others: Scenarios, loop: tuple[str, str]
) -> None:
    """Terms over those before tuning, in a loop without samples, delay and noise."""
    old = found.objective
    soft = controllers.softened(old.system, *loop)
    y = others.initial_state
    assert y is not None
    states = {k: y.parts[k] for k in soft.parts}
    noise = f"{loop[0]}_noise."
    given = {k: x for k, x in others.parameters.items() if not k.startswith(noise)}
    new = Objective(
        soft, old.span, old.free, old.probes.terms,
        Scenarios(given, djdyn.State(y.q, y.v, states)), {},
        len(old.saves), "mean", "penalise", 1.0, {"solver": "rk4", "dt": old.how["dt"]},
    )  # fmt: skip
    before, after = judge(new, new.x0), judge(new, found.x)
    ratio = np.mean(after.costs) / np.mean(before.costs)
    study.metric(
        f"{name}.continuous.cost_ratio",
        ratio,
        0.0,
        1.0,
        note="in a loop without samples, delay and noise",
    )
    study.metric(
        f"{name}.survived",
        np.mean(found.seen["held out"][1].ok),
        1.0,
        0.0,
        note="of scenarios held out, with samples, delay and noise",
    )


def keep(study: Study, found: Tuned) -> None:
    """Gains on disk; what an interrupted tuning would go on with is gone."""
    found.save(study.out / "gains.json")
    for kept in study.out.glob("tuning*.npz"):
        kept.unlink()


def race(
    study: Study,
    name: str,
    found: Tuned,
    budget: int,
    methods: Sequence[str] = tuple(RIVALS),
) -> dict[str, Search]:
    """Beside CMA-ES, Nelder and Mead and chance, at equal cost."""
    runs = controllers.compare(found, budget=budget, methods=methods)
    mine, rival = runs["gradient"], runs["CMA-ES"]
    study.metric(
        f"{name}.simulations_vs_cmaes",
        mine.simulations_to(rival.cost) / rival.history[-1, 0],
        0.0,
        1.0,
        note=f"to the cost of CMA-ES after {budget} runs through all scenarios; a "
        f"step is counted as {found.price}; aim 0.1",
    )
    rows = [
        (k, x.history[-1, 0], x.history[-1, 1], x.cost, mine.simulations_to(x.cost))
        for k, x in runs.items()
    ]
    study.report.table(
        "Searches on the same scenarios",
        (
            "search",
            "simulations",
            "seconds",
            "least cost",
            "gradient's simulations to it",
        ),
        rows,
    )
    grid = np.arange(1.0, budget + 1)
    lines = {
        k: np.interp(grid, x.history[:, 0], x.history[:, 2]) for k, x in runs.items()
    }
    study.report.plot(
        "Searches: the least cost so far",
        ("runs through all scenarios", "", grid),
        ("cost", ""),
        lines,
    )
    return runs


def margin_table(study: Study, name: str, found: Tuned) -> None:
    """How much gain and lag the loop bears, with its delay, before and after."""
    assert found.margins is not None
    study.metric(
        f"{name}.modulus_margin",
        found.margins[1].modulus.min(),
        1.0,
        0.5,
        note="least distance of an open loop from minus one, delay included; half is "
        "what is asked for",
    )
    study.metric(
        f"{name}.phase_margin",
        found.margins[1].phase.min(),
        unit="deg",
        note="likewise",
    )
    study.report.table(
        "Margins of each loop, the others closed, worst of all scenarios",
        ("gains", "loop", "gain, dB", "phase, deg", "modulus"),
        [
            (when, i + 1, 20 * np.log10(m.gain[i]), m.phase[i], m.modulus[i])
            for when, m in zip(("before", "after"), found.margins, strict=True)
            for i in range(len(m.gain))
        ],
    )


def gain_table(study: Study, found: Tuned) -> None:
    """Before, after, and how the cost changes with each."""
    flat = lambda gains: [float(y) for k in sorted(gains) for y in np.ravel(gains[k])]
    changes = found.sensitivity()
    study.report.table(
        "What was tuned",
        ("parameter", "before", "after", "cost with 0.9 of it", "with 1.1 of it"),
        [
            (name, f"{old:.5g}", f"{new:.5g}", *map(percent, changes[name]))
            for name, old, new in zip(
                changes, flat(found.before), flat(found.gains), strict=True
            )
        ],
    )
