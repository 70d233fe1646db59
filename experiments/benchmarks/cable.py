"""Lines of 20 and 100 elements, alone and in a batch, beside MoorDyn at equal error.

The case is CAB-3, a payload in the water under a wire whose top heaves. Of each
engine's settings the fastest counts whose range of tensions is within half a per cent
of a refined answer.
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

WITHIN = 5e-3  # of the width of the refined range
REFINED = {20: ("rk4", 2.5e-4), 100: ("ros2", 1e-3)}
OURS = {20: (0.02, 0.01), 100: (0.02, 0.01)}  # s
THEIRS = {  # s: own steps, and calls with a new motion of the top
    20: ((1e-3, 5e-3), (1e-3, 2e-3), (1e-3, 1e-3)),
    100: ((2e-4, 2e-3), (2e-4, 1e-3)),
}
WANTED = {20: "wanted: above 1", 100: "wanted: at least 3"}


@dataclasses.dataclass(frozen=True)
class Entry:
    """A setting of an engine; `run` returns its tensions and the seconds it took."""

    engine: str
    setting: str
    run: Callable[[], tuple[np.ndarray, float]]


def run(study: Study) -> None:
    try:
        peer.import_moordyn()
    except ImportError as error:
        study.report.text(f"Nothing to compare with: {error}.")
        return
    rounds, cores = int(study.options["rounds"]), len(os.sched_getaffinity(0))
    study.report.text(
        f"{DURATION:g} s of CAB-3, best of {rounds} runs in turns, double precision. "
        "MoorDyn's time is that of its steps alone. It holds the velocity of the top "
        "from call to call, so its error depends on how often it is called; ours is "
        "that of implicit steps. An error is how far the ends of the range of the top "
        "tension are off, relative to its width."
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
        "CAB-3, speed at equal error",
        ("engine", "lines", "elements", "setting", "error, %", "time, s",
         "times real time"),
        rows,
    )  # fmt: skip


def one_line(
    study: Study, elements: int, rounds: int, rows: list
) -> tuple[float, float] | None:
    """Races the settings; returns our step and MoorDyn's time, if both are in."""
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
        for dt in OURS[elements]
    }
    for inner, call in THEIRS[elements]:
        setting = f"{1e3 * inner:g} ms, called each {1e3 * call:g} ms"
        race = lambda inner=inner, call=call: theirs(inner, call)
        entries["MoorDyn", call] = Entry("MoorDyn", setting, race)
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
        if error < WITHIN and taken < best.get(entry.engine, (np.inf,))[0]:
            best[entry.engine] = taken, key
    stem = f"cable.speed.n{elements}"
    for engine, name in (("djdyn", ""), ("MoorDyn", "moordyn.")):
        if engine not in best:
            study.report.text(f"{engine} is not within {WITHIN:.1%} at {elements}.")
            return None
        taken, key = best[engine]
        study.metric(f"{stem}.{name}error", errors[key], at_most=WITHIN, note=engine)
        study.metric(
            f"{stem}.{name}realtime", DURATION / taken, note=entries[key].setting
        )
    ratio = best["MoorDyn"][0] / best["djdyn"][0]
    study.metric(f"{stem}_vs_moordyn", ratio, note=WANTED[elements])
    return best["djdyn"][1][1], best["MoorDyn"][0]


def many_lines(
    study: Study, dt: float, moordyn: float, rounds: int, cores: int, rows: list
) -> None:
    """Lines of 20 elements at once, with the step that was fastest for one."""
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
        note=f"MoorDyn has no batches: as if it ran on {cores} cores, a line each; "
        "wanted: at least 5",
    )
