"""The study `contact`."""

import pytest

from experiments import contact
from experiments.study import Study


@pytest.mark.slow
@pytest.mark.validation
def test_every_number_is_inside_its_tolerance(tmp_path):
    run = Study(contact.TITLE, "", tmp_path, stages=contact.STAGES, quick=True)
    contact.run(run)
    run.finish()
    assert [c.quantity for c in run.checks if c.passed is False] == []
    assert "contact.slope.creep_mm" in run.metrics
