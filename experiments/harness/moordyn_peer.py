"""MoorDyn: input decks of two cable cases, and runs of them, for comparison."""

import contextlib
import dataclasses
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np


CATENARY_TENSION = float(np.hypot(150_582.368, 160_913.936))  # N, exact


def import_moordyn() -> Any:
    """Return the `moordyn` package, which only comparisons need."""
    try:
        import moordyn
    except ImportError as error:
        raise ImportError(
            "comparisons with MoorDyn need its package: pip install djdyn[peers]"
        ) from error
    return moordyn


HEADS = {
    "LINE TYPES": (
        "TypeName Diam Mass/m EA BA/-zeta EI Cd Ca CdAx CaAx",
        "(-) (m) (kg/m) (N) (N-s/-) (N-m^2) (-) (-) (-) (-)",
    ),
    "POINTS": (
        "ID Attachment X Y Z Mass Volume CdA Ca",
        "(-) (-) (m) (m) (m) (kg) (m^3) (m^2) (-)",
    ),
    "LINES": (
        "ID LineType AttachA AttachB UnstrLen NumSegs LineOutputs",
        "(-) (-) (-) (-) (m) (-) (-)",
    ),
    "OPTIONS": (),
}
OPTIONS: dict[str, Any] = {
    "g": 9.81,
    "rho": 1025,
    "threshIC": 1e-6,
    "dtIC": 1.0,
    "tScheme": "RK2",
    "writeLog": -1,
    "disableOutput": 1,
}


def deck(types: list, points: list, lines: list, **options: Any) -> str:
    """Return the text of a deck from its rows."""
    rows = dict(zip(HEADS, (types, points, lines), strict=False))
    rows["OPTIONS"] = [(value, name) for name, value in options.items()]
    text = ["--------------------- MoorDyn Input File ---------------------"]
    for section, heads in HEADS.items():
        text += [f"---------------------- {section} ----------------------", *heads]
        text += [" ".join(map(str, row)) for row in rows[section]]
    return "\n".join(
        [*text, "---------------------- need this line ----------------", ""]
    )


def heave_deck(segments: int, dtM: float) -> str:
    """Return the deck of a submerged payload under 100 m of wire with a driven top.

    It starts stretched, because MoorDyn's search for a static start does not converge.
    """
    stretch = (14_592.375 * 100 + 19.5891 * 100**2 / 2) / 40e6
    wire = ("wire", 0.025, 2.5, 40e6, -0.3, 0, 1.2, 1.0, 0.0, 0.0)
    top = (1, "Coupled", 0, 0, 0, 0, 0, 0, 0)
    payload = (2, "Free", 0, 0, -100 - stretch, 2000, 0.5, 2.0, 1.0)
    return deck(
        [wire],
        [top, payload],
        [(1, "wire", 2, 1, 100, segments, "-")],
        **OPTIONS,
        dtM=dtM,
        WtrDpth=500,
        TmaxIC=20,
        CdScaleIC=5,
    )


def catenary_deck(segments: int, dtM: float) -> str:
    """Return the deck of an elastic catenary in water with fixed ends."""
    chain = ("chain", 0.09, 77.7066, 384.243e6, -0.8, 0, 1.0, 1.0, 0.0, 0.0)
    anchor = (1, "Fixed", 0, 0, -100, 0, 0, 0, 0)
    fairlead = (2, "Coupled", 200, 0, 0, 0, 0, 0, 0)
    return deck(
        [chain],
        [anchor, fairlead],
        [(1, "chain", 1, 2, 230, segments, "-")],
        **OPTIONS,
        dtM=dtM,
        WtrDpth=300,
        TmaxIC=200,
        CdScaleIC=10,
    )


def heave(t: float, amplitude=1.0, period=8.0, ramp=8.0) -> tuple[float, float]:
    """Return height and vertical speed of the top: a sine with a linear ramp."""
    omega = 2 * np.pi / period
    on, growing = min(t / ramp, 1.0), 1.0 / ramp if t < ramp else 0.0
    z = amplitude * on * np.sin(omega * t)
    climb = on * omega * np.cos(omega * t) + growing * np.sin(omega * t)
    return float(z), float(amplitude * climb)


@dataclasses.dataclass(frozen=True)
class Run:
    """Result of a MoorDyn run; `wall` is the time of its steps in seconds."""

    t: np.ndarray
    tension: np.ndarray  # N, segment at the fairlead
    force: np.ndarray  # N, on the fairlead, with half a segment's weight
    positions: np.ndarray  # m, [time, point, axis]
    wall: float


def run_moordyn(
    text: str,
    t1: float,
    dt: float,
    motion: Callable[[float], tuple[float, float]] | None = None,
) -> Run:
    """Run a deck of one line whose last point is coupled.

    **Arguments:**

    - `dt`: macro steps; MoorDyn takes its own `dtM` inside.
    - `motion`: height and vertical speed of the coupled point; left out, it is fixed.
    """
    moordyn = import_moordyn()
    with tempfile.TemporaryDirectory() as folder, quiet():
        file = Path(folder) / "lines.txt"
        file.write_text(text)
        system = moordyn.Create(str(file))
        if system is None:
            raise ValueError(
                "MoorDyn does not take the deck; it says why on its console"
            )
        try:
            return _stepped(moordyn, system, t1, dt, motion or (lambda t: (0.0, 0.0)))
        finally:
            moordyn.Close(system)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the console output of a compiled library."""
    sys.stdout.flush()
    console = os.dup(1)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(console, 1)
        os.close(console)


def _stepped(moordyn: Any, system: Any, t1: float, dt: float, motion: Callable) -> Run:
    count = moordyn.GetNumberPoints(system)
    points = [moordyn.GetPoint(system, i + 1) for i in range(count)]
    coupled = [
        p for p in points if moordyn.GetPointType(p) == moordyn.POINT_TYPE_COUPLED
    ]
    place = [float(x) for x in moordyn.GetPointPos(coupled[0])]
    line = moordyn.GetLine(system, 1)

    def driven(t: float) -> tuple[list[float], list[float]]:
        z, climb = motion(t)
        return [*place[:2], place[2] + z], [0.0, 0.0, climb]

    if moordyn.Init(system, *driven(0.0)) != 0:
        raise RuntimeError("MoorDyn found no start for the deck")
    t, wall = dt * np.arange(round(t1 / dt) + 1), 0.0
    tension, force, positions = [], [], []
    for k, now in enumerate(t):
        if k:
            began = time.perf_counter()
            moordyn.Step(system, *driven(float(now)), float(t[k - 1]), dt)
            wall += time.perf_counter() - began
        force.append(np.linalg.norm(moordyn.GetPointForce(coupled[0])))
        tension.append(moordyn.GetLineFairTen(line))
        positions.append([moordyn.GetPointPos(p) for p in points])
    return Run(t, np.array(tension), np.array(force), np.array(positions), wall)
