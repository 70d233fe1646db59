"""Pivots, digitised points, and damping from peaks."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from djdyn.multibody.spatial import Pose
from estimation import damping_from_peaks, digitise, find_pivot


TIP, CENTRE = np.array([0.01, -0.02, 0.15]), np.array([1.0, 2.0, 0.3])


def swivelled(rotations: Rotation, noise: float = 0.0):
    R = rotations.as_matrix()
    p = CENTRE - R @ TIP + noise * np.random.default_rng(1).normal(size=(len(R), 3))
    return jnp.asarray(R), jnp.asarray(p)


def test_a_pivot_is_found_exactly_and_with_noise():
    turns = Rotation.random(40, np.random.default_rng(0))
    exact = find_pivot(*swivelled(turns))
    assert np.allclose(exact.p_BP, TIP, atol=1e-12)
    assert np.allclose(exact.p_AP, CENTRE, atol=1e-12)
    noisy = find_pivot(*swivelled(turns, 1e-4))
    assert np.allclose(noisy.p_BP, TIP, atol=1e-4)
    assert 0.5e-4 < float(jnp.mean(noisy.residuals)) < 3e-4


def test_turns_about_one_axis_have_no_centre():
    turns = Rotation.from_rotvec(np.linspace(0, 1, 9)[:, None] * [0.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="a centre needs turns"):
        find_pivot(*swivelled(turns))


def test_a_pointer_gives_the_place_in_a_body_that_moves():
    point_B = np.array([0.3, -0.1, 0.05])
    for seed in range(3):
        rng = np.random.default_rng(seed)
        R_B, R_P = Rotation.random(2, rng).as_matrix()
        p_B = rng.normal(size=3)
        p_P = R_B @ point_B + p_B - R_P @ TIP  # the tip is at the point
        found = digitise(
            Pose(jnp.asarray(R_P), jnp.asarray(p_P)),
            Pose(jnp.asarray(R_B), jnp.asarray(p_B)),
            jnp.asarray(TIP),
        )
        assert np.allclose(found, point_B, atol=1e-12)


@pytest.mark.validation
def test_damping_of_the_measured_sway():
    """Knutson 2007, section 5: 20.7 and 13.3 mm about the mean, two cycles apart."""
    decrement, ratio = damping_from_peaks(20.7, 13.3, 2)
    assert decrement == pytest.approx(0.2212, abs=5e-5)
    assert ratio == pytest.approx(0.035, abs=5e-4)
    with pytest.raises(ValueError, match="one cycle apart or more, not 0"):
        damping_from_peaks(1.0, 0.5, 0)
