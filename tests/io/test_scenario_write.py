"""Parameters in scenario files, and files written anew with others."""

import pytest

import djdyn
from djdyn.io.scenario import read_scenario
from djdyn.io.scenario_write import write_scenario


PENDULUM = """
[simulation]
t1 = 1.0
[[body]]  # a comment
name = "rod"
joint = { type = "revolute", axis = [0, 1, 0] }
mass = 1.0
com = [0, 0, -0.5]
inertia = [0.1, 0.1, 0.1]
[part.rub]
type = "JointFriction"
joint = "rod"
viscous = 0.1
[parameters]
rub.viscous = 0.3
"rod.mass" = 2.0
"""


def test_parameters_are_replaced_and_written_anew(tmp_path):
    source, target = tmp_path / "a.toml", tmp_path / "out" / "b.toml"
    target.parent.mkdir()
    source.write_text(PENDULUM)
    system = read_scenario(source).system
    assert djdyn.get_parameters(system, "rub.viscous") == 0.3
    assert djdyn.get_parameters(system, "rod.mass") == 2.0
    found = {"rub.viscous": 0.5, "rod.p_BC[2]": -0.6}
    write_scenario(source, target, found, "identified")
    text, system = target.read_text(), read_scenario(target).system
    assert "# a comment" in text and "# identified" in text
    assert djdyn.get_parameters(system, "rub.viscous") == 0.5
    assert djdyn.get_parameters(system, "rod.mass") == 2.0
    assert djdyn.get_parameters(system, "rod.p_BC").tolist() == [0.0, 0.0, -0.6]
    for wrong, said in (
        ('"rod.mass" = -1.0', "parameters: rod.mass must be"),
        ('"rod.weight" = 1.0', "parameters: the model has no parameter 'rod.weight'"),
        ('"rod.mass" = "two"', "parameters.rod.mass: expected numbers"),
    ):
        source.write_text(PENDULUM.replace('"rod.mass" = 2.0', wrong))
        with pytest.raises(ValueError, match=said):
            read_scenario(source)
