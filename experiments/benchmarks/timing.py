"""Timing of engines side by side: they must agree before they are timed in turns."""

import contextlib
import dataclasses
import io
import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ..harness.study import Study
from . import engines
from .engines import Call, Engine
from .problems import Problem


OPTIONS = {"engines": ",".join(engines.PEERS), "steps": 200, "rounds": 5}
SAMPLE = 0.02  # s, shortest sample: shorter calls are repeated
BUDGET = 20.0, 2.0  # s, time of an engine in a comparison, full and quick run


@dataclasses.dataclass(frozen=True)
class Timing:
    """Seconds of one call: the best, and the relative excess of the median."""

    best: float
    spread: float


def time_calls(calls: dict[str, Call], rounds: int, budget: float) -> dict[str, Timing]:
    """Time each call once a round, so that other load affects all alike.

    An engine that has used up its budget is left out of the remaining rounds.
    """
    samples: dict[str, list[float]] = {}
    counts = {}
    for key, call in calls.items():
        jax.block_until_ready(call())
        counts[key] = math.ceil(SAMPLE / _seconds(call, 1))
    for _ in range(rounds):
        for key, call in calls.items():
            taken = samples.setdefault(key, [])
            if not taken or sum(taken) * counts[key] < budget:
                if counts[key] > 1:  # the previous call may have evicted the caches
                    _seconds(call, counts[key])
                taken.append(_seconds(call, counts[key]))
    return {
        key: Timing(min(taken), float(np.median(taken)) / min(taken) - 1)
        for key, taken in samples.items()
    }


def fastest(call: Call, rounds: int) -> float:
    """Return the seconds of the fastest of some calls, after one that compiles."""
    jax.block_until_ready(call())
    return min(_seconds(call, 1) for _ in range(rounds))


def _seconds(call: Call, count: int) -> float:
    """Return the mean seconds of some calls."""
    start = time.perf_counter()
    for _ in range(count):
        jax.block_until_ready(call())
    return (time.perf_counter() - start) / count


class Engines:
    """Engines of a comparison, and notes on those that are left out."""

    def __init__(self, study: Study):
        chosen = str(study.options["engines"]).split(",")
        known = [key for key in engines.PEERS if key in chosen]
        if unknown := set(chosen) - {*engines.PEERS, ""}:
            raise ValueError(
                f"unknown engine {', '.join(sorted(unknown))}; "
                f"there are {', '.join(engines.PEERS)}"
            )
        self.ours, (found, self.notes) = engines.ours(), engines.peers(known)
        if study.quick:
            slow = [e.name for e in found if e.key in engines.SLOW]
            if slow:
                self.note(
                    f"A quick run leaves out {', '.join(slow)}, which compile slowly."
                )
            found = [e for e in found if e.key not in engines.SLOW]
        self.peers = found
        self.rounds = int(study.options["rounds"])
        self.steps = int(study.options["steps"])
        self.budget = BUDGET[study.quick]

    @property
    def names(self) -> dict[str, str]:
        """Names of the engines by key."""
        return {e.key: e.name for e in (*self.ours, *self.peers)}

    def note(self, sentence: str) -> None:
        """Keep a sentence for the report."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def prepare(
        self, make: Callable[[Engine], Call | None], who: Iterable[Engine], what: str
    ) -> dict[str, Call]:
        """Return the calls of all engines that support them; note the others."""
        calls = {}
        for engine in who:
            try:
                with quiet():
                    call = make(engine)
                    if call is not None:
                        jax.block_until_ready(call())
            except Exception as error:  # a failure of another engine is only noted
                if engine in self.ours:
                    raise
                said = " ".join(str(error).split())[:200]
                self.note(f"{engine.name} failed on the {what}: {said}")
                continue
            if call is None:
                self.note(f"{engine.name} supports {engine.limits} only.")
            else:
                calls[engine.key] = call
        return calls

    def agreed(
        self, results: dict[str, Any], tolerance: dict[str, float], what: str
    ) -> dict[str, float]:
        """Return relative differences from djdyn of the engines within tolerance."""
        reference, gaps = np.asarray(results["djdyn"]), {}
        scale = max(1.0, float(np.abs(reference).max()))
        for key, found in results.items():
            gap = float(np.abs(np.asarray(found) - reference).max()) / scale
            if gap <= tolerance.get(key, tolerance[""]):
                gaps[key] = gap
            else:
                name = self.names[key]
                self.note(f"{name} differs by {gap:.1e} on the {what}: not timed.")
        return gaps

    def report_notes(self, study: Study) -> None:
        """Add the notes to the report."""
        for sentence in self.notes:
            study.report.text(sentence)


@contextlib.contextmanager
def quiet():
    """Suppress output and warnings of engines while they are imported and built."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def label(batch: int) -> str:
    """Return the batch size as part of the name of a metric."""
    return "single" if batch == 1 else f"batch{batch}"


def describe(problem: Problem, batch: int) -> str:
    """Return problem and batch size in words."""
    return f"{problem.title} " + ("alone" if batch == 1 else f"in batches of {batch}")


def curves(
    study: Study,
    title: str,
    x: tuple[str, str],
    y: tuple[str, str],
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    log: Any = "xy",
    marks: Mapping[str, tuple[Sequence[float], Sequence[float]]] | None = None,
) -> None:
    """Plot curves; a curve of one point is a marker."""
    single = {k: line for k, line in lines.items() if len(line[0]) == 1}
    lines = {k: line for k, line in lines.items() if len(line[0]) > 1}
    grid = sorted({value for line in lines.values() for value in line[0]} or {1.0})
    study.report.plot(title, (*x, grid), y, lines, {**single, **(marks or {})}, log=log)
