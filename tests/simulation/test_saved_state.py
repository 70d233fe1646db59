"""States in files: a run that goes on is the run that was not interrupted."""

import json

import numpy as np
import pytest

import djdyn
from djdyn.cable import Cable, CableProperties, FixedEnd, PinnedEnd
from experiments.machine import simulate
from experiments.studies.cable.model import payload


SCENARIO = """
[simulation]
t1 = 0.4
solver = "rk4"
dt = 0.01
save_every = 0.05
[[body]]
name = "rod"
joint = { type = "revolute", axis = [0, 1, 0], name = "hinge" }
mass = 1.0
com = [0, 0, -0.5]
inertia = [0.083, 0.083, 0.001]
[controller.pid]
type = "JointPID"
joints = ["hinge"]
target = "target.value"
kp = 60.0
kd = 12.0
ki = 5.0
[controller.target]
type = "Reference"
path = { type = "Harmonic", amplitude = [0.5], frequency = 2.0 }
[part.motor]
type = "JointActuator"
joints = ["hinge"]
command = "pid.u"
[initial]
q = { hinge = 0.3 }
"""


def hanging(mass=2.0, mesh=3):
    """A payload in free space on a line: quaternion, nodes, and paid-out length."""
    rope = CableProperties(0.1, 1e4, EI=0.1)
    ends = (PinnedEnd(frame="load"), FixedEnd(point=[0, 0, 0], payout="rate"))
    line = Cable(rope, 2.0, *ends, mesh=mesh)
    return djdyn.System(payload(mass, 0.1, 2.0), {"line": line}, {"rate": 0.3})


def test_a_run_that_goes_on_is_the_whole_run(tmp_path):
    system, how = hanging(), {"dt": 2e-4, "solver": "rk4", "saveat": 2}
    y = system.initial_state(v=np.array([0.3, 0.1, 0.5, 0.2, -0.1, 0.0]))
    whole = djdyn.simulate(system, 0.1, y, **how)
    half = djdyn.simulate(system, 0.04, y, **how)
    djdyn.save_state(tmp_path / "a.npz", system, half.stopped[1], half.stopped[0])
    again, t = djdyn.load_state(tmp_path / "a.npz", system)
    assert t == 0.04
    rest = djdyn.simulate(system, 0.1, again, t0=t, **how)
    for name, a in whole.y.parts["line"].items():
        b = rest.y.parts["line"][name]
        assert np.allclose(a[-1], b[-1], rtol=1e-10, atol=1e-12), name
    assert np.allclose(whole.y.q[-1], rest.y.q[-1], rtol=1e-12, atol=1e-13)
    assert np.allclose(whole.y.v[-1], rest.y.v[-1], rtol=1e-10, atol=1e-12)
    other, t = djdyn.load_state(tmp_path / "a.npz", hanging(mass=3.0))
    assert np.array_equal(other.q, again.q)  # other numbers are no other machine


def test_states_of_other_systems_and_damaged_files_are_refused(tmp_path):
    system = hanging()
    y, path = system.initial_state(), tmp_path / "a.npz"
    djdyn.save_state(path, system, y, 1.0)
    link = {"name": "link", "type": "revolute", "mass": 2.0}
    with pytest.raises(ValueError, match=r"its joints are load \(Free\), not link \(R"):
        djdyn.load_state(path, djdyn.System(djdyn.from_dh([link])))
    with pytest.raises(ValueError, match=r"its parts are line \(Cable\), not none"):
        djdyn.load_state(path, djdyn.System(system.mechanism))
    with pytest.raises(ValueError, match=r"of another system: .*'r'.* differs"):
        djdyn.load_state(path, hanging(mesh=4))
    with pytest.raises(ValueError, match=r"saved as \.npz"):
        djdyn.save_state(tmp_path / "a.nc", system, y)
    with pytest.raises(ValueError, match="does not fit the system"):
        djdyn.save_state(path, hanging(mesh=4), y)
    with pytest.raises(ValueError, match="not finite"):
        djdyn.save_state(path, system, y, np.inf)
    np.savez(tmp_path / "b.npz", q=np.zeros(3))
    (tmp_path / "c.npz").write_bytes(path.read_bytes()[:300])
    for name in ("b.npz", "c.npz"):
        with pytest.raises(ValueError, match="is not a file of a state"):
            djdyn.load_state(tmp_path / name, system)


def test_the_command_goes_on_from_its_own_file(tmp_path):
    path = tmp_path / "rod.toml"
    path.write_text(SCENARIO)
    assert simulate.run(path, tmp_path / "whole") == 0
    path.write_text(SCENARIO.replace("t1 = 0.4", "t1 = 0.2"))
    assert simulate.run(path, tmp_path / "half") == 0
    path.write_text(SCENARIO)
    half = tmp_path / "half" / "state.npz"
    assert simulate.run(path, tmp_path / "rest", start=half) == 0
    ends = [np.load(tmp_path / k / "state.npz") for k in ("whole", "rest")]
    assert json.loads(str(ends[0]["about"]))["format"] == "djdyn state 1"
    for name in set(ends[0].files) - {"about"}:
        assert np.allclose(ends[0][name], ends[1][name], rtol=1e-11, atol=1e-13), name
    with pytest.raises(ValueError, match=r"state\.npz is a state at 0\.4 s, not betw"):
        simulate.run(path, tmp_path / "no", start=tmp_path / "rest" / "state.npz")
    path.write_text(SCENARIO.replace(
        "t1 = 0.4", "t1 = 0.4\ncontrol_period = 0.1\ncontrol_delay = true"
    ).replace("save_every = 0.05\n", ""))  # fmt: skip
    with pytest.raises(ValueError, match="cannot go on from one"):
        simulate.run(path, tmp_path / "no", start=half)
