"""The mechanism of a scenario file, with the parts that a file of a robot brings."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..multibody.flexible import FlexibleBody
from ..multibody.mechanism import Body, Frame, Mechanism
from ..parts.base import AbstractPart
from ..system.system import System
from .dh import from_dh
from .mjcf import from_mjcf
from .mjcf_system import Keyframe, keyframes, system_from_mjcf
from .scenario_flexible import MODELS, flexible_body
from .scenario_kinds import JOINTS
from .scenario_limits import shown
from .scenario_loops import read_closure, read_coupling, read_loop
from .scenario_table import POSE, SHARED, ScenarioError, TablePlace
from .urdf import from_urdf, system_from_urdf


SOURCES = ("mjcf", "urdf", "dh")


@dataclasses.dataclass(frozen=True)
class Machine:
    """A mechanism, the parts and inputs that came with it, and where it may start."""

    mechanism: Mechanism
    parts: dict[str, AbstractPart] = dataclasses.field(default_factory=dict)
    inputs: dict[str, Any] = dataclasses.field(default_factory=dict)
    start: Keyframe | None = None


def read_machine(place: TablePlace, data: Mapping[str, Any], folder: Path) -> Machine:
    """The machine of the sections on bodies, frames, loops and the environment."""
    environment, at = place / "environment", place / "mechanism"
    table = environment.keys_of(data.get("environment", {}), ("gravity", *SHARED))
    source = data.get("mechanism", {})
    options = ("ignore", "parts", "contacts", "floating_base", "closure")
    at.keys_of(source, (*SOURCES, *options, *POSE))
    given = [k for k in SOURCES if k in source]
    if bool(given) == bool(data.get("body")) or len(given) > 1:
        raise place.error("give the bodies, or one of mechanism.mjcf, .urdf and .dh")
    listed = lambda key: (place / key).rows_of(data.get(key, []))
    try:
        if given == ["dh"]:
            machine = Machine(from_dh(source["dh"], base=at.pose(source)))
        elif given:
            initial = data.get("initial", {})
            key = initial.get("keyframe") if isinstance(initial, Mapping) else None
            machine = _from_file(at, given[0], source, folder, key)
        else:
            bodies = tuple(_body(place / "body", b, folder) for b in data["body"])
            machine = Machine(Mechanism(bodies))
        m = machine.mechanism
        frames = list(m.frames)
        for frame in listed("frame"):
            spot = place / "frame"
            spot.keys_of(frame, ("name", "body", *POSE), ("name", "body"))
            frames.append(Frame(frame["name"], frame["body"], spot.pose(frame)))
        gravity = table.get("gravity", m.gravity_W)
        gravity = (environment / "gravity").numbers(gravity, (3,))
        loops = [*m.loops, *(read_loop(place / "loop", x) for x in listed("loop"))]
        loops += [read_coupling(place / "coupling", x) for x in listed("coupling")]
        closure = m.closure
        if "closure" in source:
            closure = read_closure(at / "closure", source["closure"])
        mechanism = Mechanism(m.bodies, tuple(frames), gravity, tuple(loops), closure)
        return dataclasses.replace(machine, mechanism=mechanism)
    except ScenarioError:
        raise
    except (ValueError, TypeError, AttributeError, OSError) as error:
        raise place.error(error) from error


def _from_file(
    at: TablePlace, kind: str, source: Mapping[str, Any], folder: Path, key: str | None
) -> Machine:
    """A robot from an MJCF or URDF file, with its parts unless they are not wanted."""
    flags = {"parts": True, "contacts": True, "floating_base": False}
    for name in flags:
        flags[name] = source.get(name, flags[name])
        if not isinstance(flags[name], bool):
            raise (at / name).error(f"is true or false, not {flags[name]!r}")
    own = "contacts" if kind == "urdf" else "floating_base"
    if own in source:
        other = "mjcf" if kind == "urdf" else "urdf"
        raise (at / own).error(f"goes with {other} alone")
    file, ignore = folder / source[kind], tuple(source.get("ignore", ()))
    floating = {"floating_base": flags["floating_base"]}
    touching = {"contacts": flags["contacts"]}
    if not flags["parts"]:
        if "contacts" in source:
            raise (at / "contacts").error("are parts, which are not read")
        if kind == "urdf":
            return Machine(from_urdf(file, ignore=ignore, **floating))
        return Machine(from_mjcf(file, ignore=ignore))
    if kind == "urdf":
        system = system_from_urdf(file, ignore=ignore, **floating)
    else:
        system = system_from_mjcf(file, ignore=ignore, **touching)
    if key is None or kind == "urdf":
        return _machine(system)
    found = keyframes(file, ignore=ignore)
    if key not in found:
        names = ", ".join(found) or "none"
        raise ValueError(f"initial.keyframe: unknown {key!r}; there are {names}")
    return _machine(system, found[key])


def _machine(system: System, start: Keyframe | None = None) -> Machine:
    inputs = dict(system.inputs) | (start.inputs if start else {})
    return Machine(system.mechanism, dict(system.parts), inputs, start)


def _body(place: TablePlace, table: Any, folder: Path) -> Body | FlexibleBody:
    if isinstance(table, Mapping) and not MODELS.isdisjoint(table):
        return flexible_body(place, table, folder)
    known = ("name", "parent", "joint", *POSE, "mass", "com", "inertia", "added_mass")
    place.keys_of(table, (*known, "armature", "any_inertia"), ("name", "joint", "mass"))
    if not isinstance(table.get("any_inertia", False), bool):
        raise (place / "any_inertia").error("is true or false")
    for key in ("name", "parent"):
        if not isinstance(table.get(key, ""), str):
            raise (place / key).error(f"expected a name, got {shown(table[key])}")
    place = TablePlace(place.file, f"body {table['name']!r}")
    joint = dict(table["joint"]) if isinstance(table["joint"], Mapping) else {}
    joint_name = joint.pop("name", "")
    inertia = (place / "inertia").numbers(table.get("inertia", (0,) * 3), (3,), (3, 3))
    added = (place / "added_mass").numbers(
        table.get("added_mass", (0,) * 6), (6,), (6, 6)
    )
    rotor = table.get("armature")
    try:
        return Body(
            table["name"],
            table.get("parent", "world"),
            (place / "joint").choose(JOINTS, joint),
            (place / "mass").numbers(table["mass"], ()),
            (place / "com").numbers(table.get("com", (0, 0, 0)), (3,)),
            np.diag(inertia) if inertia.ndim == 1 else inertia,
            place.pose(table),
            np.diag(added) if added.ndim == 1 else added,
            joint_name,
            None if rotor is None else (place / "armature").numbers(rotor),
            table.get("any_inertia", False),
        )
    except ScenarioError:
        raise
    except ValueError as error:
        raise place.error(error) from error
