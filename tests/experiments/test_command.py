"""The command: what it prints and writes, and how it exits."""

import json

import numpy as np
import pytest
import xarray as xr

from experiments.__main__ import main
from experiments.harness import study as harness


def test_list_names_every_study(capsys):
    assert main(["list"]) == 0
    said = capsys.readouterr().out
    assert "crane" in said
    assert "boom-crane" in said
    assert "launch" in said
    assert "winch" in said
    assert "rollout" in said


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith("djdyn 0.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "kran"], "unknown study 'kran'; there are arm-id, boom-crane"),
        (["run", "crane", "--set", "pd.kq=1"], "no parameter 'pd.kq'"),
        (["run", "crane", "--set", "pd.kp"], "--set takes path=value"),
        (["run", "crane", "--set", "pd.kp=[1,2]"], "cannot be set"),
        (["bench", "speed"], "unknown benchmark 'speed'"),
        (["simulate", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(capsys, arguments, said, tmp_path):
    assert main([*arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("djdyn: ")
    assert said in error
    assert error.count("\n") == 1


SCENARIO = """
title = "Fall"
[simulation]
t1 = 1.0
saveat = 11
[[body]]
name = "stone"
joint = { type = "prismatic" }
mass = 2.0
[output]
frames = ["stone"]
"""


def test_simulate_writes_metrics_series_and_report(tmp_path, capsys):
    (tmp_path / "fall.toml").write_text(SCENARIO)
    assert main(["simulate", str(tmp_path / "fall.toml"), "--out", str(tmp_path)]) == 0
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["t_end"] == 1.0
    assert metrics["energy_residual"] < 1e-6
    data = xr.load_dataset(
        tmp_path / "series.nc", group="simulation", engine="h5netcdf"
    )
    assert np.allclose(data["stone.q"], -9.81 / 2 * data.time**2)
    page = (tmp_path / "report.html").read_text()
    assert "Frame stone" in page
    assert "energy_residual" in capsys.readouterr().out


def test_a_failed_simulation_leaves_what_it_reached(tmp_path, capsys):
    stiff = '[part.s]\ntype = "JointSpring"\njoint = "stone"\nstiffness = 1e12\n'
    text = SCENARIO.replace("saveat = 11", "saveat = 11\nmax_steps = 50") + stiff
    (tmp_path / "fall.toml").write_text(text)
    assert main(["simulate", str(tmp_path / "fall.toml"), "--out", str(tmp_path)]) == 1
    assert "joint 'stone'" in capsys.readouterr().err
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "series.nc").exists()
    assert json.loads((tmp_path / "metrics.json").read_text())["t_end"] < 1.0


def test_a_metric_outside_its_tolerance_fails_the_study(tmp_path):
    study = harness.Study("t", "s", tmp_path, stages=1)
    study.metric("good", 1.0, 1.0, 0.1)
    assert study.passed
    study.metric("bad", 1.2, 1.0, 0.1)
    assert not study.passed
    changed = harness.Study("t", "s", tmp_path, stages=1, sets={"pd.kp": 1.0})
    changed.metric("bad", 1.2, 1.0, 0.1)
    assert changed.passed  # parameters were changed: references are not judged
    study = harness.Study("t", "s", tmp_path, stages=1)
    study.metric("nan", float("nan"), 0.0, 0.1)
    assert not study.passed


@pytest.mark.parametrize(
    ("value", "bound", "passed"),
    [
        (0.1, {"at_most": 0.2}, True),
        (-9.0, {"at_most": 0.2}, True),
        (0.3, {"at_most": 0.2}, False),
        (1.0, {"at_least": 1.0}, True),
        (0.9, {"at_least": 1.0}, False),
        (float("nan"), {"at_least": 1.0}, False),
    ],
)
def test_a_metric_is_judged_by_its_bounds(tmp_path, value, bound, passed):
    study = harness.Study("t", "s", tmp_path, stages=1)
    study.metric("bounded", value, **bound)
    assert study.passed is passed
    changed = harness.Study("t", "s", tmp_path, stages=1, sets={"pd.kp": 1.0})
    changed.metric("bounded", value, **bound)
    assert changed.passed is not (value != value)  # only NaN fails where sets are given
