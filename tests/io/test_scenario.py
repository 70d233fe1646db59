"""Scenario files: what they build, and what they say when they are wrong."""

import inspect
import shutil
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import controllers
import djdyn
from controllers import JointPID, Reference, WinchPID
from djdyn.io.scenario import read_scenario
from djdyn.io.scenario_table import ScenarioError
from djdyn.marine.member import MorisonMember
from djdyn.marine.water import Drag
from djdyn.parts import Winch
from experiments.machine.kinds import KINDS as ALL_KINDS

from ..machines import DATA


EXAMPLE = Path("experiments/scenarios/double_pendulum.toml")
KINDS = (JointPID, Reference)


def test_the_example_builds_what_it_says():
    scenario = read_scenario(EXAMPLE, KINDS)
    system = scenario.system
    assert system.mechanism.joint_names == ("deck", "shoulder", "elbow")
    assert set(system.parts) == {"bearings", "target", "pid", "motor"}
    assert djdyn.get_parameters(system, "pid.kp") == 60.0
    assert djdyn.get_parameters(system, "upper.I_BC")[2, 2] == 0.001
    assert jnp.allclose(scenario.initial_state.q, jnp.array([0.3, 0.8]))
    assert scenario.simulation["saveat"][-1] == 10.0
    assert scenario.frames == ("tip",)


MINIMAL = """
[simulation]
t1 = 1.0
[[body]]
name = "rod"
joint = { type = "revolute", axis = [0, 1, 0], name = "hinge" }
mass = 1.0
com = [0, 0, -1]
"""


def written(tmp_path, text: str) -> Path:
    path = tmp_path / "machine.toml"
    path.write_text(text)
    return path


def test_controllers_may_be_a_sample_late(tmp_path):
    late = MINIMAL.replace("t1 =", "control_period = 0.1\ncontrol_delay = true\nt1 =")
    found = read_scenario(written(tmp_path, late))
    assert found.simulation["control_delay"] is True
    assert djdyn.simulate(found.system, **found.simulation).ok


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("mass = 1.0", "mass = -1.0", r"body 'rod': .*mass must be positive"),
        ("mass = 1.0", "mas = 1.0", r"body.mas: unknown key; did you mean mass"),
        ("mass = 1.0", 'mass = "heavy"', r"body 'rod'.mass: expected numbers"),
        ("mass = 1.0", "", r"body: key 'mass' is missing"),
        ("[0, 0, -1]", "[0, 0]", r"body 'rod'.com: expected 3 numbers"),
        ("revolute", "revolving", r"joint.type: unknown type 'revolving'"),
        ("t1 = 1.0", "t1 = 1.0\ntol = 1e-3", r"simulation.tol: unknown key"),
        ("t1 = 1.0", "rtol = 1e-3", r"simulation: key 't1' is missing"),
        ("t1 = 1.0", "t1 = 1.0\ncontrol_delay = 1", r"control_delay: is true or false"),
        ("[simulation]", "[simulatoin]", r"simulatoin: unknown key; did you mean sim"),
        ("[[body]]", "[[body", r"not a TOML file"),
        ("com =", 'parent = "moon"\ncom =', r"hangs on unknown body 'moon'"),
        ("com =", "inertia = [1, 1, 3]\ncom =", r"triangle inequality"),
    ],
)
def test_mistakes_in_a_mechanism_are_said(tmp_path, old, new, said):
    with pytest.raises(ScenarioError, match=r"machine\.toml: .*" + said):
        read_scenario(written(tmp_path, MINIMAL.replace(old, new, 1)), KINDS)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('[part.s]\ntype = "Spring"', r"part.s.type: unknown type 'Spring'"),
        ('[part.s]\ntype = "JointSpring"', r"part.s: key 'joint' is missing"),
        (
            '[part.s]\ntype = "JointSpring"\njoint = "hinge"\nstifness = 3',
            r"part.s.stifness: unknown key; did you mean stiffness",
        ),
        (
            '[part.s]\ntype = "JointSpring"\njoint = "hinge"\nstiffness = -3',
            r"part.s: JointSpring.stiffness must be at least 0",
        ),
        (
            '[part.s]\ntype = "JointSpring"\njoint = "elbow"\nstiffness = 3',
            r"part 's': unknown joint 'elbow'",
        ),
        (
            '[part.m]\ntype = "JointActuator"\njoints = ["hinge"]\ncommand = "pid.u"',
            r"part 'm' reads unknown signal 'pid.u'",
        ),
        ("[initial]\nq = { elbow = 1.0 }", r"unknown joint 'elbow'"),
        ('[output]\nframes = ["tip"]', r"unknown frame 'tip'"),
        ('[output]\nsignals = ["pid.u"]', r"unknown signal 'pid.u'"),
        ('[[shape]]\ntype = "cone"', r"shape: expected a table with a type"),
        ('[[frame]]\nname = "tip"\nbody = "rode"', r"unknown body 'rode'"),
    ],
)
def test_mistakes_elsewhere_are_said(tmp_path, more, said):
    with pytest.raises(ScenarioError, match=r"machine\.toml: .*" + said):
        read_scenario(written(tmp_path, MINIMAL + more), KINDS)


def test_two_parts_of_one_name_are_refused(tmp_path):
    part = '[part.s]\ntype = "JointFriction"\njoint = "hinge"\n'
    with pytest.raises(ScenarioError, match="not a TOML file"):
        read_scenario(written(tmp_path, MINIMAL + part + part), KINDS)
    with pytest.raises(ScenarioError, match="two parts are called 's'"):
        other = part.replace("part", "controller")
        read_scenario(written(tmp_path, MINIMAL + part + other), KINDS)


def test_mechanisms_from_other_files(tmp_path):
    (tmp_path / "arm.xml").write_text(Path("tests/data/dpend.xml").read_text())
    text = '[simulation]\nt1 = 1.0\n[mechanism]\nmjcf = "arm.xml"\n'
    scenario = read_scenario(written(tmp_path, text))
    assert scenario.system.mechanism.nv == 2
    with pytest.raises(ScenarioError, match="give the bodies, or one of"):
        read_scenario(written(tmp_path, text + MINIMAL.partition("1.0")[2]))


def test_lifting_gear_from_a_file(tmp_path):
    """Water around all parts, an irregular sea, sensors, and a winch's controllers."""
    file = tmp_path / "gear.toml"
    file.write_text(GEAR)
    scenario = read_scenario(file, (*KINDS, Winch, WinchPID))
    drag = scenario.system.parts["drag"]
    assert isinstance(drag, Drag)
    assert float(drag.fluid.water_density) == 1000.0
    assert (
        len(djdyn.get_parameters(scenario.system, "deck.joint.motion.height.amplitude"))
        == 30
    )
    leg = scenario.system.parts["leg"]
    assert isinstance(leg, MorisonMember) and leg.ground is not None
    assert float(leg.ground.height) == -30.0
    now = scenario.system.at(0.0, scenario.initial_state)
    assert jnp.allclose(now.signals["lift.lift"], 1000.0 * 0.1 * 9.81)
    with pytest.raises(ScenarioError, match=r"gear.toml: environment.fluid.*densty"):
        file.write_text(GEAR.replace("water_density", "water_densty"))
        read_scenario(file, (*KINDS, Winch, WinchPID))


GEAR = """
[simulation]
t1 = 1.0
[environment]
fluid = { type = "Fluid", water_density = 1000.0, currents = [[0.5, 0, 0]] }
ground = { type = "SeaBed", height = -30.0 }
[[body]]
name = "deck"
mass = 1.0
[body.joint]
type = "prescribed"
[body.joint.motion]
type = "Heave"
height = { type = "jonswap", height = 2.0, period = 8.0, seed = 3, components = 30 }
[[body]]
name = "load"
joint = { type = "prismatic", axis = [0, 0, 1] }
mass = 200.0
[part.lift]
type = "Buoyancy"
frame = "load"
volume = 0.1
[part.drag]
type = "Drag"
frame = "load"
area = [1, 1, 2]
[part.leg]
type = "MorisonMember"
frame = "load"
length = 2.0
diameter = 0.1
strips = 1
[part.sheave]
type = "FrameSensor"
frame = "deck"
[part.payload]
type = "FrameSensor"
frame = "load"
[controller.order]
type = "Reference"
path = { type = "Constant", value = -10.0 }
[controller.pid]
type = "WinchPID"
measured = "payload.height"
wanted = "order.value"
deck = "sheave.climb"
kp = 0.5
[controller.winch]
type = "Winch"
target = "pid.u"
"""


HOIST = """
[simulation]
t1 = 1.0
[[body]]
name = "load"
joint = { type = "prismatic", axis = [0, 0, 1] }
mass = 100.0
[part.line]
type = "Cable"
rope = { type = "CableProperties", linear_density = 0.5, EA = 1e6 }
length = 10.0
mesh = { type = "graded", elements = 4, power = 1.5 }
tail = { type = "PinnedEnd", frame = "load" }
head = { type = "FixedEnd", point = [0, 0, 10], payout = "speed" }
masses = [{ type = "PointMass", position = 4.0, mass = 2.0 }]
[input]
speed = 0.1
"""


def test_cables_in_files(tmp_path):
    system = read_scenario(written(tmp_path, HOIST)).system
    assert djdyn.get_parameters(system, "line.rope.EA") == 1e6
    assert system.parts["line"].mesh[1] == 0.125
    assert system.parts["line"].masses[0].mass == 2.0
    bad = HOIST.replace('frame = "load"', 'frame = "lode"')
    with pytest.raises(ScenarioError, match=r"machine.toml: .*'lode'"):
        read_scenario(written(tmp_path, bad))


CIRCUIT = """
[simulation]
t1 = 0.1
solver = "rodas4"
[[body]]
name = "mass"
joint = { type = "prismatic", axis = [1, 0, 0], name = "slide" }
mass = 1000.0
[input]
u = 1.0
[part.oil]
type = "Circuit"
oil = { type = "Oil", bulk_modulus = 1e9 }
[part.oil.parts]
P = { type = "Supply", pressure = 200e5 }
T = { type = "Tank" }
A = { type = "Volume", volume = 1e-4, pressure = 100e5 }
B = { type = "Volume", volume = 1e-4, pressure = 100e5 }
[part.oil.parts.valve]
type = "ServoValve"
supply = "P"
tank = "T"
a = "A"
b = "B"
command = "u"
gain = 1e-7
[part.oil.parts.ram]
type = "HydraulicCylinder"
a = "A"
b = "B"
linkage = { type = "OnJoint", joint = "slide" }
friction = { type = "SealStribeck", viscous = 2000.0 }
area_a = 2e-3
area_b = 2e-3
stroke = 1.0
retracted = -0.5
"""


def test_a_circuit_in_a_file(tmp_path):
    scenario = read_scenario(written(tmp_path, CIRCUIT))
    assert djdyn.get_parameters(scenario.system, "oil.valve.gain") == 1e-7
    assert djdyn.get_parameters(scenario.system, "oil.ram.friction.viscous") == 2000.0
    run = djdyn.simulate(
        scenario.system, 0.1, scenario.initial_state, solver="rodas4", saveat=[0.0, 0.1]
    )
    assert run.y.q[-1, 0] > 0
    bad = CIRCUIT.replace("gain = 1e-7", "gain = -1e-7")
    said = r"part.oil.parts.valve: ServoValve.gain must be at least 0"
    with pytest.raises(ScenarioError, match=said):
        read_scenario(written(tmp_path, bad))
    bad = CIRCUIT.replace('a = "A"', 'a = "Z"', 1)
    with pytest.raises(ScenarioError, match=r"part.oil: port 'a' of 'valve' is conn"):
        read_scenario(written(tmp_path, bad))


CUBE = """
[simulation]
t1 = 0.5
[[body]]
name = "cube"
joint = { type = "free" }
mass = 0.37
inertia = [8e-4, 8e-4, 8e-4]
[part.floor]
type = "Contact"
on = "cube"
shape = { type = "Cuboid", size = [0.1, 0.1, 0.1] }
against = "world"
surface = { type = "HalfSpace" }
normal = { type = "HuntCrossley", stiffness = 1e4, dissipation = 0.5, exponent = 1.0 }
friction = { type = "LuGre", mu = 0.3, mu_static = 0.4, stiffness = 4000.0 }
"""


def test_contact_is_data(tmp_path):
    found = read_scenario(written(tmp_path, CUBE))
    assert djdyn.get_parameters(found.system, "floor.friction.mu_static") == 0.4
    assert found.initial_state.parts["floor"]["bristles"].shape == (8, 3)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"LuGre"', '"Newton"', r"floor.friction.type: unknown type 'Newton'; .*LuGre"),
        ('"HuntCrossley"', '"Hook"', r"floor.normal.type: unknown type 'Hook'"),
        ("stiffness = 1e4", "stiffness = -1", r"normal: .*stiffness must be above 0"),
        ('"Cuboid", size = [0.1, 0.1, 0.1]', '"HalfSpace"', r"shape( is a solid|.)"),
        ('against = "world"', 'against = "moon"', r"unknown frame 'moon'"),
    ],
)
def test_what_is_wrong_with_a_contact_is_named(tmp_path, old, new, said):
    with pytest.raises(ScenarioError, match=said):
        read_scenario(written(tmp_path, CUBE.replace(old, new)))


IN_A_BOWL = """
[simulation]
t1 = 1.0

[[body]]
name = "rod"
mass = 0.2
inertia = [1e-3, 1e-3, 1e-3]
[body.joint]
name = "seat"
type = "point_contact"
radius = 0.01
surface = { type = "HollowSphere", radius = 0.05 }

[[body]]
name = "disc"
mass = 0.2
inertia = [1e-3, 1e-3, 1e-3]
[body.joint]
type = "planar_point_contact"
radius = 0.01
surface = { type = "HollowCircle", radius = 0.05 }

[[body]]
name = "ball"
joint = { type = "free" }
mass = 0.1
inertia = [1e-5, 1e-5, 1e-5]

[part.rub]
type = "PointContactFriction"
joint = "seat"
coulomb = 0.01

[part.touch]
type = "RigidContact"
on = "ball"
shape = { type = "Sphere", radius = 0.01 }
against = "world"
surface = { type = "Bowl", radius = 0.05 }
mu = 0.2
one_sided = true

[initial]
q = { ball = [0, 0, -0.04, 1, 0, 0, 0] }
"""


def test_balls_in_bowls_in_a_file(tmp_path):
    """Point contacts and rigid contact; a ball at rest presses with its weight."""
    scenario = read_scenario(written(tmp_path, IN_A_BOWL))
    system = scenario.system
    assert system.mechanism.nv == 5 + 2 + 6
    assert djdyn.get_parameters(system, "rod.joint.surface.radius") == 0.05
    signals = system.at(0.0, scenario.initial_state).signals
    assert jnp.allclose(signals["touch.gap"], 0.0, atol=1e-15)
    assert jnp.allclose(signals["touch.normal_force"], 0.1 * 9.81, rtol=1e-5)
    tight = IN_A_BOWL.replace('Sphere", radius = 0.05', 'Sphere", radius = 0.005')
    with pytest.raises(ScenarioError, match=r"'rod'\.joint: a ball of 0.01 m "):
        read_scenario(written(tmp_path, tight))


HYDRAULIC_JOINT = """
[simulation]
t1 = 1.0
[[body]]
name = "arm"
joint = { type = "revolute", axis = [0, 1, 0] }
mass = 1.0
inertia = [1, 1, 1]
[input]
target = [0.5]
[part.oil]
type = "Circuit"
oil = { type = "Oil" }
[part.oil.parts]
P = { type = "Supply", pressure = 187e5 }
T = { type = "Tank" }
A = { type = "Volume", volume = 1e-4, pressure = 90e5 }
B = { type = "Volume", volume = 1e-4, pressure = 90e5 }
motor = { type = "Motor", a = "A", b = "B", joint = "arm", displacement = 1e-4 }
[part.oil.parts.valve]
type = "ServoValve"
supply = "P"
tank = "T"
a = "A"
b = "B"
command = "control.u"
gain = 1e-7
full = 1e-5
[controller.path]
type = "ReferenceModel"
target = "target"
start = [0.0]
[controller.noise]
type = "multisine"
signal = "path.value"
rate = "path.rate"
deviation = 1e-5
others = ["path.acceleration", "path.jerk"]
[controller.control]
type = "Backstepping"
joints = ["arm"]
reference = "noise"
pressures = [["oil.A.bar", "oil.B.bar"]]
displacement = [1e-4]
triangles = [{}]
kp = 100.0
kd = 20.0
ki = 0.0
k3 = 50.0
"""


def test_every_controller_may_be_named(tmp_path):
    system = read_scenario(written(tmp_path, HYDRAULIC_JOINT), ALL_KINDS).system
    signals = system.at(0.0, system.initial_state()).signals
    assert jnp.isfinite(signals["control.u"]).all()
    abstract = djdyn.AbstractSignalPart
    parts = [x for x in vars(controllers).values() if inspect.isclass(x)]
    named = {k for k in parts if issubclass(k, abstract)} - {controllers.Noisy}
    assert named | {controllers.multisine} == set(ALL_KINDS)  # which makes a `Noisy`


# Robots from files --------------------------------------------------------------------


ROBOT = """
[simulation]
t1 = 0.1
[mechanism]
mjcf = "gantry.xml"
contacts = false
ignore = ["sensor"]
[initial]
keyframe = "home"
q = { shoulder = 0.7 }
[input]
aim = 0.8
[part.brake]
type = "Actuator"
transmission = { type = "JointTransmission", joints = ["elbow"], gear = [2.0] }
command = "aim"
law = { type = "PositionLaw", kp = 3.0, kd = 0.1 }
"""


def test_a_robot_brings_its_parts_its_start_and_its_commands(tmp_path):
    pytest.importorskip("mujoco")
    shutil.copy(DATA / "gantry.xml", tmp_path)
    path = tmp_path / "robot.toml"
    path.write_text(ROBOT)
    found = read_scenario(path)
    assert {"aim:actuator", "grip:tendon", "brake"} <= set(found.system.parts)
    q = found.initial_state.q
    np.testing.assert_allclose(q[:3], [0.2, 0.7, -0.5])
    assert found.initial_state.parts["lift:actuator"]["activation"] == 8.0
    assert found.system.inputs["aim"] == 0.8 and found.system.inputs["lift"] == 9.0
    for line, other, sentence in (
        ("contacts = false", "contacts = 3", "contacts: is true or false, not 3"),
        ("contacts = false", "floating_base = true", "goes with urdf alone"),
        ('"home"', '"away"', "unknown 'away'; there are home"),
    ):
        path.write_text(ROBOT.replace(line, other))
        with pytest.raises(ScenarioError, match=sentence):
            read_scenario(path)


def test_a_robot_may_come_without_its_parts(tmp_path):
    text = """
    [simulation]
    t1 = 0.1
    [mechanism]
    urdf = "arm.urdf"
    floating_base = true
    parts = {}
    """
    (tmp_path / "arm.urdf").write_text("""
    <robot name="arm"><link name="base"><inertial><mass value="2"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <link name="tip"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="j" type="continuous"><parent link="base"/><child link="tip"/>
      <axis xyz="0 1 0"/></joint></robot>""")
    path = tmp_path / "robot.toml"
    path.write_text(text.format("false"))
    bare = read_scenario(path).system
    assert not bare.parts and bare.mechanism.joint_names == ("root_joint", "j")
    path.write_text(text.format("true"))
    assert list(read_scenario(path).system.inputs) == ["j:effort"]
