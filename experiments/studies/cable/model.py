"""Cables with closed-form solutions, and functions to evaluate them.

Section numbers are those of Roy, Steinke and Nicoll 2014.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

import djdyn
from djdyn.cable import (
    Cable,
    CableProperties,
    ClampedEnd,
    DrivenEnd,
    FixedEnd,
    FreeEnd,
    PinnedEnd,
    PointForce,
    graded,
)
from djdyn.marine.water import Fluid
from djdyn.multibody.time_functions import Harmonic


ORIGIN = FixedEnd(point=[0.0, 0.0, 0.0])
WALL = ClampedEnd(frame="wall", axis=(1, 0, 0), side=(0, 1, 0))  # pointing along x


def ground(g: float = 9.81) -> djdyn.Mechanism:
    """Return a mechanism without motion, with a frame `wall` at the origin."""
    block = djdyn.Body("block", "world", djdyn.Fixed(), 1.0)
    wall = djdyn.Frame("wall", "world")
    return djdyn.Mechanism((block,), (wall,), gravity_W=(0, 0, -g))


def payload(
    mass: float, inertia: float, depth: float, g: float = 9.81
) -> djdyn.Mechanism:
    """Return a free body `load` below the frame `wall` at the origin."""
    at, I_BC = djdyn.translation((0, 0, -depth)), inertia * np.eye(3)
    body = djdyn.Body("load", "world", djdyn.Free(), mass, I_BC=I_BC, X_PJ=at)
    wall = djdyn.Frame("wall", "world")
    return djdyn.Mechanism((body,), (wall,), gravity_W=(0, 0, -g))


def alone(line: Cable, g: float = 9.81) -> djdyn.System:
    """Return a line without a payload."""
    return djdyn.System(ground(g), {"line": line})


# Lines between walls ------------------------------------------------------------------


def mooring(elements: int) -> djdyn.System:
    """Return an elastic catenary with its submerged weight."""
    rope, head = (
        CableProperties(698.333 / 9.81, 384.243e6),
        FixedEnd(point=[200.0, 0.0, 100.0]),
    )
    return alone(Cable(rope, 230.0, ORIGIN, head, mesh=elements))


def chain(elements: int = 10) -> djdyn.System:
    """Return a hanging chain with elements that shrink towards the free end."""
    rope, mesh = CableProperties(1.0, 1e8, axial_damping=0.0), graded(elements, 1.5)
    return alone(Cable(rope, 10.0, FreeEnd(), ORIGIN, mesh=mesh), 9.80665)


def string(elements: int) -> djdyn.System:
    """Return a string of 10 m without gravity, with a strain of 0.001."""
    rope, head = (
        CableProperties(1.0, 1e7, axial_damping=0.0),
        FixedEnd(point=[10.01, 0.0, 0.0]),
    )
    return alone(Cable(rope, 10.0, ORIGIN, head, mesh=elements), 0.0)


def beam(
    elements: int, force: float = 0.0, EA: float = 1e9, lumping: str = "spline"
) -> djdyn.System:
    """Return a cantilever of 3 m with a tip force (section 4.1.1)."""
    rope = CableProperties(7.854, EA, EI=1e6, compression=1.0, axial_damping=0.0)
    tip = (PointForce(3.0, [0.0, 0.0, force]),) if force else ()
    line = Cable(rope, 3.0, WALL, FreeEnd(), elements, forces=tip, lumping=lumping)
    return alone(line, 0.0)


def heavy_beam(supported: bool, elements: int = 8) -> djdyn.System:
    """Return a beam under its weight: a cantilever, or with two supports."""
    rope = CableProperties(100.0, 1e5 if supported else 1e9, EI=1e7, compression=1.0)
    ends = (
        (ORIGIN, FixedEnd(point=[10.0, 0.0, 0.0])) if supported else (WALL, FreeEnd())
    )
    return alone(Cable(rope, 10.0, *ends, mesh=elements))


# Payloads on lines --------------------------------------------------------------------


def hanging() -> djdyn.System:
    """Return 5 kg under 20 m of wire (section 4.3.4)."""
    rope = CableProperties(0.151189, 8e5, diameter=0.005)
    line = Cable(rope, 20.0, ORIGIN, PinnedEnd(frame="load"), mesh=2)
    return djdyn.System(payload(5.0, 5.0, 20.0), {"line": line})


def pendulum() -> djdyn.System:
    """Return a pendulum of 5 kg on 20 m of light wire (section 4.3.5)."""
    line = Cable(
        CableProperties(1e-3, 8e5), 20.0, ORIGIN, PinnedEnd(frame="load"), mesh=2
    )
    return djdyn.System(payload(5.0, 1e-3, 20.0), {"line": line})


def torsion() -> djdyn.System:
    """Return a torsional pendulum with L I / GJ of 1 s^2 (section 4.3.6)."""
    rope = CableProperties(0.01, 8e5, GJ=100.0, EI=1e-6)
    ends = (
        ClampedEnd(frame="wall", axis=(0, 0, -1)),
        ClampedEnd(frame="load", axis=(0, 0, -1)),
    )
    line = Cable(rope, 20.0, *ends, mesh=4)
    return djdyn.System(payload(5.0, 5.0, 20.0), {"line": line})


def wet_pendulum() -> djdyn.System:
    """Return a pendulum of 100 t in water, on a neutrally buoyant line."""
    rope = CableProperties(7.854, 1e9, diameter=np.sqrt(4 * 7.854 / 1025 / np.pi))
    length, ends = 100.4988, (ORIGIN, PinnedEnd(frame="load"))
    line = Cable(rope, length, *ends, mesh=4, fluid=Fluid(1025.0))
    return djdyn.System(payload(1e5, 1.0, length, 9.80665), {"line": line})


def shaken() -> djdyn.System:
    """Return a payload on a line whose top follows three sines (section 4.1.4)."""
    top = Harmonic([2.0, 2.0, 2.0], [0.09, 0.05, 1.5])
    rope = CableProperties(7700 * np.pi / 4 * 0.005**2, 8e5, axial_damping=5e3)
    line = Cable(rope, 20.0, PinnedEnd(frame="load"), DrivenEnd(motion=top), mesh=4)
    return djdyn.System(payload(1400.0, 274.4, 20.0), {"line": line})


def hoist(
    mass: float, length: float, rope: CableProperties, mesh: int = 3
) -> djdyn.System:
    """Return a payload under a winch at the head of its line."""
    ends = (PinnedEnd(frame="load"), FixedEnd(point=[0, 0, 0], payout="rate"))
    line = Cable(rope, length, *ends, mesh=mesh)
    return djdyn.System(payload(mass, 1.0, length), {"line": line}, {"rate": 0.0})


def dropped(slack_width: float = 1e-6) -> tuple[djdyn.System, djdyn.State]:
    """Return a payload that falls 1 m until its slack line of 3 m is tight."""
    rope = CableProperties(
        0.5, 2e4, EI=0.05, axial_damping=50.0, slack_width=slack_width
    )
    line = Cable(rope, 3.0, PinnedEnd(frame="load"), ORIGIN, mesh=3)
    system = djdyn.System(payload(20.0, 0.5, 2.0), {"line": line})
    y = system.initial_state()
    bow = jnp.array([[0.3, 0.05, -1.6], [0.35, -0.05, -0.7]])
    return system, eqx.tree_at(lambda y: y.parts["line"]["r"], y, bow)


# Evaluation ---------------------------------------------------------------------------


@eqx.filter_jit
def _jacobian(system: djdyn.System, y: djdyn.State) -> Array:
    flat, unravel = ravel_pytree(y)
    rate = lambda flat: ravel_pytree(system.derivative(0.0, unravel(flat)))[0]
    return jax.jacfwd(rate)(flat)


def periods(system: djdyn.System, y: djdyn.State) -> np.ndarray:
    """Return the periods of small motions, the longest first."""
    values = np.linalg.eigvals(np.asarray(_jacobian(system, y)))
    return np.sort(2 * np.pi / values.imag[values.imag > 1e-6])[::-1]


@eqx.filter_jit
def signals(system: djdyn.System, y: djdyn.State) -> dict[str, Array]:
    """Return all signals of a state."""
    return system.at(0.0, y).signals


def along_x(system: djdyn.System, length: float) -> djdyn.State:
    """Return the state with the part `line` straight along x."""
    line = system.parts["line"]
    x = length * jnp.asarray(line.mesh)[line.free]  # pyright: ignore
    r = jnp.stack([x, 0 * x, 0 * x], 1)
    return eqx.tree_at(lambda y: y.parts["line"]["r"], system.initial_state(), r)
