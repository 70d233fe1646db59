"""The study of tossed hinged blocks, and the pieces it stands on."""

import json

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from experiments.__main__ import main
from experiments.harness.tosses import Record, Tosses
from experiments.studies.elbow_toss import peer, study as elbow_toss
from experiments.studies.elbow_toss.fit import cost, windows
from experiments.studies.elbow_toss.level import find_table, level_by_ends, turned
from experiments.studies.elbow_toss.model import (
    COLUMNS,
    HALF,
    Unknowns,
    build,
    corners,
    physical,
    predict,
    read,
    score,
)
from tests.gradients import assert_gradient


def lying(count: int, frames: int = 3) -> np.ndarray:
    """Return states of blocks that lie side by side, turned about the vertical."""
    states = np.zeros((count, frames, 15))
    half = np.arange(count)[:, None] / 2
    states[..., 2] = HALF[2]
    states[..., 3], states[..., 6] = np.cos(half), np.sin(half)
    return states


def test_errors_are_percent_of_the_length_and_degrees():
    seen = lying(1)
    q = np.array(seen[..., :8])
    q[..., 0] += 0.01
    q[..., 3], q[..., 6] = np.cos(0.25), np.sin(0.25)
    q[..., 7] = 2 * np.pi - 0.2
    found = score(jnp.asarray(q), Tosses.of(list(seen), 0.01, 8))
    expected = [10.0, np.rad2deg(0.5), np.rad2deg(0.2)]
    assert np.allclose(np.ravel(found), expected, atol=1e-9)


def test_the_second_block_turns_about_the_hinge():
    """By hand: at a right angle it points down from the hinge at x = -35 mm."""
    q = jnp.array([0.0, 0, 0, 1, 0, 0, 0, np.pi / 2])
    second = np.asarray(corners(q))[8:]
    low, high = [-0.06, 0.035, -0.085], [-0.01, 0.085, 0.015]
    assert np.allclose(second.min(0), low) and np.allclose(second.max(0), high)


def test_in_free_flight_the_blocks_move_as_in_mujoco():
    pytest.importorskip("mujoco")
    start = np.array([[0, 0, 1, 1, 0, 0, 0, 0.7, 3, -4, 5, 0.2, 0.1, 0.3, 6.0]])
    dt, frames = 1 / 148, 8
    system = djdyn.with_parameters(
        build(), {"friction.coulomb": 0.0, "friction.viscous": 1.5e-3}
    )
    x = eqx.tree_at(lambda x: x.lag, Unknowns.zeros(), jnp.asarray(-0.5))
    q = np.asarray(predict(system, x, jnp.asarray(start), frames, dt))[0]
    simulate = peer.rollout(dt / peer.SUBSTEPS, start, frames)
    other = simulate(0.2, 4e4, 400.0, 1.5e-3, 0.0)[0, :, :8]
    # MuJoCo's step is of first order
    assert np.allclose(q, other, atol=3e-3)
    assert abs(q[-1, 7] - q[0, 7]) > 0.2


def test_any_inertia_of_the_fit_is_one_that_a_body_can_have():
    inertia = jnp.asarray([[3.0, -3.0, 0.0], [-3.0, -3.0, 3.0]])
    x = eqx.tree_at(lambda x: x.inertia, Unknowns.zeros(), inertia)
    for block in ("block1", "block2"):
        a, b, c = np.sort(np.diag(physical(build(), x)[f"{block}.I_BC"]))
        assert a > 0 and a + b >= c


def test_the_table_is_found_from_blocks_at_rest():
    """Two sessions, whose frames are tilted differently and zeroed at each end."""
    tilts = np.array([[-0.03, 0.02, 1.0], [0.001, -0.002, 1.0]])
    tilts /= np.linalg.norm(tilts, axis=1, keepdims=True)
    states, number = lying(12), np.arange(12.0)
    later = number >= 7
    recorded = []
    for state, normal in zip(states, tilts[1 * later], strict=True):
        x, y, z = normal
        R = np.array([[1 - x * x / (1 + z), -x * y / (1 + z), -x],
                      [-x * y / (1 + z), 1 - y * y / (1 + z), -y], normal])  # fmt: skip
        recorded.append(turned(state, R.T) + 0.1 * np.eye(15)[2])
    record = Record(recorded, 0.01, number)
    table = find_table(record)
    assert table.first == 7
    assert np.allclose(table.normals, tilts, atol=1e-12)
    level = np.stack(level_by_ends(record, table))
    assert np.allclose(level[..., 2], HALF[2], atol=1e-9)
    assert np.allclose(level[..., 4:6], 0.0, atol=1e-9)


def test_windows_start_from_measured_states():
    state = np.arange(40.0)[:, None] * np.ones(15)
    found = windows([state, state[:3]], 0.01)
    assert found.poses.shape == (9, 13, 8)
    assert np.array_equal(found.start[:, 0], [0, 5, 10, 15, 20, 25, 30, 35, 0])
    assert np.array_equal(jnp.sum(found.there, 1), [13] * 6 + [10, 5, 3])


def write(path, states: np.ndarray, **more) -> str:
    """Write states in the order of the file."""
    flat = np.empty((states.shape[0] * states.shape[1], 15))
    flat[:, list(COLUMNS)] = states.reshape(-1, 15)
    lengths = np.full(len(states), states.shape[1])
    np.savez(path, states=flat, lengths=lengths, dt=1 / 148, **more)
    return str(path)


def test_a_file_is_read(tmp_path):
    states = lying(2)
    states[..., 7], states[..., 14] = 0.3, 0.4
    record = read(write(tmp_path / "a.npz", states, toss_id=[3, 5]))
    assert np.array_equal(np.stack(record.states), states)
    assert np.array_equal(record.number, [3, 5])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"toss_id": [1]}, "toss_id is one number a toss"),
        ({}, "one toss to fit and one to evaluate"),
    ],
)
def test_a_bad_file_is_one_clear_sentence(tmp_path, capsys, more, said):
    count = 2 if more else 1
    data = write(tmp_path / "a.npz", lying(count), **more)
    assert main(["run", "elbow-toss", "--set", f"data={data}"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.study
def test_the_gradient_of_windows_through_impacts():
    system = build()
    state = lying(2, 6)
    state[..., 2] += 0.005
    state[:, :, 13], state[:, :, 14] = -1.0, 2.0
    tosses = Tosses.of(list(state), 1 / 148, 8)
    loss = lambda x: cost(x, system, tosses, 2)
    assert_gradient(loss, Unknowns.zeros(), h=1e-6, rtol=1e-4, modes_rtol=1e-9)


@pytest.mark.study
def test_a_second_file_is_reported_and_never_fitted(tmp_path, monkeypatch):
    """Blocks at rest, whose record moves aside and turns after its first frame."""
    fitted = []
    x = Unknowns.zeros()
    monkeypatch.setattr(elbow_toss, "fit", lambda s, w, *_: fitted.append(len(w)) or x)
    monkeypatch.setattr(elbow_toss, "polish", lambda s, x, *_: x)
    monkeypatch.setattr(elbow_toss, "compare", lambda *_: None)
    moved = lying(2, 5)
    moved[:, 1:, 0], moved[:, 1:, 7] = 0.01, 0.2
    data, other = (
        write(tmp_path / "a.npz", lying(4, 5)),
        write(tmp_path / "b.npz", moved),
    )
    where = ["--set", f"data={data}", "--set", f"holdout={other}"]
    out = tmp_path / "out"
    assert main(["run", "elbow-toss", *where, "--out", str(out)]) == 0
    found = json.loads((out / "metrics.json").read_text())
    assert fitted == [2]  # of four tosses with one window each
    assert found["elbow_toss.holdout.position_percent"] == pytest.approx(8.0, abs=0.2)
    turned = 0.8 * np.rad2deg(0.2)
    assert found["elbow_toss.holdout.hinge_deg"] == pytest.approx(turned, abs=0.2)
    assert found["elbow_toss.validation.rotation_deg"] < 0.2


@pytest.mark.study
def test_a_quick_run_recovers_the_friction_of_tosses_by_mujoco(tmp_path):
    pytest.importorskip("mujoco")
    assert main(["run", "elbow-toss", "--quick", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "metrics.json").read_text())
    assert found["elbow_toss.synthetic.friction"] == pytest.approx(1, abs=0.1)
    assert "synthetic by MuJoCo" in (tmp_path / "report.html").read_text()
