"""Machines whose mass matrix is singular are refused in a sentence, not by NaN."""

import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.multibody.singular import may_be_singular, why_singular


LOW = (0.0, 0.0, -1.0)
HINGE = djdyn.Revolute((0, 1, 0))


def mechanism(*bodies):
    return djdyn.Mechanism(tuple(djdyn.Body(*body) for body in bodies))


SINGULAR = {
    "point mass on a ball joint": (("ball", "world", djdyn.Spherical(), 1.0, LOW),),
    "rod on a ball joint": (
        ("rod", "world", djdyn.Spherical(), 1.0, LOW, np.diag([0.1, 0.1, 0.0])),
    ),
    "free point mass": (("drop", "world", djdyn.Free(), 1.0),),
    "massless chain with aligned axes": (
        ("first", "world", HINGE, 0.0),
        ("second", "first", HINGE, 1.0, LOW, np.eye(3)),
    ),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_a_singular_start_is_refused(name):
    system = djdyn.System(mechanism(*SINGULAR[name]))
    joints = " and ".join(repr(body[0]) for body in SINGULAR[name])
    with pytest.raises(ValueError, match=f"{joints} can move without moving any"):
        djdyn.simulate(system, 1.0)


def test_a_singular_run_says_why_it_stopped():
    """A point mass on its own axis: not looked for at the start, found at the end."""
    system = djdyn.System(mechanism(("nut", "world", djdyn.Revolute(), 1.0)))
    with pytest.raises(djdyn.SimulationError, match=r"t = 0 s: joint 'nut' can move"):
        djdyn.simulate(system, 1.0)


@pytest.mark.parametrize(
    "bodies",
    [
        (("bob", "world", HINGE, 1.0, LOW),),
        (
            ("pin", "world", HINGE, 0.0),
            ("bob", "pin", djdyn.Revolute(), 1.0, (1, 0, -1)),
        ),
        (("arm", "world", djdyn.Universal(), 1.0, LOW),),
        (
            ("big", "world", djdyn.Spherical(), 1e5, LOW, np.eye(3) * 1e4),
            ("tiny", "big", djdyn.Spherical(), 1e-6, LOW, np.eye(3) * 1e-9),
        ),
    ],
)
def test_what_can_move_is_not_refused(bodies):
    machine = mechanism(*bodies)
    assert why_singular(machine, machine.q0()) == ""


def test_only_thin_bodies_are_looked_at():
    assert not may_be_singular(mechanism(("bob", "world", HINGE, 1.0, LOW)))
    solid = ("ball", "world", djdyn.Spherical(), 1.0, LOW, np.eye(3))
    assert not may_be_singular(mechanism(solid))


def test_gimbal_lock_is_reported():
    inertia = np.diag([1.0, 2.0, 2.5])
    hull = ("hull", "world", djdyn.RollPitchYaw(), 1.0, (0, 0, 0), inertia)
    system = djdyn.System(mechanism(hull))
    locked = system.initial_state(q={"hull": [0, jnp.pi / 2, 0]}, v={"hull": [1, 0, 1]})
    with pytest.raises(djdyn.SimulationError, match="use Spherical"):
        djdyn.simulate(system, 1.0, locked)
    rising = system.initial_state(v={"hull": [0.0, jnp.pi / 2, 0.0]})
    with pytest.warns(UserWarning, match="'hull' comes to ninety degrees by t = 0.99"):
        djdyn.simulate(system, 2.0, rising)
