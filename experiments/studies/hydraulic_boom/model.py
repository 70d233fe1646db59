"""Circuits of the study `hydraulic-boom` and their valve commands."""

from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import djdyn
from controllers import Reference
from djdyn.hydraulics import (
    BetweenFrames,
    Circuit,
    HydraulicCylinder,
    Leakage,
    Oil,
    OnJoint,
    Pipe,
    SealStribeck,
    ServoValve,
    Supply,
    Tank,
    Volume,
)
from djdyn.multibody.spatial import translation


BAR = 1e5  # Pa
BORE, ANNULUS = np.pi / 4 * 0.08**2, np.pi / 4 * (0.08**2 - 0.045**2)  # m2
GAIN = 1e-3 / np.sqrt(35 * BAR)  # m3/(s Pa^0.5): 60 l/min at 35 bar
SWITCHES = (0.5, 2.0, 3.0, 4.0)  # s, times at which the command changes


class Command(eqx.Module):
    """Valve command of the boom: up from 0.5 to 2 s, down from 3 to 4 s."""

    def __call__(self, t: Any) -> Any:
        up, hold, down, end = SWITCHES
        lift = jnp.where((t >= up) & (t < hold), 3.0, 0.0)
        return lift - jnp.where((t >= down) & (t < end), 2.0, 0.0)


def slider(circuit: Circuit, mass: float = 1000.0, **inputs: Any) -> djdyn.System:
    """Return a mass on a level slide without friction."""
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
    """Return a valve on a double-rod cylinder with constant chamber volumes."""
    return slider(
        Circuit(
            Oil(bulk_modulus=1e9, conserves="volume"),
            {
                "P": Supply(supply),
                "T": Tank(tank),
                "A": Volume(volume, start),
                "B": Volume(volume, start),
                "valve": ServoValve("P", "T", "A", "B", "u", gain, transition=100.0),
                "ram": HydraulicCylinder(
                    "A", "B", OnJoint("mass"), area, area, 10.0, -5.0,
                    SealStribeck(damping), follow=False,
                ),
            },
        ),
        u=1.0,
    )  # fmt: skip


def pipe(pieces: int, length: float, speed: float, start: float) -> djdyn.System:
    """Return oil flowing through a pipe whose far end has just been closed."""
    area, names = 1e-4, [f"n{i}" for i in range(pieces)]
    nodes = {k: Volume(area * length / pieces, start) for k in names}
    lines = {
        f"l{i}": Pipe(a, b, length / pieces, area, 0.0, speed * area)
        for i, (a, b) in enumerate(zip(["P", *names], names, strict=False))
    }
    oil = Oil(870.0, 1.4e9, conserves="volume")
    return slider(Circuit(oil, {"P": Supply(start), **nodes, **lines}))


def boom(
    conserves: Literal["mass", "volume"] = "volume",
    modulus: float = 1.6e9,
    air: float = 0.0,
    leak: float | None = None,
    **cylinder: Any,
) -> djdyn.System:
    """Return a boom of 4 m that a cylinder lifts (Baharudin 2016)."""
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
    leaks = {} if leak is None else {"leak": Leakage("A", "B", leak)}
    circuit = Circuit(
        Oil(870.0, modulus, air, conserves=conserves),
        {
            "P": Supply(200 * BAR),
            "T": Tank(1 * BAR),
            "A": Volume(0.0, 8514018.968, 5e-4, 4e8),
            "B": Volume(0.0, 20 * BAR, 5e-4, 4e8),
            "valve": ServoValve(
                "P", "T", "A", "B", "pilot.value", GAIN, 10.0, spool="lag", lag=0.025,
            ),
            "lift": HydraulicCylinder(
                "A", "B", BetweenFrames("base", "pin"), BORE, ANNULUS, 0.6, 0.95,
                **cylinder,
            ),
            **leaks,
        },
    )  # fmt: skip
    return djdyn.System(mechanism, {"oil": circuit, "pilot": Reference(Command())})
