"""Machines from MoorDyn decks: lines, points and bodies as one system."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..cable import Cable, CableProperties, DrivenEnd, FixedEnd, PinnedEnd
from ..cable.ends import AbstractEnd
from ..marine.water import Buoyancy, Drag, Fluid
from ..multibody.joints import Fixed, Free, Prescribed, Prismatic
from ..multibody.mechanism import Body, Frame, Mechanism
from ..multibody.spatial import pose_rpy, quat_from_rotation, translation
from ..multibody.time_functions import Constant
from ..parts.base import AbstractPart
from ..system.equilibrium import equilibrium
from ..system.state import State
from ..system.system import System
from .moordyn import Deck, DeckBody, DeckPoint, LineType, read_moordyn
from .safety import careful_reader


@careful_reader()
def from_moordyn(
    source: str | Path | Deck,
    *,
    motions: Mapping[str, Callable] | None = None,
    elements: Mapping[int, int] | None = None,
    ignore: Sequence[str] = (),
) -> tuple[System, State]:
    """Return a MoorDyn deck as a system, and its static state.

    Line 3 becomes the part `line3`, from its first point (tail) to its second (head);
    free points and bodies become bodies `point2` and `body1`.

    **Arguments:**

    - `motions`: functions of time of what is coupled, by name: the position of a point,
      the pose of a body. What is not given stays where the deck puts it.
    - `elements`: of lines, by number, where not as many as the deck has segments.
    - `ignore`: as for `read_moordyn`; `"CaAx"` leaves out added mass along lines, which
      cables do not know.

    Lines are under water all along, unless a point is above the surface at height zero.
    The sea bed is far below: there is no contact with it.
    """
    kinds = [kind for kind in ignore if kind != "CaAx"]
    deck = source if isinstance(source, Deck) else read_moordyn(source, kinds)
    for kind in deck.line_types.values():
        if kind.CaAx and "CaAx" not in ignore:
            raise ValueError(
                f"line type {kind.name!r} has added mass along the line; "
                'ignore=("CaAx",) leaves it out'
            )
    motions, elements = dict(motions or {}), dict(elements or {})
    coupled = {f"body{b.id}" for b in deck.bodies.values() if b.kind == "coupled"}
    coupled |= {f"point{p.id}" for p in deck.points.values() if p.kind == "coupled"}
    for name in motions:
        if name not in coupled:
            there = ", ".join(sorted(coupled)) or "none"
            raise ValueError(f"a motion of {name!r}, but coupled are {there}")
    for number in elements:
        if number not in deck.lines:
            raise ValueError(f"elements of unknown line {number}")
    tops = [x.position[2] for x in (*deck.points.values(), *deck.bodies.values())]
    water = Fluid(deck.density, surface=0.0 if max(tops, default=0.0) > 0 else None)
    bodies, frames, q = [], [], {}
    parts: dict[str, AbstractPart] = {}
    for body in deck.bodies.values():
        _add_body(deck, water, body, motions, bodies, parts, q)
    for point in deck.points.values():
        _add_point(deck, water, point, bodies, frames, parts, q)
    for line in deck.lines.values():
        n = elements.get(line.id, line.segments)
        rope = _rope(deck.line_types[line.type], line.length / n)
        tail, head = (_end(deck.points[k], motions) for k in (line.start, line.end))
        parts[f"line{line.id}"] = Cable(rope, line.length, tail, head, n, water)
    if not bodies:  # a mechanism has at least one
        bodies.append(
            Body("ground", "world", Fixed(), 0.0, (0, 0, 0), np.zeros((3, 3)))
        )
    mechanism = Mechanism(tuple(bodies), tuple(frames), (0.0, 0.0, -deck.gravity))
    system = System(mechanism, parts)
    return system, equilibrium(system, system.initial_state(q=q))


def _rope(kind: LineType, segment: float) -> CableProperties:
    return CableProperties(
        kind.mass,
        kind.EA,
        EI=kind.EI,
        diameter=kind.diameter,
        axial_damping=kind.axial_damping(segment),
        normal_drag=kind.Cd,
        tangential_drag=kind.CdAx,
        added_mass=kind.Ca,
    )


def _end(point: DeckPoint, motions: Mapping[str, Callable]) -> AbstractEnd:
    name = f"point{point.id}"
    if point.kind == "coupled":
        return DrivenEnd(motion=motions.get(name, Constant(point.position)))
    if point.kind == "fixed":
        return FixedEnd(point=point.position)
    return PinnedEnd(frame=name)


def _add_body(
    deck: Deck,
    water: Fluid,
    body: DeckBody,
    motions: Mapping[str, Callable],
    bodies: list[Body],
    parts: dict[str, AbstractPart],
    q: dict[str, Any],
) -> None:
    name, pose = f"body{body.id}", pose_rpy(body.position, body.roll_pitch_yaw)
    inertia = np.broadcast_to(np.asarray(body.inertia), 3)
    stuff = (body.mass, body.centre, np.diag(inertia))
    if body.kind != "free":
        motion = motions.get(name, lambda t: pose)
        bodies.append(Body(name, "world", Prescribed(motion), *stuff))
        return
    along, about = _six(body.Ca)
    if np.any(about):
        raise ValueError(f"body {body.id} has rotational added mass, of unclear unit")
    added = np.diag([0.0, 0.0, 0.0, *(deck.density * body.volume * along)])
    A_B = added if added.any() else None
    bodies.append(Body(name, "world", Free(), *stuff, A_B=A_B))
    q[name] = jnp.concatenate([pose.p, quat_from_rotation(pose.R)])
    _wet(water, name, body.volume, *_six(body.CdA), parts)


def _add_point(
    deck: Deck,
    water: Fluid,
    point: DeckPoint,
    bodies: list[Body],
    frames: list[Frame],
    parts: dict[str, AbstractPart],
    q: dict[str, Any],
) -> None:
    """A free one slides along three axes, in place of a body that could turn."""
    name = f"point{point.id}"
    if point.kind == "body":
        frames.append(Frame(name, f"body{point.body}", translation(point.position)))
    if point.kind != "free":
        return
    names = [f"{name}_x", f"{name}_y", name]
    none = (0.0, (0.0, 0.0, 0.0), np.zeros((3, 3)))
    for k, (parent, child) in enumerate(zip(["world", *names], names, strict=False)):
        stuff = (point.mass, *none[1:]) if child == name else none
        added = deck.density * point.volume * point.Ca * (child == name)
        A_B = np.diag([0.0, 0, 0, added, added, added]) if added else None
        slide = Prismatic(tuple(np.eye(3)[k]))
        bodies.append(Body(child, parent, slide, *stuff, A_B=A_B))
        q[child] = [point.position[k]]
    _wet(water, name, point.volume, *_six((point.CdA,)), parts)


def _six(x: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Along and about three axes, from one number, three, one of each, or all six."""
    half = {1: 1, 2: 1, 3: 3, 6: 3}[len(x)]
    along, about = np.array(x[:half]), np.array(x[half:] or (0.0,))
    return np.broadcast_to(along, 3), np.broadcast_to(about, 3)


def _wet(
    water: Fluid,
    name: str,
    volume: float,
    area: np.ndarray,
    spin: np.ndarray,
    parts: dict[str, AbstractPart],
) -> None:
    if volume:
        parts[f"{name}_buoyancy"] = Buoyancy(name, volume, water)
    if np.any(area) or np.any(spin):
        parts[f"{name}_drag"] = Drag(name, area, spin, water)
