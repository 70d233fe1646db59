"""Lines at rest: catenaries, beams and a payload, and how their errors fall."""

from collections.abc import Callable

import numpy as np
import scipy.integrate
import scipy.optimize

from djdyn.system.equilibrium import equilibrium

from ...harness.study import Study
from .model import along_x, beam, hanging, heavy_beam, mooring, signals


TENSION = float(np.hypot(150_582.368, 160_913.936))  # N, CAB-2, closed form
FORCE, LENGTH, EI, EA = 5e4, 3.0, 1e6, 1e11  # V1: N, m, N m^2, N; not stretched


def run_payload(study: Study) -> None:
    """V13: tension and stretch of the line under a payload."""
    system = hanging()
    y = equilibrium(system)
    tension = signals(system, y)["line.head_tension"]
    study.metric(
        "cable.payload.tension",
        tension,
        5 * 9.81,
        1e-6,
        unit="N",
        note="V13; the print expects 49.5, two digits swapped",
    )
    stretch = 20 * (5 + 0.151189 * 10) * 9.81 / 8e5
    study.metric(
        "cable.payload.stretch_error",
        -y.q[2] / stretch - 1,
        0.0,
        1e-6,
        note=f"V13: {1e3 * stretch:.3f} mm under the payload and half of the line",
    )


def run_beams(study: Study) -> None:
    """CAB-7: beams under their weight."""
    for name, supported, node, exact in (
        ("cantilever", False, -1, 100 * 9.81 * 10**4 / 8 / 1e7),
        ("supported", True, 3, 5 * 100 * 9.81 * 10**4 / 384 / 1e7),
    ):
        system = heavy_beam(supported)
        y = equilibrium(system, along_x(system, 10.0))
        study.metric(
            f"cable.{name}_beam.deflection_error",
            -y.parts["line"]["r"][node, 2] / exact - 1,
            0.0,
            1e-3,
            note=f"CAB-7: {1e3 * exact:.2f} mm by linear theory, 8 elements",
        )


# Errors against elements --------------------------------------------------------------


def end_tension(elements: int) -> float:
    system = mooring(elements)
    return float(signals(system, equilibrium(system))["line.head_tension"])


def tip(elements: int) -> float:
    """Deflection of the cantilever under its force."""
    system = beam(elements, FORCE, EA)
    y = equilibrium(system, along_x(system, LENGTH))
    return float(y.parts["line"]["r"][-1, 2])


def elastica() -> float:
    """The same of a continuous beam that does not stretch."""

    def slopes(s: np.ndarray, y: np.ndarray) -> np.ndarray:
        turn, bend, _ = y
        return np.array([bend, -FORCE / EI * np.cos(turn), np.sin(turn)])

    ends = lambda a, b: np.array([a[0], b[1], a[2]])
    s = np.linspace(0.0, LENGTH, 50)
    found = scipy.integrate.solve_bvp(slopes, ends, s, np.zeros((3, 50)), tol=1e-9)
    return float(found.y[2, -1])


def chord_tension(elements: int) -> float:
    """CAB-2 by straight elements with halves of their weight at the nodes."""
    h, w, stiff = 230.0 / elements, 698.333, 384.243e6

    def end(force: np.ndarray) -> np.ndarray:
        """Where the anchor comes to lie under this force at the fairlead."""
        pull = np.array([force] * elements)
        pull[:, 1] -= w * h * (np.arange(elements) + 0.5)
        size = np.linalg.norm(pull, axis=1, keepdims=True)
        return (h * (1 + size / stiff) * pull / size).sum(0) - [200.0, 100.0]

    return float(np.hypot(*scipy.optimize.root(end, [1.5e5, 1.6e5], tol=1e-13).x))


def chord_tip(elements: int) -> float:
    """V1 by straight elements with springs of bending between them."""
    h = LENGTH / elements
    springs = EI / h * np.where(np.arange(elements) == 0, 2.0, 1.0)

    def moments(turn: np.ndarray) -> np.ndarray:
        arm = np.cumsum(h * np.cos(turn)[::-1])[::-1]
        return springs * np.diff(turn, prepend=0.0) - FORCE * arm

    s = h * (np.arange(elements) + 0.5)
    small = FORCE / EI * (LENGTH * s - s**2 / 2)
    turn = scipy.optimize.root(moments, small, tol=1e-12).x
    return float(h * np.sin(turn).sum())


def run_convergence(study: Study) -> None:
    """CAB-2 and V1 on finer and finer meshes, beside straight elements."""
    for name, ours, chords, exact, meshes, wanted, metric, what in (
        ("catenary", end_tension, chord_tension, TENSION, (5, 10, 20, 40),
         20, "end_tension_error", "CAB-2, end tension of an elastic catenary"),
        ("beam", tip, chord_tip, elastica(), (3, 6, 12, 24),
         12, "deflection_error", "V1, tip of a cantilever bent far"),
    ):  # fmt: skip
        meshes = (wanted,) if study.quick else meshes
        errors = {n: abs(ours(n) / exact - 1) for n in meshes}
        study.metric(
            f"cable.{name}.{metric}",
            errors[wanted],
            at_most=5e-4,
            note=f"{what}: {exact:.8g} exact, {wanted} elements",
        )
        if not study.quick:
            study.metric(
                f"cable.{name}.order",
                np.log2(errors[wanted // 2] / errors[wanted]),
                note=f"of convergence from {wanted // 2} to {wanted} elements; "
                "wanted: at least 2",
            )
            compare(study, what, name, errors, chords, exact, wanted)


def compare(
    study: Study,
    what: str,
    name: str,
    errors: dict[int, float],
    chords: Callable[[int], float],
    exact: float,
    wanted: int,
) -> None:
    """The errors in a plot, beside those of straight elements."""
    error = lambda n: abs(chords(n) / exact - 1)
    counts = [3 * 2**k for k in range(7)]
    straight = [error(n) for n in counts]
    rate = np.polyfit(np.log(counts[2:]), np.log(straight[2:]), 1)
    needed = np.exp((np.log(errors[wanted]) - rate[1]) / rate[0])
    study.metric(
        f"cable.{name}.chords_for_the_same",
        needed,
        unit="elements",
        note=f"straight ones, for the error of {wanted} cubic ones",
    )
    study.report.plot(
        what,
        ("elements", "1", counts),
        ("relative error", "1"),
        {
            "cubic elements": (list(errors), list(errors.values())),
            "straight elements": straight,
        },
        log="xy",
    )
