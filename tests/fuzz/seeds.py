"""Sound files to mutate: small ones of every kind that the readers know."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from estimation.markers.files import write_markers
from estimation.markers.recording import MarkerData


ROOT = Path(__file__).parents[2]

ROD = """
title = "Rod"
[simulation]
t1 = 1.0
save_every = 0.1
rtol = 1e-6
max_steps = 1000
[environment]
gravity = [0.0, 0.0, -9.81]
[[body]]
name = "rod"
joint = { type = "revolute", axis = [0, 1, 0], name = "hinge" }
mass = 1.0
com = [0, 0, -1]
inertia = [0.1, 0.1, 0.1]
[[frame]]
name = "tip"
body = "rod"
position = [0.0, 0.0, -2.0]
"""
PARTS = """
[part.spring]
type = "SpringDamper"
tail = "world"
head = "tip"
stiffness = 10.0
damping = 1.0
rest_length = 1.0
[part.friction]
type = "JointFriction"
joint = "hinge"
viscous = 0.1
[input]
push = { type = "Harmonic", amplitude = [1.0], frequency = 2.0 }
[initial]
q = { hinge = 0.3 }
v = { hinge = 0.0 }
[output]
frames = ["tip"]
reactions = ["hinge"]
[[shape]]
body = "rod"
type = "box"
size = [0.1, 0.1, 2.0]
color = "#336699"
"""
CONTROL = """
[controller.target]
type = "Reference"
path = { type = "Harmonic", amplitude = [0.6], frequency = 2.0 }
[controller.pid]
type = "JointPID"
joints = ["hinge"]
target = "target.value"
rate = "target.rate"
kp = 60.0
kd = 12.0
[part.motor]
type = "JointActuator"
joints = ["hinge"]
command = "pid.u"
[output]
signals = ["pid.u"]
"""
CABLE = """
[environment.fluid]
type = "Fluid"
water_density = 1025.0
[part.cable]
type = "Cable"
rope = { type = "CableProperties", linear_density = 1.0, EA = 1e5, diameter = 0.02 }
length = 3.0
tail = { type = "FixedEnd", point = [0.0, 0.0, 0.5] }
head = { type = "PinnedEnd", frame = "tip" }
mesh = 4
"""
CONTACT = """
[part.contact]
type = "Contact"
on = "tip"
shape = { type = "Cuboid", size = [0.1, 0.1, 0.1] }
against = "world"
surface = { type = "HalfSpace" }
normal = { type = "HuntCrossley", stiffness = 1e4, dissipation = 0.5, exponent = 1.0 }
friction = { type = "LuGre", mu = 0.3, mu_static = 0.4, stiffness = 4000.0 }
"""
DH = """
[simulation]
t1 = 1.0
[mechanism]
dh = [
  { name = "a", alpha = 1.5708, d = 0.3, mass = 2.0, inertia = [0.1, 0.1, 0.1] },
  { name = "b", type = "prismatic", a = 0.5, mass = 1.0, com = [0.1, 0.0, 0.0] },
]
"""
FILES = """
[simulation]
t1 = 1.0
[mechanism]
{kind} = "{file}"
ignore = ["contact"]
"""

MJCF = """<mujoco model="arm">
  <compiler angle="radian"/>
  <option gravity="0 0 -9.81" timestep="0.002"/>
  <worldbody>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" type="hinge" axis="0 1 0" pos="0 0 0"/>
      <inertial pos="0 0 -0.5" mass="1" diaginertia="0.1 0.1 0.01"/>
      <site name="grip" pos="0 0 -1"/>
      <body name="lower" pos="0 0 -1" quat="1 0 0 0">
        <joint name="elbow" type="slide" axis="0 0 1"/>
        <geom type="box" size="0.1 0.1 0.5" mass="2" contype="0" conaffinity="0"/>
      </body>
    </body>
    <body name="buoy"><freejoint/><geom type="sphere" size="0.2" contype="0"
      conaffinity="0"/></body>
  </worldbody>
  <actuator><motor name="m" joint="shoulder"/></actuator>
</mujoco>
"""
URDF = """<robot name="arm">
  <link name="base"/>
  <link name="upper">
    <inertial><origin xyz="0 0 -0.5" rpy="0 0 0"/><mass value="1"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/></inertial>
    <visual><geometry><mesh filename="package://arm/upper.stl"/></geometry></visual>
  </link>
  <link name="lower">
    <inertial><mass value="2"/>
      <inertia ixx="0.2" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.02"/></inertial>
  </link>
  <joint name="shoulder" type="continuous">
    <parent link="base"/><child link="upper"/>
    <origin xyz="0 0 1" rpy="0 0 0.5"/><axis xyz="0 1 0"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/><child link="lower"/>
    <origin xyz="0 0 -1" rpy="0 0 0"/><axis xyz="1 0 0"/>
  </joint>
</robot>
"""
DECK = """--------------------- MoorDyn v2 input ---------------------
Two lines and a float
---------------------- LINE TYPES --------------------------
Name  Diam  MassDen  EA     BA/-zeta  EI   Cd   Ca   CdAx  CaAx
(-)   (m)   (kg/m)   (N)    (N-s/-)   (-)  (-)  (-)  (-)   (-)
main  0.09  77.7066  384e3  -0.8      0    1.6  1.0  0.05  0.0
---------------------- BODIES ------------------------------
ID Attachment X0 Y0 Z0 r0 p0 y0 Mass CG I Volume CdA Ca
(#) (-) (m) (m) (m) (deg) (deg) (deg) (kg) (m) (kg-m^2) (m^3) (m^2) (-)
1 Coupled 0 0 -5 0 0 0 1e3 0 1e3 0.5 0 0
---------------------- POINTS ------------------------------
ID Attachment X Y Z Mass Volume CdA Ca
(#) (-) (m) (m) (m) (kg) (m^3) (m^2) (-)
1 Fixed -60 0 -90 0 0 0 0
2 Coupled 0 0 -5 0 0 0 0
3 Body1 0 0 -1 0 0 0 0
---------------------- LINES -------------------------------
ID LineType AttachA AttachB UnstrLen NumSegs Outputs
(#) (name) (#) (#) (m) (-) (-)
1 main 1 2 110 4 -
2 main 1 3 112 4 -
---------------------- OPTIONS -----------------------------
0.001 dtM
1025 rho
9.81 g
100 WtrDpth
---------------------- OUTPUTS -----------------------------
FairTen1
--------------------- need this line -----------------------
"""


RECORD = "t [s],angle [deg],torque\n" + "".join(
    f"{0.01 * i:.2f},{20 * np.cos(0.1 * i):.4f},{np.sin(0.1 * i):.4f}\n"
    for i in range(20)
)
IDENTIFY = (
    ROD
    + """
[input]
torque = [0.0]
[part.rub]
type = "JointFriction"
joint = "hinge"
viscous = 0.1
[part.motor]
type = "JointActuator"
joints = ["hinge"]
command = "torque"
[identify]
records = ["record.csv", { file = "record.csv", segment = [0.0, 0.1], hold_out = true }]
hold_out = 0.2
method = "lm"
rate = 50.0
start = ["hinge"]
[identify.free]
"rub.viscous" = { prior = { median = 0.1, spread = 1.0 } }
"rod.mass" = { bounds = [0.1, 9.0] }
[identify.channel.angle]
signal = "hinge.q"
unit = "deg"
noise = 0.1
offset = { deviation = 0.1, each = true }
[identify.input.torque]
column = "torque"
delay = true
"""
)


def scenarios() -> list[dict[str, Any]]:
    """Return the tables of sound scenarios."""
    example = ROOT / "experiments" / "scenarios" / "double_pendulum.toml"
    texts = [ROD, ROD + PARTS, ROD + CONTROL, ROD + CABLE, ROD + CONTACT, DH]
    texts += [FILES.format(kind="mjcf", file="arm.xml")]
    texts += [FILES.format(kind="urdf", file="arm.urdf"), example.read_text()]
    return [tomllib.loads(text) for text in texts]


def toml(value: Any, top: bool = True) -> str:
    """Return nested tables as TOML, with everything below the top in one line."""
    if isinstance(value, dict):
        items = [f"{_string(str(k))} = {toml(x, False)}" for k, x in value.items()]
        return "\n".join(items) + "\n" if top else "{" + ", ".join(items) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(x, False) for x in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return _string(value) if isinstance(value, str) else repr(value)


def _string(text: str) -> str:
    escape = lambda c: f"\\U{ord(c):08X}" if ord(c) < 32 or c in '"\\\x7f' else c
    return '"' + "".join(map(escape, text)) + '"'


def markers(folder: Path, suffix: str) -> bytes:
    """Return a sound marker file of 8 samples of 3 markers, one of them hidden once."""
    t = np.arange(8) / 50.0
    p = np.stack([np.sin(t + k)[:, None] * [1.0, 0.5, 0.2] + k for k in range(3)], 1)
    p[3, 1] = np.nan
    path = folder / f"seed{suffix}"
    write_markers(MarkerData.seen(t, ("a", "b", "tip"), p), path)
    return path.read_bytes()
