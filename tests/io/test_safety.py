"""What readers refuse before they read: files outside, bombs, and huge numbers."""

import pytest

import djdyn
from djdyn.io.safety import references_within
from djdyn.io.scenario import read_scenario
from djdyn.io.scenario_table import ScenarioError
from experiments.__main__ import main

from ..fuzz import seeds


pytest.importorskip("mujoco")
ROBOT = '[simulation]\nt1 = 1.0\n[mechanism]\nmjcf = "{}"\nignore = ["contact"]\n'


@pytest.fixture
def here(tmp_path):
    """A folder for scenarios, with a robot in it, beside it, and by a link."""
    folder = tmp_path / "here"
    folder.mkdir()
    for path in (folder / "arm.xml", tmp_path / "arm.xml"):
        path.write_text(seeds.MJCF)
    (folder / "link.xml").symlink_to(tmp_path / "arm.xml")
    return folder


def scenario(folder, text):
    path = folder / "machine.toml"
    path.write_text(text)
    return path


def test_a_scenario_stays_in_its_folder_unless_allowed(here):
    inside = scenario(here, ROBOT.format("arm.xml"))
    names = read_scenario(inside).system.mechanism.joint_names
    for file in ("../arm.xml", "link.xml", str(here.parent / "arm.xml")):
        path = scenario(here, ROBOT.format(file))
        with pytest.raises(ScenarioError, match=r"machine.toml: mechanism.mjcf: .*lea"):
            read_scenario(path)
        found = read_scenario(path, allow_outside=True)
        assert found.system.mechanism.joint_names == names


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        ('<include file="../arm.xml"/>', r"<include file> '\.\./arm.xml' leaves"),
        ('<asset><mesh file="/m.stl"/></asset>', r"<mesh file> '/m.stl' leaves"),
        ('<compiler meshdir="../meshes"/>', r"<compiler meshdir> '\.\./meshes' leaves"),
        ('<size memory="900G"/>', r"memory ask for .* more than 1e\+07"),
        (
            '<worldbody><replicate count="300"><replicate count="300"/></replicate>'
            "</worldbody>",
            r"<replicate count>: asks for 9e\+04 copies",
        ),
        ("<body>" * 300 + "</body>" * 300, "more than 200 elements inside"),
    ],
)
def test_xml_that_leaves_or_asks_too_much_is_refused(here, thing, said):
    path = here / "arm.xml"
    path.write_text(seeds.MJCF.replace("<worldbody>", thing + "<worldbody>", 1))
    with pytest.raises(ValueError, match=r"^arm.xml: .*" + said):
        djdyn.from_mjcf(path)


def test_what_is_included_is_looked_at_too(here):
    (here / "more.xml").write_text('<mujoco><include file="../arm.xml"/></mujoco>')
    path = here / "top.xml"
    path.write_text('<mujoco><include file="more.xml"/></mujoco>')
    with pytest.raises(ValueError, match=r"^top.xml: <include file> '../arm.xml' lea"):
        djdyn.from_mjcf(path)
    with references_within(None):
        assert djdyn.from_mjcf(path, ignore=("contact",)).joint_names[0] == "shoulder"


def test_entities_are_refused():
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaa">]>' + seeds.URDF.replace("arm", "&a;")
    with pytest.raises(ValueError, match="a document type and entities are not read"):
        djdyn.from_urdf(bomb)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("save_every = 0.1", "save_every = 1e-9", r"simulation.save_every: 1e-09 s as"),
        ("save_every = 0.1", "saveat = 1e12", r"simulation.saveat: is a list of times"),
        ("t1 = 1.0", "t1 = 1979-05-27", r"simulation.t1: a date or time"),
        ("t1 = 1.0", "t1 = -1.0", r"simulation.t1: must be after t0"),
        ("t1 = 1.0", "t1 = true", r"simulation.t1: expected numbers, got True"),
        ("t1 = 1.0", 't1 = "1.0"', r"simulation.t1: expected numbers, got '1.0'"),
        ("rtol = 1e-6", "rtol = nan", r"simulation.rtol: numbers must be finite"),
        ("rtol = 1e-6", "dt = 1e-12", r"simulation.dt: 1e-12 s asks for 1e\+12"),
        ("max_steps = 1000", "max_steps = 1e30", r"max_steps: is a whole number from"),
        ("mass = 1.0", "mass = " + "9" * 50, r"body.mass: the whole number has more"),
        ("mass = 1.0", "mass = " + "9" * 5000, r"Exceeds the limit"),
        ("mass = 1.0", "mass = " + "[" * 60 + "]" * 60, r"body.mass: it is nested too"),
        ("mass = 1.0", "mass = " + "[" * 9999 + "]" * 9999, r"it is nested too deeply"),
        ('"rod"', '"ro\\nd"', r"body.name: a name has 1 to 200 letters that print"),
        ('"Rod"', "[1]", r"title: expected text, got \[1\]"),
    ],
)
def test_a_scenario_asks_for_what_can_be_done(tmp_path, old, new, said):
    path = scenario(tmp_path, seeds.ROD.replace(old, new, 1))
    with pytest.raises(ScenarioError, match=r"^machine.toml: .*" + said) as caught:
        read_scenario(path)
    assert "\n" not in str(caught.value)


def test_counts_of_parts_are_bounded(tmp_path):
    huge = (seeds.ROD + seeds.CABLE).replace("mesh = 4", "mesh = 1000000000")
    with pytest.raises(ScenarioError, match=r"part.cable.mesh: at most 10000 are poss"):
        read_scenario(scenario(tmp_path, huge))


def test_the_command_says_one_sentence(tmp_path, capsys):
    latin = tmp_path / "latin.toml"
    latin.write_bytes('title = "Zürich"'.encode("latin-1"))
    empty = tmp_path / "empty.toml"
    empty.touch()
    sound = scenario(tmp_path, seeds.ROD)
    for path, out, said in (
        (tmp_path / "no.toml", "out", "no.toml: cannot be read: No such file"),
        (tmp_path, "out", "this is a folder"),
        (latin, "out", "latin.toml: the file is not UTF-8 text"),
        (empty, "out", "empty.toml: key 'simulation' is missing"),
        (sound, "latin.toml/out", "latin.toml/out"),
    ):
        command = ["simulate", str(path), "--out", str(tmp_path / out)]
        assert main(command) == 2
        error = capsys.readouterr().err
        assert error.startswith("djdyn: ") and said in error
        assert error.count("\n") == 1
