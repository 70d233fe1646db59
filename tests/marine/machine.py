"""A vehicle with an arm and a load in waves, current and wind: every marine part."""

import jax.numpy as jnp
import numpy as np

import djdyn
from djdyn.cable import Cable, CableProperties, PinnedEnd
from djdyn.marine.allocation import Allocation, ThrustAllocation, ThrusterLayout
from djdyn.marine.drag import BodyDamping, StripDrag, WaveForce
from djdyn.marine.hull import Hydrostatics
from djdyn.marine.member import MorisonMember
from djdyn.marine.thruster import (
    FirstOrderThrust,
    QuadraticThrust,
    ShaftAndDuct,
    ThrottleCurve,
    Thrusters,
)
from djdyn.marine.water import Buoyancy, Drag, Fluid
from djdyn.marine.wave_field import irregular_waves
from djdyn.marine.wind import Wind, kaimal_gusts
from djdyn.parts import Grip, Support


INERTIA = np.diag([0.3, 0.4, 0.5])
ADDED = np.diag([0.1, 0.2, 0.3, 2.0, 3.0, 4.0])


def layout() -> ThrusterLayout:
    """Six thrusters that push every way."""
    rng = np.random.default_rng(4)
    return ThrusterLayout(rng.normal(size=(6, 3)), rng.normal(size=(6, 3)))


def machine(waves: bool = True, current: float = 0.4) -> djdyn.System:
    """The machine, deep and at the surface, with states away from rest."""
    sea = irregular_waves(
        0.6, 4.0, seed=1, components=4, depth=30.0, direction=0.3, spreading=4.0
    )
    water = Fluid(
        1000.0, currents=[[current, 0.2 * current, 0.0]], surface=0.1,
        waves=sea if waves else None, surface_width=0.3,
    )  # fmt: skip
    gale = Wind(12.0, 0.4, 0.14, gusts=kaimal_gusts(12.0, components=3, seed=2))
    six, laws = layout(), {}
    blades = (0.8, 0.15, 5.0, 1.0, 2.9, 2.0, 1.8)
    for name, law in (
        ("torque", ShaftAndDuct(*blades)),
        ("loop", ShaftAndDuct(*blades, mode="thrust", kp=3.0, ki=1.0)),
        ("lag", FirstOrderThrust(0.2, -50.0, 60.0)),
        ("square", QuadraticThrust(0.01, 0.3, 0.02)),
        ("curve", ThrottleCurve(0.2)),
    ):
        laws[name] = Thrusters("vehicle", six, "share.thrust", law, water)
    bodies = (
        djdyn.Body("vehicle", "world", djdyn.Free(), 20.0, I_BC=INERTIA, A_B=ADDED),
        djdyn.Body("arm", "vehicle", djdyn.Revolute((0, 1, 0)), 2.0, (0.3, 0, 0),
                   0.1 * INERTIA),
        djdyn.Body("load", "world", djdyn.Free(), 3.0, I_BC=INERTIA),
        djdyn.Body("hook", "world", djdyn.Cartesian(), 1.0),
    )  # fmt: skip
    frames = (
        djdyn.Frame("tool", "arm", djdyn.translation((0.6, 0.0, 0.0))),
        djdyn.Frame("crane", "world", djdyn.translation((0.0, 0.0, 3.0))),
    )
    rope = CableProperties(0.3, 50.0, diameter=0.02, normal_drag=1.0, added_mass=1.0)
    parts = {
        "share": ThrustAllocation(
            "wrench", Allocation(six, lower=-40.0, upper=50.0, rounds=1, width=1.0)
        ),
        "float": Buoyancy("vehicle", 0.02, water, 0.4),
        "hull": Hydrostatics(
            "load", 0.003, (0.0, 0.01, 0.1), 0.2, (0.03, 0.05), (0.02, 0.01), water
        ),
        "damping": BodyDamping(
            "vehicle", np.arange(1.0, 7.0), np.arange(2.0, 8.0), water, 0.4
        ),
        "drag": Drag("load", [0.1, 0.2, 0.3], 0.2, water, 0.4),
        "wave": WaveForce("vehicle", 0.02, [2.0, 3.0, 4.0], water, 0.4),
        "strips": StripDrag("arm", 0.6, 0.1, 0.7, 3.0, 2, fluid=water),
        "axes": StripDrag("arm", 0.6, [0.1, 0.2], 0.7, 3.0, 2, True, water),
        "gale": Drag("load", [0.1, 0.2, 0.3], 0.0, gale),
        "leg": MorisonMember("load", 0.5, 0.1, 1.0, 1.0, 1.0, 1.0, 1, water),
        "line": Cable(
            rope, 3.0, PinnedEnd("hook"), PinnedEnd("crane"), mesh=2, fluid=water
        ),
        "grip": Grip("tool", "load", "closed", 500.0, 30.0, 20.0, 3.0, latch=True),
        "hold": Grip("load", "hook", "closed", 400.0, 20.0),
        "deck": Support("hook", -0.2, 3e3, 50.0, 20.0, width=0.05),
        **laws,
    }  # fmt: skip
    mechanism = djdyn.Mechanism(bodies, frames)
    inputs = {"wrench": jnp.array([1.0, 2, -3, 40, -50, 60]), "closed": 0.6}
    return djdyn.System(mechanism, parts, inputs)


def state(system: djdyn.System, seed: int = 0) -> djdyn.State:
    """A state in motion, with every part's state away from zero."""
    rng = np.random.default_rng(seed)
    q = {
        "vehicle": [0.1, 0.2, 0.05, 0.9, 0.1, -0.2, 0.1],
        "load": [0.6, 0.3, 0.2, 0.8, 0.2, 0.1, -0.1],
        "hook": [0.5, 0.2, -0.24],
        "arm": 0.3,
    }
    y = system.initial_state(q, 0.3 * rng.normal(size=system.mechanism.nv))
    for name, part in y.parts.items():
        for key, x in part.items():
            y.parts[name][key] = x + 0.2 * rng.normal(size=x.shape)
    for name in ("grip", "hold"):
        y.parts[name]["hold"] = jnp.asarray(0.4)
    return y
