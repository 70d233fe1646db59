"""Small motions of lines, beside exact periods."""

import numpy as np
import pytest
import scipy.special

from djdyn.system.equilibrium import equilibrium
from experiments.studies.cable.model import (
    along_x,
    beam,
    chain,
    pendulum,
    periods,
    string,
    torsion,
    wet_pendulum,
)
from experiments.studies.cable.vibration import pairs


pytestmark = pytest.mark.validation


def test_hanging_chain():
    """CAB-1: four modes within 0.2 % with ten elements."""
    system = chain()
    found = 1 / pairs(periods(system, equilibrium(system)), 4)
    exact = scipy.special.jn_zeros(0, 4) / (4 * np.pi) * np.sqrt(9.80665 / 10)
    assert np.allclose(found, exact, rtol=1e-3)


def test_taut_string():
    errors = []
    for n in (10, 20):
        system = string(n)
        line = system.parts["line"]
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
    system = pendulum()
    found = periods(system, equilibrium(system))[0]
    exact = 2 * np.pi * np.sqrt(20.00123 / 9.81) * (1 - 0.02 / 5 / 12)
    assert np.isclose(found, exact, rtol=5e-5)
    assert np.isclose(found, 8.97140, rtol=1e-3)


def test_torsion():
    """Ship V15: 6.283185 s."""
    system = torsion()
    found = periods(system, equilibrium(system))
    assert np.min(np.abs(found / (2 * np.pi) - 1)) < 1e-5


def test_pendulum_in_water():
    """CAB-6, with its 0.13 % of line and 0.05 % of stretch; swings of 0.09967 rad."""
    system = wet_pendulum()
    found = periods(system, equilibrium(system))[0] * (1 + 0.09967**2 / 16)
    assert np.isclose(found, 20.1266 * 1.0018, rtol=2e-4)


def test_beam():
    """Ship V1: the three-element model with halves of mass, and what splines add."""
    for n, lumping, wanted, rtol in (
        (3, "half", 0.04737, 1e-4),
        (3, "spline", 0.045073, 1e-2),
        (12, "spline", 0.045073, 2e-4),
    ):
        system = beam(n, lumping=lumping)
        found = periods(system, along_x(system, 3.0))[0]
        assert np.isclose(found, wanted, rtol=rtol), (n, lumping)
