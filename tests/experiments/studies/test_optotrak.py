"""The study `optotrak`."""

import numpy as np
import pytest

import djdyn
from experiments.harness import tables
from experiments.harness.study import Study
from experiments.studies.optotrak import model as rig, study as optotrak
from experiments.studies.optotrak.trial import CHANNELS


TOLD = {  # a number that each part tells
    "static equilibrium": "equilibrium.max_error_deg",
    "linear modes": "modes.max_error_hz",
    "poses by Newton's method": "pose.trial_5_deg",
    "inertia of the parts": "inertia.sum_digits",
    "release from stated poses": "undamped.equilibrium_damped_mm",
    "trial 5 without friction": "frictionless.marker_error_mm",
    "trial 5 with friction": "frequency_at_fc015",
    "observability of the pose": "pose.singular_5",
    "identification from markers": "twin.coverage95",
    "planar joint": "planar.lagrange_error",
    "Lagrangian": "lagrangian_error",
    "damped settling": "settling.error",
    "friction by normal force": "frequency_at_mu25",
    "identification from measurements": "measured.frequency_error_hz",
}


def parts():
    for name, run in (*optotrak.QUICK, *optotrak.SLOW):
        slow = [pytest.mark.study] if name.startswith("identification") else []
        yield pytest.param(run, TOLD[name], id=name, marks=slow)


@pytest.mark.validation
@pytest.mark.parametrize(("run", "told"), [*parts()])
def test_every_number_is_inside_its_tolerance(run, told, tmp_path):
    study = Study(optotrak.TITLE, "", tmp_path, stages=1, quick=True)
    run(study)
    study.finish()
    assert [c.quantity for c in study.checks if c.passed is False] == []
    assert f"optotrak.{told}" in study.metrics


def test_summary_tells_what_was_found():
    found = {"equilibrium.marker1_y": -38.1, "twin.coverage95": 0.956}
    said = optotrak.summary({f"optotrak.{k}": x for k, x in found.items()})
    assert "by 0.2 mm" in said
    assert "96%" in said


@pytest.mark.validation
def test_twin_is_the_synthetic_series():
    """A second of it, at 157 samples a second, by 26 steps each."""
    system, y0 = rig.twin()
    known = tables.columns(tables.read("optotrak/synthetic_trial5_twin.csv"), *CHANNELS)
    n = 157
    lanes = {"contact.coulomb": [rig.TWIN["coulomb"]]}
    how = {"solver": "rk4", "dt": 1 / n / 26, "saveat": np.arange(n + 1) / n}
    run = djdyn.rollout(system, 1.0, y0, parameters=lanes, **how)
    found = 1e3 * rig.places(system.mechanism, run.y.q[0]).reshape(n + 1, -1)
    np.testing.assert_allclose(found, known[: n + 1], atol=2e-3)
