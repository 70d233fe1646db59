"""Cases of the study `loops` that compile little."""

import pytest

from experiments.harness.study import Study
from experiments.studies.loops import cases, comparison


@pytest.mark.parametrize(
    "case, bound",
    [
        (cases.iterations, "loops.al_iterations_match"),
        (cases.fourbar, "loops.fourbar.error"),
        (cases.slider_crank, "loops.slider_crank.G"),
    ],
)
def test_cases_keep_their_answers(tmp_path, case, bound):
    study = Study("Loops", "cases", tmp_path, stages=1, quick=True)
    case(study, cases.Closure())
    assert bound in study.metrics
    assert [c.quantity for c in study.checks if c.passed is False] == []


@pytest.mark.slow
def test_stability_of_the_bicycle():
    """Weave and capsize speeds of Meijaard et al. (2007)."""
    from experiments.studies.loops import bicycle

    weave, capsize = bicycle.stability_speeds()
    assert abs(weave - bicycle.WEAVE) < 1e-6 and abs(capsize - bicycle.CAPSIZE) < 1e-6


def test_exudyn_has_the_same_bars():
    """Bars stand upright and level, as in the row of four-bars."""
    bodies, joints = comparison.exudyn_model(2)
    assert len(bodies) == 5 and len(joints) == 7
    assert all(body.velocity[0] in (0.5, 1.0) for body in bodies)
