"""A body on 300 m of line behind a ship, and the closed forms of its steady shape.

The ship stands still and the water flows past it. A line in uniform flow is straight at
the critical angle, where the component of its weight across it balances the drag
across it, if the body at its end pulls along it.
"""

import jax.numpy as jnp
import numpy as np
import scipy.integrate
from jaxtyping import Array

import djdyn
from controllers import WinchPID
from djdyn.cable import Cable, CableProperties, FixedEnd, PinnedEnd
from djdyn.marine.drag import WaveForce
from djdyn.marine.water import Buoyancy, Drag, Fluid
from djdyn.marine.wave_field import irregular_waves
from djdyn.parts import FrameSensor, Winch


LENGTH, DENSITY, GRAVITY = 300.0, 1025.0, 9.81  # m, kg/m3, m/s2
MASS_PER_LENGTH, DIAMETER, EA = 1.0, 0.02, 5e6  # kg/m, m, N
NORMAL, TANGENTIAL = 1.2, 0.01
SPEED, WEIGHT = 2.0, 1500.0  # m/s; N, of the body in water
VOLUME = 0.1  # m3
ELEMENTS = 16


def line_weight() -> float:
    """Return the weight of the line in water, N/m."""
    return GRAVITY * (MASS_PER_LENGTH - DENSITY * np.pi / 4 * DIAMETER**2)


def critical_angle(speed: Array, normal: Array) -> Array:
    r"""Return $\varphi$ over the horizontal with $w\cos\varphi = D\sin^2\varphi$."""
    drag = DENSITY / 2 * DIAMETER * normal * speed**2
    ratio = line_weight() / (2 * drag)
    return jnp.arccos(jnp.sqrt(ratio**2 + 1) - ratio)


def matching_area(speed: float = SPEED) -> float:
    """Return the drag area of a body that pulls at the critical angle, m2."""
    angle = float(critical_angle(jnp.asarray(speed), jnp.asarray(NORMAL)))
    return WEIGHT / np.tan(angle) / (DENSITY / 2 * speed**2)


def top_tension(angle: float, speed: float = SPEED) -> float:
    """Return the tension of the straight line at the ship, N."""
    along = DENSITY / 2 * DIAMETER * np.pi * TANGENTIAL * (speed * np.cos(angle)) ** 2
    slope = line_weight() * np.sin(angle) + along
    return WEIGHT / np.sin(angle) + slope * LENGTH


def shape(area: float, speed: float = SPEED) -> tuple[np.ndarray, float]:
    """Return the body's place under the ship and the tension there, of a stiff line.

    By the differential equations of tension and angle along the line, from the body.
    """
    half, w = DENSITY / 2 * DIAMETER * speed**2, line_weight()
    pull = DENSITY / 2 * area * speed**2
    start = [np.hypot(WEIGHT, pull), np.arctan2(WEIGHT, pull), 0.0, 0.0]

    def slope(s: float, y: np.ndarray) -> list[float]:
        del s
        c, d = np.cos(y[1]), np.sin(y[1])
        across = w * c - half * NORMAL * d * abs(d)
        along = w * d + half * np.pi * TANGENTIAL * c * abs(c)
        stretch = 1 + y[0] / EA
        return [along, across / y[0], -c * stretch, -d * stretch]

    done = scipy.integrate.solve_ivp(
        slope, (0, LENGTH), start, rtol=1e-10, atol=1e-9
    ).y[:, -1]
    return done[2:], done[0]


def build(
    area: float | None = None, controlled: bool = False, speed: float = SPEED
) -> djdyn.System:
    """Return the line and the body in a current, with a winch in waves if asked for."""
    waves = irregular_waves(2.0, 9.0, components=8, seed=3) if controlled else None
    surface = 0.0 if controlled else None
    water = Fluid(
        DENSITY, currents=[[-speed, 0.0, 0.0]], surface=surface, waves=waves,
        surface_width=1.0,
    )  # fmt: skip
    mass = WEIGHT / GRAVITY + DENSITY * VOLUME
    added = DENSITY * VOLUME / 2 * np.eye(3)
    body = djdyn.Body(
        "fish", "world", djdyn.Cartesian(), mass,
        A_B=np.block([[np.zeros((3, 6))], [np.zeros((3, 3)), added]]),
    )  # fmt: skip
    rope = CableProperties(
        MASS_PER_LENGTH, EA, diameter=DIAMETER, normal_drag=NORMAL,
        tangential_drag=TANGENTIAL, added_mass=1.0,
    )  # fmt: skip
    top = FixedEnd((0.0, 0.0, -1.0), payout="winch.rate" if controlled else "")
    parts = {
        "line": Cable(rope, LENGTH, PinnedEnd("fish"), top, mesh=ELEMENTS, fluid=water),
        "lift": Buoyancy("fish", VOLUME, Fluid(DENSITY)),
        "drag": Drag("fish", matching_area() if area is None else area, fluid=water),
    }
    if controlled:
        parts |= {
            "wave": WaveForce("fish", VOLUME, np.diag(added), water),
            "depth": FrameSensor("fish"),
            "pid": WinchPID("depth.height", "wanted", 0.05, 0.002, limit=1.5),
            "winch": Winch("pid.u", 1.0, 1.0, gain=5.0, width=0.1),
        }
    inputs = {"wanted": jnp.zeros(())} if controlled else {}
    return djdyn.System(djdyn.Mechanism((body,)), parts, inputs)


def straight(system: djdyn.System, angle: float) -> djdyn.State:
    """Return the state with the line straight at an angle under the ship."""
    way = np.array([-np.cos(angle), 0.0, -np.sin(angle)])
    line = system.parts["line"]
    assert isinstance(line, Cable)
    x = np.asarray(line.mesh)[:, None]
    top = np.array([0.0, 0.0, -1.0])
    places = jnp.asarray(top + LENGTH * (1 - x) * way)
    y = system.initial_state({"fish": places[0]})
    parts = {**y.parts, "line": {**y.parts["line"], "r": places[line.free]}}
    return djdyn.State(y.q, y.v, parts)
