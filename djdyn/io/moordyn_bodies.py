"""Bodies, rods and points of a MoorDyn deck as bodies, frames and parts."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..cable.ends import AbstractEnd, ClampedEnd, DrivenEnd, FixedEnd, PinnedEnd
from ..marine.member import MorisonMember
from ..marine.sea_bed import SeaBed
from ..marine.water import Buoyancy, Drag, Fluid
from ..multibody.joints import (
    AbstractJoint,
    Cartesian,
    Fixed,
    Free,
    Prescribed,
    Spherical,
)
from ..multibody.mechanism import Body, Frame
from ..multibody.spatial import (
    Pose,
    quat_from_rotation,
    translation,
)
from ..multibody.time_functions import Constant
from ..parts.base import AbstractPart
from ..parts.external import ExternalWrench
from .moordyn import Deck, DeckBody, DeckLine, DeckPoint, DeckRod
from .moordyn_motions import PinMotion, Placed, PointMotion, PoseMotion, pose_xyz


MASSLESS = 1e-6  # mass of a junction, relative to the lines that end there
ROTARY = 1 / 105  # rotary inertia of a beam's end, per mass and square of an element


@dataclasses.dataclass
class Assembly:
    """A machine while it is put together from a deck."""

    deck: Deck
    water: Fluid
    bed: SeaBed
    motions: dict[str, Callable]
    bodies: list[Body] = dataclasses.field(default_factory=list)
    frames: list[Frame] = dataclasses.field(default_factory=list)
    parts: dict[str, AbstractPart] = dataclasses.field(default_factory=dict)
    q: dict[str, Any] = dataclasses.field(default_factory=dict)

    def add_all(self) -> None:
        """Add bodies, then what may stand on them."""
        for body in self.deck.bodies.values():
            self._add_body(body)
        for rod in self.deck.rods.values():
            self._add_rod(rod)
        for point in self.deck.points.values():
            self._add_point(point)

    def lines_at(self, end: int | tuple[int, str]) -> list[DeckLine]:
        """Return the lines that end at a point or at an end of a rod."""
        lines = self.deck.lines.values()
        return [line for line in lines for x in (line.start, line.end) if x == end]

    def _element_mass(self, line: DeckLine) -> float:
        return self.deck.line_types[line.type].mass * line.length / line.segments

    def line_end(self, line: DeckLine, at_head: bool) -> AbstractEnd | None:
        """Return how a line is held at its head or tail; None if it is not held."""
        place = line.end if at_head else line.start
        if isinstance(place, tuple):
            frame = f"rod{place[0]}{place[1]}"
            if not self.deck.line_types[line.type].EI:
                return PinnedEnd(frame=frame)
            onwards = (place[1] == "B") != at_head  # along the rod, from its end A
            return ClampedEnd(frame=frame, axis=(0.0, 0.0, 1.0 if onwards else -1.0))
        point, name = self.deck.points[place], f"point{place}"
        if point.kind == "coupled":
            return DrivenEnd(motion=self._point_motion(name, point.position))
        if point.kind == "fixed":
            return FixedEnd(point=point.position)
        return None if self._loose(point) else PinnedEnd(frame=name)

    def _loose(self, point: DeckPoint) -> bool:
        """Whether a point is no more than the free end of one line."""
        own = (point.mass, point.volume, point.CdA, *point.force)
        return (
            point.kind == "free" and not any(own) and len(self.lines_at(point.id)) < 2
        )

    # Motions ------------------------------------------------------------------------

    def _point_motion(self, name: str, position: Any) -> Callable:
        motion = self.motions.get(name)
        return Constant(position) if motion is None else PointMotion(motion)

    def _pose_motion(self, name: str, pose: Pose) -> Callable:
        motion = self.motions.get(name)
        return Placed(pose) if motion is None else PoseMotion(motion)

    def _held(
        self, name: str, kind: str, pose: Pose
    ) -> tuple[str, AbstractJoint, Pose]:
        """Return parent, joint and place of what hangs on the world in some way."""
        if kind == "fixed":
            return "world", Fixed(), pose
        if kind == "coupled":
            return (
                "world",
                Prescribed(self._pose_motion(name, pose)),
                translation((0,) * 3),
            )
        if kind == "free":
            self.q[name] = jnp.concatenate([pose.p, quat_from_rotation(pose.R)])
            return "world", Free(), translation((0, 0, 0))
        self.q[name] = quat_from_rotation(pose.R)
        if kind == "pinned":
            return "world", Spherical(), translation(pose.p)
        held = Prescribed(PinMotion(self._point_motion(name, pose.p)))
        self.bodies.append(Body(f"{name}_pin", "world", held, 0.0))
        return f"{name}_pin", Spherical(), translation((0, 0, 0))

    # Things -------------------------------------------------------------------------

    def _add_body(self, body: DeckBody) -> None:
        name = f"body{body.id}"
        pose = pose_xyz((*body.position, *body.roll_pitch_yaw))
        parent, joint, place = self._held(name, body.kind, pose)
        inertia, mass = np.diag(body.inertia), body.mass
        if mass == 0 and inertia.any():
            raise ValueError(f"body {body.id} has an inertia but no mass")
        added = self.deck.density * body.volume * np.broadcast_to(body.Ca, 3)
        A_B = np.diag([0.0, 0, 0, *added]) if added.any() else None
        stuff = (mass, body.centre, inertia)
        self.bodies.append(Body(name, parent, joint, *stuff, X_PJ=place, A_B=A_B))
        if body.kind in ("free", "coupled pinned"):
            self._wet(name, body.volume, *_six(body.CdA), body.centre)

    def _add_rod(self, rod: DeckRod) -> None:
        deck, name, kind = self.deck, f"rod{rod.id}", self.deck.rod_types[rod.type]
        a, b = np.array(rod.start), np.array(rod.end)
        ends = [line for end in "AB" for line in self.lines_at((rod.id, end))]
        pose = Pose(_upright(b - a if rod.length else self._heading(rod)), a)
        if rod.kind == "body":
            parent, joint, place = f"body{rod.body}", Fixed(), pose
        elif rod.kind == "body pinned":
            self.q[name] = quat_from_rotation(pose.R)
            parent, joint, place = f"body{rod.body}", Spherical(), translation(a)
        else:
            parent, joint, place = self._held(name, rod.kind, pose)
        L, d, mass = rod.length, kind.diameter, kind.mass * rod.length
        across, along = mass * (L**2 / 12 + d**2 / 16), mass * d**2 / 8
        if mass == 0:  # what lines that pass through would have
            mass = MASSLESS * sum(self._element_mass(line) for line in ends)
            rotary = [
                self._element_mass(line) * (line.length / line.segments) ** 2
                for line in ends
            ]
            across = along = ROTARY * sum(rotary)
        if mass == 0 and not isinstance(joint, Fixed | Prescribed):
            raise ValueError(f"rod {rod.id} has no mass and no line ends at it")
        inertia = np.diag([across, across, along])
        centre = (0.0, 0.0, L / 2)
        self.bodies.append(Body(name, parent, joint, mass, centre, inertia, place))
        for end, z in (("A", 0.0), ("B", L)):
            self.frames.append(Frame(f"{name}{end}", name, translation((0, 0, z))))
        moves = rod.kind not in ("fixed", "coupled")
        if rod.body is not None:
            moves |= deck.bodies[rod.body].kind in ("free", "coupled pinned")
        if L and moves:
            drag = (kind.Cd, kind.CdEnd, kind.Ca, kind.CaEnd)
            strips = max(rod.segments, 1)
            member = MorisonMember(name, L, d, *drag, strips, self.water, self.bed)
            self.parts[f"{name}_water"] = member

    def _heading(self, rod: DeckRod) -> np.ndarray:
        """Return the direction of a rod of no length, from the line at its end A on."""
        far = {}
        for end in "AB":
            for line in self.lines_at((rod.id, end)):
                other = line.end if line.start == (rod.id, end) else line.start
                far[end] = self._position(other)
        here = np.array(rod.start)
        return far.get("B", here) - far.get("A", here)

    def _position(self, end: int | tuple[int, str]) -> np.ndarray:
        """Return where the deck puts an end of a line, before anything moves."""
        if isinstance(end, tuple):
            rod = self.deck.rods[end[0]]
            local, body = (rod.start if end[1] == "A" else rod.end), rod.body
        else:
            point = self.deck.points[end]
            local, body = point.position, point.body
        if body is None:
            return np.array(local)
        on = self.deck.bodies[body]
        pose = pose_xyz((*on.position, *on.roll_pitch_yaw))
        return np.asarray(pose.act(jnp.asarray(local, float)))

    def _add_point(self, point: DeckPoint) -> None:
        name, mass = f"point{point.id}", point.mass
        if point.kind == "body":
            on = f"body{point.body}"
            if not mass and not point.volume:
                self.frames.append(Frame(name, on, translation(point.position)))
            else:
                place = translation(point.position)
                self.bodies.append(Body(name, on, Fixed(), mass, X_PJ=place))
        elif point.kind == "free" and not self._loose(point):
            lines = self.lines_at(point.id)
            mass = mass or MASSLESS * sum(map(self._element_mass, lines))
            if mass == 0:
                raise ValueError(f"point {point.id} has no mass and no line ends at it")
            self.bodies.append(Body(name, "world", Cartesian(), mass))
            self.q[name] = point.position
        else:
            return
        added = self.deck.density * point.volume * point.Ca
        if added:
            A_B = np.diag([0.0, 0, 0, added, added, added])
            self.bodies[-1] = dataclasses.replace(self.bodies[-1], A_B=A_B)
        self._wet(name, point.volume, *_six((point.CdA, 0.0)), (0.0, 0.0, 0.0))
        if any(point.force):
            force = Constant((0.0, 0.0, 0.0, *point.force))
            self.parts[f"{name}_force"] = ExternalWrench(name, force)

    def _wet(
        self,
        name: str,
        volume: float,
        area: np.ndarray,
        spin: np.ndarray,
        centre: tuple[float, ...],
    ) -> None:
        extent = (6 * volume / np.pi) ** (1 / 3) if volume > 0 else None
        if volume:
            lifted = name
            if any(centre):
                lifted = f"{name}_centre"
                self.frames.append(Frame(lifted, name, translation(centre)))
            lift = Buoyancy(lifted, volume, self.water, extent)
            self.parts[f"{name}_buoyancy"] = lift
        if np.any(area) or np.any(spin):
            self.parts[f"{name}_drag"] = Drag(name, area, spin, self.water, extent)


def _six(x: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers along and about three axes from one, two, three or six."""
    if len(x) == 2:
        return np.full(3, x[0]), np.full(3, x[1])
    if len(x) == 6:
        return np.array(x[:3]), np.array(x[3:])
    both = np.broadcast_to(np.array(x), 3)
    return both, both


def _upright(direction: np.ndarray) -> np.ndarray:
    """Return a rotation that takes the z axis to a direction, by the shortest way."""
    size = np.linalg.norm(direction)
    e = direction / size if size else np.array([0.0, 0.0, 1.0])
    if e[2] < -1 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    turn = np.array([[0, 0, e[0]], [0, 0, e[1]], [-e[0], -e[1], 0]])
    return np.eye(3) + turn + turn @ turn / (1 + e[2])
