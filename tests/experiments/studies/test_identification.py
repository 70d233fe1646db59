"""The studies `arm-id` and `bounce-id`."""

import pytest

from experiments.harness.study import Study
from experiments.studies.arm_id import study as arm_id
from experiments.studies.bounce_id import study as bounce_id


@pytest.mark.study
@pytest.mark.validation
@pytest.mark.parametrize(
    ("study", "metric"),
    [(arm_id, "arm_id.max_error"), (bounce_id, "bounce_id.recovered")],
)
def test_every_number_is_inside_its_tolerance(study, metric, tmp_path):
    run = Study(study.TITLE, "", tmp_path, stages=study.STAGES, quick=True)
    study.run(run)
    run.finish()
    assert [c.quantity for c in run.checks if c.passed is False] == []
    assert metric in run.metrics
