"""The study of the torque-driven double pendulum, and the pieces it stands on."""

import json

import numpy as np
import pytest

from experiments.__main__ import main
from experiments.studies.double_pendulum import synthetic
from experiments.studies.double_pendulum.model import (
    DrivenPendulum,
    build,
    combinations,
    torques,
)
from experiments.studies.double_pendulum.records import (
    COLUMNS,
    COMMANDS,
    read,
    record,
    windows,
)


def test_torques_are_those_of_equations_written_by_hand():
    """At the true parameters, torques give the accelerations of the SciPy model."""
    model = DrivenPendulum(build(), [0.0, 0.0])
    known = {k: float(x) for k, x in combinations(model.system).items()}
    rng = np.random.default_rng(1)
    state, acc = rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    found = torques(model, np.zeros(5), (state[:, :2], state[:, 2:], acc))
    length, g = synthetic.LENGTH, synthetic.GRAVITY
    for y, a, tau in zip(state, acc, np.asarray(found), strict=True):
        q1, q2, v1, v2 = y
        h = known["moment_2"] * length
        b = known["inertia_2"]
        m11, m12 = known["inertia_1"] + b + 2 * h * np.cos(q2), b + h * np.cos(q2)
        weight = g * known["moment_2"] * np.sin(q1 + q2)
        first = m11 * a[0] + m12 * a[1] - h * np.sin(q2) * v2 * (2 * v1 + v2)
        first += g * known["moment_1"] * np.sin(q1) + weight
        second = m12 * a[0] + (b + known["rotor_2"]) * a[1]
        second += h * np.sin(q2) * v1**2 + weight
        friction = 0.01 * y[2:] + 0.1 * np.tanh(y[2:] / 0.1)
        expected = np.array([first, second]) + friction
        assert np.allclose(tau, expected, rtol=1e-10, atol=1e-12)


def test_filtered_motion_is_that_of_a_slow_harmonic():
    t = np.arange(0.0, 4.0, 0.002)
    q = np.stack([np.sin(3 * t), 0.001 * np.cos(3 * t)], 1)
    one = record("slow", t, q, q, q)
    inner = slice(300, -300)  # the ends know one side only
    assert np.allclose(one.q[inner, 0], np.sin(3 * one.t[inner]), atol=1e-4)
    assert np.allclose(one.v_dot[inner, 0], -9 * np.sin(3 * one.t[inner]), atol=0.02)
    assert one.blocked == [2]
    cut = windows([one], 1.0, 0.02)
    assert cut.q.shape == (3, 51, 2) and cut.torque.shape == (3, 501, 2)


@pytest.mark.parametrize(
    "rows, said",
    [
        ("time_s,q1_rad\n0,1\n1,2\n", "has no column q2_rad"),
        (",".join(COLUMNS + COMMANDS) + "\n0,0,0,0,0,0,0\n1,0,0,0,0,0,0\n", "0.05 s"),
        (",".join(COLUMNS + COMMANDS) + "\n0,0,x,0,0,0,0\n1,0,0,0,0,0,0\n", "row 2"),
    ],
)
def test_files_that_are_no_trials_are_refused(tmp_path, capsys, rows, said):
    (tmp_path / "trial.csv").write_text(rows)
    where = ["--set", f"data={tmp_path}", "--out", str(tmp_path / "out")]
    assert main(["run", "double-pendulum", *where]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_without_trials_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no CSV file"):
        read(tmp_path)


@pytest.mark.study
def test_parameters_of_synthetic_trials_are_found(tmp_path):
    assert main(["run", "double-pendulum", "--quick", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "metrics.json").read_text())
    assert found["double_pendulum.simulated_median_deg"] < 3.0
