"""Command `djdyn new`: starter scenarios with synthetic measurements."""

import shutil
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import djdyn
from djdyn.files import write_text
from djdyn.io.scenario import Scenario, read_scenario
from djdyn.multibody.time_functions import Interpolated
from estimation.scenario.columns import read_channels, read_inputs
from estimation.scenario.measured import Query
from estimation.scenario.records import channel_unit, unit_scale

from .kinds import KINDS
from .starter_table import STARTERS, Run, Starter


TEMPLATES = Path(__file__).parent / "starters"
DIGITS = 6  # of a number in a record


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
    scenario = read_scenario(TEMPLATES / f"{name}.toml", KINDS)
    rng = np.random.default_rng(seed)
    records = {
        file: record(scenario, starter, run, rng) for file, run in starter.runs.items()
    }
    folder.mkdir(parents=True, exist_ok=True)
    for file in (f"{name}.toml", *starter.files):
        shutil.copyfile(TEMPLATES / file, folder / file)
    for file, text in records.items():
        write_text(folder / file, text)
    return folder / f"{name}.toml"


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
    driven = {  # straight lines between rows, as a fit takes them to be
        name: Interpolated(times, jax.vmap(path)(jnp.asarray(times)))
        for name, path in run.inputs.items()
    }
    m, y0 = scenario.system.mechanism, scenario.initial_state
    q = {joint: y0.q[m.q_slice(joint)] for joint in m.joint_names} | dict(run.q)
    trajectory = djdyn.simulate(
        system, times[-1], system.initial_state(q, parts=scenario.start_states),
        inputs={**scenario.inputs, **driven}, **how,
    )  # fmt: skip
    assert np.allclose(trajectory.t, times)
    quantities = np.asarray(eqx.filter_jit(trajectory.map)(Query(channels)))
    found = {
        c.column: x * unit_scale(channel_unit(scenario, c))  # in SI
        for c, x in zip(channels, quantities.T, strict=True)
    }
    for one in measured:
        given = np.asarray(driven[one.name].values).reshape(len(times), -1)
        found |= dict(zip(one.columns, given.T, strict=True))
    lines = ["t [s]," + ",".join(f"{k} [{starter.columns[k].unit}]" for k in found)]
    for name, x in found.items():
        column = starter.columns[name]
        noise = column.noise * rng.normal(size=len(x))
        found[name] = x / unit_scale(column.unit) + column.offset + noise
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
