"""Delays before a fit, of records that an independent program simulates."""

import numpy as np
import pytest
import scipy.integrate

from estimation import Normal
from estimation.scenario.alignment import align
from experiments.machine.identify import prepared


PERIOD, DELAY, OFFSET = 0.05, 0.08, 2.5  # s: delay of the sensor, clock of the drive
MASS, STIFFNESS, DAMPING = 2.0, 300.0, 60.0
SCENARIO = """
[simulation]
t1 = 2.0
solver = "rk4"
dt = 0.0025
max_steps = 2000
[[body]]
name = "mass"
joint = { type = "prismatic", axis = [1, 0, 0], name = "slide" }
mass = 2.0
[part.spring]
type = "JointSpring"
joint = "slide"
stiffness = 300.0
damping = 60.0
[part.motor]
type = "JointActuator"
joints = ["slide"]
command = "force"
[input]
force = [0.0]
[identify]
records = [{ file = "motion.csv", also = "drive.csv", common = "trigger" }]
max_delay = 0.12
[identify.free]
"spring.stiffness" = {}
[identify.channel.place]
signal = "slide.q"
delay = true
[identify.input.force]
"""


def force(t, modulated):
    return (
        100
        * np.sin(2 * np.pi * t / PERIOD)
        * (1 + (0.9 * np.sin(7.0 * t) if modulated else 0.0))
    )


def written(folder, modulated):
    """Write two files with clocks of their own, and return the scenario's path."""
    t = np.arange(0, 2, 0.0025)

    def rate(s, y):
        f = force(s, modulated) - STIFFNESS * y[0] - DAMPING * y[1]
        return [y[1], f / MASS]

    run = scipy.integrate.solve_ivp(
        rate, (0, 2), [0.0, 0.0], rtol=1e-9, atol=1e-12, dense_output=True
    )
    x = run.sol(np.maximum(t - DELAY, 0.0))[0]
    x = x + 1e-5 * np.random.default_rng(3).normal(size=len(t))
    trigger = np.exp(-(((t - 0.7) / 0.05) ** 2)) - np.exp(-(((t - 1.5) / 0.1) ** 2))
    save = lambda name, *columns: np.savetxt(
        folder / f"{name}.csv", np.stack(columns[1:], -1), delimiter=",",
        header=columns[0], comments="",
    )  # fmt: skip
    save("motion", "t,place,trigger", t, x, trigger)
    save("drive", "t,force,trigger", t + OFFSET, force(t, modulated), 5 * trigger)
    (folder / "machine.toml").write_text(SCENARIO)
    return folder / "machine.toml"


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return prepared(written(tmp_path_factory.mktemp("shaken"), True))


def test_a_delay_longer_than_the_period_is_where_the_fit_starts(task):
    assert "its clock is +2.5000 s from that of motion.csv" in task.faults[0]
    spec, said = align(task.scenario, task.spec, task.records, task.predict)
    assert abs(spec.channels[0].sensor.delay - DELAY) < 1e-3
    prior = spec.priors["channel.place.delay"]
    assert isinstance(prior, Normal) and abs(prior.mean - DELAY) < 1e-3
    assert len(said) == 1 and "'place' is late by about" in said[0]


def test_an_ambiguous_delay_is_said(tmp_path):
    task = prepared(written(tmp_path, False))
    _, said = align(task.scenario, task.spec, task.records, task.predict)
    assert any("almost as well as" in one and "give its delay a start" in one
               for one in said), said  # fmt: skip


@pytest.mark.slow
def test_the_fit_finds_delay_and_stiffness(task):
    found = task.fit(progress=False)
    assert abs(found.fit.values["channel.place.delay"] - DELAY) < 1e-4
    assert np.isclose(found.parameters()["spring.stiffness"], STIFFNESS, rtol=0.05)
    assert found.verdict.word != "MODEL REJECTED"
