"""Circuits that the tests share."""

import jax.numpy as jnp
import numpy as np

import djdyn
from djdyn.hydraulics import (
    Accumulator,
    BetweenFrames,
    CheckValve,
    Circuit,
    Counterbalance,
    Efficiency,
    EndStop,
    HydraulicCylinder,
    Leakage,
    MeteringEdge,
    Motor,
    Oil,
    OnJoint,
    Orifice,
    Pipe,
    Pump,
    ReliefValve,
    SealLuGre,
    SealStribeck,
    ServoValve,
    Supply,
    Tank,
    Triangle,
    Volume,
)
from djdyn.multibody.spatial import translation
from experiments.studies.hydraulic_boom.model import (
    BAR as BAR,
    boom as boom,
    pipe as pipe,
    slider as slider,
    valve_step as valve_step,
)


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
            "relief": ReliefValve("pumped", "T", 130 * BAR, 1e-11),
            "valve": ServoValve(
                "P", "T", "A", "B", "u", 1e-7, 2.0, 0.05, spool="oscillator"
            ),
            "lag": ServoValve("P", "T", "C", "D", "u", 1e-7, spool="lag"),
            "edge": MeteringEdge("P", "E", 1e-8, "half", 20 * BAR),
            "leak": Leakage("A", "B", 1e-12),
            "back": CheckValve("F", "E", 1e-8, 1 * BAR),
            "hold": Counterbalance("A", "E", "B", 1e-8, 250 * BAR),
            "pipe": Pipe("D", "F", 3.0, 1e-4, 1e8, 1e-4),
            "motor": Motor("C", "D", "wheel", 1e-5),
            "ram": HydraulicCylinder(
                "A", "B", BetweenFrames("base", "pin"), 2e-3, 1e-3, 0.6, 0.9,
                SealLuGre(1e6, 1e3, 300.0, 200.0, 100.0), EndStop(1e6, 1e4),
            ),
            "slide": HydraulicCylinder(
                "C", "D", OnJoint("mass"), 1e-3, 1e-3, 0.5, 0.0,
                SealStribeck(100.0, 50.0, 30.0), EndStop(1e6, 1e4, 0.1, 2e3),
            ),
            "bent": HydraulicCylinder(
                "E", "F", Triangle("arm", 0.4, 0.3, 1.2), 1e-3, 8e-4, 0.3, 0.2,
                Efficiency(), follow=conserves == "mass",
            ),
        },
    )  # fmt: skip
    return djdyn.System(
        mechanism, {"oil": circuit}, {"u": jnp.array(0.7), "half": jnp.array(0.5)}
    )
