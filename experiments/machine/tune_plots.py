"""Plots of a tuned scenario: runs before and after, costs of all, and the search."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

import djdyn
from controllers import Evaluation, Scenarios, TuningResult
from controllers.tuning.terms import look
from djdyn.view.machine import draw

from ..harness.study import Study
from .simulate import reached
from .tune_table import TuningTask
from .tune_terms import SignalValue


MOST_ENTRIES = 6  # of a quantity, that are plotted


def plot_runs(
    study: Study, task: TuningTask, found: TuningResult, where: str
) -> str | None:
    """Plot what terms and limits look at, in the worst scenario; return a title."""
    scenarios = task.hold_out if where == "held out" else task.scenarios
    assert scenarios is not None
    after = found.evaluations[where][1]
    worst = int(np.argmax(np.where(after.ok, after.costs, np.inf)))
    run = _runs(task, found, scenarios, worst)
    said = f"scenario of largest cost, {where}" if len(scenarios) > 1 else where
    probes = {name: term.probe for name, term in task.cost.items()}
    probes |= {name: limit.probe for name, limit in task.limits.items()}
    signals = [SignalValue(name) for name in task.scenario.signals]
    series = run.map(
        lambda now: (
            {name: look(probe, now) for name, probe in probes.items()},
            [look(signal, now) for signal in signals],
        )
    )
    titles = []
    for name in probes:  # in the order of the file
        limit = task.limits.get(name)
        levels = {}
        for end, level in (
            ("low", limit and limit.low),
            ("high", limit and limit.high),
        ):
            if level is not None and np.isfinite(level):
                levels[end] = ([0.0, task.t1], [level, level])
        label = _label(probes[name])
        titles += _plot(
            study,
            f"{name[:1].upper()}{name[1:]}: {said}",
            (label, task.units[name]),
            run.t,
            series[0][name],
            levels,
        )
    for signal, values in zip(signals, series[1], strict=True):
        label = (signal.signal, run.unit(signal.signal))
        _plot(study, f"Signal {signal.signal}: {said}", label, run.t, values, {})
    lanes = {"before": run.lane(0), "after": run.lane(1)}
    for when, lane in lanes.items():
        study.series(when, lane if lane.ok else reached(lane))
    last = lanes["after"] if lanes["after"].ok else reached(lanes["after"])
    if len(last) > 1:
        study.report.scene(draw(last, task.scenario.shapes), "Replay after tuning")
    return titles[0] if titles else None


def _runs(
    task: TuningTask, found: TuningResult, scenarios: Scenarios, k: int
) -> djdyn.Trajectory:
    """Return the runs of a scenario with the gains before and after, as two lanes."""
    twice = lambda x: jnp.stack([x[k], x[k]])
    lanes = {path: twice(x) for path, x in scenarios.parameters.items()}
    gains = {
        path: jnp.stack([x, found.gains[path]]) for path, x in found.before.items()
    }
    sampled = "control_period" in task.options
    return djdyn.rollout(
        task.system,
        task.t1,
        jax.tree.map(twice, scenarios.initial_state),
        parameters=lanes | gains,
        saveat=None if sampled else np.linspace(0.0, task.t1, task.saves),
        **task.options,
    )


def _label(probe: object) -> str:
    """Return what a probe looks at, in words."""
    if isinstance(probe, SignalValue):
        less = f" - {probe.minus}" if probe.minus else ""
        return f"{probe.signal}{less}"
    inner = next((str(x) for x in vars(probe).values() if isinstance(x, str)), "")
    return f"{type(probe).__name__} {inner}".strip()


def _plot(
    study: Study,
    title: str,
    label: tuple[str, str],
    t: ArrayLike,
    values: ArrayLike,
    levels: Mapping[str, tuple],
) -> list[str]:
    """Plot the entries of a quantity before and after; return the titles."""
    titles = []
    x = np.asarray(values)
    x = np.where(np.isfinite(x), x, np.nan)
    many = x.shape[-1] > 1
    for i in range(min(x.shape[-1], MOST_ENTRIES)):
        titles.append(f"{title}, entry {i}" if many else title)
        lines = {"before": x[0, :, i], "after": x[1, :, i]}
        time = ("time", "s", np.asarray(t))
        study.report.plot(titles[-1], time, label, lines, levels)
    return titles


def plot_costs(
    study: Study, evaluations: tuple[Evaluation, Evaluation], where: str
) -> None:
    """Plot the cost of each scenario before and after, in the order of that before."""
    of = lambda e: np.where(np.asarray(e.ok), np.asarray(e.costs), np.nan)
    before, after = map(of, evaluations)
    if len(before) < 2 or not (np.isfinite(before).any() and np.isfinite(after).any()):
        return
    order = np.argsort(before)
    study.report.plot(
        f"Cost of each scenario {where}",
        ("scenario, by its cost before tuning", "", np.arange(1.0, len(order) + 1)),
        ("cost", ""),
        {"before": before[order], "after": after[order]},
    )


def plot_search(study: Study, found: TuningResult) -> None:
    """Plot how the search went."""
    lowest = np.min(found.history, axis=1)
    if np.isfinite(lowest).any() and len(lowest) > 1:
        study.report.plot(
            "Search: lowest cost so far, with penalties",
            ("runs through all scenarios", "", found.simulations),
            ("cost", ""),
            {"search": lowest},
        )
