"""Recorded markers: gaps stay gaps, and faults are reported."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.multibody.kinematics import forward_kinematics
from estimation import MarkerData, MarkerSet, estimate_noise, lag, static_mean
from tests.gradients import assert_gradient
from tests.machines import double_pendulum


ROD = {  # m, the markers on the rod of a point-contact rig: 1 and 3 all but mirrored
    "1": (0.3082, 0.0394, 0.0072),
    "2": (0.3441, 0.0015, 0.0072),
    "3": (0.3082, -0.0367, 0.0072),
    "4": (0.3281, 0.0015, 0.0273),
}


def swinging(n: int = 400, rate: float = 157.0) -> MarkerData:
    t = np.arange(n) / rate
    a = 0.4 * np.sin(2 * np.pi * 2.3 * t)
    c, s, o = np.cos(a), np.sin(a), np.zeros(n)
    R = np.stack([np.stack(r, -1) for r in ((c, -s, o), (s, c, o), (o, o, o + 1))], 1)
    p = np.einsum("nij,mj->nmi", R, np.array(list(ROD.values())))
    p += np.random.default_rng(0).normal(scale=1e-4, size=p.shape)
    return MarkerData.seen(t, tuple(ROD), p)


def changed(data: MarkerData, at, rows, positions) -> MarkerData:
    p = data.with_gaps.copy()
    p[rows, at] = positions
    return MarkerData.seen(data.times, data.labels, p)


def test_a_good_record_is_not_blamed():
    assert swinging().check() == ()
    assert swinging().check([tuple(ROD)]) == ()
    assert swinging().check([ROD]) == ()


def test_swapped_labels_are_found():
    """Swapped mirror images are found, which distances alone do not show."""
    data = swinging()
    p, rows = data.positions, slice(100, 130)
    swapped = changed(changed(data, 0, rows, p[rows, 2]), 2, rows, p[rows, 0])
    jumps = swapped.check()
    assert len(jumps) == 1 and "'1' and '3' change places at 0.636943 s" in jumps[0]
    for rigid in ([tuple(ROD)], [ROD]):
        said = swapped.check(rigid)
        assert said == ("markers '1' and '3' are swapped from 0.636943 to 0.821656 s",)
    np.testing.assert_array_equal(swapped.unswapped([ROD]).positions, p)
    relabelled = MarkerData(data.times, ("2", "1", "3", "4"), p, data.visible)
    assert relabelled.check() == relabelled.check([tuple(ROD)]) == ()
    (said,) = relabelled.check([ROD])
    assert "'1' and '2' are swapped from 0 to" in said


def test_faults_are_said():
    data = swinging()
    p = data.positions
    back = np.r_[data.times[:9], data.times[8] - 0.1, data.times[10:]]
    (said,) = MarkerData(back, data.labels, p, data.visible).check()
    assert "time runs backwards at 1 of 400 samples, first at sample 10" in said
    twice = np.r_[data.times[:10], data.times[9], data.times[11:]]
    (said,) = MarkerData(twice, data.labels, p, data.visible).check()
    assert "stands still" in said
    (said,) = MarkerData(data.times, ("1", "2", "1", "4"), p, data.visible).check()
    assert said == "2 markers are called '1'"
    blind = changed(data, slice(None), slice(50, 250), np.nan)
    (said,) = blind.check([ROD])
    assert "all markers are hidden from 0.318471 to 1.58599 s" in said
    (said,) = changed(data, 3, slice(None), np.nan).check()
    assert said == "marker '4' is never seen"
    frozen = data.positions.copy()
    frozen[:, 1, 2] = 0.0072
    (said,) = MarkerData(data.times, data.labels, frozen, data.visible).check()
    assert said == "z of marker '2' never changes in 400 samples"
    (said,) = changed(data, 1, slice(7, 9), 0.5).check([ROD])
    assert "out of shape from 0.044586 to 0.0509554 s, and no swap" in said
    parted = changed(changed(data, 0, slice(200), np.nan), 1, slice(200, None), np.nan)
    (said,) = parted.check([tuple(ROD)])
    assert said == "markers 1, 2, 3, 4 are never all seen at once"
    with pytest.raises(ValueError, match="no marker '5' among 1, 2, 3, 4"):
        data.check([("1", "5", "3")])


def test_numbers_that_are_none_stay_out():
    t, p = np.arange(2.0), np.ones((2, 1, 3))
    with pytest.raises(ValueError, match="'a' is visible at 0 s"):
        MarkerData(t, ("a",), np.nan * p, np.ones((2, 1), bool))
    with pytest.raises(ValueError, match="hidden markers must be zero"):
        MarkerData(t, ("a",), p, np.zeros((2, 1), bool))
    with pytest.raises(ValueError, match="2 times and 2 labels"):
        MarkerData(t, ("a", "b"), p, np.ones((2, 1), bool))


def test_resampling_keeps_gaps():
    """Interpolation is linear, and only between two visible samples."""
    t = np.arange(10) / 10.0
    p = np.repeat((2 * t)[:, None, None], 3, -1)
    p[4] = np.nan
    data = MarkerData.seen(t, ("a",), p)
    found = data.resample([0.05, 0.3, 0.31, 0.39, 0.5, 0.52, 0.9, 0.95])
    assert np.array_equal(found.visible[:, 0], [1, 1, 0, 0, 1, 1, 1, 0])
    x = found.positions[:, 0, 0]
    assert np.allclose(x, [0.1, 0.6, 0, 0, 1.0, 1.04, 1.8, 0])
    dropped = MarkerData.seen(np.r_[t[:3], t[6:]], ("a",), np.r_[p[:3], p[6:]])
    assert not dropped.resample([0.35]).visible.any()
    assert len(data.between(0.25, 0.65)) == 4


def test_rounded_times_have_a_rate():
    data = swinging(1000)
    kept = np.r_[0:300, 340:1000]  # some samples left out
    p, visible = data.positions[kept], data.visible[kept]
    rounded = MarkerData(np.round(data.times, 3)[kept], data.labels, p, visible)
    assert abs(rounded.rate - 157) < 0.03
    with pytest.raises(ValueError, match="times must increase to have a rate"):
        _ = MarkerData(-rounded.times, data.labels, p, visible).rate


def test_a_record_tells_its_noise_and_its_places():
    data = swinging(4000)
    assert np.allclose(estimate_noise(data), 1e-4, rtol=0.1)
    rest = np.random.default_rng(1).normal(scale=1e-4, size=(500, 4, 3))
    rest += np.array(list(ROD.values()))
    rest[10, 2] += 0.05
    rest[100:150, 1] = np.nan
    mean = static_mean(MarkerData.seen(np.arange(500.0), tuple(ROD), rest))
    assert np.allclose(mean.positions, list(ROD.values()), atol=4e-4 / np.sqrt(450))
    assert np.allclose(mean.deviations, 1e-4, rtol=0.15)
    assert mean.counts[1] <= 450 and mean.counts[2] < 500


def test_lag_is_found_to_a_fraction_of_a_sample():
    t = np.arange(400) / 157.0
    f = lambda t: np.sin(9 * t) * np.exp(-t) + 0.2 * np.sin(23 * t)
    a, b = f(t), f(t - 0.0421)
    b[100:120] = np.nan
    assert abs(lag(a, b, 157.0, 0.2) - 0.0421) < 1e-4
    assert abs(lag(b, a, 157.0, 0.2) + 0.0421) < 1e-4
    with pytest.raises(ValueError, match="never changes"):
        lag(0 * a, b, 157.0, 0.2)
    with pytest.raises(ValueError, match="peaks at the longest"):
        lag(a, b, 157.0, 0.02)


MARKERS = {"elbow": ("upper", (1.0, 0, 0)), "tip": ("lower", (1.0, 0.0, 0.1))}


def test_markers_of_a_pendulum():
    """Markers are where trigonometry puts them, in a run, a batch, and a gradient."""
    system, markers = djdyn.System(double_pendulum()), MarkerSet.of(MARKERS)
    y0 = system.initial_state([0.3, -0.5])
    run = djdyn.simulate(system, 0.5, y0, saveat=6, solver="rk4", dt=0.01)
    found = markers.predict(run)
    a, b = np.asarray(run.y.q[:, 0]), np.asarray(run.y.q.sum(1))
    elbow = np.stack([np.cos(a), 0 * a, -np.sin(a)], -1)
    arm = np.stack(
        [np.cos(b) + 0.1 * np.sin(b), 0 * b, 0.1 * np.cos(b) - np.sin(b)], -1
    )
    assert np.allclose(found, np.stack([elbow, elbow + arm], 1), atol=1e-12)
    data = MarkerData.seen(run.t, markers.labels, found)
    assert data.select(("tip",)).positions.shape == (6, 1, 3)

    def loss(theta):
        moved = eqx.tree_at(lambda run: run.y.q, run, theta["q"])
        markers = MarkerSet(("elbow", "tip"), ("upper", "lower"), theta["offsets"])
        return jnp.sum(markers.predict(moved) ** 3)

    theta = {"q": run.y.q, "offsets": markers.offsets}
    assert_gradient(loss, theta)
    many = jax.tree.map(lambda x: jnp.stack([x, 1.1 * x]), theta)
    assert jnp.allclose(jax.jit(jax.vmap(loss))(many)[0], jax.jit(loss)(theta))


def test_marker_sets_know_their_rigid_bodies():
    places = {label: ("rod", p) for label, p in ROD.items()}
    markers = MarkerSet.of({**places, "base": ("world", (0, 0, 0))})
    (rod,) = markers.rigid
    assert list(rod) == list(ROD)
    with pytest.raises(ValueError, match="different labels"):
        MarkerSet(("a", "a"), ("rod", "rod"), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="unknown frame 'rod'"):
        jax.eval_shape(
            lambda q: markers.at(forward_kinematics(double_pendulum(), q)), jnp.zeros(2)
        )
