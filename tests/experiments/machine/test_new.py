"""Command `djdyn new`: starters, their records, and what the other commands find."""

import numpy as np
import pytest

import djdyn
from experiments import identify
from experiments.__main__ import main
from experiments.machine.identify import prepared
from experiments.machine.new import write_starter
from experiments.machine.starter_table import STARTERS
from experiments.machine.tune_table import read_task


@pytest.mark.parametrize("name", STARTERS)
def test_a_starter_is_read_by_all_commands(name, tmp_path):
    if STARTERS[name].files:
        pytest.importorskip("mujoco")
    path = write_starter(name, tmp_path / "folder")
    assert "synthetic" in path.read_text().split("title =")[0]
    task, starter = prepared(path), STARTERS[name]
    assert not task.faults
    assert {r.file.path.name for r in task.records} == {*starter.runs}
    free = {p.path.removeprefix("system.") for p in task.spec.free}
    assert {*starter.true} <= free
    for one, true in starter.true.items():
        first = djdyn.get_parameters(task.scenario.system, one)
        assert not np.isclose(first, true, rtol=0.05)
    assert any("offset" in c.sensor.free for c in task.spec.channels)
    assert task.spec.inputs and task.scenario.shapes
    assert read_task(task.scenario).free


def test_an_existing_folder_is_refused_in_one_sentence(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["new", "pendulum", "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "is there already: give another --out" in said and said.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_starters_are_listed(capsys):
    assert main(["new"]) == 0
    listed = ", ".join(STARTERS)
    assert listed in capsys.readouterr().out
    assert main(["new", "kran"]) == 2
    said = f"unknown starter 'kran'; there are {listed}"
    assert said in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", STARTERS)
def test_a_starter_is_simulated_identified_and_tuned(name, tmp_path, monkeypatch):
    if STARTERS[name].files:
        pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    assert main(["new", name]) == 0
    monkeypatch.chdir(name)
    for command in ("simulate", "identify", "tune"):
        assert main([command, f"{name}.toml", "--out", command]) == 0
    found = identify(f"{name}.toml", save="identify/fit.npz")  # its last step
    estimates = found.parameters()
    for path, true in STARTERS[name].true.items():
        error = found.fit.deviations[f"system.{path}"]
        assert abs(estimates[path] - true) < 4 * error, path
