"""Flexible bodies in scenario files: what they build and what they refuse."""

import numpy as np
import pytest

import djdyn
from djdyn.io.scenario import read_scenario
from djdyn.io.scenario_table import ScenarioError
from djdyn.view.machine import draw

from .booms import soft_beam


BOOM = """
[simulation]
t1 = 0.05
solver = "rk4"
dt = 1e-3
saveat = 3
[[body]]
name = "boom"
joint = { type = "revolute", axis = [0, 1, 0], name = "hinge" }
modes = { xz = 1 }
nodes = { lug = 2, tip = -1 }
method = "vibration"
damping = 0.02
[body.beam]
E = 2e8
G = 8e7
density = 1000.0
[[body.beam.pieces]]
length = 0.6
elements = 2
section = { type = "Rectangle", width = 0.05, height = 0.06 }
[[body.beam.pieces]]
length = 0.4
elements = 1
section = { type = "Tube", diameter = 0.06, wall = 0.01 }
[[body]]
name = "load"
parent = "boom.tip"
joint = { type = "revolute", axis = [0, 1, 0] }
mass = 0.5
com = [0, 0, -0.1]
inertia = [1e-3, 1e-3, 1e-3]
[[frame]]
name = "hook"
body = "boom.lug"
[parameters]
"boom.model.E" = 3e8
"boom.model.pieces.1.section.wall" = 0.005
"""


def written(tmp_path, text):
    path = tmp_path / "boom.toml"
    path.write_text(text)
    return path


def test_a_beam_of_a_file_runs_and_is_drawn(tmp_path):
    found = read_scenario(written(tmp_path, BOOM))
    m = found.system.mechanism
    assert m.joint_names == ("hinge", "boom.modes", "boom.lug", "boom.tip", "load")
    assert djdyn.get_parameters(found.system, "boom.model.E") == 3e8
    run = djdyn.simulate(found.system, 0.05, solver="rk4", dt=1e-3, saveat=3)
    assert np.any(run.q("boom.modes")[-1] != 0)
    boom = next(item for item in draw(run).items if item.name == "boom")
    line = np.asarray(boom.p_W)  # pyright: ignore
    assert line.shape == (3, 4, 3)
    assert np.allclose(line[:, 2], run.pose("hook").p, atol=1e-6)


def test_matrices_of_a_file(tmp_path):
    beam = soft_beam()
    for name, matrix in zip("mk", beam.matrices(), strict=True):
        np.save(tmp_path / f"{name}.npy", matrix)
    np.save(tmp_path / "x.npy", beam.positions)
    head, tail = BOOM.split("[body.beam]")
    tail = tail[tail.index("[[body]]") :].split("[parameters]")[0]
    files = '{ mass_matrix = "m.npy", stiffness_matrix = "k.npy", positions = "x.npy" }'
    text = head.replace("{ xz = 1 }", "2") + f"finite_elements = {files}\n" + tail
    found = read_scenario(written(tmp_path, text))
    assert np.allclose(found.system.mechanism.bodies[0].mass, beam.mass())
    outside = text.replace('"m.npy"', '"../m.npy"')
    with pytest.raises(ScenarioError, match="leaves the folder"):
        read_scenario(written(tmp_path, outside))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("xz = 1", "xz = 9", "9 modes 'xz' are asked for"),
        ("xz = 1", "xz = 1.5", "is a whole number, not 1.5"),
        ("lug = 2", "lug = 7", "are not among 4"),
        ('"vibration"', "3", "is a name, not 3"),
        ("damping = 0.02", "damping = -1", "must be at least 0"),
        ("E = 2e8", "", "key 'E' is missing"),
        ("E = 2e8", "E = 0", "must be above 0"),
        ('"Tube"', '"Round"', "unknown type 'Round'"),
        ("wall = 0.01 }", "wall = 0.03 }", "no room for two walls"),
        ("elements = 1\n", "elements = 1000\n", "more than 500 elements"),
        ("[body.beam]", "finite_elements = 1\n[body.beam]", "not both"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, old, new, said):
    with pytest.raises(ScenarioError, match=said):
        read_scenario(written(tmp_path, BOOM.replace(old, new)))
