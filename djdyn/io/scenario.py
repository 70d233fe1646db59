"""Scenario files: a machine, its parts, how it starts and what is wanted, as TOML.

A file is data. Names in it are looked up in tables of known kinds; nothing is executed.
Every mistake is a `ScenarioError` that gives the file, the key and the reason.
"""

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..multibody.mechanism import Mechanism
from ..simulation.options import OptionKeywords
from ..simulation.solvers.registry import SOLVERS
from ..system.parameters import with_parameters
from ..system.state import State
from ..system.system import System
from .safety import check_inside, references_within
from .scenario_kinds import FUNCTIONS, PARTS
from .scenario_limits import MAX_SAVES, parse_scenario, shown
from .scenario_mechanism import Machine, read_machine
from .scenario_table import POSE, SHARED, TablePlace


SECTIONS = ("title", "simulation", "environment", "mechanism", "body", "frame")
SECTIONS += (
    "loop",
    "coupling",
    "part",
    "controller",
    "input",
    "initial",
    "output",
    "shape",
)
SECTIONS += ("parameters", "identify", "tune")
SIMULATION = {"t0", "t1", "saveat"} | OptionKeywords.__annotations__.keys() - {
    "adjoint",
    "ledger",
}
MAX_STEPS = 100_000_000  # of a whole run
COUNTED = {"save_every": MAX_SAVES, "control_period": MAX_SAVES, "dt": MAX_STEPS}


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A machine and what to do with it.

    `start_states` are the initial states of parts, where the file gives them; `tables`
    holds what is read by others: `identify` and `tune`, and where they stand.
    """

    path: Path
    title: str
    system: System
    initial_state: State
    simulation: dict[str, Any]
    inputs: dict[str, Any]
    frames: tuple[str, ...]
    reactions: tuple[str, ...]
    signals: tuple[str, ...]
    shapes: tuple[dict[str, Any], ...]
    start_states: dict[str, Any] | None
    tables: dict[str, tuple[TablePlace, Any]]


def _simulation(place: TablePlace, table: Mapping[str, Any]) -> dict[str, Any]:
    place.keys_of(table, (*SIMULATION, "save_every"), ("t1",))
    how = dict(table)
    for key, value in how.items():
        if key == "solver":
            if value not in tuple(SOLVERS):
                there = ", ".join(SOLVERS)
                raise (place / key).error(
                    f"unknown solver {shown(value)}; there are {there}"
                )
        elif key == "max_steps":
            how[key] = int((place / key).numbers(value, ()))
            if not 1 <= how[key] <= MAX_STEPS or how[key] != value:
                raise (place / key).error(
                    f"is a whole number from 1 to {MAX_STEPS}, not {value}"
                )
        elif key in ("saveat", "jumps"):
            how[key] = (place / key).numbers(value)
            count = key == "saveat" and how[key].ndim == 0
            if count and not (
                how[key] == round(float(how[key])) and 1 <= how[key] <= MAX_SAVES
            ):
                said = "is a list of times, or how many"
                raise (place / key).error(f"{said}, not {shown(value)}")
            if not count and (how[key].ndim != 1 or not how[key].size):
                raise (place / key).error(f"is a list of times, not {shown(value)}")
            how[key] = int(how[key]) if count else how[key]
        elif key == "control_delay":
            if not isinstance(value, bool):
                raise (place / key).error(f"is true or false, not {shown(value)}")
        else:
            how[key] = float((place / key).numbers(value, ()))
            if key in ("dt", "control_period", "save_every") and not how[key] > 0:
                raise (place / key).error(f"must be positive, got {value}")
    t0, span = how.get("t0", 0.0), how["t1"] - how.get("t0", 0.0)
    if not 0 < span < np.inf:
        raise (place / "t1").error(f"must be after t0 = {t0:g} s, got {how['t1']:g}")
    for key, most in COUNTED.items():
        if span / how.get(key, span) > most:
            raise (place / key).error(
                f"{how[key]:g} s asks for {span / how[key]:.3g} of them in {span:g} s; "
                f"at most {most} are possible"
            )
    if "save_every" in how:
        every = how.pop("save_every")
        n = int(span / every + 1e-9)
        how["saveat"] = t0 + every * np.arange(n + 1)
    return how


def read_scenario(
    path: str | Path,
    kinds: Iterable[Callable[..., Any]] = (),
    *,
    allow_outside: bool = False,
) -> Scenario:
    """Return the machine of a scenario file, and what to do with it.

    **Arguments:**

    - `kinds`: what the file may name beside the library's own parts: classes of parts,
        and functions that return a part.
    - `allow_outside`: whether files that it names, and files that these refer to, may
        lie outside of its folder.
    """
    path = Path(path)
    place = TablePlace(path.name)
    with place.guard(), references_within(None if allow_outside else path.parent):
        data = parse_scenario(path)
        place.keys_of(data, SECTIONS, ("simulation",))
        _check_files(place / "mechanism", data, path.parent, allow_outside)
        return _read(place, path, data, kinds)


def _check_files(
    place: TablePlace, data: Mapping[str, Any], folder: Path, allow_outside: bool
) -> None:
    """Raise if a file that the scenario names lies outside of its folder."""
    source = data.get("mechanism", {})
    for key in ("mjcf", "urdf"):
        if not isinstance(source, Mapping) or key not in source:
            continue
        if not isinstance(source[key], str) or not source[key].isprintable():
            raise (place / key).error(f"expected a file, got {shown(source[key])}")
        if not allow_outside:
            with (place / key).guard():
                check_inside(folder / source[key], folder, repr(source[key]))


def _read(
    place: TablePlace,
    path: Path,
    data: Mapping[str, Any],
    kinds: Iterable[Callable[..., Any]],
) -> Scenario:
    """Return the scenario of a file's tables."""
    machine = read_machine(place, data, path.parent)
    mechanism = machine.mechanism
    known = {kind.__name__: kind for kind in (*PARTS, *kinds)}
    named: list[tuple[str, Any]] = list(machine.parts.items())
    given = data.get("environment", {})
    around = {
        what: (place / "environment" / what).choose(FUNCTIONS, given[what])
        for what in SHARED
        if what in given
    }
    for section in ("part", "controller"):
        table = data.get(section, {})
        (place / section).keys_of(table, table if isinstance(table, Mapping) else ())
        for name, fields in table.items():
            kind = (
                known.get(str(fields.get("type", "")))
                if isinstance(fields, dict)
                else None
            )
            if kind:
                takes = inspect.signature(kind).parameters
                fields = {k: x for k, x in around.items() if k in takes} | fields
            named.append((name, (place / section / name).choose(known, fields)))
    inputs, functions = dict(machine.inputs), {}
    section = data.get("input", {})
    (place / "input").keys_of(section, section if isinstance(section, Mapping) else ())
    for name, value in section.items():
        spot = place / "input" / name
        if isinstance(value, Mapping):
            functions[name] = spot.choose(FUNCTIONS, value)
            with spot.guard():
                inputs[name] = functions[name](jnp.zeros(()))
        else:
            inputs[name] = spot.numbers(value)
    initial = (place / "initial").keys_of(
        data.get("initial", {}), ("q", "v", "keyframe")
    )
    output = place / "output"
    wanted = output.keys_of(data.get("output", {}), ("frames", "reactions", "signals"))
    for key, value in wanted.items():
        if not isinstance(value, list) or not all(isinstance(x, str) for x in value):
            raise (output / key).error(f"expected a list of names, got {shown(value)}")
    with place.guard():
        system = System(mechanism, named, inputs)
        system = _with_parameters(place / "parameters", system, data)
        y0 = _start(place / "initial", system, machine, initial)
        for frame in wanted.get("frames", ()):
            mechanism.frame(frame)
        names = (*mechanism.joint_names, *(loop.name for loop in mechanism.loops))
        for joint in wanted.get("reactions", ()):
            if joint not in names:
                there = ", ".join(names)
                raise ValueError(f"unknown joint {joint!r}; there are {there}")
        signals = eqx.filter_eval_shape(lambda: system.at(0.0, y0).signals)
        for signal in wanted.get("signals", ()):
            if signal not in signals:
                raise ValueError(
                    f"unknown signal {signal!r}; there are {', '.join(signals)}"
                )
    return Scenario(
        path,
        str(data.get("title", path.stem)),
        system,
        y0,
        _simulation(place / "simulation", data["simulation"]),
        functions,
        tuple(wanted.get("frames", ())),
        tuple(wanted.get("reactions", ())),
        tuple(wanted.get("signals", ())),
        tuple(_shape(place / "shape", s, mechanism) for s in data.get("shape", ())),
        machine.start.parts if machine.start else None,
        {k: (place / k, data[k]) for k in ("identify", "tune") if k in data},
    )


def _with_parameters(
    place: TablePlace, system: System, data: Mapping[str, Any]
) -> System:
    """The system with the numbers of the section `parameters`, by path."""
    given = data.get("parameters", {})
    place.keys_of(given, given if isinstance(given, Mapping) else ())
    values = {path: (place / path).numbers(value) for path, value in _flat(given)}
    with place.guard():
        return with_parameters(system, values)


def _flat(table: Mapping[str, Any], name: str = "") -> Iterator[tuple[str, Any]]:
    """Values by dotted path: `pid.kp = 1` is the same as `"pid.kp" = 1`."""
    for key, value in table.items():
        path = f"{name}.{key}" if name else key
        if isinstance(value, Mapping):
            yield from _flat(value, path)
        else:
            yield path, value


def _start(
    place: TablePlace, system: System, machine: Machine, table: Mapping[str, Any]
) -> State:
    """The first state: the keyframe's, with `q` and `v` by joint in its place."""
    key, m = machine.start, machine.mechanism
    if "keyframe" in table and key is None:
        raise (place / "keyframe").error("only an mjcf file with its parts has some")
    if key is None:
        return system.initial_state(table.get("q"), table.get("v"))
    given = {}
    for name, whole, where in (("q", key.q, m.q_slice), ("v", key.v, m.v_slice)):
        own = table.get(name, {})
        by_joint = {joint: whole[where(joint)] for joint in m.joint_names}
        given[name] = {**by_joint, **own} if isinstance(own, Mapping) else own
    return system.initial_state(given["q"], given["v"], key.parts)


SHAPES = {
    "box": ("size",),
    "sphere": ("radius",),
    "capsule": ("radius", "length"),
    "cylinder": ("radius", "length"),
}


def _shape(place: TablePlace, table: Any, mechanism: Mechanism) -> dict[str, Any]:
    """How a body is drawn."""
    if not isinstance(table, Mapping) or table.get("type") not in tuple(SHAPES):
        raise place.error(f"expected a table with a type, one of {', '.join(SHAPES)}")
    needed = SHAPES[table["type"]]
    place.keys_of(table, ("type", "body", "color", *needed, *POSE), ("body", *needed))
    with (place / "body").guard():
        mechanism.index(table["body"])
    offset = place.pose(table)
    color = table.get("color", "#000000")
    if not isinstance(color, str) or not re.fullmatch("#[0-9a-fA-F]{6}", color):
        raise (place / "color").error(f"is like '#336699', not {shown(color)}")
    sizes = {}
    for key in needed:
        shape = (3,) if key == "size" else ()
        sizes[key] = (place / key).numbers(table[key], shape)
        if not np.all(sizes[key] > 0):
            raise (place / key).error(f"must be positive, got {shown(table[key])}")
    forward_kinematics = {"offset": (np.asarray(offset.R), np.asarray(offset.p))}
    forward_kinematics |= {"color": table["color"]} if "color" in table else {}
    return {"type": table["type"], "body": table["body"], **sizes, **forward_kinematics}
