"""Machines in single precision, JAX's default, and what is said about it."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.parts import JointFriction, JointSpring
from djdyn.simulation import checks


@pytest.fixture
def pendulum(monkeypatch):
    monkeypatch.setattr(checks, "_warned_of_single", set())
    with jax.enable_x64(False):
        rod = djdyn.Body("rod", "world", djdyn.Revolute((0, 1, 0)), 1.3, (0, 0, -0.7))
        parts = {
            "spring": JointSpring("rod", 3.0, rest=0.4),
            "friction": JointFriction("rod", viscous=0.3),
        }
        yield djdyn.System(djdyn.Mechanism((rod,)), parts)


def test_tolerances_out_of_reach_are_said_once(pendulum):
    said = "in single precision steps cannot keep a tolerance of 1e-08"
    with pytest.warns(UserWarning, match=said):
        djdyn.simulate(pendulum, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = djdyn.simulate(pendulum, 1.0)
        loose = djdyn.simulate(pendulum, 1.0, rtol=1e-5, atol=1e-5)
    assert again.y.q.dtype == loose.y.q.dtype == jnp.float32
    np.testing.assert_allclose(again.y.q, loose.y.q, atol=1e-4)


def test_equilibrium_is_found(pendulum):
    """The spring holds the rod's weight: k (q0 - q) = m g c sin q."""
    q = float(djdyn.equilibrium(pendulum).q[0])
    assert abs(3.0 * (0.4 - q) - 1.3 * 9.81 * 0.7 * np.sin(q)) < 1e-4
