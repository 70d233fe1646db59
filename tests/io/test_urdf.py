"""URDF files become the mechanisms that Pinocchio reads from them."""

import jax.numpy as jnp
import numpy as np
import pytest

from djdyn.io import from_urdf, system_from_urdf
from djdyn.multibody.dynamics import forward, forward_dynamics
from djdyn.multibody.joints import Fixed, Free, Prismatic, Revolute
from djdyn.multibody.kinematics import forward_kinematics
from djdyn.multibody.spatial import quat_to_rotation
from djdyn.parts import JointStop

from ..gradients import quick_jit


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


# Systems ------------------------------------------------------------------------------


BRAKE = '<dynamics damping="0.3" friction="0.2"/>'


def test_a_floating_robot_with_friction_and_motors_accelerates_as_pinocchios():
    """Pinocchio's `aba` is given the forces of friction, which it does not apply."""
    text = robot(on_j2=LIMIT + BRAKE, on_j3=BRAKE)
    text = text.replace('<link name="base"/>', link("base", 3.0, "0.1 0 0.1"))
    system = system_from_urdf(text, ignore=("limit",), floating_base=True)
    m = system.mechanism
    assert m.joint_names[0] == "root_joint" and isinstance(m.bodies[0].joint, Free)
    assert list(system.inputs) == ["j1:effort", "j2:effort", "j3:effort"]
    rng = np.random.default_rng(1)
    q, v = np.array(m.q0()), rng.uniform(0.5, 1.0, m.nv)
    q[3:7] = rng.normal(size=4)
    q[3:7] /= np.linalg.norm(q[3:7])
    q[7:] = 0.4, -0.3, 0.5
    y = system.initial_state(q, v)
    inputs = {"j1:effort": 7.0, "j2:effort": 900.0, "j3:effort": -3.0}
    inputs = {name: jnp.asarray(force) for name, force in inputs.items()}
    now = quick_jit(lambda y: system.at(0.0, y, inputs))(y)

    model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
    R = np.asarray(quat_to_rotation(jnp.asarray(q[3:7])))
    rows = [model.joints[model.getJointId(f"j{i}")].idx_v for i in (1, 2, 3)]
    step, u, tau = np.zeros((3, model.nv))
    step[rows], u[rows] = q[7:], v[6:]
    u[:6] = *(R.T @ v[3:6]), *v[:3]
    tau[rows] = 7.0, 50.0 - 0.3 * v[7] - 0.2, -3.0 - 0.3 * v[8] - 0.2
    q_p = pin.integrate(model, pin.neutral(model), step)
    q_p[:7] = *q[:3], *q[4:7], q[3]
    a = pin.aba(model, model.createData(), q_p, u, tau)
    expected = np.zeros(m.nv)
    expected[6:], expected[:3] = a[rows], a[3:6]
    expected[3:6] = R @ (a[:3] + np.cross(v[:3], R.T @ v[3:6]))
    np.testing.assert_allclose(now.v_dot, expected, rtol=1e-9)


def test_limits_are_stops():
    system = system_from_urdf(robot(on_j2=LIMIT))
    stop = system.parts["j2:stop"]
    assert isinstance(stop, JointStop)
    np.testing.assert_allclose([stop.lower, stop.upper], [-1.0, 1.0])
    carried = 1.5 + 0.4  # the lower arm and its gripper slide
    np.testing.assert_allclose(stop.stiffness, carried / 0.02**2)
    np.testing.assert_allclose(stop.damping, 2 * carried / 0.02)


def test_mimicking_joints_are_coupled_as_pinocchios():
    """Pinocchio takes the follower's coordinate away; here a coupling ties it."""
    text = robot(on_j2='<mimic joint="j1" multiplier="-0.7" offset="0.2"/>')
    m = from_urdf(text)
    assert [loop.name for loop in m.loops] == ["j2:mimic"]
    q1, v1, q3, v3, tau = 0.4, 0.9, -0.3, 0.6, np.array([1.1, -2.0, 0.7])
    q, v = np.array([q1, 0.2 - 0.7 * q1, q3]), np.array([v1, -0.7 * v1, v3])
    assert abs(m.loops[0].residual(jnp.asarray(q[1::-1]), jnp.zeros(()))) < 1e-15
    found = quick_jit(forward_dynamics)(m, *map(jnp.asarray, (q, v, tau)))

    model = pin.buildModelFromXML(text, mimic=True)
    data, at = model.createData(), {n: model.getJointId(n) for n in ("j1", "j3")}
    q_p, v_p, tau_p = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    for name, x, u, f in (("j1", q1, v1, 1.1 - 0.7 * -2.0), ("j3", q3, v3, 0.7)):
        i, k = model.joints[at[name]].idx_q, model.joints[at[name]].idx_v
        q_p[i : i + 2], v_p[k], tau_p[k] = (np.cos(x), np.sin(x)), u, f
    M = np.triu(pin.crba(model, data, q_p))
    M = M + np.triu(M, 1).T
    bias = pin.rnea(model, data, q_p, v_p, np.zeros(model.nv))
    a1, a3 = np.linalg.solve(M, tau_p - bias)
    np.testing.assert_allclose(found, [a1, -0.7 * a1, a3], rtol=1e-9)


def test_a_system_starts_where_its_mimics_hold():
    text = robot(on_j2='<mimic joint="j1" multiplier="2" offset="0.2"/>')
    y = system_from_urdf(text).initial_state(q={"j1": 0.3}, v={"j1": 1.0})
    np.testing.assert_allclose(y.q, [0.3, 0.8, 0.0], atol=1e-12)
    np.testing.assert_allclose(y.v, [1.0, 2.0, 0.0], atol=1e-12)
    assert not system_from_urdf(text, ignore="equality").mechanism.loops


@pytest.mark.parametrize(
    ("mimic", "said"),
    [
        ('<mimic joint="j9"/>', "joint 'j2' mimics unknown joint 'j9'"),
        ('<mimic joint="j2"/>', "joint 'j2' mimics itself"),
        ('<mimic joint="weld"/>', "'weld' is fixed: both must have one freedom"),
        ('<mimic joint="j1" offset="far"/>', "expected a number for offset, got 'far'"),
    ],
)
def test_bad_mimics_are_refused_in_a_sentence(mimic, said):
    with pytest.raises(ValueError, match=said):
        from_urdf(robot(on_j2=mimic))
    if "far" not in mimic:
        assert from_urdf(robot(on_j2=mimic), ignore="equality").nv == 3


ODD = """
<robot name="odd">
  <link name="world"/>
  <link name="thin"><inertial><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.5" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="finger"/><link name="nail"/>
  <joint name="a" type="continuous"><parent link="world"/><child link="thin"/></joint>
  <joint name="b" type="revolute"><parent link="thin"/><child link="finger"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="c" type="fixed"><parent link="finger"/><child link="nail"/></joint>
</robot>"""


def test_odd_inertias_are_taken_with_one_warning():
    """An inertia that no body has is kept; a joint that moves no mass is held."""
    with pytest.warns(UserWarning) as said:
        system = system_from_urdf(ODD)
    assert len(said) == 1
    text = str(said[0].message)
    assert "inertias that no body has are taken as they are: links 'thin'" in text
    assert "joints that move no mass are held fixed: 'b'" in text
    assert list(system.inputs) == ["a:effort"]  # and the world is the world
    assert [body.name for body in system.mechanism.bodies] == ["thin", "finger", "nail"]
    y = system.initial_state()
    now = system.at(0.0, y, {"a:effort": jnp.asarray(0.2)})
    np.testing.assert_allclose(now.v_dot, [0.2 / 0.1])
    with pytest.raises(ValueError, match="strict=True: inertias that no body has"):
        system_from_urdf(ODD, strict=True)


@pytest.mark.filterwarnings("ignore:inertias that no body has")
def test_a_root_called_world_may_float():
    floating = from_urdf(ODD, floating_base=True, ignore=("limit", "saturation"))
    assert [body.name for body in floating.bodies][:2] == ["world_link", "thin"]
    assert floating.joint_names[0] == "root_joint"


def test_a_robot_without_a_joint_stands_still():
    text = f'<robot name="rock">{link("rock", 2.0, "0 0 0")}</robot>'
    assert system_from_urdf(text).mechanism.nv == 0
    assert system_from_urdf(text, floating_base=True).mechanism.nv == 6


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("<robot/>", "the robot has no links"),
        ('<robot><link name="a"/><link name="b"/></robot>', "one root link.*2: a, b"),
        (
            robot().replace('value="2.0"', 'value="-2"'),
            "'upper': mass must be positive",
        ),
        (robot().replace('value="2.0"', 'value="much"'), "expected a number for value"),
        (robot().replace('child link="side"', 'child link="no"'), "unknown link 'no'"),
        (robot().replace('"continuous"', '"rolling"'), "'j1' has type 'rolling'"),
        (robot().replace('axis xyz="0 1 1"', 'axis xyz="0 0 0"'), "must not be zero"),
    ],
)
def test_broken_files_are_refused(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        from_urdf(text)
