"""Lines that fall on the sea bed: steps that are implicit in its stiffness."""

import jax.numpy as jnp
import numpy as np
import pytest

import djdyn
from djdyn.cable import Cable, CableProperties, FixedEnd, FreeEnd
from djdyn.marine.sea_bed import SeaBed
from experiments.studies.cable.model import ground


def test_long_steps_on_a_stiff_bed():
    """A chain falls on a bed whose damping is stiff to explicit steps of this length.

    It comes to rest under its weight: pressure on its diameter is weight per length.
    """
    bed = SeaBed(-1.0, stiffness=3e5, damping=3e4, friction=0.6, width=1e-4)
    chain = CableProperties(20.0, 1e6, diameter=0.1)
    line = Cable(
        chain, 6.0, FreeEnd(), FixedEnd(point=[6.0, 0, -0.9]), mesh=4, ground=bed
    )
    system = djdyn.System(ground(), {"line": line})
    y = system.initial_state()
    x = np.linspace(0, 6, 5)[:4]
    lanes = [np.stack([x, 0 * x, z + 0 * x], 1) for z in (-0.9, -1.0)]
    many = {"r": jnp.asarray(np.stack(lanes)), "v": jnp.zeros((2, 4, 3))}
    y = djdyn.State(y.q, y.v, {"line": many})
    end = djdyn.rollout(system, 4.0, y, solver="ros2", dt=0.02, saveat=[4.0])
    r, v = (np.asarray(end.y.parts["line"][k])[:, -1] for k in ("r", "v"))
    assert np.allclose(v, 0.0, atol=1e-3)
    sunk = 20.0 * 9.81 / (0.1 * 3e5)
    assert np.allclose(r[:, :2, 2], -1.0 - sunk, atol=1e-3)
    explicit = 2.5 / (3e4 * 0.1 / 20.0)
    assert explicit < 0.02


def test_a_line_on_the_bed_needs_a_diameter():
    with pytest.raises(ValueError, match="needs a diameter"):
        rope = CableProperties(1.0, 1e5)
        Cable(rope, 1.0, FreeEnd(), FixedEnd(point=[0, 0, 0]), 4, ground=SeaBed(-1.0))
