"""The study of tossed cubes, and the pieces it stands on."""

import json
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from experiments.__main__ import main
from experiments.harness.study import Study
from experiments.harness.tosses import Tosses
from experiments.studies.cube_toss import study as cube_toss
from experiments.studies.cube_toss.fit import cost
from experiments.studies.cube_toss.model import (
    Unknowns,
    build,
    errors,
    predict,
    read,
)
from experiments.studies.cube_toss.synthetic import TRUTH, synthesise
from tests.gradients import assert_gradient


def lying(turn: float, away: float) -> Tosses:
    """A cube at rest, that a record sees turned about the vertical, and aside."""
    half = turn / 2
    start = np.zeros(13)
    start[2], start[3] = 0.0524, 1.0
    seen = np.tile(start, (4, 1))
    seen[:, 0], seen[:, 3], seen[:, 6] = away, np.cos(half), np.sin(half)
    tosses = Tosses.of([seen, seen[:3]], 1 / 148)
    return Tosses(jnp.asarray([start, start]), tosses.poses, tosses.there, tosses.dt)


def test_errors_are_percent_of_the_width_and_degrees():
    position, rotation = errors(build(), Unknowns.zeros(), lying(0.5, 0.01048))
    assert np.allclose(position, 10.0, atol=0.05)
    assert np.allclose(rotation, np.rad2deg(0.5), atol=1e-3)


def test_before_it_touches_a_cube_falls_about_its_mass_centre():
    """By hand: the mass centre flies a parabola, and the cube spins evenly."""
    g, dt = np.array([0.0, 0.0, -9.81]), 1 / 148
    w, v = np.array([0.0, 3.0, 0.0]), np.array([0.2, 0.1, 0.3])
    start = jnp.asarray([[0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, *v, *w]])
    q = np.asarray(predict(build(), TRUTH, start, 11, dt))[0]
    t = 10 * dt
    R = np.eye(3)
    c, s = np.cos(3 * t), np.sin(3 * t)
    R[0], R[2] = [c, 0, s], [-s, 0, c]
    centre = 0.01 * np.asarray(TRUTH.centre)
    begun = v + dt / 2 * g + np.cross(w, centre)
    at = np.array([0, 0, 1]) + centre + begun * t + g * t**2 / 2 - R @ centre
    assert np.allclose(q[-1, :3], at, atol=1e-9)
    assert np.allclose(q[-1, 3:], [np.cos(1.5 * t), 0, np.sin(1.5 * t), 0], atol=1e-9)


@pytest.mark.study
def test_the_gradient_of_tosses_through_impacts():
    system = build()
    tosses = synthesise(system, 3, 40)
    loss = lambda x: cost(x, system, tosses)
    assert_gradient(loss, Unknowns.zeros(), h=1e-6, rtol=1e-4, modes_rtol=1e-9)


def good() -> dict[str, Any]:
    states = np.zeros((5, 13))
    states[:, 3] = 1.0
    return {"states": states, "lengths": np.array([2, 3]), "dt": np.array(1 / 148)}


def test_a_file_is_read(tmp_path):
    np.savez(tmp_path / "a.npz", **good())
    tosses = read(tmp_path / "a.npz")
    assert tosses.poses.shape == (2, 3, 7)
    assert np.array_equal(tosses.there, [[True, True, False], [True] * 3])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"states": np.full((5, 13), np.nan)}, "state 0 is not finite"),
        ({"states": np.zeros((5, 13))}, "quaternions of length 1"),
        ({"states": np.zeros((4, 13))}, "5 frames of 13 numbers"),
        ({"lengths": np.array([4, 1])}, "at least 2 frames"),
        ({"dt": np.array(-1.0)}, "dt is above 0"),
        ({"dt": np.array(np.nan)}, "dt is above 0"),
        ({"lengths": None}, "is not a file of tosses"),
        ({"lengths": np.array([2.0, 3.0])}, "whole numbers of frames"),
    ],
)
def test_a_bad_file_is_one_clear_sentence(tmp_path, capsys, change, said):
    file = {k: x for k, x in {**good(), **change}.items() if x is not None}
    np.savez(tmp_path / "a.npz", **file)
    where = ["--set", f"data={tmp_path / 'a.npz'}", "--out", str(tmp_path)]
    assert main(["run", "cube-toss", *where]) == 2
    assert said in capsys.readouterr().err


def test_a_second_file_is_reported_and_never_fitted(tmp_path, monkeypatch):
    """Cubes at rest, whose record moves aside and turns after its first frame."""

    def write(name: str, tosses: int, turn: float, away: float) -> str:
        states = np.zeros((tosses, 5, 13))
        states[..., 2], states[..., 3] = 0.0524, 1.0
        states[:, 1:, 0] = away
        states[:, 1:, 3], states[:, 1:, 6] = np.cos(turn / 2), np.sin(turn / 2)
        lengths = np.full(tosses, 5)
        flat = states.reshape(-1, 13)
        np.savez(tmp_path / name, states=flat, lengths=lengths, dt=1 / 148)
        return str(tmp_path / name)

    fitted = []
    monkeypatch.setattr(
        cube_toss, "fit", lambda s, x, n: fitted.append(len(x)) or Unknowns.zeros()
    )
    monkeypatch.setattr(cube_toss, "compare", lambda *_: None)
    data, other = write("a.npz", 3, 0.0, 0.0), write("b.npz", 2, 0.2, 0.01048)
    where = ["--set", f"data={data}", "--set", f"holdout={other}"]
    assert main(["run", "cube-toss", *where, "--out", str(tmp_path / "out")]) == 0
    found = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert fitted == [1]
    assert found["cube_toss.holdout.position_percent"] == pytest.approx(8.0, abs=0.1)
    turned = 0.8 * np.rad2deg(0.2)
    assert found["cube_toss.holdout.rotation_deg"] == pytest.approx(turned, abs=0.05)
    assert found["cube_toss.validation.rotation_deg"] < 0.05


def test_a_file_that_is_not_there(tmp_path):
    (tmp_path / "text.npz").write_text("not an archive")
    for name in ("nowhere.npz", "text.npz"):
        with pytest.raises(ValueError, match="is not a file of tosses"):
            read(tmp_path / name)


@pytest.mark.study
def test_a_quick_run_recovers_the_cube_it_synthesised(tmp_path):
    run = Study(cube_toss.TITLE, "", tmp_path, stages=cube_toss.STAGES, quick=True)
    cube_toss.run(run)
    run.finish()
    assert [c.quantity for c in run.checks if c.passed is False] == []
    assert run.metrics["cube_toss.synthetic.friction"] == pytest.approx(1, abs=0.05)
    assert "synthetic, as no data were given" in (tmp_path / "report.html").read_text()
