"""Command `djdyn tune`: gains, report, resumption, and what it refuses."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import xarray as xr

import djdyn
from djdyn.io.scenario import read_scenario
from experiments import tune
from experiments.__main__ import main
from experiments.machine.kinds import KINDS
from experiments.machine.tune_table import read_task


PENDULUM = """
title = "Pendulum"
[simulation]
t1 = 2.0
solver = "rk4"
dt = 0.02
control_period = 0.02
control_delay = true
[[body]]
name = "rod"
joint = { type = "revolute", axis = [0, 1, 0], name = "hinge" }
mass = 1.0
com = [0, 0, -0.5]
inertia = [0.1, 0.1, 0.1]
[controller.target]
type = "Reference"
path = { type = "Harmonic", amplitude = [0.5], frequency = 2.0 }
[controller.pid]
type = "JointPID"
joints = ["hinge"]
target = "target.value"
kp = 5.0
kd = 1.0
[part.motor]
type = "JointActuator"
joints = ["hinge"]
command = "pid.u"
[initial]
v = { hinge = 0.2 }
[output]
signals = ["pid.u"]
"""
TUNE = """
[tune]
saves = 51
[tune.free]
"pid.kp" = { bounds = [1, 50] }
pid.kd = "positive"
[tune.cost]
error = { type = "MeanSquare", signal = "hinge.q", minus = "target.value", scale = 0.1 }
effort = { type = "MeanSquare", signal = "pid.u[0]", scale = 20 }
[tune.limit]
torque = { signal = "pid.u", low = -40, high = 40 }
[tune.search]
max_steps = 3
[tune.scenarios]
count = 3
seed = 4
parameters = { "rod.mass" = { uniform = [0.5, 1.5] } }
q = { hinge = { normal = [0, 0.1] } }
[tune.hold_out]
count = 5
[tune.loop]
signal = "pid.u"
modulus = 0.4
"""


@pytest.fixture
def machine(tmp_path):
    path = tmp_path / "machine.toml"
    path.write_text(PENDULUM + TUNE)
    return path


@pytest.mark.slow
def test_tune_writes_report_gains_and_scenario(machine, tmp_path, capsys, monkeypatch):
    """Interrupted after its first step, it goes on to the same gains."""
    out = tmp_path / "out"
    assert main(["tune", str(machine), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "cost_ratio" in said and "tuned.toml" in said
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["cost_ratio"] < 0.5 and metrics["modulus_margin"] > 0.399
    assert metrics["limit.torque.exceeded_by"] < 1e-3
    assert not [*out.glob("tuning*")]
    tuned = read_scenario(out / "tuned.toml", KINDS).system
    for path in ("pid.kp", "pid.kd"):
        value = float(djdyn.get_parameters(tuned, path)[()])
        assert value == metrics[f"gain.{path}"]
    assert "# tuned by djdyn tune machine.toml" in (out / "tuned.toml").read_text()
    page = (out / "report.html").read_text()
    assert "In 5 scenarios held out, the mean cost falls" in page
    assert "hinge.q - target.value [rad]" in page and "pid.u[0] [N m]" in page
    runs = xr.load_dataset(out / "series.nc", group="after", engine="h5netcdf")
    assert runs["pid.u"].attrs["units"] == "N m"

    class Killed(BaseException):
        pass

    def killed(*args, **kwargs):
        save(*args, **kwargs)
        raise Killed

    again = tmp_path / "again"
    save = djdyn.optimize.multistart.save_checkpoint
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(djdyn.optimize.multistart, "save_checkpoint", killed)
        main(["tune", str(machine), "--out", str(again)])
    assert (again / "tuning-0.npz").exists()
    other = tmp_path / "other.toml"
    other.write_text(machine.read_text().replace("high = 40", "high = 30"))
    assert main(["tune", str(other), "--out", str(again)]) == 2
    error = capsys.readouterr().err
    assert "another problem, whose table 'tune' differs" in error
    assert error.count("\n") == 1
    assert main(["tune", str(machine), "--out", str(again)]) == 0
    assert json.loads((again / "metrics.json").read_text()) == metrics
    assert main(["tune", str(out / "tuned.toml"), "--out", str(out)]) == 2
    assert "would be replaced by its result" in capsys.readouterr().err


def test_states_are_those_of_the_file_but_for_what_is_drawn(machine):
    task = read_task(read_scenario(machine, KINDS))
    assert len(task.scenarios) == 3 and len(task.hold_out) == 5
    assert np.allclose(task.scenarios.initial_state.v, 0.2)
    assert len({*task.scenarios.initial_state.q[:, 0].tolist()}) == 3
    mass = np.asarray(task.hold_out.parameters["rod.mass"])
    assert np.all((mass > 0.5) & (mass < 1.5))
    assert task.options == {
        "solver": "rk4", "dt": 0.02, "control_period": 0.02, "control_delay": True
    }  # fmt: skip
    assert task.robustness.delay == pytest.approx(0.03)
    assert task.robustness.time == 2.0


def test_the_table_on_the_page_is_read(machine):
    page = (Path(__file__).parents[3] / "docs" / "control.md").read_text()
    (table,) = re.findall(r"```toml\n(\[tune\]\n.+?)```", page, re.DOTALL)
    rub = '[part.rub]\ntype = "JointFriction"\njoint = "hinge"\nviscous = 1.0\n'
    text = PENDULUM.replace('"rod"', '"load"').replace("[initial]", f"{rub}[initial]")
    machine.write_text(text.replace("t1 = 2.0", "t1 = 5.0") + table)
    with pytest.raises(ValueError, match=r"tune.saves: 250 control periods are not"):
        read_task(read_scenario(machine, KINDS))
    machine.write_text(machine.read_text().replace("saves = 101", "saves = 51"))
    task = read_task(read_scenario(machine, KINDS))
    assert [*task.cost] == ["error", "bearing"] and len(task.hold_out) == 64


CART = """
[simulation]
t1 = 12.0
solver = "rk4"
dt = 0.02
[environment]
gravity = [0, 0, 0]
[[body]]
name = "cart"
joint = { type = "prismatic", axis = [1, 0, 0] }
mass = 2.0
[controller.zero]
type = "Reference"
path = { type = "Constant", value = [0.0] }
[controller.pid]
type = "JointPID"
joints = ["cart"]
target = "zero.value"
kp = 0.5
kd = 2.0
[part.motor]
type = "JointActuator"
joints = ["cart"]
command = "pid.u"
[tune]
saves = 601
[tune.free]
pid.kp = "positive"
pid.kd = "positive"
[tune.cost]
place = { type = "MeanSquare", signal = "cart.q", scale = 0.5 }
force = { type = "MeanSquare", signal = "pid.u", scale = 2.0 }
[tune.search]
method = "nl2sol"
[tune.scenarios]
count = 4
q = { cart = { uniform = [-1, 1] } }
v = { cart = { uniform = [-1, 1] } }
"""


def test_gains_of_a_linear_machine_are_those_of_its_regulator(tmp_path):
    """PD gains of a mass are its linear-quadratic regulator: all states are known."""
    (tmp_path / "cart.toml").write_text(CART)
    found = tune(tmp_path / "cart.toml", out=tmp_path / "out", progress=False)
    A, B = np.array([[0, 1], [0, 0]]), np.array([[0], [1 / 2.0]])
    R = np.array([[1 / 2.0**2]])
    P = scipy.linalg.solve_continuous_are(A, B, np.diag([1 / 0.5**2, 0]), R)
    K = np.linalg.solve(R, B.T @ P)[0]
    gains = [float(np.squeeze(found.gains[f"pid.{k}"])) for k in ("kp", "kd")]
    assert np.allclose(gains, K, rtol=2e-3)
    assert "gain" in str(found)
    tuned = read_scenario(tmp_path / "out" / "tuned.toml", KINDS).system
    assert np.allclose(djdyn.get_parameters(tuned, "pid.kp"), gains[0])
    page = (tmp_path / "out" / "report.html").read_text()
    assert "In 4 scenarios tuned on, the mean cost falls" in page


def test_a_cost_of_zero_cannot_fall(tmp_path):
    alone = CART.split("[tune.scenarios]")[0]  # at rest where it should be
    (tmp_path / "cart.toml").write_text(alone)
    with pytest.raises(ValueError, match=r"cart.toml: tune.cost: it is zero"):
        tune(tmp_path / "cart.toml", progress=False)


WRONG = [
    ("[tune]\nsaves = 51", "[tune]\nsave = 51", "tune.save: unknown key"),
    ("saves = 51", "saves = 50", "tune.saves: 100 control periods are not"),
    ("saves = 51", "t1 = 0.03", "tune.t1: 0.03 s is no whole number of control"),
    ("saves = 51", "t1 = -1", "tune.t1: must be above"),
    ("t1 = 2.0", "t0 = 1.0\nt1 = 2.0", "simulation.t0: runs of a tuning"),
    ('"pid.kp" =', '"pid.kq" =', "tune.free.pid.kq: the model has no parameter"),
    ("[1, 50]", "[50, 1]", "tune.free.pid.kp.bounds: low must be below"),
    ("[1, 50]", "[6, 50]", "tune.free.pid.kp.bounds: the file's value"),
    ("[1, 50]", "[-1, 50]", "tune.free.pid.kp: pid.kp must be at least 0"),
    ("bounds", "bound", "tune.free.pid.kp.bound: unknown key"),
    ('pid.kd = "positive"', 'pid.kd = "any"', 'at least 0.*: give bounds or "pos'),
    ('pid.kd = "positive"', 'pid.ki = "positive"', "which is not positive"),
    ('pid.kd = "positive"', '"pid.kp[0]" = "any"', "the model has no|outside"),
    ('"MeanSquare", signal = "hinge.q"', '"Square", signal = "hinge.q"', "Square"),
    ('"hinge.q", minus', '"rod.q", minus', "tune.cost.error.signal: unknown signal"),
    ("pid.u[0]", "pid.u[1]", "tune.cost.effort.signal: 'pid.u' has 1 entries"),
    ("scale = 20", "scale = 0", "tune.cost.effort: .*scale must be above 0"),
    ("scale = 20", "scal = 20", "tune.cost.effort.scal: unknown key"),
    ("scale = 20", 'probe = { type = "Reaction", joint = "rod" }', "not both"),
    (
        'signal = "pid.u[0]"',
        'probe = { type = "PowerDrawn", part = "drive" }',
        "tune.cost.effort.probe.part: unknown part 'drive'",
    ),
    (
        'signal = "pid.u[0]"',
        'probe = { type = "Reaction", joint = "hinge", components = [6] }',
        "tune.cost.effort.probe.components",
    ),
    ("effort =", "cost =", "tune.cost.cost: reports give this name"),
    ("low = -40, high = 40", "low = 40, high = -40", "tune.limit.torque.low"),
    (", low = -40, high = 40", "", "tune.limit.torque: give low, high or both"),
    ("torque =", "error =", "tune.limit.error: there is a term"),
    ("max_steps = 3", 'method = "newton"', "tune.search.method: is lm"),
    ("max_steps = 3", "max_steps = 0", "tune.search.max_steps: is from 1"),
    ("max_steps = 3", "risk = 2.0", "tune.search: risk is mean"),
    ("max_steps = 3", 'method = "lm"\nrisk = "worst"', "tune.search.risk: method"),
    ("count = 3", "", "tune.scenarios: key 'count' is missing"),
    ("count = 3", "count = 0", "tune.scenarios.count: is from 1"),
    ("count = 3", "count = 3.5", "tune.scenarios.count: is a whole number"),
    ('"rod.mass" =', '"rod.weight" =', "tune.scenarios.parameters.rod.weight"),
    ('"rod.mass" =', '"pid.kp" =', "tune.scenarios.parameters.pid.kp: the same"),
    ("[0.5, 1.5]", "[1.5, 0.5]", "rod.mass.uniform: low is at most high"),
    ("[0.5, 1.5]", "[-1, -0.5]", "tune.scenarios.parameters: .*must be"),
    ("uniform", "beta", "tune.scenarios.parameters.rod.mass.beta: unknown key"),
    ("q = { hinge", "q = { knee", "tune.scenarios.q.knee: no joint that moves"),
    ("count = 5", "count = 3\nseed = 4", "tune.hold_out.seed: these are"),
    ('signal = "pid.u"\nmodulus', 'signal = "pid.w"\nmodulus', "tune.loop.signal"),
    ("modulus = 0.4", "modulus = 1.4", "tune.loop.modulus: is between 0 and 1"),
    ("modulus = 0.4", "time = 3.0", "tune.loop.time: runs go from 0 to 2"),
    ("[tune.cost]", "[tune.price]", "tune.price: unknown key"),
]


@pytest.mark.parametrize(("right", "wrong", "said"), WRONG)
def test_a_mistake_is_one_sentence_with_file_and_key(machine, right, wrong, said):
    text = machine.read_text()
    assert right in text
    machine.write_text(text.replace(right, wrong, 1))
    with pytest.raises(ValueError, match=f"^machine.toml: .*{said}") as error:
        read_task(read_scenario(machine, KINDS))
    assert "\n" not in str(error.value)


def test_a_scenario_without_the_table_is_refused(machine, capsys):
    machine.write_text(PENDULUM)
    assert main(["tune", str(machine), "--out", str(machine.parent / "out")]) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(r"djdyn: machine.toml: there is no table \[tune\]\n", error)
