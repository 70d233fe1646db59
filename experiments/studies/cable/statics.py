"""Static cables: catenary, beams and payload, and convergence of their errors."""

from collections.abc import Callable

import numpy as np
import scipy.integrate
import scipy.optimize

from djdyn.system.equilibrium import equilibrium

from ...harness.study import Study
from .model import along_x, beam, hanging, heavy_beam, mooring, signals


TENSION = float(np.hypot(150_582.368, 160_913.936))  # N, closed form of the catenary
FORCE, LENGTH, EI, EA = 5e4, 3.0, 1e6, 1e11  # cantilever: N, m, N m^2, N


def run_payload(study: Study) -> None:
    """Compare tension and stretch of a line under a payload (section 4.3.4)."""
    system = hanging()
    y = equilibrium(system)
    tension = signals(system, y)["line.head_tension"]
    study.metric(
        "cable.payload.tension",
        tension,
        5 * 9.81,
        1e-6,
        unit="N",
        note="payload of 5 kg; the report expects 49.5, with two digits exchanged",
    )
    stretch = 20 * (5 + 0.151189 * 10) * 9.81 / 8e5
    study.metric(
        "cable.payload.stretch_error",
        -y.q[2] / stretch - 1,
        0.0,
        1e-6,
        note=f"relative error of the stretch, {1e3 * stretch:.3f} mm",
    )


def run_beams(study: Study) -> None:
    """Compare beams under their weight with linear theory."""
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
            note=f"relative error of {1e3 * exact:.2f} mm, linear theory; 8 elements",
        )


# Errors against elements --------------------------------------------------------------


def end_tension(elements: int) -> float:
    """Return the end tension of the catenary, N."""
    system = mooring(elements)
    return float(signals(system, equilibrium(system))["line.head_tension"])


def tip(elements: int) -> float:
    """Return the deflection of the cantilever under its tip force, m."""
    system = beam(elements, FORCE, EA)
    y = equilibrium(system, along_x(system, LENGTH))
    return float(y.parts["line"]["r"][-1, 2])


def elastica() -> float:
    """Return the deflection of an inextensible continuous cantilever, m."""

    def slopes(s: np.ndarray, y: np.ndarray) -> np.ndarray:
        turn, bend, _ = y
        return np.array([bend, -FORCE / EI * np.cos(turn), np.sin(turn)])

    ends = lambda a, b: np.array([a[0], b[1], a[2]])
    s = np.linspace(0.0, LENGTH, 50)
    found = scipy.integrate.solve_bvp(slopes, ends, s, np.zeros((3, 50)), tol=1e-9)
    return float(found.y[2, -1])


def chord_tension(elements: int) -> float:
    """Return the end tension of a catenary of straight elements with lumped weight."""
    h, w, stiff = 230.0 / elements, 698.333, 384.243e6

    def end(force: np.ndarray) -> np.ndarray:
        """Return the error of the anchor position for a force at the fairlead."""
        pull = np.array([force] * elements)
        pull[:, 1] -= w * h * (np.arange(elements) + 0.5)
        size = np.linalg.norm(pull, axis=1, keepdims=True)
        return (h * (1 + size / stiff) * pull / size).sum(0) - [200.0, 100.0]

    return float(np.hypot(*scipy.optimize.root(end, [1.5e5, 1.6e5], tol=1e-13).x))


def chord_tip(elements: int) -> float:
    """Return the deflection of a cantilever of straight elements, m."""
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
    """Report the convergence of catenary and cantilever, and of straight elements."""
    for name, ours, chords, exact, meshes, wanted, metric, what in (
        ("catenary", end_tension, chord_tension, TENSION, (5, 10, 20, 40),
         20, "end_tension_error", "End tension of an elastic catenary"),
        ("beam", tip, chord_tip, elastica(), (3, 6, 12, 24),
         12, "deflection_error", "Cantilever with a large deflection (section 4.1.1)"),
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
                at_least=2.0,
                note=f"aim: order of convergence, {wanted // 2} to {wanted} elements",
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
    """Plot the errors beside those of straight elements."""
    error = lambda n: abs(chords(n) / exact - 1)
    counts = [3 * 2**k for k in range(7)]
    straight = [error(n) for n in counts]
    rate = np.polyfit(np.log(counts[2:]), np.log(straight[2:]), 1)
    needed = np.exp((np.log(errors[wanted]) - rate[1]) / rate[0])
    study.metric(
        f"cable.{name}.chords_for_the_same",
        needed,
        unit="elements",
        note=f"straight elements with the error of {wanted} cubic ones",
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
