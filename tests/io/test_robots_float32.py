"""Robots are read and run in single precision, JAX's default."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import djdyn

from ..machines import DATA


pytest.importorskip("mujoco")

URDF = """
<robot name="rod"><link name="base"/><link name="rod"><inertial>
  <origin xyz="0.1 0.2 -0.5" rpy="0.3 -0.7 0.2"/><mass value="1.3"/>
  <inertia ixx="0.12" iyy="0.15" izz="0.04" ixy="0.01" ixz="-0.02" iyz="0.005"/>
  </inertial></link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/>
  <axis xyz="0 1 1"/><limit lower="-2" upper="2" effort="30" velocity="3"/>
  <dynamics damping="0.2" friction="0.1"/></joint></robot>"""


def angle(make, backend: str) -> np.ndarray:
    """Where a rod is after a while, by the precision that is set."""
    system = make()
    start = system.initial_state(q={"hinge": 0.4})
    how = {"solver": "rk4", "dt": 2e-3, "saveat": [0.1], "backend": backend}
    run = djdyn.rollout(
        system, 0.1, start, parameters={"rod.mass": jnp.array([1.0, 1.3])}, **how
    )
    assert np.all(run.ok)
    return np.asarray(run.q("hinge"))


def test_a_robot_moves_the_same_in_single_precision():
    make = lambda: djdyn.system_from_urdf(URDF, floating_base=False)
    double = angle(make, "kernel")
    with jax.enable_x64(False):
        single = angle(make, "kernel")
        run = djdyn.simulate(make(), 0.1, make().initial_state(q={"hinge": 0.4}))
    assert single.dtype == np.float32 and double.dtype == np.float64
    np.testing.assert_allclose(single, double, rtol=1e-4)
    np.testing.assert_allclose(run.q("hinge")[-1], double[1, -1], rtol=1e-4)


@pytest.mark.filterwarnings("ignore:read without")
def test_a_robot_with_everything_is_built_in_single_precision():
    with jax.enable_x64(False):
        system = djdyn.system_from_mjcf(DATA / "gantry.xml")
        assert all(x.dtype == np.float32 for x in jax.tree.leaves(system))
