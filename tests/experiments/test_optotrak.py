"""The study `optotrak`."""

import numpy as np
import pytest

import djdyn
from experiments import optotrak, optotrak_rig as rig, tables
from experiments.optotrak_trial import CHANNELS
from experiments.study import Study


@pytest.mark.slow
@pytest.mark.validation
def test_every_number_is_inside_its_tolerance(tmp_path):
    run = Study(optotrak.TITLE, "", tmp_path, stages=optotrak.STAGES)
    optotrak.run(run)
    run.finish()
    timed = "optotrak.twin.seconds"  # depends on what else the machine does
    failed = [c.quantity for c in run.checks if c.passed is False]
    assert [name for name in failed if name != timed] == []
    for name in (
        "equilibrium.max_error_deg",
        "frictionless.marker_error_mm",
        "modes.max_error_hz",
        "frequency_at_fc015",
        "measured.frequency_error_hz",
        "twin.max_z",
        "twin.coverage95",
    ):
        assert f"optotrak.{name}" in run.metrics


@pytest.mark.validation
def test_twin_is_the_synthetic_series():
    """A second of it, at 157 samples a second, by 26 steps each."""
    system, y0 = rig.twin()
    known = tables.columns(tables.read("optotrak_synthetic_trial5_twin.csv"), *CHANNELS)
    n = 157
    lanes = {"contact.coulomb": [rig.TWIN["coulomb"]]}
    how = {"solver": "rk4", "dt": 1 / n / 26, "saveat": np.arange(n + 1) / n}
    run = djdyn.rollout(system, 1.0, y0, parameters=lanes, **how)
    found = 1e3 * rig.places(system.mechanism, run.y.q[0]).reshape(n + 1, -1)
    np.testing.assert_allclose(found, known[: n + 1], atol=2e-3)
