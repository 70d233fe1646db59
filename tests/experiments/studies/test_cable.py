"""The cable study, and the straight elements it is compared with."""

import numpy as np
import pytest

from experiments.harness.study import Study
from experiments.studies.cable import (
    elements as cable_elements,
    heave as cable_heave,
    statics as cable_statics,
    study as cable,
    vibration as cable_waves,
)


@pytest.mark.study
@pytest.mark.validation
def test_every_number_of_a_quick_run_is_inside_its_tolerance(tmp_path):
    run = Study(cable.TITLE, "", tmp_path, stages=cable.STAGES, quick=True)
    cable.run(run)
    run.finish()
    assert [c.quantity for c in run.checks if c.passed is False] == []
    assert {
        "cable.beam.deflection_error",
        "cable.beam.period_error",
        "cable.catenary.end_tension_error",
        "cable.chain.max_frequency_error",
        "cable.elements.max_error",
        "cable.pendulum.period_error",
        "cable.torsion.period_error",
    } <= {c.quantity for c in run.checks if c.passed}
    assert (tmp_path / "report.html").stat().st_size < 10e6


def test_straight_elements_converge_to_the_same_answers():
    """CAB-2 and ship V1, whose elastica has its tip at 0.4400 m."""
    assert np.isclose(cable_statics.elastica(), 0.4400, atol=5e-5)
    for chords, exact in (
        (cable_statics.chord_tension, cable_statics.TENSION),
        (cable_statics.chord_tip, cable_statics.elastica()),
    ):
        errors = [abs(chords(n) / exact - 1) for n in (20, 40)]
        assert np.isclose(np.log2(errors[0] / errors[1]), 2.0, atol=0.1)


def test_swings():
    t = np.linspace(0.0, 1.0, 2001)
    period, mean = cable_waves.swings(t, 0.4 - 0.4 * np.cos(2 * np.pi * t / 0.047))
    assert np.isclose(period, 0.047, rtol=1e-5)
    assert np.isclose(mean, 0.4, rtol=1e-3)


def test_ranges_are_compared_by_their_width():
    refined = cable_heave.extremes(np.array([3.0, 1.0, 5.0]))
    assert cable_heave.difference(np.array([1.1, 5.2]), refined) == pytest.approx(0.05)


def test_masses_and_weights_are_those_of_the_printed_matrices():
    """Annex A of the ship report, misprints corrected: A.2, A.6, A.12, A.17."""
    found = cable_elements.mass_errors()
    assert found.pop("M_C as printed") > 1.0  # a sign and a power are misprinted
    assert max(found.values()) < 1e-12, found


def test_stretch_and_bending_are_those_of_the_printed_matrices():
    """A.8, A.14 and A.15; the print takes the chord for its direction."""
    found = cable_elements.stretch_errors()
    assert np.isclose(found.pop("K_epsG as printed"), 1 - 1 / 1.02)
    assert max(found.values()) < 1e-12, found
    assert cable_elements.bending_error() < 1e-11


@pytest.mark.slow
def test_water_acts_as_in_the_printed_matrices():
    assert max(cable_elements.water_errors().values()) < 1e-12


def test_twist_and_its_forces_converge_to_the_printed_ones():
    """Annex B and A.16 on a helix."""
    coarse, fine = (np.array(cable_elements.torsion_errors(n)) for n in (32, 64))
    assert np.all(fine < 3e-3) and np.all(np.log2(coarse / fine) > 1.9)
