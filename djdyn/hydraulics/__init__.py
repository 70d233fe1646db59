"""Hydraulic circuits: oil, volumes, valves, cylinders, motors."""

from .circuit import Circuit as Circuit
from .component import AbstractComponent as AbstractComponent
from .cylinder import Cylinder as Cylinder, EndStop as EndStop
from .friction import Efficiency as Efficiency, LuGre as LuGre, Stribeck as Stribeck
from .linkage import (
    BetweenFrames as BetweenFrames,
    OnJoint as OnJoint,
    Triangle as Triangle,
)
from .motor import Line as Line, Motor as Motor, Pump as Pump
from .nodes import (
    Accumulator as Accumulator,
    Supply as Supply,
    Tank as Tank,
    Volume as Volume,
)
from .oil import Oil as Oil
from .orifice import Edge as Edge, Leakage as Leakage, Orifice as Orifice
from .valves import (
    Check as Check,
    Counterbalance as Counterbalance,
    Relief as Relief,
    ServoValve as ServoValve,
)
