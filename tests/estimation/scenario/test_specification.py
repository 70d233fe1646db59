"""Mistakes in the table `identify` and in its files: one sentence each."""

import pytest

from experiments.__main__ import main
from experiments.machine.identify import prepared

from .pendulum import write_records, write_scenario


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    write_records(folder, rows=60, spoiled=False)
    (folder / "empty.csv").write_text("")
    (folder / "other.csv").write_text("t,speed\n0,1\n1,2\n2,3\n3,5\n")
    (folder / "back.csv").write_text("t,angle,torque\n0,1,0\n1,2,0\n1,3,0\n3,5,0\n")
    return folder


FREE = '"bearing.viscous" = {}'
RECORDS = 'records = ["swing0.csv", "swing1.csv"]'


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (FREE, '"bearing.visc" = {}', r"identify\.free\.bearing\.visc: .*no parameter"),
        (FREE, FREE.replace("{}", '"negative"'), "domain: is any, positive, inertia"),
        (FREE, FREE.replace("{}", "{ bounds = [1, 2] }"), "about the first value"),
        (FREE, FREE.replace("{}", "{ prior = { mean = 1 } }"), "mean and deviation"),
        (FREE, '"rod.mass" = { domian = "any" }', "unknown key; did you mean domain"),
        ("any_inertia = true\n", "", "give body 'rod' any_inertia = true"),
        (RECORDS, "records = []", "records: is a list of files"),
        (RECORDS, 'records = ["none.csv"]', "there is no file none.csv"),
        (RECORDS, 'records = ["../up.csv"]', "leaves the folder"),
        (RECORDS, 'records = ["empty.csv"]', "empty.csv is empty"),
        (RECORDS, 'records = ["other.csv"]', "has no column 'angle'; it has speed"),
        (RECORDS, 'records = ["back.csv"]', "does not run forward in 1 of 4 rows"),
        (RECORDS, RECORDS + "\nsegment = [2, 1]", "segment: ends after it starts"),
        (RECORDS, RECORDS + "\nsegment = [70, 80]", "0 rows from 70 to 80 s"),
        (RECORDS, RECORDS + '\nmethod = "guess"', "method: is lm, dogleg"),
        (RECORDS, RECORDS + '\nloss = "love"', "loss: is squares, huber"),
        (RECORDS, RECORDS + "\nhold_out = 1.5", "hold_out: is a fraction"),
        (RECORDS, RECORDS + '\nstart = ["door"]', "is a list of joints of hinge"),
        (RECORDS, RECORDS + "\nlow_pass = 80.0", "less than 50 Hz, not 80 Hz"),
        ('unit = "deg"', 'unit = "mm"', "'mm' is no unit of what is measured in rad"),
        ('unit = "deg"', 'unit = "blorb"', "unknown unit 'blorb'"),
        ('unit = "deg"', "noise = -1", "noise: must be positive"),
        ('signal = "hinge.q"', 'signal = "door.q"', "unknown signal 'door.q'"),
        ('signal = "hinge.q"', 'frame = "tip"', "a signal, or a frame and an axis"),
        ("delay = true", 'delay = "yes"', "delay: expected numbers"),
        ('column = "torque"', 'column = ["torque", "torque"]', "1 needed, 2 named"),
        ("identify.input.torque", "identify.input.force", "such input; it has torque"),
        ("[identify.channel.angle]", "[identify.chanel.angle]", "did you mean channel"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(folder, old, new, said):
    path = write_scenario(folder, (old, new))
    with pytest.raises(ValueError, match=said) as caught:
        task = prepared(path)
        task.check_columns()
    assert "\n" not in str(caught.value)
    assert caught.type.__name__ == "ScenarioError", caught.type


def test_the_command_says_what_is_missing_with_status_two(folder, capsys, tmp_path):
    text = write_scenario(folder).read_text().split("[identify]")[0]
    path = folder / "bare.toml"
    path.write_text(text)
    assert main(["identify", str(path), "--out", str(tmp_path)]) == 2
    assert "bare.toml has no section [identify]" in capsys.readouterr().err
