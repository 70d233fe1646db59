"""Small motions of lines, beside exact periods."""

import numpy as np
import pytest
import scipy.special

import djdyn
from djdyn.cable import Cable, ClampedEnd, FixedEnd, FreeEnd, PinnedEnd, Rope, graded
from djdyn.fluid import Fluid
from djdyn.statics import equilibrium

from .machines import along_x, ground, payload, periods


pytestmark = pytest.mark.validation


def pairs(found: np.ndarray, n: int) -> np.ndarray:
    """The first of two equal periods: lines swing in two planes."""
    return found[: 2 * n : 2]


def test_hanging_chain():
    """CAB-1: four modes within 0.2 % with ten elements."""
    rope = Rope(1.0, 1e8, axial_damping=0.0)
    line = Cable(rope, 10.0, FreeEnd(), FixedEnd([0, 0, 0]), mesh=graded(10, 1.5))
    system = djdyn.System(ground(9.80665), {"line": line})
    found = 1 / pairs(periods(system, equilibrium(system)), 4)
    exact = scipy.special.jn_zeros(0, 4) / (4 * np.pi) * np.sqrt(9.80665 / 10)
    assert np.allclose(found, exact, rtol=1e-3)


def test_taut_string():
    rope = Rope(1.0, 1e7, axial_damping=0.0)
    head = FixedEnd([10.01, 0, 0])
    errors = []
    for n in (10, 20):
        line = Cable(rope, 10.0, FixedEnd([0, 0, 0]), head, mesh=n)
        system = djdyn.System(ground(0.0), {"line": line})
        every = periods(system, along_x(system, 10.01))
        limit = 2.8 * every[-1] / (2 * np.pi)  # of the classical Runge-Kutta method
        assert line.stable_step() < limit < 4 * line.stable_step()
        found = 1 / pairs(every, 2)
        exact = np.arange(1, 3) / 20 * np.sqrt(1e7 * 1e-3 / 1.001)
        errors.append(np.abs(found / exact - 1))
    assert np.all(errors[1] < 6e-4)
    assert np.all(np.log2(errors[0] / errors[1]) > 2)


def test_pendulum():
    """Ship V14: 8.97140 s; a light line takes off a twelfth of its share of mass."""
    line = Cable(Rope(1e-3, 8e5), 20.0, FixedEnd([0, 0, 0]), PinnedEnd("load"), mesh=2)
    system = djdyn.System(payload(5.0, 1e-3, 20.0), {"line": line})
    found = periods(system, equilibrium(system))[0]
    exact = 2 * np.pi * np.sqrt(20.00123 / 9.81) * (1 - 0.02 / 5 / 12)
    assert np.isclose(found, exact, rtol=5e-5)
    assert np.isclose(found, 8.97140, rtol=1e-3)


def test_torsion():
    """Ship V15: 6.283185 s."""
    rope = Rope(0.01, 8e5, GJ=100.0, EI=1e-6)
    ends = (ClampedEnd("wall", (0, 0, -1)), ClampedEnd("load", (0, 0, -1)))
    system = djdyn.System(
        payload(5.0, 5.0, 20.0), {"line": Cable(rope, 20.0, *ends, mesh=4)}
    )
    found = periods(system, equilibrium(system))
    assert np.min(np.abs(found / (2 * np.pi) - 1)) < 1e-5


def test_pendulum_in_water():
    """CAB-6, with its 0.13 % of line and 0.05 % of stretch; swings of 0.09967 rad."""
    rope = Rope(7.854, 1e9, diameter=np.sqrt(4 * 7.854 / 1025 / np.pi))
    length, ends = 100.4988, (FixedEnd([0, 0, 0]), PinnedEnd("load"))
    line = Cable(rope, length, *ends, mesh=4, fluid=Fluid(1025.0))
    system = djdyn.System(payload(1e5, 1.0, length, 9.80665), {"line": line})
    found = periods(system, equilibrium(system))[0] * (1 + 0.09967**2 / 16)
    assert np.isclose(found, 20.1266 * 1.0018, rtol=2e-4)


def test_beam():
    """Ship V1: the three-element model with halves of mass, and what splines add."""
    wall = ClampedEnd("wall", (1, 0, 0), (0, 1, 0))
    rope = Rope(7.854, 1e9, EI=1e6, compression=1.0, axial_damping=0.0)
    for n, lumping, wanted, rtol in (
        (3, "half", 0.04737, 1e-4),
        (3, "spline", 0.045073, 1e-2),
        (12, "spline", 0.045073, 2e-4),
    ):
        line = Cable(rope, 3.0, wall, FreeEnd(), mesh=n, lumping=lumping)
        system = djdyn.System(ground(0.0), {"line": line})
        found = periods(system, along_x(system, 3.0))[0]
        assert np.isclose(found, wanted, rtol=rtol), (n, lumping)
