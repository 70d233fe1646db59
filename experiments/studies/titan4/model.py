"""Model of the Titan 4 arm: links, hydraulics, guidance and controller.

After Rokseth, master's thesis, NTNU, 2014, case study 1 and paper 2. The printed
inertias of links 3 and 4 are those of no physical body; they replace physical ones only
where the printed results are compared.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from controllers import Backstepping, Joystick, ReferenceModel
from djdyn.hydraulics import (
    Circuit,
    HydraulicCylinder,
    Motor,
    Oil,
    ServoValve,
    Supply,
    Tank,
    Triangle,
    Volume,
)
from djdyn.multibody.spatial import (
    Pose,
    rotation_x,
    rotation_y,
    rotation_z,
    translation,
)
from djdyn.parts import JointFriction, JointStop

from ...harness import tables


JOINTS = tuple(f"joint{i}" for i in range(1, 7))
SUPPLY = 187e5  # Pa
MODULUS, VOLUME = 1e8, 1e-3  # Pa; m3, on each side
DENSITY, DISCHARGE = 950.0, 0.9
AREA_UP, AREA_DOWN = 9.6e-4, 7.8e-4  # m2; the second is printed as 7.8
TRIANGLE = (0.425, 0.117, 1.149)  # m, m, rad
FULL = 1e-5  # m2, largest valve area; not in the source
BUMPER = (2e4, 200.0)  # N m/rad, N m s/rad; not in the source
TOOL = 0.229  # m, beyond joint 6


def column(name: str) -> np.ndarray:
    """Return a column of the table of joints."""
    return tables.columns(tables.read("titan4/joints_control.csv"), name)[:, 0]


def mechanism(printed: bool = True) -> djdyn.Mechanism:
    """Return the arm of six revolute joints; the frame `tool` is the tool's tip."""
    quarter = jnp.asarray(np.pi / 2)
    turns = (
        jnp.eye(3),
        rotation_z(quarter) @ rotation_x(quarter),
        jnp.eye(3),
        jnp.eye(3),
        rotation_y(-quarter) @ rotation_x(-quarter),
        rotation_x(-quarter) @ rotation_z(-quarter),
    )
    rows = tables.read("titan4/links.csv")
    bodies, parent, offset = [], "world", (0.0, 0.0, 0.0)
    for row, R in zip(rows, turns, strict=True):
        moments = [float(row[f"I{axis}_suggested_kgm2"]) for axis in "xyz"]
        name = f"link{row['link']}"
        bodies.append(
            djdyn.Body(
                name,
                parent,
                djdyn.Revolute(),
                float(row["mass_kg"]),
                [float(row[f"cg_{axis}_m"]) for axis in "xyz"],
                np.diag(moments),
                Pose(R, offset),
                joint_name=f"joint{row['link']}",
            )
        )
        offset = [float(row[f"next_joint_{axis}_m"] or 0.0) for axis in "xyz"]
        parent = name
    arm = djdyn.Mechanism(
        tuple(bodies),
        (djdyn.Frame("tool", "link6", translation((0.0, 0.0, TOOL))),),
    )
    if printed:
        given = [
            jnp.diag(jnp.array([float(row[f"I{a}_kgm2"] or 0.108) for a in "xyz"]))
            for row in rows
        ]
        arm = eqx.tree_at(lambda m: [b.I_BC for b in m.bodies], arm, given)
    return arm


def static_pressures(
    arm: djdyn.Mechanism, q: Array, bonds: Array | None = None
) -> tuple[Array, Array]:
    """Return static pressures of both sides, whose sum is the supply pressure."""
    g = djdyn.inverse_dynamics(arm, q, jnp.zeros(6), jnp.zeros(6))
    if bonds is not None:
        g = g.at[2].add(bonds * g[3])
        g = g.at[1].add(bonds * g[2])
    Vp = jnp.asarray(np.where(np.isnan(displacements()), 1.0, displacements()))
    up = (SUPPLY + g / Vp) / 2
    lever = Triangle("joint2", *TRIANGLE).lever(q[1])[1]
    piston = (g[1] / lever + AREA_DOWN * SUPPLY) / (AREA_UP + AREA_DOWN)
    up = up.at[1].set(piston)
    return up, SUPPLY - up


def displacements() -> np.ndarray:
    """Return the displacements of the motors, m3/rad; NaN for the cylinder."""
    rows = tables.read("titan4/joints_control.csv")
    return np.array([float(row["Vp_m3_per_rad"] or "nan") for row in rows])


def circuit(up: Array, down: Array, bonds: Array | None = None) -> Circuit:
    """Return a servo valve, two volumes and a motor (joint 2: a cylinder) per joint.

    With `bonds`, motors 3 and 4 also act on the joint before theirs, with this share of
    their torque and opposite sign. A share of one is the plant of the source, which
    counts reactions twice.
    """
    gain = FULL * DISCHARGE * np.sqrt(2 / DENSITY)
    parts = {"P": Supply(SUPPLY), "T": Tank()}
    for i, (joint, Vp) in enumerate(zip(JOINTS, displacements(), strict=True)):
        k = i + 1
        a, b = f"A{k}", f"B{k}"
        parts[a] = Volume(VOLUME, up[i])
        parts[b] = Volume(VOLUME, down[i])
        command = f"control.u.{joint}"
        parts[f"valve{k}"] = ServoValve(
            "P", "T", a, b, command, gain, FULL, transition=100.0
        )
        if np.isnan(Vp):
            parts[f"piston{k}"] = HydraulicCylinder(
                a, b, Triangle(joint, *TRIANGLE), AREA_UP, AREA_DOWN, 0.25, 0.3,
                follow=False,
            )  # fmt: skip
        else:
            parts[f"motor{k}"] = Motor(a, b, joint, Vp)
        if bonds is not None and k in (3, 4):
            back = Motor(a, b, JOINTS[i - 1], Vp)
            displacement = lambda m: m.displacement
            parts[f"bond{k}"] = eqx.tree_at(displacement, back, -bonds * Vp)
    return Circuit(Oil(DENSITY, MODULUS, conserves="volume"), parts)


def controller(**options) -> Backstepping:
    """Return the backstepping controller with the gains of the source."""
    mean = (AREA_UP + AREA_DOWN) / 2
    Vp = displacements()
    return Backstepping(
        JOINTS,
        "path",
        tuple((f"oil.A{k}.bar", f"oil.B{k}.bar") for k in range(1, 7)),
        np.where(np.isnan(Vp), mean, Vp),
        tuple(Triangle("joint2", *TRIANGLE) if np.isnan(x) else None for x in Vp),
        kp=column("kp_Nm_per_rad"),
        kd=column("kd_Nms_per_rad"),
        ki=column("ki_Nm_per_rad_s"),
        k3=column("k3_pressure_gain_1_per_s"),
        friction=column("friction_Nms_per_rad"),
        supply=SUPPLY,
        stiffness=MODULUS / VOLUME,
        discharge=DISCHARGE,
        density=DENSITY,
        **options,
    )


def build(
    arm: djdyn.Mechanism | None = None, bonds: Array | None = None, **options
) -> djdyn.System:
    """Return the arm with circuit, friction, bumpers, guidance and controller."""
    arm = mechanism() if arm is None else arm
    q = jnp.zeros(6)
    viscous, top, bottom = (
        column(x) for x in ("friction_Nms_per_rad", "q_upper_rad", "q_lower_rad")
    )
    parts = {
        "guide": Joystick(
            "sticks",
            column("joystick_rate_max_rad_per_s"),
            q,
            np.maximum(bottom, -1e3),
            np.minimum(top, 1e3),
            column("limit_buffer_eps_rad"),
        ),
        "path": ReferenceModel("guide.target", q, 10.0, 1.0),
        "control": controller(**options),
        "oil": circuit(*static_pressures(arm, q, bonds), bonds),
    }
    for i, joint in enumerate(JOINTS):
        parts[f"friction{i + 1}"] = JointFriction(joint, viscous[i])
        if np.isfinite(top[i]):
            parts[f"bumper{i + 1}"] = JointStop(joint, bottom[i], top[i], *BUMPER)
    return djdyn.System(arm, parts, {"sticks": jnp.zeros(6)})
