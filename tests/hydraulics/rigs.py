"""Circuits that the tests share."""

import jax.numpy as jnp
import numpy as np

import djdyn
from djdyn.hydraulics import (
    Accumulator,
    BetweenFrames,
    Check,
    Circuit,
    Counterbalance,
    Cylinder,
    Edge,
    Efficiency,
    EndStop,
    Leakage,
    Line,
    LuGre,
    Motor,
    Oil,
    OnJoint,
    Orifice,
    Pump,
    Relief,
    ServoValve,
    Stribeck,
    Supply,
    Tank,
    Triangle,
    Volume,
)
from djdyn.spatial import translation


BAR = 1e5


def slider(circuit: Circuit, mass: float = 1000.0, **inputs) -> djdyn.System:
    """A mass on a frictionless slide, level."""
    body = djdyn.Body("mass", "world", djdyn.Prismatic((1, 0, 0)), mass)
    return djdyn.System(djdyn.Mechanism((body,)), {"oil": circuit}, inputs)


def valve_step(
    volume: float,
    area: float = 2e-3,
    damping: float = 2000.0,
    gain: float = 1e-7,
    start: float = 100.5 * BAR,
    supply: float = 200 * BAR,
    tank: float = BAR,
) -> djdyn.System:
    """HYD-1: a valve opens on a double-rod cylinder of constant chambers."""
    return slider(
        Circuit(
            Oil(bulk_modulus=1e9, conserves="volume"),
            {
                "P": Supply(supply),
                "T": Tank(tank),
                "A": Volume(volume, start),
                "B": Volume(volume, start),
                "valve": ServoValve("P", "T", "A", "B", "u", gain, transition=100.0),
                "ram": Cylinder(
                    "A", "B", OnJoint("mass"), area, area, 10.0, -5.0,
                    Stribeck(damping), follow=False,
                ),
            },
        ),
        u=1.0,
    )  # fmt: skip


def boom(conserves: str = "volume", modulus: float = 1.6e9, **cylinder) -> djdyn.System:
    """Real-time-multibody V15: a cylinder lifts a boom of 4 m."""
    length, rod, tip = 4.0, 500.0, 500.0
    mass, centre = rod + tip, (rod * length / 2 + tip * length) / (rod + tip)
    spread = rod * length**2 / 12 + rod * (length / 2 - centre) ** 2
    spread += tip * (length - centre) ** 2
    mechanism = djdyn.Mechanism(
        (
            djdyn.Body(
                "boom",
                "world",
                djdyn.Revolute((0, -1, 0)),
                mass,
                (centre, 0, 0),
                np.diag([0.0, spread, spread]),
            ),
        ),
        (
            djdyn.Frame("base", "world", translation((0.3, 0.0, -1.0))),
            djdyn.Frame("pin", "boom", translation((1.0, 0.0, 0.0))),
        ),
    )
    bore, annulus = np.pi / 4 * 0.08**2, np.pi / 4 * (0.08**2 - 0.045**2)
    circuit = Circuit(
        Oil(870.0, modulus, conserves=conserves),  # pyright: ignore
        {
            "P": Supply(200 * BAR),
            "T": Tank(1 * BAR),
            "A": Volume(0.0, 8514018.968, 5e-4, 4e8),
            "B": Volume(0.0, 20 * BAR, 5e-4, 4e8),
            "valve": ServoValve(
                "P", "T", "A", "B", "U", 5.345224838e-7, 10.0, spool="lag", lag=0.025
            ),
            "lift": Cylinder(
                "A", "B", BetweenFrames("base", "pin"), bore, annulus, 0.6, 0.95,
                **cylinder,
            ),
        },
    )  # fmt: skip
    return djdyn.System(mechanism, {"oil": circuit}, {"U": 0.0})


def everything(conserves: str = "mass") -> djdyn.System:
    """One of each component, around an arm, a slide and a wheel."""
    mechanism = djdyn.Mechanism(
        (
            djdyn.Body("mass", "world", djdyn.Prismatic((1, 0, 0)), 300.0),
            djdyn.Body(
                "arm", "world", djdyn.Revolute((0, -1, 0)), 90.0, (1, 0, 0), np.eye(3)
            ),
            djdyn.Body("wheel", "arm", djdyn.Revolute((0, 1, 0)), 9.0, I_BC=np.eye(3)),
        ),
        (
            djdyn.Frame("base", "world", translation((0.3, 0.1, -1.0))),
            djdyn.Frame("pin", "arm", translation((1.0, 0.0, 0.1))),
        ),
    )
    circuit = Circuit(
        Oil(air=0.005, exponent=1.3, conserves=conserves),  # pyright: ignore
        {
            "P": Supply(200 * BAR),
            "T": Tank(2 * BAR),
            "pumped": Volume(1e-3, 150 * BAR, 3e-4, 6e8),
            "gas": Accumulator(1e-4, 2e-3, 90 * BAR, 120 * BAR),
            "A": Volume(2e-4, 80 * BAR, 2e-4, 4e8),
            "B": Volume(2e-4, 60 * BAR),
            "C": Volume(3e-4, 40 * BAR),
            "D": Volume(3e-4, 45 * BAR),
            "E": Volume(5e-4, 30 * BAR),
            "F": Volume(5e-4, 33 * BAR),
            "pump": Pump("T", "pumped", 1e-3, 152 * BAR),
            "neck": Orifice("pumped", "gas", 2e-5, transition=2e4),
            "throttle": Orifice("gas", "C", 1e-5, command="half"),
            "relief": Relief("pumped", "T", 130 * BAR, 1e-11),
            "valve": ServoValve(
                "P", "T", "A", "B", "u", 1e-7, 2.0, 0.05, spool="oscillator"
            ),
            "lag": ServoValve("P", "T", "C", "D", "u", 1e-7, spool="lag"),
            "edge": Edge("P", "E", 1e-8, "half", 20 * BAR),
            "leak": Leakage("A", "B", 1e-12),
            "back": Check("F", "E", 1e-8, 1 * BAR),
            "hold": Counterbalance("A", "E", "B", 1e-8, 250 * BAR),
            "pipe": Line("D", "F", 3.0, 1e-4, 1e8, 1e-4),
            "motor": Motor("C", "D", "wheel", 1e-5),
            "ram": Cylinder(
                "A", "B", BetweenFrames("base", "pin"), 2e-3, 1e-3, 0.6, 0.9,
                LuGre(1e6, 1e3, 300.0, 200.0, 100.0), EndStop(1e6, 1e4),
            ),
            "slide": Cylinder(
                "C", "D", OnJoint("mass"), 1e-3, 1e-3, 0.5, 0.0,
                Stribeck(100.0, 50.0, 30.0), EndStop(1e6, 1e4, 0.1, 2e3),
            ),
            "bent": Cylinder(
                "E", "F", Triangle("arm", 0.4, 0.3, 1.2), 1e-3, 8e-4, 0.3, 0.2,
                Efficiency(), follow=conserves == "mass",
            ),
        },
    )  # fmt: skip
    return djdyn.System(
        mechanism, {"oil": circuit}, {"u": jnp.array(0.7), "half": jnp.array(0.5)}
    )
