"""Clocks of several recorders, against delays that the tests made themselves."""

import numpy as np
import pytest

from djdyn.io.scenario import read_scenario
from estimation.measurements import MeasurementTable, find_lag, merge_tables
from estimation.scenario import read_specification

from ..scenario.pendulum import write_scenario


RATE = 500.0
PERIOD, DELAY = 0.05, 0.08  # s: the delay is longer than the signal's period


def carrier(t):
    """A signal of 20 Hz whose amplitude changes slowly."""
    return np.sin(2 * np.pi * t / PERIOD) * (1 + 0.8 * np.sin(2 * np.pi * 0.9 * t))


def steady(t):
    return np.sin(2 * np.pi * t / PERIOD)


def sweep(t):
    return np.sin(20 * t + 3 * t**2)


def test_a_delay_longer_than_the_period_is_found():
    rng, t = np.random.default_rng(1), np.arange(2000) / RATE
    late = 3.0 * carrier(t - DELAY) + 0.5 + 0.05 * rng.normal(size=len(t))
    late[300:340] = np.nan
    found = find_lag(carrier(t), late, RATE, longest=0.2)
    assert abs(found.lag - DELAY) < 2e-4 and not found.doubt()
    ahead = find_lag(late, carrier(t), RATE, longest=0.2)
    assert abs(ahead.lag + DELAY) < 2e-4


def test_lags_of_a_steady_vibration_are_said_to_be_ambiguous():
    t = np.arange(2000) / RATE
    found = find_lag(steady(t), steady(t - DELAY), RATE, longest=0.2)
    assert abs((found.lag - DELAY + PERIOD / 2) % PERIOD - PERIOD / 2) < 2e-4
    assert "almost as well as" in found.doubt() and " ms" in found.doubt()


def test_columns_without_change_or_overlap_tell_no_lag():
    t = np.arange(100) / RATE
    with pytest.raises(ValueError, match="without change tells no lag"):
        find_lag(np.ones(100), carrier(t), RATE)
    with pytest.raises(ValueError, match="too few rows in common"):
        find_lag(carrier(t), carrier(t), RATE, longest=1e-4)


def recorders(offset=3.217, scale=1.0, sync=carrier):
    """Two recorders of one trial: the second runs faster and began `offset` earlier."""
    slow, fast = np.arange(800) / 200, np.arange(-300, 2900) / RATE
    motion = {"sync": sync(slow), "angle": np.cos(7 * slow)}
    drive = {"volt": 2 * sync(fast) + 1, "torque": np.sin(11 * fast)}
    return (
        MeasurementTable(slow, motion, {"angle": "rad"}, "motion.csv"),
        MeasurementTable(offset + scale * fast, drive, {"torque": "N m"}, "drive.csv"),
    )


def test_files_of_one_trial_are_merged_on_the_first_clock():
    both, said = merge_tables(recorders(), ("sync", "volt"))
    assert set(both.columns) == {"sync", "angle", "volt", "torque"}
    assert both.units["torque"] == "N m" and len(both) == 800
    assert np.abs(both["torque"] - np.sin(11 * both.times)).max() < 5e-3
    assert said == ["drive.csv: its clock is +3.2170 s from that of motion.csv"]


def test_clocks_that_drift_or_match_twice_are_said():
    _, said = merge_tables(recorders(scale=1.0015, sync=sweep), ("sync", "volt"))
    assert any("its clock drifts by" in one for one in said), said
    _, said = merge_tables(recorders(sync=steady), ("sync", "volt"), longest=4.0)
    assert any("almost as well" in one for one in said), said


def test_recorders_that_measured_different_things_are_refused():
    first, second = recorders()
    rng = np.random.default_rng(0)
    columns = {**second.columns, "volt": rng.normal(size=len(second))}
    other = MeasurementTable(second.times, columns, {}, "drive.csv")
    with pytest.raises(ValueError, match=r"drive\.csv: column 'volt' correlates"):
        merge_tables((first, other), ("sync", "volt"))


def test_one_sentence_about_the_names_of_common_columns():
    with pytest.raises(ValueError, match="2 files need as many names"):
        merge_tables(recorders(), ("sync",))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('{ file = "a.csv", also = ["b.csv"] }', "names the column that all files"),
        ('{ file = "a.csv", also = ["c.csv"], common = "x" }', "no file c.csv"),
        ('{ file = "a.csv", also = 1, common = "x" }', "is a file or a list of files"),
    ],
)  # fmt: skip
def test_bad_recorders_are_refused(tmp_path, entry, said):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("t,x\n0,1\n")
    path = write_scenario(tmp_path, ('["swing0.csv", "swing1.csv"]', f"[{entry}]"))
    with pytest.raises(ValueError, match=said):
        read_specification(read_scenario(path))
