"""The twin of the study `optotrak`: its record, its slopes, and what markers see."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from experiments.studies.optotrak import (
    identification as twin,
    model as rig,
    pose as pose,
)


def test_swapped_labels_are_found_and_gaps_stay():
    raw = twin.recorded(seed=0)
    (said,) = raw.check(twin.SET.rigid)
    assert "'1' and '3' are swapped from 0.643312 to 0.815287 s" in said
    data = raw.unswapped(twin.SET.rigid)
    assert data.check(twin.SET.rigid) == ()
    np.testing.assert_array_equal(data.visible, raw.visible)
    off = (data.positions - twin.clean())[data.visible]
    assert np.abs(off).max() < 6 * twin.NOISE
    assert np.std(off) == pytest.approx(twin.NOISE, rel=0.03)


@pytest.mark.validation
def test_markers_hardly_see_where_the_ball_is():
    mechanism = rig.build().mechanism
    q = jnp.asarray(rig.POSES["equilibrium_exact"])
    sizes = np.linalg.svd(pose.slopes(mechanism, q), compute_uv=False)
    np.testing.assert_allclose(sizes, pose.SINGULAR_VALUES, rtol=0.03)


def test_a_low_fifth_marker_tells_the_pose():
    truth, y0 = rig.twin()
    found = twin.Found(None, None, truth, y0, None)  # pyright: ignore
    seen = (pose.SET, pose.with_fifth(pose.FIFTH_HEIGHT))
    J = (pose.slopes(truth.mechanism, y0.q, m) for m in seen)
    four, low = (pose.pose_deviations(np.asarray(x) / (1e3 * twin.NOISE)) for x in J)
    five = pose.sight(found, pose.with_fifth(0.15))
    assert four.max() > 1.0
    assert low.max() < 0.25
    h = 1e-4
    moved = [pose.moved(five, pose.with_fifth(0.15 + s)) for s in (-h, 0, h)]
    said = [pose.design(p, pose.WORST, pose.OFFSETS) for p in moved]
    ends, (value, slope) = (said[0][0], said[2][0]), said[1]
    along = slope[pose.OFFSETS[0]][-1, 0]
    assert along == pytest.approx((ends[1] - ends[0]) / (2 * h), rel=1e-5)
    assert along > 0  # lower is better
    assert value == pytest.approx(np.mean(ends), rel=1e-4)


def test_slopes_of_markers_are_those_of_differences():
    """Of a third of a second, along one direction through friction, spring and pose."""
    truth, y0 = rig.twin()
    times, predict = twin.TIMES[:48], twin.ReleasedMarkers(twin.SET)

    @jax.jit
    def seen(s):
        values = {
            "contact.coulomb": 0.092 + 0.05 * s,
            "spring_F.stiffness": 13.3 + s,
            "rod.p_BC[2]": 5e-3 + 0.01 * s,
        }
        start = djdyn.State(y0.q + 0.3 * s, y0.v, y0.parts)
        return predict(djdyn.with_parameters(truth, values), times, start, "forward")

    _, slope = jax.jvp(seen, (jnp.zeros(()),), (jnp.ones(()),))
    h = jnp.asarray(2e-6)
    near = (seen(h) - seen(-h)) / (2 * h)
    assert slope.shape == (48, 12)
    np.testing.assert_allclose(slope, near, atol=1e-6 * float(jnp.abs(near).max()))
