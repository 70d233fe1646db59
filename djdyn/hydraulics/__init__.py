"""Hydraulic circuits: oil, volumes, valves, cylinders, motors.

Read in this order: `oil`, `nodes` (volumes, supplies, tanks), `component` (what all
components share), `orifice`, `valves`, `motor`, `linkage`, `friction` and `cylinder`,
then `circuit`, the part that joins them.
"""

from .circuit import Circuit as Circuit
from .component import AbstractComponent as AbstractComponent
from .cylinder import EndStop as EndStop, HydraulicCylinder as HydraulicCylinder
from .friction import (
    Efficiency as Efficiency,
    SealLuGre as SealLuGre,
    SealStribeck as SealStribeck,
)
from .linkage import (
    BetweenFrames as BetweenFrames,
    OnJoint as OnJoint,
    Triangle as Triangle,
)
from .motor import Motor as Motor, Pipe as Pipe, Pump as Pump
from .nodes import (
    Accumulator as Accumulator,
    Supply as Supply,
    Tank as Tank,
    Volume as Volume,
)
from .oil import Oil as Oil
from .orifice import (
    Leakage as Leakage,
    MeteringEdge as MeteringEdge,
    Orifice as Orifice,
)
from .valves import (
    CheckValve as CheckValve,
    Counterbalance as Counterbalance,
    ReliefValve as ReliefValve,
    ServoValve as ServoValve,
)
