"""Scenario files state loops, couplings and how these are kept closed."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.io.scenario import read_scenario
from djdyn.io.scenario_kinds import CLOSURES, JOINTS, LOOP_JOINTS
from djdyn.io.scenario_loops import read_closure, read_loop
from djdyn.io.scenario_table import ScenarioError, TablePlace
from djdyn.io.scenario_write import write_scenario
from tests.multibody.loops import four_bar


ROD = """
[[body]]
name = "{0}"
parent = "{1}"
joint = {{ type = "revolute", axis = [0, -1, 0] }}
position = [{3}, 0, 0]
mass = {2}
com = [{4}, 0, 0]
inertia = [0.0, {5}, {5}]
"""
LENGTHS = (("crank", "world", 1.0, 0.0), ("coupler", "crank", 3.0, 1.0))
LENGTHS += (("rocker", "coupler", 2.5, 3.0),)
FRAMES = """
[[frame]]
name = "end"
body = "rocker"
position = [2.5, 0, 0]
[[frame]]
name = "pivot"
body = "world"
position = [3, 0, 0]
"""
PIN = """
[[loop]]
name = "pin"
parent = "pivot"
child = "end"
joint = { type = "revolute", axis = [0, 1, 0] }
"""
RODS = "".join(ROD.format(*row, row[2] / 2, row[2] ** 3 / 12) for row in LENGTHS)
BAR = "[simulation]\nt1 = 1.0\n" + RODS + FRAMES + PIN
START = "[initial]\nq = { crank = 1.0471975512 }\n"


def written(tmp_path, text: str) -> Path:
    path = tmp_path / "bar.toml"
    path.write_text(text)
    return path


def test_a_four_bar_from_a_file(tmp_path):
    """The same numbers as the mechanism built in Python; its loop starts closed."""
    text = BAR + START + '[output]\nreactions = ["pin", "crank"]\n'
    text += '[mechanism]\nclosure = { type = "multipliers", frequency = 3.0 }\n'
    found = read_scenario(written(tmp_path, text))
    wanted = four_bar(djdyn.Multipliers(frequency=3.0))
    given = [lambda m: m.frames, lambda m: m.loops, lambda m: m.closure]
    for part in (
        *given,
        lambda m: [(b.mass, b.p_BC, b.I_BC, b.X_PJ) for b in m.bodies],
    ):
        mine, theirs = part(found.system.mechanism), part(wanted)
        assert jax.tree.structure(mine) == jax.tree.structure(theirs)
        pairs = zip(*map(jax.tree.leaves, (mine, theirs)), strict=True)
        assert all(np.allclose(a, b, atol=1e-15) for a, b in pairs)
    assert abs(found.initial_state.q[0] - 1.0471975512) < 1e-12
    assert (
        djdyn.multibody.assembly.open_loop(
            found.system.mechanism, found.initial_state.q, found.initial_state.v
        )
        is None
    )
    target = tmp_path / "anew" / "bar.toml"
    target.parent.mkdir()
    write_scenario(tmp_path / "bar.toml", target, {"end.X_BF.p[0]": 2.4}, "shorter")
    assert target.read_text().startswith(text.partition("[parameters]")[0].rstrip())
    again = read_scenario(target).system.mechanism
    assert float(again.frame("end").X_BF.p[0]) == 2.4
    assert [loop.name for loop in again.loops] == ["pin"]


def test_couplings_from_a_file(tmp_path):
    text = (
        BAR.partition("[[frame]]")[0]
        + START
        + """
[[coupling]]
name = "mesh"
type = "linear"
ratios = { crank = 2.0, coupler = -1.0 }
offset = 0.1
motion = { type = "Harmonic", amplitude = 0.2, frequency = 3.0 }
[[coupling]]
name = "cam"
type = "polynomial"
joint = "rocker"
driver = "crank"
coefficients = [0.1, 0.5, -0.3]
"""
    )
    found = read_scenario(written(tmp_path, text))
    a, b, c = found.initial_state.q
    np.testing.assert_allclose(b, 2 * a - 0.1, atol=1e-9)
    np.testing.assert_allclose(c, 0.1 + 0.5 * a - 0.3 * a * a, atol=1e-9)
    mesh = found.system.mechanism.loops[0]
    assert (
        isinstance(mesh, djdyn.LinearCoupling)
        and float(mesh.motion(jnp.asarray(0.5))) != 0.0
    )


WAVE = {"type": "Harmonic", "amplitude": 0.1, "frequency": 1.0}
MORE = {  # what these need
    "revolute": {"axis": [0, 1, 0]},
    "prescribed": {"motion": {"type": "Heave", "height": WAVE}},
    "distance": {"length": 2.0, "extension": WAVE},
    "rolling_disc": {"radius": 0.3},
    "point_on_surface": {
        "surface": {"type": "Quadric", "A": [[1, 0, 0], [0, 1, 0], [0, 0, 0.5]]}
    },
}  # fmt: skip
NEVER = {"free", "point_contact", "planar_point_contact", "roll_pitch_yaw"}


@pytest.mark.parametrize("name", sorted({*JOINTS, *LOOP_JOINTS} - NEVER))
def test_every_loop_joint_has_a_name(name):
    table = {"name": "l", "parent": "a", "child": "b"}
    table["joint"] = {"type": name, **MORE.get(name, {})}
    loop = read_loop(TablePlace("m.toml"), table)
    still = djdyn.Pose(jnp.eye(3), jnp.array([1.0, 0.2, 0.3]))
    gap = djdyn.multibody.loop_joints.residual(loop.joint, still, jnp.zeros(()))
    assert gap.ndim == 1 and np.all(np.isfinite(gap))


def test_every_closure_has_a_name():
    given = {"elimination": {"independent": ["crank"]}, "penalty": {"stiffness": 1e8}}
    for name, kind in CLOSURES.items():
        table = {"type": name, **given.get(name, {})}
        assert type(read_closure(TablePlace("m.toml"), table)) is kind


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('child = "end"', 'child = "rocker_end"', "loop 'pin': unknown frame 'rocker_"),
        (
            'child = "end"',
            'childs = "end"',
            "loop.childs: unknown key; did you mean ch",
        ),
        ('child = "end"', "", "loop: key 'child' is missing"),
        ('child = "end"', "child = 3", "loop.child: expected a name, got 3"),
        ('parent = "pivot"', 'parent = "rocker"', "joins two frames of body 'rocker'"),
        ('"revolute", axis = [0, 1, 0]', '"hinge"', "'pin'.joint.type: unknown type"),
        ('"revolute", axis = [0, 1, 0]', '"free"', "'pin': a Free joint closes noth"),
        ('"revolute", axis = [0, 1, 0]', '"distance"', "'pin'.joint: key 'length' is"),
        ("[[loop]]", "[loop]", r"loop: expected tables, each under \[\[loop\]\]"),
        ("[[loop]]", "[[loops]]", "loops: unknown key; did you mean"),
        (
            "[[loop]]",
            '[mechanism]\nclosure = { type = "glue" }\n[[loop]]',
            "mechanism.closure.type: unknown type 'glue'; there are projection",
        ),
        (
            "[[loop]]",
            '[mechanism]\nclosure = { type = "elimination", independent = ["arm"] }\n'
            "[[loop]]",
            "unknown joint 'arm'",
        ),
        (
            'name = "pin"',
            'name = "pin"\n'
            'motion = { type = "Harmonic", amplitude = 1, frequency = 1 }',
            "'pin': its motion is a pose that depends on time",
        ),
        (
            "[[loop]]",
            '[[coupling]]\nname = "c"\ntype = "linear"\nratios = { arm = 1 }\n[[loop]]',
            "coupling 'c': unknown joint 'arm'",
        ),
        (
            "[[loop]]",
            '[[coupling]]\nname = "c"\ntype = "linear"\nratios = { crank = "a" }\n'
            "[[loop]]",
            "coupling 'c'.ratios.crank: expected numbers",
        ),
        (
            "[[loop]]",
            '[[coupling]]\nname = "c"\ntype = "linear"\nratios = 3\n[[loop]]',
            "coupling 'c'.ratios: expected a number by joint, got 3",
        ),
        ("[[loop]]", "[[coupling]]\n[[loop]]", "coupling: key 'name' is missing"),
        ("position = [3, 0, 0]", "position = [9, 0, 0]", "'pin' does not close"),
        ("[[loop]]", '[output]\nreactions = ["peg"]\n[[loop]]', "unknown joint 'peg'"),
    ],
)
def test_mistakes_are_said(tmp_path, old, new, said):
    assert old in BAR
    with pytest.raises(ScenarioError, match=r"bar\.toml: .*" + said):
        read_scenario(written(tmp_path, BAR.replace(old, new, 1)))
