"""Speed of the valve step, compared with Exudyn."""

import time

import jax
import numpy as np

from ...harness import exudyn_peer as peer
from ...harness.study import Study
from .model import BAR, valve_step
from .valve import ENDS, step_run


def compare_with_exudyn(study: Study) -> None:
    """Time the valve step, and Exudyn on the same problem if it is installed."""
    rounds, rows, ends = 3 if study.quick else 10, [], np.array([0.0, 1.0])
    setting, stem = peer.Setting(), "hydraulic_boom.hyd1"
    try:
        peer.import_exudyn()
        there = True
    except ImportError as error:
        there = False
        rows.append((f"Exudyn is not installed: {error}", None, None, None))
    for V, known in ENDS.items():
        system, ours, theirs, found = valve_step(V), np.inf, np.inf, None
        run = step_run(system, ends)  # compiles
        for _ in range(rounds):  # in turns, so that both have the same machine
            began = time.perf_counter()
            run = jax.block_until_ready(step_run(system, ends))
            ours = min(ours, time.perf_counter() - began)
            if there:
                found, taken = peer.valve_step(V, setting)
                theirs = min(theirs, taken)
        p = [float(run.y.parts["oil"][k][-1]) for k in ("A.bar", "B.bar")]
        off = lambda p, known=known: np.abs(np.subtract(p, known[1:3])).max()
        rows.append(("djdyn, rodas4, tolerance 1e-5", 1e6 * V, off(p), 1 / ours))
        note = "aim: simulated over elapsed time"
        study.metric(f"{stem}.realtime_{V:g}", 1 / ours, at_least=100.0, note=note)
        if found is None:
            continue
        rows.append((f"Exudyn, {setting}", 1e6 * V, off(found[1:] / BAR), 1 / theirs))
        if min(ENDS) == V:
            note = f"aim: time of Exudyn ({setting}) over ours, stiffest volume"
            study.metric(f"{stem}.vs_exudyn", theirs / ours, at_least=2.0, note=note)
    study.report.table(
        f"Valve step: speed of one run, best of {rounds} in turns",
        ("engine", "chambers, ml", "error after 1 s, bar", "times real time"),
        rows,
    )
