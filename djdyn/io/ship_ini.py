"""Init files of a simulator of ship gear, `$Key value` on each line, as a scenario.

The keys are those of Roy, Steinke and Nicoll, *Ship Mechanical Systems API: Final
Report* (2014), tables 2 to 5. The files do not say what is attached to what: that is
given beside them. Every key is used, or refused by name.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit

from ..files import read_text
from .ship_ini_machine import Draft, add_cable, add_crane, add_payload, add_winch


NOTED = ("OutputFolder", "VERBOSE")  # of the simulator's own output: kept as comments
KEYS = {
    "environment": ("airDensity", "waterDensity", "g"),
    "integrator": (),
    "cable": (
        "EA", "EI", "GJ", "rho_cable", "dia_cable", "CDc", "CAc", "CID", "BCID", "CE",
        "NODE0_STATIC", "NODEN_STATIC", "i|IC", "ElementLengths", "i|ExtMasses",
    ),
    "payload": ("i|IC", "i|Mass"),
    "crane": (
        "i|LinkDHParameters", "i|LinkJointVariable", "i|LinkJointVelocity",
        "i|LinkCGLocation", "i|LinkCGOrientation", "i|LinkMass",
        "i|LinkMomentOfInertia", "i|JointControlType", "i|JointProportionalCoefficient",
        "i|JointIntegralCoefficient", "i|JointDerivativeCoefficient",
        "i|MaximumActuatablePower", "i|UpstreamJointLimits", "i|JointLimitStiffness",
        "i|JointLimitDamping",
    ),
    "winch": (
        "Kp", "Ki", "Kd", "accel_max", "decel_max", "VelocitySetPoint",
        "TensionSetPoint",
    ),
}  # fmt: skip
REFUSED = {  # keys that a scenario cannot hold, and why
    "airKinematicViscosity": "coefficients of drag are constant",
    "waterKinematicViscosity": "coefficients of drag are constant",
    "Timestep": "steps follow tolerances", "Timestep_MIN": "steps follow tolerances",
    "Timestep_MAX": "steps follow tolerances",
    "ElementLengthMax": "nodes move through the line, none is inserted",
    "ElementLengthMin": "nodes move through the line, none is removed",
    "Young_modulus": "a contact needs shapes, which are in no init file",
    "B": "a contact needs shapes, which are in no init file",
    "muc": "a contact needs shapes, which are in no init file",
    "mus": "a contact needs shapes, which are in no init file",
}  # fmt: skip


def read_ship_ini(path: str | Path, kind: str) -> dict[str, list[str]]:
    """Return the keys of an init file and the words behind each.

    **Arguments:**

    - `kind`: `environment`, `integrator`, `cable`, `payload`, `crane` or `winch`.
    """
    if kind not in KEYS:
        raise ValueError(f"unknown kind {kind!r}; there are {', '.join(KEYS)}")
    name, found = Path(path).name, {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith(("#", "//")):
            continue
        key = words[0].removeprefix("$")
        if key == words[0] or not key:
            raise ValueError(f"{name}, line {number}: a key starts with $: {words[0]}")
        if key in found:
            raise ValueError(f"{name}, line {number}: {key} is given twice")
        if len(words) == 1:
            raise ValueError(f"{name}, line {number}: {key} has no value")
        general = re.sub(r"^\d+\|", "i|", key)
        if general not in (*KEYS[kind], *NOTED, *REFUSED):
            raise ValueError(f"{name}, line {number}: {kind} has no key {key}")
        found[key] = words[1:]
    return found


def ship_scenario(
    files: Mapping[str, str | Path],
    *,
    t1: float,
    node_0: str = "world",
    node_n: str = "",
    winch_node: int = 0,
    winch_mode: str = "velocity",
    base: Sequence[float] = (0.0,) * 6,
    ignore: Sequence[str] = (),
) -> str:
    """Return init files as the text of a scenario file.

    Water and air meet at a height of zero. Angles of the crane's base are in radians.

    **Arguments:**

    - `files`: by kind: `environment`, `integrator`, `cable`, `payload`, `crane`,
      `winch`.
    - `t1`: how long to simulate, s.
    - `node_0`, `node_n`: what holds the first and last node of the cable: `world`,
      `payload`, or a frame such as `link2.end`; nothing if empty. Nodes that the file
      holds in space are.
    - `winch_node`: the end of the cable that the winch pays out, 0 or -1.
    - `winch_mode`: `velocity` or `tension`.
    - `base`: position, roll, pitch and yaw of the crane's base.
    - `ignore`: keys to leave out that a scenario cannot hold.

    !!! example

        ```python
        from pathlib import Path
        from djdyn.io.ship_ini import ship_scenario

        lines = ["$EA 4e6", "$rho_cable 500", "$dia_cable 0.024", "$NODE0_STATIC 1"]
        lines += ["$0|IC 0 0 0 0 0 10", "$1|IC 0 0 0 0 0 5", "$2|IC 0 0 0 0 0 0"]
        Path("cable.ini").write_text("\\n".join([*lines, "$ElementLengths 5 5"]))
        text = ship_scenario({"cable": "cable.ini"}, t1=1.0)
        Path("cable.toml").write_text(text)
        ```
    """
    tables = {kind: read_ship_ini(path, kind) for kind, path in files.items()}
    _refuse(tables, ignore)
    draft = Draft(tomlkit.document())
    for kind, table in tables.items():
        for key in NOTED:
            if key in table:
                draft.note(f"{key} of the {kind}: {' '.join(table[key])}")
    draft.document["simulation"] = {"t1": float(t1)}
    water = tables.get("environment", {})
    down = float(draft.numbers(water, "g", 1, [9.81])[0])
    environment: dict[str, Any] = {"gravity": [0.0, 0.0, -down]}
    density = [("water_density", "waterDensity"), ("air_density", "airDensity")]
    fluid = {k: draft.number(water, key) for k, key in density if key in water}
    if fluid:
        environment["fluid"] = {"type": "Fluid", "surface": 0.0, **fluid}
    draft.document["environment"] = environment
    if "crane" in tables:
        add_crane(draft, tables["crane"], np.asarray(base, float))
    if "payload" in tables:
        add_payload(draft, tables["payload"])
    if "cable" in tables:
        ends = {0: node_0, -1: node_n}
        driven = winch_node if "winch" in tables else None
        add_cable(draft, tables["cable"], ends, driven)
    if "winch" in tables:
        if "cable" not in tables:
            raise ValueError("a winch needs a cable")
        add_winch(draft, tables["winch"], winch_mode, winch_node)
    return draft.text()


def _refuse(tables: Mapping[str, Mapping[str, Any]], ignore: Sequence[str]) -> None:
    """Raise if a scenario cannot hold a key that is not to be ignored."""
    unknown = [k for k in ignore if k not in REFUSED]
    if unknown:
        raise ValueError(f"cannot ignore {unknown[0]!r}; only {', '.join(REFUSED)}")
    found = [k for t in tables.values() for k in t if k in REFUSED and k not in ignore]
    if found:
        said = "; ".join(f"{k}: {REFUSED[k]}" for k in found)
        raise ValueError(
            f"a scenario cannot hold {said}. Pass ignore={tuple(found)!r} to leave "
            "them out"
        )
