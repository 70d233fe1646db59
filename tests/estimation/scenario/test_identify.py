"""Identification from a scenario and records of an independent program."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import djdyn
from djdyn.io.scenario import read_scenario
from estimation import UnidentifiableError
from experiments.machine.identify import prepared

from .pendulum import DELAY, OFFSET, TRUE, write_records, write_scenario


FAST = ("t1 = 4.0", "t1 = 4.0\nmax_steps = 500")
TIP = """[[frame]]
name = "tip"
body = "rod"
position = [0, 0, -1]
"""
ANGLE = """[identify.channel.angle]
signal = "hinge.q"
unit = "deg"
offset = true
delay = true
"""
CHANNELS = """[identify.channel.x]
frame = "tip"
axis = "x"
unit = "mm"
[identify.channel.z]
frame = "tip"
axis = "z"
unit = "mm"
[identify.channel.angle]
signal = "hinge.q"
unit = "deg"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    write_records(folder)
    return folder


@pytest.fixture(scope="module")
def found(folder):
    path = write_scenario(folder, FAST)
    return prepared(path).fit(progress=False)


def inside(found, name, value):
    low, high = found.fit.intervals()[name]
    return low < value < high


def test_parameters_delay_and_offset_are_found_from_spoiled_records(found):
    for path, value in TRUE.items():
        assert np.isclose(found.parameters()[path], value, rtol=0.03), path
    assert abs(found.fit.values["channel.angle.delay"] - DELAY) < 5e-4
    assert abs(found.fit.values["channel.angle.offset"] - OFFSET) < 5e-4
    assert found.verdict.word == "IMPROVED" and found.after < 1.3 < found.before
    said = " ".join(found.records[0].faults)
    assert "'angle' is missing in 3.0% of rows" in said and "as spikes" in said
    table = str(found)
    assert "swing1/start.hinge.v" in table and "system." not in table
    assert "IMPROVED: On data not fitted" in table


def test_the_scenario_that_is_written_holds_what_was_found(found, tmp_path):
    found.save_scenario(tmp_path / "identified.toml")
    again = read_scenario(tmp_path / "identified.toml").system
    for path, value in found.parameters().items():
        assert np.isclose(djdyn.get_parameters(again, path), value, rtol=1e-12)
    assert (
        "# identified from swing0.csv, swing1.csv"
        in (tmp_path / "identified.toml").read_text()
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('unit = "deg"', 'unit = "rad"'), "'angle' seems to be in deg"),
        (
            ('unit = "deg"\n', 'unit = "deg"\ngain = -1\n'),
            "seems to have the other sign",
        ),
    ],
)
def test_columns_that_are_something_else_are_refused(folder, change, said):
    path = write_scenario(folder, FAST, change)
    with pytest.raises(ValueError, match=said):
        prepared(path).check_columns()


def test_sound_columns_are_not_refused(folder):
    prepared(write_scenario(folder, FAST)).check_columns()


def test_what_the_data_cannot_determine_is_named(folder):
    free = (
        '"bearing.viscous" = {}',
        '"bearing.viscous" = {}\n"rod.p_BC[0]" = {}',
    )
    path = write_scenario(folder, FAST, free)
    with pytest.raises(UnidentifiableError, match=r"rod\.p_BC\[0\]"):
        prepared(path).fit(progress=False)


@pytest.mark.slow
def test_a_record_held_out_is_predicted(folder):
    more = ('"swing1.csv"]', '"swing1.csv", { file = "swing2.csv", hold_out = true }]')
    found = prepared(write_scenario(folder, FAST, more)).fit(progress=False)
    assert (
        found.verdict.word == "IMPROVED" and found.after < 1.5 and len(found.held) == 1
    )


@pytest.mark.slow
def test_a_model_without_friction_is_rejected_with_the_reason(folder):
    free = '"bearing.viscous" = {}\n"bearing.coulomb" = {}\n'
    bare = ("viscous = 0.05\ncoulomb = 0.05", "viscous = 0.0\ncoulomb = 0.0")
    found = prepared(write_scenario(folder, FAST, (free, ""), bare)).fit(progress=False)
    assert found.verdict.word == "MODEL REJECTED"
    said = str(found.verdict)
    assert "friction" in said or "bearing" in said, said


@pytest.mark.slow
def test_intervals_hold_the_truth(tmp_path):
    """Each is right in 95 % of draws: at least 18 of 20 with probability 0.92."""
    path = write_scenario(tmp_path, FAST)
    hits = {name: 0 for name in TRUE}
    for seed in range(20):
        write_records(tmp_path, seed=seed + 1)
        found = prepared(path).fit(progress=False)
        for name, value in TRUE.items():
            hits[name] += inside(found, f"system.{name}", value)
    assert min(hits.values()) >= 18, hits


@pytest.mark.slow
def test_a_killed_identification_goes_on_to_the_same_result(folder, tmp_path):
    path = write_scenario(folder, FAST)
    command = [sys.executable, "-m", "djdyn", "identify", str(path), "--out"]
    run = lambda out: subprocess.run(
        [*command, str(out)], check=True, capture_output=True
    )
    run(tmp_path / "whole")
    killed = subprocess.Popen(
        [*command, str(tmp_path / "killed")], stdout=subprocess.DEVNULL
    )
    for _ in range(1200):
        if (tmp_path / "killed" / "fit.npz").exists() or killed.poll() is not None:
            break
        time.sleep(0.05)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    run(tmp_path / "killed")
    texts = [(tmp_path / k / "metrics.json").read_text() for k in ("whole", "killed")]
    assert texts[0] == texts[1]


def test_exchanged_columns_of_a_frame_are_refused(folder):
    """The tip is one metre from the hinge; its columns are swapped in the file."""
    write_records(
        folder,
        spoiled=False,
        x=lambda angle, _: -1000 * np.cos(angle),
        z=lambda angle, _: 1000 * np.sin(angle),
    )
    frame = ("[part.bearing]", TIP + "[part.bearing]")
    channels = (ANGLE, CHANNELS)
    path = write_scenario(folder, FAST, frame, channels)
    with pytest.raises(ValueError, match="columns 'x' and 'z' seem to be exchanged"):
        prepared(path).check_columns()
