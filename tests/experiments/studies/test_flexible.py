"""The study `flexible`."""

import numpy as np
import pytest

from experiments.harness.study import Study
from experiments.studies.flexible import crank, study


@pytest.mark.study
@pytest.mark.validation
def test_every_number_is_inside_its_tolerance(tmp_path):
    run = Study(study.TITLE, "", tmp_path, stages=study.STAGES)
    study.run(run)
    run.finish()
    assert [c.quantity for c in run.checks if c.passed is False] == []
    assert "flexible.spin_up.peak_error" in run.metrics


def test_the_rod_ends_where_the_slider_starts():
    system = crank.build()
    y0 = system.initial_state(q={"rod": 0.0, "rod.modes": crank.START_Q})
    tip = system.at(0.0, y0).world.pose("rod.tip").p
    # The digits of the test set's first slider position.
    assert np.allclose(tip, [0.450016933, 0.0, 0.0], rtol=0, atol=5e-10)
