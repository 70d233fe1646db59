"""The study `hydraulic-boom`, and the pieces it stands on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from experiments.harness import exudyn_peer
from experiments.harness.study import Study
from experiments.studies.hydraulic_boom import (
    components,
    record as record,
    study as hydraulic_boom,
)
from experiments.studies.hydraulic_boom.energy_balance import machine
from experiments.studies.hydraulic_boom.model import BAR, boom
from experiments.studies.hydraulic_boom.valve import ENDS, TIMES, by_radau


@pytest.mark.study
@pytest.mark.validation
def test_every_number_of_a_quick_run_is_inside_its_tolerance(tmp_path):
    title, stages = hydraulic_boom.TITLE, hydraulic_boom.STAGES
    run = Study(title, "", tmp_path, stages=stages, quick=True)
    hydraulic_boom.run(run)
    run.finish()
    assert [c.quantity for c in run.checks if c.passed is False] == []
    assert {
        "hydraulic_boom.hyd1.max_error_bar",
        "hydraulic_boom.reference_error",
    } <= {c.quantity for c in run.checks if c.passed}
    assert (tmp_path / "report.html").stat().st_size < 10e6


def test_bare_equations_end_as_published():
    """HYD-1 by Radau, without any of our code."""
    for V, (_, a, b, most) in ENDS.items():
        p = by_radau(V)
        assert np.allclose(p[:, -1], [a, b], atol=1e-4)
        assert abs(p[0].max() - most) < 0.01
        assert p.shape == (2, len(TIMES))


def test_rk4_grows_as_its_polynomial():
    z = np.array([-0.3, 0.5j])
    exact = abs(1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24)
    assert np.allclose(components.amplified(z), exact, rtol=1e-14)


def test_exudyn_ends_where_we_do():
    pytest.importorskip("exudyn")
    (x, *p), _ = exudyn_peer.valve_step(1e-4, exudyn_peer.Setting())
    assert abs(x - ENDS[1e-4][0]) < 2e-6
    assert np.allclose(np.divide(p, BAR), ENDS[1e-4][1:3], atol=1e-3)


@pytest.mark.slow
def test_the_record_measures_the_cylinder():
    """Stroke from the angle, beside the cylinder's own."""
    system = machine()
    y = system.initial_state(q={"boom": 0.2})
    reach = system.at(0.0, y).signals["oil.lift.x"]
    run = djdyn.simulate(system, 1e-3, y, saveat=[0.0, 1e-3], solver="rodas4")
    assert jnp.allclose(record.measured(run)[0, 2], reach, rtol=1e-12)


@pytest.mark.study
def test_stiff_oil_at_a_millisecond_in_both_precisions():
    """V15 with oil of 1.4e9 Pa, until the boom moves."""
    ends = []
    for double in (True, False):
        with jax.enable_x64(double):
            how = {"solver": "rodas4", "dt": 1e-3, "control_period": 1e-3}
            run = djdyn.simulate(boom(modulus=1.4e9), 0.7, **how)
            ends.append(np.array([run.y.q[-1, 0], run.y.parts["oil"]["A.bar"][-1]]))
            assert run.y.q.dtype == (jnp.float64 if double else jnp.float32)
    assert ends[0][0] > 0.01
    assert np.allclose(ends[1], ends[0], rtol=1e-4)
