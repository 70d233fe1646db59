"""Pictures of a trajectory for notebooks and as pages: signals, and motion."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..simulation.trajectory import Trajectory
from .machine import draw
from .report import Report


class Picture:
    """A page with a plot or a scene; a notebook shows it, `save` writes it."""

    def __init__(self, report: Report):
        self.report = report

    def _repr_html_(self) -> str:
        page = escape(self.report.html(), quote=True)
        return f'<iframe srcdoc="{page}" width="100%" height="560"></iframe>'

    def save(self, path: str | Path) -> Path:
        """Write the page; it opens offline."""
        return self.report.save(path)


def plot_signals(trajectory: Trajectory, signals: Sequence[str]) -> Picture:
    """Return a plot of each signal against time; a batch gives a curve a lane."""
    if not signals:
        raise ValueError('plot takes names of signals, such as plot("arm.q")')
    report, time = Report("Signals"), np.asarray(trajectory.t)
    for name in signals:
        values = np.asarray(trajectory.signal(name))
        curves = values.reshape(*values.shape[: 1 + len(trajectory.batch)], -1)
        lanes = curves if trajectory.batch else curves[None]
        series = {}
        for i, lane in enumerate(lanes):
            for k in range(lane.shape[-1]):
                label = name if lane.shape[-1] == 1 else f"{name}[{k}]"
                label = f"{label}, lane {i}" if trajectory.batch else label
                series[label] = lane[:, k]
        label = (name, trajectory.unit(name))
        report.plot(name, ("time", "s", time), label, series)
    return Picture(report)


def show_motion(
    trajectory: Trajectory, shapes: Sequence[Mapping[str, Any]] = ()
) -> Picture:
    """Return the bodies in motion, drawn from the mechanism or from given shapes."""
    if trajectory.batch:
        raise ValueError("show takes one simulation: choose a lane, trajectory.lane(0)")
    report = Report("Motion")
    report.scene(draw(trajectory, shapes), "Replay")
    return Picture(report)
