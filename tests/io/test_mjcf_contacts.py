"""Geoms of MJCF files touch where MuJoCo lets them, with its friction."""

import jax.numpy as jnp
import numpy as np
import pytest

from djdyn.contact import (
    ContactGroup,
    Cuboid,
    KelvinVoigt,
    Sphere,
    find_contacts,
    rounded_hulls,
    witness,
)
from djdyn.io import system_from_mjcf
from djdyn.multibody.kinematics import forward_kinematics
from djdyn.multibody.spatial import pose_rpy

from ..gradients import quick_jit


mujoco = pytest.importorskip("mujoco")

BALL = """
<mujoco><option gravity="{gravity}"/><worldbody>
  <geom name="floor" type="plane" size="5 5 1" friction="0.2 0.005 0.0001"
    condim="{condim}"/>
  <body name="ball"><freejoint/>
    <geom name="skin" size="0.1" mass="2" friction="0.6" condim="{condim}"
          solref="0.03 0.7"/></body>
</worldbody></mujoco>"""


def on_ball(text, height, v):
    """Our accelerations and MuJoCo's, angular ones first."""
    system, model = system_from_mjcf(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:3] = 0.0, 0.0, height
    data.qvel[:3], data.qvel[3:] = v[3:], v[:3]
    mujoco.mj_forward(model, data)
    y = system.initial_state(data.qpos, jnp.asarray(v))
    return system, system.at(0.0, y), np.roll(data.qacc, 3)


def test_a_contact_answers_with_the_time_constants_of_the_file():
    """Deeper than `solimp`'s width, without friction and weight, as MuJoCo's."""
    text = BALL.format(gravity="0 0 0", condim=1)
    _, now, expected = on_ball(text, 0.095, (0.0, 0, 0, 0.3, 0, -0.02))
    np.testing.assert_allclose(now.v_dot, expected, rtol=0, atol=1e-3)
    assert expected[5] > 5.0


def test_friction_is_the_larger_of_two_and_slows_a_sliding_ball():
    text = BALL.format(gravity="0 0 -9.81", condim=3)
    system, now, _ = on_ball(text, 0.09, (0.0, 0, 0, 3.0, 0, 0))
    group = system.parts["ground_contact"]
    assert isinstance(group, ContactGroup) and list(group.solids) == ["geom:skin"]
    normal = now.signals["ground_contact.normal_force"]
    np.testing.assert_allclose(now.v_dot[3], -0.6 * normal / 2, rtol=1e-5)


def test_contacts_can_be_left_out():
    text = BALL.format(gravity="0 0 -9.81", condim=3)
    assert not system_from_mjcf(text, contacts=False).parts
    assert not system_from_mjcf(text, ignore=("contact",)).parts


CUBE = " ".join(f"{x} {y} {z}" for x in (-1, 1) for y in (-1, 1) for z in (-1, 1))
HEAP = f"""
<mujoco><asset><mesh name="cube" vertex="{CUBE}" scale="0.1 0.1 0.1"/></asset>
<worldbody>
  <geom name="floor" type="plane" size="5 5 1"/>
  <body name="base" pos="0 0 0.5"><freejoint/>
    <geom name="hub" type="mesh" mesh="cube" mass="1"/>
    <body name="arm" pos="0 0 0.3"><joint name="j1" axis="0 1 0"/>
      <geom name="link" type="capsule" fromto="0 0 0 0 0 0.3" size="0.04" mass="0.5"/>
      <body name="hand" pos="0 0 0.3"><joint name="j2" axis="0 1 0"/>
        <geom name="palm" type="box" size="0.05 0.05 0.05" mass="0.3"/></body></body>
    <body name="leg" pos="0.5 0 0"><joint name="j3" axis="0 1 0"/>
      <geom name="foot" size="0.05" mass="0.2" friction="0.3"/></body>
  </body>
  <body name="toy" pos="3 0 0.5"><freejoint/>
    <geom name="block" type="mesh" mesh="cube" mass="1"/></body>
</worldbody>
<contact><exclude body1="hand" body2="toy"/></contact></mujoco>"""


def test_filters_say_which_pairs_may_touch():
    """The pairs are those that MuJoCo finds when all geoms are in one place."""
    system, model = system_from_mjcf(HEAP), mujoco.MjModel.from_xml_string(HEAP)
    ours = set()
    for name, part in system.parts.items():
        assert isinstance(part, ContactGroup), name
        ours |= {tuple(sorted(x[5:] for x in pair)) for pair in part.allowed or ()}
    assert ("foot", "hub") not in ours  # a child and its parent
    assert ("block", "palm") not in ours  # excluded
    model.body_pos[1:] = 0.0
    data = mujoco.MjData(model)
    data.qpos[2] = data.qpos[12] = data.qpos[10] = 0.0
    data.qpos[7:10] = 0.0
    mujoco.mj_forward(model, data)
    name = lambda g: model.geom(int(g)).name
    theirs = {tuple(sorted(map(name, c.geom))) for c in data.contact}
    assert theirs <= ours
    assert ours == {
        ("block", "floor"),
        ("block", "foot"),
        ("block", "hub"),
        ("block", "link"),
        ("floor", "foot"),
        ("floor", "hub"),
        ("floor", "link"),
        ("floor", "palm"),
        ("foot", "link"),
        ("foot", "palm"),
        ("hub", "palm"),
    }


def test_shapes_of_many_kinds_touch_in_one_group():
    """The palm in the hub, at the depth that both as boxes have."""
    system = system_from_mjcf(HEAP)
    group = system.parts["contact"]
    assert isinstance(group, ContactGroup) and isinstance(group.normal, KelvinVoigt)
    y = system.initial_state(q={"j1": np.pi, "toy": [3.0, 0, 0.5, 1, 0, 0, 0]})

    @quick_jit
    def look(q):
        world = forward_kinematics(system.mechanism, q)
        palm, hub = (world.pose(f"geom:{name}") for name in ("palm", "hub"))
        boxes = witness(Cuboid((0.1,) * 3), palm, Cuboid((0.2,) * 3), hub)
        return group(world.t, {}, world, {}).outputs, boxes.depth[0]

    outputs, depth = look(y.q)
    # MuJoCo keeps the vertices of meshes in single precision.
    np.testing.assert_allclose(outputs["depth"], depth, rtol=1e-6)
    np.testing.assert_allclose(depth, 0.15)
    np.testing.assert_allclose(
        outputs["normal_force"], depth * group.normal.stiffness, rtol=1e-6
    )


def test_rounded_hulls_are_the_solids_they_come_from():
    solids = {"a": Cuboid((0.2, 0.3, 0.4)), "b": Sphere(0.1)}
    hulls = rounded_hulls(solids)
    X = pose_rpy((0.0, 0.0, 0.0), (0.2, 0.1, 0.4)), pose_rpy((0.17, 0, 0.02), (0, 0, 0))
    both = quick_jit(
        lambda X, Y: [find_contacts(s["a"], X, s["b"], Y) for s in (hulls, solids)]
    )
    for at in (X, (X[0], pose_rpy((0.5, 0.1, 0.3), (0, 0, 0)))):
        found, expected = both(*at)
        np.testing.assert_allclose(found.depth, expected.depth, atol=1e-12)
        np.testing.assert_allclose(found.p, expected.p, atol=1e-12)
    for name, solid in solids.items():
        for key, value in solid.inertia(2.0).items():
            np.testing.assert_allclose(hulls[name].inertia(2.0)[key], value)


def test_shapes_without_a_counterpart_are_refused():
    text = HEAP.replace('name="palm" type="box"', 'name="palm" type="ellipsoid"')
    with pytest.raises(ValueError, match=r"contact of geom 'palm' \(of this kind"):
        system_from_mjcf(text)
