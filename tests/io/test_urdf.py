"""URDF files become the mechanisms that Pinocchio reads from them."""

import jax.numpy as jnp
import numpy as np
import pytest

from djdyn.io import from_urdf
from djdyn.multibody.dynamics import forward
from djdyn.multibody.joints import Fixed, Prismatic, Revolute
from djdyn.multibody.kinematics import forward_kinematics

from ..gradients import quick_jit


pytest.importorskip("mujoco")
pin = pytest.importorskip("pinocchio")


def link(name: str, mass: float, xyz: str, rpy: str = "0 0 0", more: str = "") -> str:
    return f"""
    <link name="{name}">
      <inertial>
        <origin xyz="{xyz}" rpy="{rpy}"/><mass value="{mass}"/>
        <inertia ixx="0.12" iyy="0.15" izz="0.1" ixy="0.01" ixz="-0.02" iyz="0.005"/>
      </inertial>
      {more}
    </link>"""


def joint(name, kind, parent, child, xyz, rpy, axis="0 0 1", more="") -> str:
    return f"""
    <joint name="{name}" type="{kind}">
      <parent link="{parent}"/><child link="{child}"/>
      <origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>{more}
    </joint>"""


LIMIT = '<limit lower="-1" upper="1" effort="50" velocity="2"/>'
MESH = '<geometry><mesh filename="package://nowhere/part.stl"/></geometry>'


def robot(*, on_j2="", on_j3="", shape="") -> str:
    slide = "prismatic" if "limit" in on_j2 else "continuous"
    return f"""
    <robot name="arm">
      <link name="base"/>
      {link("upper", 2.0, "0.1 0 0.2", "0.3 0.1 -0.2", shape)}
      {link("lower", 1.5, "0 0.2 0.1")}
      {link("gripper", 0.4, "0 0 0.05")}
      <link name="tool"/>
      {joint("j1", "continuous", "base", "upper", "0 0 0.5", "0.1 0.2 0.3", "0 1 1")}
      {joint("j2", slide, "upper", "lower", "0.4 0 0", "0 -0.5 0", "1 0 0", on_j2)}
      {joint("weld", "fixed", "lower", "gripper", "0 0 0.3", "0 0 1")}
      {joint("flange", "fixed", "gripper", "tool", "0 0 0.1", "0 0.4 0")}
      {joint("j3", "continuous", "upper", "side", "0 0.3 0", "0 0 0", "0 0 1", on_j3)}
      {link("side", 0.8, "0.1 0 0")}
    </robot>"""


@quick_jit
def evaluate(mechanism, q, v, tau):
    world = forward_kinematics(mechanism, q, v)
    return forward(world, tau), world


def test_accelerations_and_frames_are_pinocchios():
    text = robot(on_j2=LIMIT)
    arm = from_urdf(text, ignore=("limit", "saturation"))
    model = pin.buildModelFromXML(text)
    data, rng = model.createData(), np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, arm.nv))
    rows = [
        model.joints[model.getJointId(name)].idx_v
        for name in arm.joint_names
        if name in model.names
    ]
    theirs = np.zeros((3, arm.nv))
    theirs[:, rows] = q, v, tau
    q_p = pin.integrate(model, pin.neutral(model), theirs[0])  # two to an angle
    expected = pin.aba(model, data, q_p, *theirs[1:])[rows]
    v_dot, world = evaluate(arm, *map(jnp.asarray, (q, v, tau)))
    np.testing.assert_allclose(v_dot, expected, rtol=1e-9)
    pin.framesForwardKinematics(model, data, q_p)
    for name in ("upper", "lower", "gripper", "tool", "side"):
        place = data.oMf[model.getFrameId(name)]
        np.testing.assert_allclose(world.pose(name).p, place.translation, atol=1e-12)
        np.testing.assert_allclose(world.pose(name).R, place.rotation, atol=1e-12)


def test_every_link_stays_a_body():
    arm = from_urdf(robot())
    kinds = {body.name: type(body.joint) for body in arm.bodies}
    assert kinds == {
        "base": Fixed,
        "upper": Revolute,
        "lower": Revolute,
        "gripper": Fixed,
        "tool": Fixed,
        "side": Revolute,
    }
    limited = from_urdf(robot(on_j2=LIMIT), ignore=("limit", "saturation"))
    assert isinstance(limited.bodies[limited.joint_index("j2") - 1].joint, Prismatic)


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"on_j2": LIMIT}, "limit of joint 'j2'; saturation of joint 'j2'"),
        (
            {"on_j3": '<dynamics damping="0.1" friction="0.2"/>'},
            "damping of joint 'j3'; frictionloss of joint 'j3'",
        ),
        ({"shape": f"<collision>{MESH}</collision>"}, "contact of link 'upper'"),
        ({"on_j2": '<mimic joint="j1"/>'}, "equality of joint 'j2'"),
    ],
)
def test_what_a_mechanism_cannot_hold_is_refused_by_name(change, sentence):
    text = robot(**change)
    with pytest.raises(ValueError, match=f"the model has {sentence}, which"):
        from_urdf(text)
    kinds = [part.split(" of ")[0] for part in sentence.split("; ")]
    assert from_urdf(text, ignore=kinds).nv == 3


def test_shapes_for_the_eye_need_not_be_found(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(robot(shape=f"<visual>{MESH}</visual>"))
    assert from_urdf(path).nv == 3


def test_mjcf_is_told_from_urdf():
    with pytest.raises(ValueError, match="opens with <robot>, this one with <mujoco>"):
        from_urdf("<mujoco/>")
