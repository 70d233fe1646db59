"""Crane, payload, cable and winch of init files, as tables of a scenario."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tomlkit
from jaxtyping import Float


Table = Mapping[str, Sequence[str]]
STRAIGHT = 1e-3  # of a cable's length, by which its nodes may be off their start
MODES = {"position": "position", "velocity": "velocity", "passive": ""}
FAR = 1e29  # a limit beyond is none


@dataclasses.dataclass
class Draft:
    """A scenario that is being written, and what starts where."""

    document: Any
    q: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    v: dict[str, list[float]] = dataclasses.field(default_factory=dict)

    def note(self, text: str) -> None:
        """Add a comment."""
        self.document.add(tomlkit.comment(text))

    def numbers(
        self, table: Table, key: str, count: int, default: Sequence[float] | None = None
    ) -> Float[np.ndarray, " n"]:
        """Return as many finite numbers as a key has to have."""
        if key not in table:
            if default is None:
                raise ValueError(f"{key} is missing")
            return np.asarray(default, float)
        try:
            found = np.array([float(x) for x in table[key]])
        except ValueError:
            raise ValueError(f"{key}: {' '.join(table[key])} is no number") from None
        if len(found) != count or not np.all(np.isfinite(found)):
            raise ValueError(
                f"{key} needs {count} finite numbers, not {' '.join(table[key])}"
            )
        return found

    def number(self, table: Table, key: str, default: float | None = None) -> float:
        """Return the number of a key."""
        given = None if default is None else [default]
        return float(self.numbers(table, key, 1, given)[0])

    def add(self, section: str, name: str, **fields: Any) -> None:
        """Add a part or a controller."""
        self.document.setdefault(section, {})[name] = fields

    def listed(self, section: str, **fields: Any) -> None:
        """Add a body or a frame."""
        if section not in self.document:
            self.document[section] = tomlkit.aot()
        row = tomlkit.table()
        row.update({k: x for k, x in fields.items() if x is not None})
        self.document[section].append(row)

    def text(self) -> str:
        """Return the file."""
        if "body" not in self.document:  # a cable alone
            joint = {"type": "fixed"}
            self.listed("body", name="ground", joint=joint, mass=1.0)
        self.document["initial"] = {"q": self.q, "v": self.v}
        return tomlkit.dumps(self.document)


def count(table: Table, ending: str) -> int:
    """Return how many numbered keys there are; they run from 0."""
    found = sorted(
        int(m[1]) for k in table if (m := re.fullmatch(rf"(\d+)\|{ending}", k))
    )
    if found != list(range(len(found))):
        raise ValueError(f"the numbers of {ending} do not run from 0: {found}")
    return len(found)


def add_crane(draft: Draft, table: Table, base: Float[np.ndarray, "6"]) -> None:
    """Add links, drives and stops of a crane, in Paul's convention."""
    parent, place = "world", {"position": base[:3].tolist()}
    place["roll_pitch_yaw"] = base[3:].tolist()
    for i in range(count(table, "LinkDHParameters")):
        name, key = f"link{i + 1}", f"{i}|"
        numbers = lambda what, n, default=None, key=key: draft.numbers(
            table, key + what, n, default
        )
        alpha, a, d, theta = numbers("LinkDHParameters", 4)
        alpha, theta = np.deg2rad(alpha), np.deg2rad(theta)
        kind = "".join(table.get(f"{key}LinkJointVariable", ["Theta"]))
        if kind not in ("Theta", "d"):
            raise ValueError(f"{key}LinkJointVariable is Theta or d, not {kind}")
        masses = numbers("LinkMass", 3)
        if np.ptp(masses):
            raise ValueError(f"{key}LinkMass: a body has one mass, got {masses}")
        if np.any(numbers("LinkCGOrientation", 3, [0.0] * 3)):
            raise ValueError(f"{key}LinkCGOrientation: its unit is not known, give 0")
        turns = kind == "Theta"
        draft.listed(
            "body", name=name, parent=parent, mass=float(masses[0]), **place,
            joint={"type": "revolute" if turns else "prismatic", "axis": [0, 0, 1]},
            com=numbers("LinkCGLocation", 3).tolist(),
            inertia=numbers("LinkMomentOfInertia", 3).tolist(),
        )  # fmt: skip
        draft.q[name] = [float(theta if turns else d)]
        draft.v[name] = [float(numbers("LinkJointVelocity", 1, [0.0])[0])]
        if turns:
            place = {"position": [float(a), 0.0, float(d)]}
            place["roll_pitch_yaw"] = [float(alpha), 0.0, 0.0]
        else:
            along = [float(a * np.cos(theta)), float(a * np.sin(theta)), 0.0]
            place = {"position": along}
            place["roll_pitch_yaw"] = [float(alpha), 0.0, float(theta)]
        draft.listed("frame", name=f"{name}.end", body=name, **place)
        _add_drive(draft, table, key, name)
        _add_stop(draft, table, key, name, np.pi / 180 if turns else 1.0)
        parent = name


def _add_drive(draft: Draft, table: Table, key: str, joint: str) -> None:
    """Add a joint's controller, which holds where the joint starts."""
    kind = "".join(table.get(f"{key}JointControlType", ["passive"]))
    if kind not in MODES:
        raise ValueError(f"{key}JointControlType is {', '.join(MODES)}, not {kind}")
    if not MODES[kind]:
        return
    start = draft.q[joint] if kind == "position" else draft.v[joint]
    draft.document.setdefault("input", {})[f"{joint}_target"] = start
    gains = {
        field: draft.number(table, f"{key}Joint{what}Coefficient", 0.0)
        for field, what in
        (("kp", "Proportional"), ("ki", "Integral"), ("kd", "Derivative"))
    }  # fmt: skip
    cap = {}
    if f"{key}MaximumActuatablePower" in table:
        cap["power"] = draft.number(table, f"{key}MaximumActuatablePower")
    draft.add(
        "controller", f"{joint}_pid", type="JointPID", joints=[joint], mode=kind,
        target=f"{joint}_target", **gains, **cap,
    )  # fmt: skip
    draft.add(
        "part", f"{joint}_drive", type="JointActuator", joints=[joint],
        command=f"{joint}_pid.u",
    )  # fmt: skip


def _add_stop(draft: Draft, table: Table, key: str, joint: str, unit: float) -> None:
    """Add a joint's stops; limits of turning joints are in degrees."""
    if f"{key}UpstreamJointLimits" not in table:
        return
    low, high = draft.numbers(table, f"{key}UpstreamJointLimits", 2)
    if low < -FAR and high > FAR:
        return
    draft.add(
        "part", f"{joint}_stop", type="JointStop", joint=joint,
        lower=float(low * unit), upper=float(high * unit),
        stiffness=draft.number(table, f"{key}JointLimitStiffness"),
        damping=draft.number(table, f"{key}JointLimitDamping", 0.0),
    )  # fmt: skip


def add_payload(draft: Draft, table: Table) -> None:
    """Add a free body; its Euler angles turn about z, y and x."""
    start = np.array([draft.number(table, f"{i}|IC", 0.0) for i in range(12)])
    v, rates, p, angles = start.reshape(4, 3)
    M = np.stack([draft.numbers(table, f"{i}|Mass", 6) for i in range(6)])
    mass = M[0, 0]
    if np.any(M[:3, :3] != mass * np.eye(3)) or np.any(M[:3, 3:]) or np.any(M[3:, :3]):
        raise ValueError("Mass: a payload has one mass, about its mass centre")
    half = angles / 2
    (ci, cj, ck), (si, sj, sk) = np.cos(half), np.sin(half)
    quaternion = [
        ci * cj * ck + si * sj * sk, si * cj * ck - ci * sj * sk,
        ci * sj * ck + si * cj * sk, ci * cj * sk - si * sj * ck,
    ]  # fmt: skip
    (sx, sy), (cx, cy) = np.sin(angles[:2]), np.cos(angles[:2])
    turning = np.array([[1, 0, -sy], [0, cx, sx * cy], [0, -sx, cx * cy]]) @ rates
    draft.listed(
        "body", name="payload", joint={"type": "free"}, mass=float(mass),
        inertia=M[3:, 3:].tolist(),
    )  # fmt: skip
    draft.q["payload"] = [float(x) for x in (*p, *quaternion)]
    draft.v["payload"] = [float(x) for x in (*turning, *v)]


def add_cable(
    draft: Draft, table: Table, ends: Mapping[int, str], driven: int | None
) -> None:
    """Add a cable between what holds its nodes 0 and N."""
    n = count(table, "IC")
    nodes = np.stack([draft.numbers(table, f"{i}|IC", 6) for i in range(n)])
    speeds, places = nodes[:, 0::2], nodes[:, 1::2]
    lengths = draft.numbers(table, "ElementLengths", n - 1)
    length, x = float(lengths.sum()), np.append(0.0, np.cumsum(lengths))
    line = places[0] + np.outer(x / length, places[-1] - places[0])
    if np.any(speeds) or np.abs(places - line).max() > STRAIGHT * length:
        raise ValueError("IC: a cable of a scenario starts at rest and straight")
    number = lambda key, default=0.0: draft.number(table, key, default)
    diameter = draft.number(table, "dia_cable")
    rope = {
        "type": "CableProperties", "diameter": diameter, "EI": number("EI"),
        "linear_density": draft.number(table, "rho_cable") * np.pi / 4 * diameter**2,
        "EA": draft.number(table, "EA"), "GJ": number("GJ"),
        "axial_damping": number("CID"), "bending_damping": number("BCID"),
        "compression": number("CE"), "normal_drag": number("CDc"),
        "added_mass": number("CAc"),
    }  # fmt: skip
    held = {}
    for at, name, static in (
        (0, "tail", "NODE0_STATIC"), (-1, "head", "NODEN_STATIC"),
    ):  # fmt: skip
        where = "world" if number(static) else ends[at]
        held[name] = _end(draft, name, where, places[at])
        if driven == at:
            held[name]["payout"] = "winch.rate"
    masses = []
    for i in range(count(table, "ExtMasses")):
        s, d, density = draft.numbers(table, f"{i}|ExtMasses", 3)
        volume = np.pi / 6 * d**3
        point = {"position": float(s), "mass": float(density * volume)}
        masses.append({"type": "PointMass", "volume": float(volume), **point})
    draft.add(
        "part", "line", type="Cable", rope=rope, length=length,
        mesh=(x / length).tolist(), **held, **({"masses": masses} if masses else {}),
    )  # fmt: skip


def _end(
    draft: Draft, name: str, where: str, p: Float[np.ndarray, "3"]
) -> dict[str, Any]:
    """Return an end of the cable, with a frame on the payload where it holds it."""
    if not where:
        return {"type": "FreeEnd"}
    if where == "world":
        return {"type": "FixedEnd", "point": p.tolist()}
    if where != "payload":
        return {"type": "PinnedEnd", "frame": where}
    if "payload" not in draft.q:
        raise ValueError("the cable is held by a payload, and no file has one")
    place, (w, *u) = np.array(draft.q["payload"][:3]), draft.q["payload"][3:]
    arm, axis = p - place, -np.array(u)  # turned back into the payload's axes
    inward = arm + 2 * w * np.cross(axis, arm) + 2 * np.cross(axis, np.cross(axis, arm))
    frame = f"{name}_eye"
    draft.listed("frame", name=frame, body="payload", position=inward.tolist())
    return {"type": "PinnedEnd", "frame": frame}


def add_winch(draft: Draft, table: Table, mode: str, node: int) -> None:
    """Add the drive of a winch, and in tension mode its controller."""
    if mode not in ("velocity", "tension"):
        raise ValueError(f"winch_mode is velocity or tension, not {mode!r}")
    inputs = draft.document.setdefault("input", {})
    if mode == "tension":
        end = "head" if node else "tail"
        inputs["tension_wanted"] = draft.number(table, "TensionSetPoint")
        gains = {k.lower(): draft.number(table, k, 0.0) for k in ("Kp", "Ki", "Kd")}
        draft.add(
            "controller", "tension", type="WinchPID", measured=f"line.{end}_tension",
            wanted="tension_wanted", **gains,
        )  # fmt: skip
        target, unused = "tension.u", ("VelocitySetPoint",)
    else:
        inputs["rate_wanted"] = draft.number(table, "VelocitySetPoint")
        target, unused = "rate_wanted", ("Kp", "Ki", "Kd", "TensionSetPoint")
    for key in unused:
        if key in table:
            draft.note(f"{key} of the winch, without use in {mode} mode: "
                       f"{' '.join(table[key])}")  # fmt: skip
    draft.add(
        "part", "winch", type="Winch", target=target,
        acceleration=draft.number(table, "accel_max", 3.0),
        deceleration=-draft.number(table, "decel_max", -3.0),
    )  # fmt: skip
