"""Command `djdyn new`: starter scenarios with synthetic measurements."""

import dataclasses
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import djdyn
from djdyn.files import write_text
from djdyn.io.scenario import Scenario, read_scenario
from djdyn.multibody.time_functions import Harmonic, HarmonicSum, Moves
from estimation.measurements import to_si
from estimation.scenario.columns import read_channels, read_inputs
from estimation.scenario.measured import Query

from .kinds import KINDS


TEMPLATES = Path(__file__).parent / "starters"
DIGITS = 6  # of a number in a record


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of synthetic measurements: noise and offset are in its unit."""

    unit: str
    noise: float = 0.0
    offset: float = 0.0


@dataclasses.dataclass(frozen=True)
class Run:
    """How a record begins, and what drives the machine in it."""

    inputs: Mapping[str, Any]
    q: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Starter:
    """A starter scenario: its true parameters, and how its records are made.

    `columns` are those of its files, `runs` by file; a row is measured every `period`,
    s, until `span`, s. `files` are written beside the scenario.
    """

    true: Mapping[str, float]
    columns: Mapping[str, Column]
    runs: Mapping[str, Run]
    span: float
    period: float
    files: tuple[str, ...] = ()


def moves(*points: float, first: float = 0.0, every: float = 2.0) -> Moves:
    """Return moves to points, each within half a second."""
    start = 0.3 + every * np.arange(len(points))
    return Moves([first], [[x] for x in points], start, start + 0.5)  # pyright: ignore


STARTERS = {
    "pendulum": Starter(
        true={"bearing.viscous": 0.12, "bearing.coulomb": 0.15, "rod.p_BC[2]": -0.45},
        columns={
            "encoder": Column("deg", noise=0.1, offset=2.0),
            "motor": Column("N m", noise=0.02),
            "set_point": Column("deg"),
        },
        runs={
            "swing1.csv": Run({"angle_wanted": moves(0.9, -0.6)}, {"hinge": 0.3}),
            "swing2.csv": Run({"angle_wanted": moves(-1.2, 0.4)}, {"hinge": -0.5}),
        },
        span=4.0,
        period=0.02,
    ),
    "crane": Starter(
        true={
            "wheels.viscous": 90.0, "wheels.coulomb": 45.0, "load.mass": 160.0,
            "load.p_BC[2]": -4.6,
        },
        columns={
            "laser": Column("mm", noise=2.0),
            "inclinometer": Column("deg", noise=0.05, offset=0.8),
            "set_point": Column("m"),
        },
        runs={
            "move1.csv": Run({"place_wanted": moves(2.5)}, {"rope": 0.05}),
            "move2.csv": Run({"place_wanted": moves(-2.0, 1.0, every=3.0)}),
        },
        span=6.0,
        period=0.02,
    ),
    "robot": Starter(
        true={
            "shoulder:friction.viscous": 0.9, "elbow:friction.viscous": 0.3,
            "lower.mass": 1.3,
        },
        columns={
            "encoder1": Column("deg", noise=0.1),
            "encoder2": Column("deg", noise=0.1, offset=-1.5),
            "command1": Column("deg"),
            "command2": Column("deg"),
        },
        runs={
            "moves1.csv": Run(
                {"lift": Harmonic(0.6, 3.0, mean=0.4),
                 "bend": Harmonic(0.7, 5.0, mean=-0.8)},
            ),
            "moves2.csv": Run(
                {"lift": Harmonic(-0.5, 6.0, mean=0.2),
                 "bend": Harmonic(0.8, 2.5, mean=-0.4)},
                {"shoulder": 0.1, "elbow": -0.3},
            ),
        },
        span=3.0,
        period=0.02,
        files=("robot.xml",),
    ),
}  # fmt: skip


def write_starter(name: str, out: str | Path | None = None, seed: int = 0) -> Path:
    """Write a starter scenario and its records into a new folder; return its path.

    **Arguments:**

    - `name`: one of `STARTERS`.
    - `out`: the folder, by default one of this name.
    """
    if name not in STARTERS:
        raise ValueError(f"unknown starter {name!r}; there are {', '.join(STARTERS)}")
    starter, folder = STARTERS[name], Path(name if out is None else out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is there already: give another --out")
    folder.mkdir(parents=True, exist_ok=True)
    for file in (f"{name}.toml", *starter.files):
        shutil.copyfile(TEMPLATES / file, folder / file)
    scenario = read_scenario(folder / f"{name}.toml", KINDS)
    rng = np.random.default_rng(seed)
    for file, run in starter.runs.items():
        write_text(folder / file, record(scenario, starter, run, rng))
    return scenario.path


def record(
    scenario: Scenario, starter: Starter, run: Run, rng: np.random.Generator
) -> str:
    """Return a record of a starter's true machine, as a file has it."""
    place, table = scenario.tables["identify"]
    channels = read_channels(place, table)
    measured = read_inputs(place / "input", table.get("input", {}), scenario)
    system = djdyn.with_parameters(scenario.system, dict(starter.true))
    how = {k: x for k, x in scenario.simulation.items() if k not in ("t1", "saveat")}
    times = starter.period * np.arange(round(starter.span / starter.period) + 1)
    if "control_period" not in how:
        how["saveat"] = times
    m, y0 = scenario.system.mechanism, scenario.initial_state
    q = {joint: y0.q[m.q_slice(joint)] for joint in m.joint_names} | dict(run.q)
    trajectory = djdyn.simulate(
        system, times[-1], system.initial_state(q, parts=scenario.start_states),
        inputs={**scenario.inputs, **run.inputs}, **how,
    )  # fmt: skip
    assert np.allclose(trajectory.t, times)
    quantities = np.asarray(eqx.filter_jit(trajectory.map)(Query(channels)))
    found = {c.column: x for c, x in zip(channels, quantities.T, strict=True)}
    for one in measured:
        given = np.stack([np.ravel(run.inputs[one.name](jnp.asarray(t))) for t in times])
        found |= dict(zip(one.columns, given.T, strict=True))
    lines = ["t [s]," + ",".join(f"{k} [{starter.columns[k].unit}]" for k in found)]
    for name, x in found.items():
        column = starter.columns[name]
        noise = column.noise * rng.normal(size=len(x))
        found[name] = x / to_si(np.ones(1), column.unit) + column.offset + noise
    for row in zip(times, *found.values(), strict=True):
        lines.append(",".join(f"{x:.{DIGITS}g}" for x in row))
    return "\n".join(lines) + "\n"


def run(name: str | None, out: Path | None) -> int:
    """Write a starter scenario, and say what to try next."""
    if name is None:
        print(f"starters: {', '.join(STARTERS)}")
        return 0
    path = write_starter(name, out)
    print(f"{path} and its records, which are synthetic. Try next:")
    print(f"  cd {path.parent}")
    for command in ("simulate", "identify", "tune"):
        print(f"  djdyn {command} {path.name} --out {command}")
    return 0
