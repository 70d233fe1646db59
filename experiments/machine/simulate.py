"""Command `djdyn simulate`: simulation of a scenario file, and its results."""

import dataclasses
from pathlib import Path

import jax
import numpy as np

import djdyn
from djdyn.io.scenario import Scenario, read_scenario
from djdyn.view.machine import draw

from ..harness.study import Study
from .kinds import KINDS


STATE = "state.npz"  # of the end of a run, in its folder


def run(
    path: Path,
    out: Path | None,
    allow_outside: bool = False,
    start: Path | None = None,
) -> int:
    """Simulate a scenario and write its results, also those before a failure.

    **Arguments:**

    - `start`: a file with the state and the time from which the run goes on.
    """
    scenario = read_scenario(path, KINDS, allow_outside=allow_outside)
    if start is not None:
        scenario = going_on(scenario, start)
    study = Study(scenario.title, path.name, out or Path("runs") / path.stem, stages=2)
    with study.progress:
        try:
            with study.stage("simulation"):
                try:
                    trajectory = djdyn.simulate(
                        scenario.system,
                        initial_state=scenario.initial_state,
                        inputs=scenario.inputs,
                        ledger="control_period" not in scenario.simulation,
                        **scenario.simulation,
                    )
                except djdyn.SimulationError as failed:
                    _write(study, scenario, reached(failed.trajectory))
                    raise
                except (ValueError, TypeError) as error:  # of options together
                    raise ValueError(f"{path.name}: simulation: {error}") from error
            with study.stage("report"):
                _write(study, scenario, trajectory)
                t, y = trajectory.stopped
                djdyn.save_state(study.out / STATE, scenario.system, y, t)
        finally:
            study.finish()
    return 0 if study.passed else 1


def going_on(scenario: Scenario, start: Path) -> Scenario:
    """Return the scenario from the state in a file on, at its time."""
    y, t = djdyn.load_state(start, scenario.system)
    how, said = dict(scenario.simulation), f"{scenario.path.name}: simulation:"
    if how.get("control_delay"):
        raise ValueError(
            f"{said} a saved state does not hold the commands that control_delay "
            "keeps: such a run cannot go on from one"
        )
    if not how.get("t0", 0.0) <= t < how["t1"]:
        raise ValueError(
            f"{said} {start.name} is a state at {t:g} s, not between t0 = "
            f"{how.get('t0', 0.0):g} s and t1 = {how['t1']:g} s"
        )
    if np.ndim(how.get("saveat", 0)) == 1:
        late = np.asarray(how["saveat"])
        how["saveat"] = np.append(t, late[late > t + 1e-9 * (how["t1"] - t)])
    how["t0"] = t
    return dataclasses.replace(scenario, initial_state=y, simulation=how)


def reached(trajectory: djdyn.Trajectory) -> djdyn.Trajectory:
    """Return the trajectory up to the last save before a failure."""
    good = np.isfinite(np.asarray(trajectory.y.v)).all(-1)
    n = good.size if np.all(good) else max(int(np.argmin(good)), 1)
    cut = lambda tree: jax.tree.map(lambda x: x[:n], tree)
    return djdyn.Trajectory(
        trajectory.system,
        trajectory.t[:n],
        cut(trajectory.y),
        trajectory.ok,
        trajectory.steps,
        trajectory.stopped,
        cut(trajectory.sampled),
        cut(trajectory.applied),
        trajectory.inputs,
        cut(trajectory.work),
    )


def _write(study: Study, scenario: Scenario, trajectory: djdyn.Trajectory) -> None:
    """Write metrics, series, plots and replay of a trajectory."""
    report, time = study.report, ("time", "s", np.asarray(trajectory.t))
    study.metric("steps", trajectory.steps)
    study.metric("t_end", trajectory.stopped[0], unit="s")
    if trajectory.work is not None and len(trajectory) > 1:
        residual = djdyn.energy_balance(trajectory.system, trajectory)
        study.metric("energy_residual", np.abs(residual).max(), unit="J")
    derived = {}
    for joint in trajectory.system.mechanism.joint_names:
        q = np.asarray(trajectory.q(joint))
        if q.shape[-1]:
            lines = {
                f"{joint}[{i}]" if q.shape[-1] > 1 else joint: x
                for i, x in enumerate(q.T)
            }
            unit = trajectory.unit(f"{joint}.q") or "rad, m"
            report.plot(f"Joint {joint}", time, ("coordinate", unit), lines)
    for frame in scenario.frames:
        p = np.asarray(trajectory.pose(frame).p)
        derived[f"{frame}.position"] = p
        lines = dict(zip("xyz", p.T, strict=True))
        report.plot(f"Frame {frame}", time, ("position", "m"), lines)
    for joint in scenario.reactions:
        F = np.asarray(trajectory.reaction(joint))
        derived[f"{joint}.reaction"] = F
        for what, unit, part in (("moment", "N m", F[:, :3]), ("force", "N", F[:, 3:])):
            lines = dict(zip("xyz", part.T, strict=True))
            report.plot(f"Reaction of joint {joint}: {what}", time, (what, unit), lines)
    for signal in scenario.signals:
        x = np.asarray(trajectory.signal(signal))
        x = x.reshape(len(trajectory), -1)
        lines = {
            f"{signal}[{i}]" if x.shape[1] > 1 else signal: c for i, c in enumerate(x.T)
        }
        label = ("value", trajectory.unit(signal))
        report.plot(f"Signal {signal}", time, label, lines)
    if len(trajectory) > 1:
        report.scene(draw(trajectory, scenario.shapes))
    study.series("simulation", trajectory.to_xarray(**derived))
