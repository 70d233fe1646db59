"""Exudyn: the valve step by its hydraulic actuator, for comparison."""

import dataclasses
import time
from typing import Any

import numpy as np

from .moordyn_peer import quiet


@dataclasses.dataclass(frozen=True)
class Setting:
    """Settings of Exudyn's explicit Runge–Kutta solver of order five."""

    tolerance: float = 1e-8  # relative and absolute; default of Exudyn
    steps: int = 100  # at least; default of Exudyn

    def __str__(self) -> str:
        return f"DOPRI5, tolerance {self.tolerance:g}, at least {self.steps} steps"


def import_exudyn() -> Any:
    """Return the `exudyn` package, which only comparisons need."""
    try:
        with quiet():
            import exudyn
    except ImportError as error:
        raise ImportError(
            "comparisons with Exudyn need its package: pip install djdyn[peers]"
        ) from error
    return exudyn


def valve_step(volume: float, setting: Setting) -> tuple[np.ndarray, float]:
    """Return position (m) and pressures (Pa) after 1 s of the valve step, and time.

    The time in seconds is that of the solver, without building the model.
    """
    exu = import_exudyn()
    from exudyn import itemInterface as items

    mbs = exu.SystemContainer().AddSystem()
    ground = mbs.AddObject(items.ObjectGround())
    node = mbs.AddNode(items.NodePoint(referenceCoordinates=[5.0, 0.0, 0.0]))
    mbs.AddObject(items.ObjectMassPoint(mass=1000.0, nodeNumber=node))
    pressures = mbs.AddNode(
        items.NodeGenericODE1(
            referenceCoordinates=[0.0, 0.0],
            initialCoordinates=[100.5e5, 100.5e5],
            numberOfODE1Coordinates=2,
        )
    )
    ends = [
        mbs.AddMarker(items.MarkerBodyPosition(bodyNumber=ground)),
        mbs.AddMarker(items.MarkerNodePosition(nodeNumber=node)),
    ]
    mbs.AddObject(
        items.HydraulicActuatorSimple(
            markerNumbers=ends,
            nodeNumbers=[pressures],
            strokeLength=10.0,
            chamberCrossSection0=2e-3,
            chamberCrossSection1=2e-3,
            hoseVolume0=volume,
            hoseVolume1=volume,
            valveOpening0=1.0,
            valveOpening1=-1.0,
            actuatorDamping=2000.0,
            oilBulkModulus=1e9,
            nominalFlow=1e-7,
            systemPressure=200e5,
            tankPressure=1e5,
            useChamberVolumeChange=False,
        )
    )
    how = exu.SimulationSettings()
    integration = how.timeIntegration
    integration.endTime, integration.numberOfSteps = 1.0, setting.steps
    integration.relativeTolerance = setting.tolerance
    integration.absoluteTolerance = setting.tolerance
    how.solution.file.write = False
    with quiet():
        mbs.Assemble()
        began = time.perf_counter()
        solver = exu.DynamicSolverType.DOPRI5
        done = exu.SolveDynamic(mbs, how, solverType=solver)
        taken = time.perf_counter() - began
    if not done:
        raise RuntimeError("Exudyn did not reach the end of the valve step")
    at, kind = mbs.GetNodeOutput, exu.OutputVariableType
    x, p = at(node, kind.Displacement)[:1], at(pressures, kind.Coordinates)
    return np.concatenate([x, p]), taken
