"""The cable study, and the straight elements it is compared with."""

import numpy as np
import pytest

from experiments.harness.study import Study
from experiments.studies.cable import (
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
