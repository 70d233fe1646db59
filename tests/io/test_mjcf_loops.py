"""MJCF equalities become loops with MuJoCo's rows."""

import jax.numpy as jnp
import numpy as np
import pytest

from djdyn.io import from_mjcf, system_from_mjcf
from djdyn.multibody.assembly import assemble
from djdyn.multibody.dynamics import forward_dynamics
from djdyn.multibody.joints import Fixed, Spherical
from djdyn.multibody.kinematics import forward_kinematics
from djdyn.multibody.loop_rows import loop_rows

from ..gradients import quick_jit


mujoco = pytest.importorskip("mujoco")

TREE = """
<mujoco><compiler angle="radian"/><option gravity="0.3 -0.2 -9.7"/>
  <default><geom type="capsule" size="0.05" contype="0" conaffinity="0"/></default>
  <worldbody>
    <site name="post" pos="0.9 0.1 -0.2" euler="0.3 0.1 -0.2"/>
    <body name="a" pos="0 0 0.1" quat="0.9 0.1 0.3 0.2">
      <joint name="a" axis="0 1 0" ref="0.3" pos="0.1 0 0"/>
      <joint name="roll" axis="1 0 0"/><geom fromto="0 0 0 0.5 0 0"/>
      <body name="b" pos="0.5 0 0"><joint name="b" axis="0 1 0.2" pos="0 0.05 0"/>
        <geom fromto="0 0 0 0.5 0 0.1"/><site name="tip" pos="0.5 0 0.1"/>
        <body name="c" pos="0.5 0 0.1"><joint name="c" type="ball" pos="0 0 0.1"/>
          <geom fromto="0 0 0 0.2 0.1 0"/><site name="grip" pos="0.1 0.1 0"/>
          </body></body></body>
    <body name="d" pos="0.2 0.6 0"><joint name="slide" type="slide" axis="1 0 1"
        ref="-0.1"/><joint name="d" axis="0 0 1"/><geom fromto="0 0 0 0 0.3 0"/>
      <body name="e" pos="0 0.3 0"><joint name="e" type="ball"/>
        <geom fromto="0 0 0 0.2 0.3 0"/></body></body>
  </worldbody>
  <equality>{}</equality></mujoco>"""
EQUALITIES = {
    "connect to a body": '<connect name="{}" body1="b" body2="d" anchor="0.3 0.1 0"/>',
    "connect to the world": '<connect body1="c" anchor="0.1 0.1 0.02"/>',
    "connect of sites": '<connect site1="tip" site2="post"/>',
    "weld": '<weld body1="c" body2="e"/>',
    "weld with a pose": '<weld body1="c" body2="e" anchor="0.1 0 0.05"'
    ' relpose="0.1 0.5 -0.1 0.9 0.1 0.2 0"/>',
    "weld of sites": '<weld site1="post" site2="grip"/>',
    "weld without turning": '<weld body1="b" body2="d" torquescale="0"/>',
    "joints": '<joint joint1="a" joint2="slide" polycoef="0.1 0.8 -0.2 0.3 0.1"/>',
    "gears": '<joint name="mesh" joint1="b" joint2="d" polycoef="0 -2 0 0 0"/>',
    "one joint": '<joint joint1="slide" polycoef="0.2 0 0 0 0"/>',
}


def equality_rows(model, q) -> tuple[np.ndarray, np.ndarray]:
    """MuJoCo's rows and gaps of equalities."""
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    rows = data.efc_type[: data.nefc] == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    J = np.zeros((data.nefc, model.nv))
    if mujoco.mj_isSparse(model):
        mujoco.mju_sparse2dense(
            J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind
        )
    else:
        J[:] = data.efc_J.reshape(J.shape)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    return J[rows], data.efc_pos[: data.nefc][rows], M, data.qfrc_bias.copy()


@pytest.mark.parametrize("name", EQUALITIES)
def test_loops_have_the_rows_of_mujoco(name):
    """The same gaps close, the same rows span, and what moves is the same.

    At rest, accelerations follow from MuJoCo's mass matrix, bias and rows alone.
    """
    text = TREE.format(EQUALITIES[name].format("pin"))
    m, model = from_mjcf(text), mujoco.MjModel.from_xml_string(text)
    assert m.nq == model.nq and len(m.loops) == 1
    q = assemble(m, m.q0())
    J, gap, M, bias = equality_rows(model, np.asarray(q))
    assert np.abs(gap).max() < 1e-9
    mine = np.asarray(loop_rows(forward_kinematics(m, q)).jacobian)
    kept = np.abs(J).max(1) > 0  # rows that `torquescale` makes nothing of
    J = J[kept]
    rank = np.linalg.matrix_rank(J, 1e-8)
    assert rank == len(J) == len(mine)
    assert np.linalg.matrix_rank(mine, 1e-8) == rank
    assert np.linalg.matrix_rank(np.vstack([J, mine]), 1e-8) == rank
    tau = np.linspace(-1.0, 1.0, model.nv)
    whole = np.block([[M, J.T], [J, np.zeros((len(J),) * 2)]])
    right = np.concatenate([tau - bias, np.zeros(len(J))])
    wanted = np.linalg.solve(whole, right)[: model.nv]
    found = quick_jit(forward_dynamics)(m, q, jnp.zeros(m.nv), jnp.asarray(tau))
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())


def test_a_system_has_the_loops_and_its_parts():
    text = TREE.format(
        EQUALITIES["connect to a body"].format("roll") + EQUALITIES["gears"]
        + '<weld body1="c" body2="e" active="false"/>'
    )  # fmt: skip
    system = system_from_mjcf(text.replace('type="slide"', 'type="slide" damping="2"'))
    assert [loop.name for loop in system.mechanism.loops] == ["equality:roll", "mesh"]
    assert "slide:friction" in system.parts
    assert isinstance(system.mechanism.loops[0].joint, Spherical)
    assert not system_from_mjcf(text, ignore="equality").mechanism.loops
    weld = from_mjcf(TREE.format(EQUALITIES["weld"])).loops[0]
    assert weld.name == "equality0" and isinstance(weld.joint, Fixed)


def test_what_the_flag_switches_off_is_left_open():
    text = TREE.format(EQUALITIES["weld"])
    off = text.replace('-9.7"/>', '-9.7"><flag equality="disable"/></option>')
    assert not from_mjcf(off).loops
