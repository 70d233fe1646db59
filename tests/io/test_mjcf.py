"""MJCF files become the mechanisms that MuJoCo simulates, or are refused by name."""

import sys

import jax.numpy as jnp
import numpy as np
import pytest

from djdyn.io import from_mjcf
from djdyn.multibody.dynamics import forward, inverse
from djdyn.multibody.joints import Fixed, Free, Prismatic, Revolute, Spherical
from djdyn.multibody.kinematics import forward_kinematics

from ..gradients import quick_jit
from ..machines import DATA


mujoco = pytest.importorskip("mujoco")

RICH = """
<mujoco>
  <compiler angle="radian"/>
  <option gravity="0.3 -0.2 -9.7"><flag contact="disable"/></option>
  <worldbody>
    <site name="mark" pos="1 2 3"/>
    <body name="base" pos="0.3 0.2 1.5" quat="0.8 0.1 -0.3 0.5">
      <joint type="free" name="float" armature="0.4"/>
      <geom type="box" size="0.2 0.1 0.3" mass="3" pos="0.05 0 0.1"
            quat="0.9 0.2 0.1 0.3"/>
      <body name="turret" pos="0.1 -0.2 0.3" quat="0.6 0.5 -0.1 0.2">
        <joint name="lift" type="slide" axis="0.2 0.1 1" ref="0.15"/>
        <joint name="yaw" type="hinge" axis="0 0.3 1" pos="0.1 0.2 -0.1" ref="0.4"
               armature="0.2"/>
        <joint name="pitch" type="hinge" axis="1 0.2 0" pos="-0.05 0.1 0.2"/>
        <inertial pos="0.1 0.02 -0.1" quat="0.7 0.1 0.4 0.2" mass="1.4"
                  diaginertia="0.03 0.04 0.05"/>
        <site name="eye" pos="0.2 0.1 0.4" quat="0.5 0.5 0.1 0.2"/>
        <body name="bracket" pos="0.3 0.1 0" quat="0.9 0 0.4 0">
          <geom type="capsule" size="0.05 0.2" mass="0.7"/>
          <body name="ball" pos="0.1 0 0.2">
            <joint name="socket" type="ball" pos="0.1 -0.1 0.05" armature="0.03"/>
            <geom type="ellipsoid" size="0.1 0.2 0.15" mass="0.9" pos="0 0.1 0"/>
            <site name="tip" pos="0 0.2 0.1"/>
          </body>
        </body>
      </body>
      <body pos="0 -0.4 0">
        <joint type="slide" axis="1 1 0" ref="-0.3"/>
        <joint type="hinge" axis="0 1 0"/>
        <geom size="0.1" mass="0.5"/>
      </body>
    </body>
    <body name="post" pos="2 0 0"><geom size="0.1" mass="4"/></body>
  </worldbody>
</mujoco>
"""


@quick_jit
def evaluate(mechanism, q, v, tau):
    world = forward_kinematics(mechanism, q, v)
    v_dot = forward(world, tau)
    return world, v_dot, inverse(world, v_dot)


def compare(text_or_path, q=None, v=None, tau=None, **options):
    """Accelerations, body frames and sites at a state are MuJoCo's."""
    mechanism = from_mjcf(text_or_path, **options)
    is_text = isinstance(text_or_path, str)
    load = mujoco.MjModel.from_xml_string if is_text else mujoco.MjModel.from_xml_path
    model = load(text_or_path if is_text else str(text_or_path))
    rng, data = np.random.default_rng(0), mujoco.MjData(model)
    step, speeds, forces = rng.normal(size=(3, model.nv))
    mujoco.mj_integratePos(model, data.qpos, step, 1.0)
    q = data.qpos.copy() if q is None else np.array(q)
    v, tau = speeds if v is None else np.array(v), forces if tau is None else tau
    order = np.arange(model.nv)  # of our speeds in MuJoCo's
    if model.njnt and model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
        order[:6] = [3, 4, 5, 0, 1, 2]
    data.qpos[:], data.qvel[order], data.qfrc_applied[order] = q, v, tau
    mujoco.mj_forward(model, data)
    world, v_dot, back = evaluate(mechanism, *map(jnp.asarray, (q, v, tau)))
    size = np.abs(data.qacc).max()
    np.testing.assert_allclose(v_dot, data.qacc[order], rtol=0, atol=1e-10 * size)
    np.testing.assert_allclose(back, tau, rtol=0, atol=1e-9 * (1 + size))
    for i in range(1, model.nbody):
        name = model.body(i).name or f"body{i}"
        moved = any(frame.name == f"{name}:origin" for frame in mechanism.frames)
        X = world.pose(f"{name}:origin" if moved else name)
        np.testing.assert_allclose(X.p, data.xpos[i], atol=1e-12)
        np.testing.assert_allclose(np.ravel(X.R), data.xmat[i], atol=1e-12)
    for i in range(model.nsite):
        X = world.pose(model.site(i).name)
        np.testing.assert_allclose(X.p, data.site_xpos[i], atol=1e-12)
        np.testing.assert_allclose(np.ravel(X.R), data.site_xmat[i], atol=1e-12)
    return mechanism


def test_seven_joint_arm_accelerates_as_in_mujoco():
    arm = compare(
        DATA / "arm7.xml",
        q=[0.1, -0.5, 0.2, -1.8, 0.3, 1.2, 0.4],
        v=[0.2, -0.1, 0.3, 0.1, -0.2, 0.3, 0.1],
        tau=np.array([1.0, -20.0, 1.0, 10.0, 0.5, 1.0, 0.1]),
    )
    assert arm.joint_names == ("j1", "j2", "j3", "j4", "j5", "j6", "j7")
    assert [body.name for body in arm.bodies] == [f"l{i}" for i in range(1, 8)]


def test_double_pendulum_accelerates_as_in_mujoco():
    compare(DATA / "dpend.xml", q=[2.0, 0.5], v=[0.0, 0.0], tau=np.zeros(2))


def test_every_joint_offset_and_reference_is_honoured():
    machine = compare(RICH)
    names = [body.name for body in machine.bodies]
    assert names == [
        "base",
        "turret:lift",
        "turret:yaw",
        "turret",
        "bracket",
        "ball",
        "body5:joint1",
        "body5",
        "post",
    ]
    assert machine.joint_names == (
        "float",
        "lift",
        "yaw",
        "pitch",
        "bracket",
        "socket",
        "joint1",
        "body5",
        "post",
    )
    assert [type(body.joint) for body in machine.bodies] == [
        Free,
        Prismatic,
        Revolute,
        Revolute,
        Fixed,
        Spherical,
        Prismatic,
        Revolute,
        Fixed,
    ]
    frames = [frame.name for frame in machine.frames]
    assert frames == ["turret:origin", "ball:origin", "mark", "eye", "tip"]
    np.testing.assert_allclose(machine.gravity_W, [0.3, -0.2, -9.7])


def test_path_and_text_give_the_same(tmp_path):
    (tmp_path / "link.xml").write_text(
        '<mujoco><body name="b"><joint/><geom size="0.1"/></body></mujoco>'
    )
    (tmp_path / "whole.xml").write_text(
        '<mujoco><worldbody><include file="link.xml"/></worldbody></mujoco>'
    )
    for path in (tmp_path / "whole.xml", str(tmp_path / "whole.xml")):
        assert from_mjcf(path).bodies[0].name == "b"


# What a mechanism cannot hold ---------------------------------------------------------


def model(joint="", body="", after="", option="") -> str:
    """Two links that do not touch, with something added."""
    return f"""
    <mujoco><option {option}/>
      <worldbody>
        <body name="upper" {body}>
          <joint name="elbow" axis="0 1 0" {joint}/>
          <geom name="shell" size="0.1"/>
          <body name="lower" pos="0 0 1">
            <joint name="wrist" axis="0 1 0"/>
            <geom size="0.1" mass="1"/>
          </body>
        </body>
      </worldbody>
      {after}
    </mujoco>"""


FLOOR = """<worldbody><geom name="floor" type="plane" size="1 1 1"/></worldbody>"""
CASES = [
    ("damping", "joint 'elbow'", {"joint": 'damping="0.1"'}),
    ("stiffness", "joint 'elbow'", {"joint": 'stiffness="2"'}),
    ("frictionloss", "joint 'elbow'", {"joint": 'frictionloss="0.3"'}),
    ("limit", "joint 'elbow'", {"joint": 'range="-10 10" limited="true"'}),
    ("saturation", "joint 'elbow'", {"joint": 'actuatorfrcrange="-1 1"'}),
    ("gravcomp", "body 'upper'", {"body": 'gravcomp="1"'}),
    ("fluid", "the medium", {"option": 'density="1.2"'}),
    ("fluid", "the medium", {"option": 'viscosity="1e-3"'}),
    ("contact", "geom 'floor', geom 'shell', geom number 2 on body 'lower'", FLOOR),
    ("contact", "geom 'ceiling', geom 'shell'", "<contact>pair</contact>"),
    (
        "equality",
        "equality 'gears' (tendon)",
        '<tendon><fixed name="band"><joint joint="elbow" coef="1"/></fixed></tendon>'
        '<equality><tendon name="gears" tendon1="band"/></equality>',
    ),
    (
        "tendon",
        "tendon 'band'",
        '<tendon><fixed name="band" stiffness="1"><joint joint="elbow" coef="1"/>'
        "</fixed></tendon>",
    ),
    (
        "actuator",
        "actuator 'servo'",
        '<actuator><position name="servo" joint="elbow" kp="3"/></actuator>',
    ),
    (
        "actuator",
        "actuator 'geared'",
        '<actuator><motor name="geared" joint="elbow" gear="2"/></actuator>',
    ),
    (
        "actuator",
        "actuator number 0",
        '<actuator><general joint="elbow" dyntype="integrator"/></actuator>',
    ),
    (
        "saturation",
        "actuator 'weak'",
        '<actuator><motor name="weak" joint="elbow" ctrlrange="-1 1"/></actuator>',
    ),
    (
        "mocap",
        "body 'hand'",
        '<worldbody><body name="hand" mocap="true"/></worldbody>',
    ),
]


def text_of(change) -> str:
    if isinstance(change, dict):
        return model(**change)
    pair = (
        '<worldbody><geom name="ceiling" size="0.1" contype="0" conaffinity="0" '
        'pos="0 0 9"/></worldbody>'
        '<contact><pair geom1="shell" geom2="ceiling"/></contact>'
    )
    return model(after=change.replace("<contact>pair</contact>", pair))


@pytest.mark.parametrize("kind, culprit, change", CASES)
def test_what_a_mechanism_cannot_hold_is_refused_by_name(kind, culprit, change):
    text = text_of(change)
    with pytest.raises(ValueError) as refusal:
        from_mjcf(text)
    assert f"the model has {kind} of {culprit}, which" in str(refusal.value)
    assert f"pass ignore=('{kind}',)" in str(refusal.value)
    without = from_mjcf(text, ignore=(kind,))
    assert without.joint_names[:2] == ("elbow", "wrist")


def test_all_culprits_are_named_at_once():
    text = model(joint='damping="0.1" stiffness="0.1"', body='gravcomp="1"')
    sentence = (
        "damping of joint 'elbow'; stiffness of joint 'elbow'; gravcomp of body 'upper'"
    )
    with pytest.raises(ValueError, match=sentence):
        from_mjcf(text)
    with pytest.raises(ValueError, match="has gravcomp of body 'upper', which"):
        from_mjcf(text, ignore=("damping", "stiffness"))


@pytest.mark.parametrize(
    "flags, change",
    [
        ('constraint="disable"', {"joint": 'range="-1 1" frictionloss="1"'}),
        ('limit="disable"', {"joint": 'range="-1 1"'}),
        ('frictionloss="disable"', {"joint": 'frictionloss="1"'}),
        ('contact="disable"', {"after": FLOOR}),
        ('gravity="disable"', {"body": 'gravcomp="1"'}),
        (
            'actuation="disable"',
            {"after": '<actuator><position joint="elbow"/></actuator>'},
        ),
    ],
)
def test_what_a_flag_switches_off_is_accepted(flags, change):
    text = model(**change).replace("<option />", f"<option><flag {flags}/></option>")
    assert flags in text
    mechanism = from_mjcf(text)
    down = 0.0 if "gravity" in flags else -9.81
    np.testing.assert_allclose(mechanism.gravity_W, [0.0, 0.0, down])


@pytest.mark.parametrize(
    "after",
    [
        '<actuator><motor joint="elbow"/><motor joint="elbow" gear="1"/></actuator>',
        '<tendon><fixed name="bare"><joint joint="elbow" coef="1"/></fixed></tendon>',
        '<equality><weld body1="upper" active="false"/></equality>',
        '<contact><exclude body1="world" body2="upper"/></contact>',
        '<sensor><jointpos joint="elbow"/></sensor>',
    ],
)
def test_what_has_no_effect_is_accepted(after):
    assert from_mjcf(model(after=after)).nv == 2


def test_neighbours_that_mujoco_never_lets_touch_are_no_contact():
    text = model()
    assert from_mjcf(text).nv == 2
    far = text.replace("<worldbody>", '<worldbody><geom name="post" size="0.1"/>', 1)
    with pytest.raises(ValueError, match="contact of geom 'post'"):
        from_mjcf(far)


def test_excluded_bodies_do_not_touch():
    link = '<body name="{}" pos="0 0 1"><joint/><geom size="0.1"/>{}</body>'
    chain = link.format("a", link.format("b", link.format("c", "")))
    text = "<mujoco><worldbody>{}</worldbody>{}</mujoco>"
    with pytest.raises(ValueError, match="geom number 0 on body 'a', geom number 2 on"):
        from_mjcf(text.format(chain, ""))
    apart = '<contact><exclude body1="a" body2="c"/></contact>'
    assert from_mjcf(text.format(chain, apart)).nv == 3
    flag = '<option><flag filterparent="disable"/></option>'
    with pytest.raises(ValueError, match="geom number 1 on body 'b'"):
        from_mjcf(text.format(chain, apart + flag))


def test_one_kind_needs_no_tuple():
    assert from_mjcf(model(joint='damping="0.1"'), ignore="damping").nv == 2


def test_only_kinds_that_exist_can_be_ignored():
    with pytest.raises(ValueError, match="cannot ignore 'friction'; what can be"):
        from_mjcf(model(), ignore=("friction",))


def test_names_that_clash_are_told_apart():
    text = """
    <mujoco><worldbody>
      <body name="a"><joint name="b"/><geom size="0.1"/><site name="a"/>
        <body name="b" pos="0 0 1"><geom size="0.1"/></body>
      </body>
    </worldbody></mujoco>"""
    mechanism = from_mjcf(text)
    assert mechanism.joint_names == ("b", "b:joint")
    assert [frame.name for frame in mechanism.frames] == ["site:a"]


def test_urdf_is_pointed_to_its_own_reader():
    with pytest.raises(ValueError, match="read it with `from_urdf`"):
        from_mjcf("<robot name='r'/>")


def test_missing_mujoco_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ImportError, match=r"pip install djdyn\[formats\]"):
        from_mjcf(model())


def test_broken_text_is_said_to_be_so():
    with pytest.raises(ValueError, match="not well-formed XML: mismatched tag"):
        from_mjcf("<mujoco><worldbody></mujoco>")


def test_missing_file_is_named():
    with pytest.raises(FileNotFoundError, match="nowhere"):
        from_mjcf("nowhere.xml")
