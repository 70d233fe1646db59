"""Speed of lines of 20 and 100 elements beside MoorDyn, at equal error.

The case is a submerged payload under a wire with a heaving top. Each engine is
represented by its fastest setting whose range of tensions is within 0.5 % of a refined
solution.
"""

import dataclasses
import os
import time
from collections.abc import Callable

import jax
import numpy as np

from ..harness import moordyn_peer as peer
from ..harness.study import Study
from ..studies.cable.heave import DURATION, build, difference, extremes, heave, start


TITLE = "Cables beside MoorDyn"
STAGES = 3
OPTIONS = {"rounds": 3, "batch": 256}

MAX_ERROR = 5e-3  # over the width of the refined range
REFINED = {20: ("rk4", 2.5e-4), 100: ("ros2", 1e-3)}
DJDYN_STEPS = {20: (0.02, 0.01), 100: (0.02, 0.01)}  # s
MOORDYN_STEPS = {  # s: internal steps, intervals of calls
    20: ((1e-3, 5e-3), (1e-3, 2e-3), (1e-3, 1e-3)),
    100: ((2e-4, 2e-3), (2e-4, 1e-3)),
}
AIMS = {20: 1.0, 100: 3.0}  # speed over that of MoorDyn


@dataclasses.dataclass(frozen=True)
class Entry:
    """Setting of an engine; `run` returns tensions and elapsed seconds."""

    engine: str
    setting: str
    run: Callable[[], tuple[np.ndarray, float]]


def run(study: Study) -> None:
    try:
        peer.import_moordyn()
    except ImportError as error:
        study.report.text(f"There is no comparison: {error}.")
        return
    rounds, cores = int(study.options["rounds"]), len(os.sched_getaffinity(0))
    study.report.text(
        f"{DURATION:g} s of a payload under a heaving wire, best of {rounds} runs in "
        "turns, double precision. MoorDyn's time is that of its steps alone. MoorDyn "
        "holds the velocity of the top between calls, so its error depends on the "
        "interval of the calls; that of djdyn depends on its implicit steps. The error "
        "is that of the ends of the range of the top tension, relative to its width."
    )
    rows, single = [], None
    for elements in (20,) if study.quick else (20, 100):
        with study.stage(f"{elements} elements"):
            found = one_line(study, elements, rounds, rows)
            single = single or found
    if single is not None:
        with study.stage(f"batch of {study.options['batch']}"):
            many_lines(study, *single, rounds, cores, rows)
    study.report.table(
        "Heaving payload: speed at equal error",
        ("engine", "lines", "elements", "setting", "error, %", "time, s",
         "times real time"),
        rows,
    )  # fmt: skip


def one_line(
    study: Study, elements: int, rounds: int, rows: list
) -> tuple[float, float] | None:
    """Time all settings; return djdyn's step and MoorDyn's time at equal error."""
    system = build(elements)
    y0 = start(system)

    def ours(solver: str, dt: float) -> tuple[np.ndarray, float]:
        began = time.perf_counter()
        run = jax.block_until_ready(heave(system, y0, solver, dt))
        taken = time.perf_counter() - began
        return np.asarray(run.lane(0).signal("line.head_tension")), taken

    def theirs(inner: float, call: float) -> tuple[np.ndarray, float]:
        deck = peer.heave_deck(elements, inner)
        run = peer.run_moordyn(deck, DURATION, call, peer.heave)
        return run.force[:: round(0.04 / call)], run.wall

    refined = extremes(ours(*REFINED[elements])[0])
    entries = {
        ("djdyn", dt): Entry(
            "djdyn", f"{1e3 * dt:g} ms", lambda dt=dt: ours("ros2", dt)
        )
        for dt in DJDYN_STEPS[elements]
    }
    for inner, call in MOORDYN_STEPS[elements]:
        setting = f"{1e3 * inner:g} ms, called each {1e3 * call:g} ms"
        run = lambda inner=inner, call=call: theirs(inner, call)
        entries["MoorDyn", call] = Entry("MoorDyn", setting, run)
    ends = {k: extremes(entry.run()[0]) for k, entry in entries.items()}  # and compile
    times = dict.fromkeys(entries, np.inf)
    for _ in range(rounds):
        for key, entry in entries.items():
            times[key] = min(times[key], entry.run()[1])
    errors, best = {k: difference(x, refined) for k, x in ends.items()}, {}
    for key, entry in entries.items():
        taken, error = times[key], errors[key]
        row = (entry.engine, 1, elements, entry.setting, 100 * error, taken)
        rows.append((*row, DURATION / taken))
        if error < MAX_ERROR and taken < best.get(entry.engine, (np.inf,))[0]:
            best[entry.engine] = taken, key
    stem = f"cable.speed.n{elements}"
    for engine, name in (("djdyn", ""), ("MoorDyn", "moordyn.")):
        if engine not in best:
            study.report.text(
                f"No setting of {engine} is within {MAX_ERROR:.1%} of the range "
                f"at {elements} elements."
            )
            return None
        taken, key = best[engine]
        note = f"error of the range of tensions, {engine}"
        study.metric(f"{stem}.{name}error", errors[key], at_most=MAX_ERROR, note=note)
        study.metric(
            f"{stem}.{name}realtime", DURATION / taken, note=entries[key].setting
        )
    ratio = best["MoorDyn"][0] / best["djdyn"][0]
    note = "aim: speed over that of MoorDyn, at equal error"
    study.metric(f"{stem}_vs_moordyn", ratio, at_least=AIMS[elements], note=note)
    return best["djdyn"][1][1], best["MoorDyn"][0]


def many_lines(
    study: Study, dt: float, moordyn: float, rounds: int, cores: int, rows: list
) -> None:
    """Time a batch of lines of 20 elements with the fastest step of a single one."""
    batch, system = int(study.options["batch"]), build(20)
    y0 = start(system, batch)
    jax.block_until_ready(heave(system, y0, "ros2", dt))
    taken = np.inf
    for _ in range(rounds):
        began = time.perf_counter()
        jax.block_until_ready(heave(system, y0, "ros2", dt))
        taken = min(taken, time.perf_counter() - began)
    rate, peers = batch * DURATION / taken, cores * DURATION / moordyn
    rows.append(("djdyn", batch, 20, f"{1e3 * dt:g} ms", None, taken, rate))
    name = f"cable.speed.batch{batch}"
    study.metric(f"{name}.realtime", rate, note=f"lines of 20 elements, {cores} cores")
    study.metric(
        f"{name}_vs_moordyn",
        rate / peers,
        at_least=5.0,
        note="aim: speed over that of MoorDyn, which has no batches: as if it ran one "
        f"line on each of {cores} cores",
    )
