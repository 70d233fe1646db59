"""Studies of tuning: quick runs, each number inside its tolerance."""

import pytest

from experiments.harness.study import Study
from experiments.studies.swing_up import study as swing_up
from experiments.studies.tune_boom import study as tune_boom
from experiments.studies.tune_crane import study as tune_crane


@pytest.mark.study
@pytest.mark.parametrize("study", [swing_up, tune_boom, tune_crane])
def test_every_number_of_a_quick_run_is_inside_its_tolerance(study, tmp_path):
    run = Study(study.TITLE, "", tmp_path, stages=study.STAGES, quick=True)
    study.run(run)
    run.finish()
    assert [c.quantity for c in run.checks if c.passed is False] == []
    assert len(run.checks) >= 7 and (tmp_path / "report.html").exists()
    assert not list(tmp_path.glob("tuning*.npz"))
