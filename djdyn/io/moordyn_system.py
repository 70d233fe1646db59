"""Machines from MoorDyn decks: lines, points, rods and bodies as one system."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from ..cable import Cable, CableProperties, FreeEnd
from ..marine.water import Fluid
from ..multibody.joints import Fixed
from ..multibody.mechanism import Body, Mechanism
from ..multibody.spatial import Pose
from ..multibody.time_functions import Constant
from ..system.equilibrium import EquilibriumError, equilibrium
from ..system.state import State
from ..system.system import System
from .moordyn import Deck, LineType, read_moordyn
from .moordyn_bodies import Assembly
from .moordyn_motions import Placed
from .moordyn_water import deck_bed, deck_water
from .safety import careful_reader


@careful_reader()
def from_moordyn(
    source: str | Path | Deck,
    *,
    motions: Mapping[str, Callable[[Any], Any]] | None = None,
    elements: Mapping[int, int] | None = None,
    start: str | None = None,
    water: Fluid | None = None,
    ignore: Sequence[str] = (),
) -> tuple[System, State]:
    """Return a MoorDyn deck as a system, and the state it starts from.

    Line 3 becomes the part `line3`, from its first end (tail) to its second (head).
    Bodies, rods and the points that move become bodies `body1`, `rod2` and `point3`; a
    free point that is no more than the end of one line is the line's free end. Lines,
    rods and bodies are wet as far as they are under water at the instant, and touch the
    sea bed.

    **Arguments:**

    - `motions`: plain functions of time of what is coupled, by name: the position of a
      point or of a pinned body or rod (three numbers); the pose of a body or rod (a
      `Pose`, or six numbers with MoorDyn's roll, pitch and yaw in rad). What is not
      given stays where the deck puts it.
    - `elements`: of lines, by number, where not as many as the deck has segments.
    - `start`: `"rest"` for the static state, `"placed"` for lines at rest between
      bodies where the deck puts them, both in water without waves; by default as the
      deck's `TmaxIC` is positive or zero. `"rough"` looks for no equilibrium at all.
    - `water`: in place of the deck's, for which MoorDyn may rely on its caller
      (`WaveKin` 1); still water up to height zero if not given.
    - `ignore`: kinds of things to leave out, as for `read_moordyn`.

    !!! example

        ```python
        surge = lambda t: (5.0 + jnp.sin(t), 0.0, -70.0)
        system, y0 = from_moordyn("lines.txt", motions={"point4": surge})
        ```
    """
    deck = source if isinstance(source, Deck) else read_moordyn(source, ignore)
    if start not in (None, "rest", "placed", "rough"):
        raise ValueError(f"start is 'rest', 'placed' or 'rough', not {start!r}")
    motions, elements = dict(motions or {}), dict(elements or {})
    _check_names(deck, motions, elements)
    water = water or deck_water(deck)
    system, q = _machine(deck, water, motions, elements)
    start = start or ("rest" if deck.start_time > 0 else "placed")
    if start == "rough":
        return system, system.initial_state(q=q)
    held = {name: _held(motion) for name, motion in motions.items()}
    still = system
    if held or water.waves is not None:
        calm = eqx.tree_at(lambda w: w.waves, water, None, is_leaf=lambda x: x is None)
        still, _ = _machine(deck, calm, held, elements)
    joints = None if start == "rest" else _junctions(deck, system)
    try:
        return system, equilibrium(still, still.initial_state(q=q), joints=joints)
    except EquilibriumError as error:
        other = "placed" if start == "rest" else "rough"
        raise EquilibriumError(
            f"{error}; start={other!r} asks for less", error.state
        ) from error


def _machine(
    deck: Deck, water: Fluid, motions: dict[str, Callable], elements: dict[int, int]
) -> tuple[System, dict[str, Any]]:
    """Return the system, and coordinates where the deck puts its bodies."""
    made = Assembly(deck, water, deck_bed(deck), motions)
    made.add_all()
    for line in deck.lines.values():
        kind = deck.line_types[line.type]
        n = max(elements.get(line.id, line.segments), 2)
        segment = line.length / n
        ends = (made.line_end(line, at_head) for at_head in (False, True))
        tail, head = (FreeEnd() if end is None else end for end in ends)
        rope, bed = _rope(kind, segment), deck_bed(deck, kind, segment)
        cable = Cable(rope, line.length, tail, head, n, water, ground=bed)
        made.parts[f"line{line.id}"] = cable
    if not made.bodies:  # a mechanism has at least one
        made.bodies.append(Body("ground", "world", Fixed(), 0.0))
    gravity = (0.0, 0.0, -deck.gravity)
    mechanism = Mechanism(tuple(made.bodies), tuple(made.frames), gravity)
    return System(mechanism, made.parts), made.q


def _held(motion: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return where a motion begins, as a motion: a search for rest knows no speeds."""
    found = motion(jnp.zeros(()))
    return Placed(found) if isinstance(found, Pose) else Constant(found)


def _junctions(deck: Deck, system: System) -> list[str]:
    """Return the joints of points that have no mass: where they are, lines say."""
    names = {f"point{p.id}" for p in deck.points.values() if not p.mass}
    return [name for name in system.mechanism.joint_names if name in names]


def _check_names(deck: Deck, motions: dict, elements: dict) -> None:
    """Raise for a motion of what is not coupled, or elements of no line."""
    things = {
        **{f"body{b.id}": b for b in deck.bodies.values()},
        **{f"rod{r.id}": r for r in deck.rods.values()},
        **{f"point{p.id}": p for p in deck.points.values()},
    }
    coupled = [name for name, thing in things.items() if "coupled" in thing.kind]
    for name in motions:
        if name not in coupled:
            there = ", ".join(sorted(coupled)) or "none"
            raise ValueError(f"a motion of {name!r}, but coupled are {there}")
    for number in elements:
        if number not in deck.lines:
            raise ValueError(f"elements of unknown line {number}")


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
        tangential_added_mass=kind.CaAx,
    )
