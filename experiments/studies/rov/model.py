"""Model of a work-class ROV with an arm of three joints, its thrusters and control.

After Rokseth, master's thesis, NTNU, 2014, case study 2. The source has z downwards;
here z is upwards and y to port, so y and z of places and the signs of pitch and yaw are
turned. What the source leaves out is assumed: the arm's mount, projected areas, widths
of strips and volumes of links.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from controllers import ArmPID, Reference, SecondOrderReference, VehiclePID
from djdyn.marine.allocation import Allocation, ThrusterLayout
from djdyn.marine.drag import BodyDamping, StripDrag
from djdyn.marine.thruster import ShaftAndDuct, Thrusters
from djdyn.marine.water import Buoyancy, Fluid
from djdyn.multibody.spatial import (
    Pose,
    rotation_x,
    rotation_y,
    rotation_z,
    translation,
)
from djdyn.multibody.time_functions import AbstractTimeFunction, Interpolated, Moves
from djdyn.parts import Grip, JointActuator, Support
from djdyn.parts.base import AbstractPart

from ...harness import tables


JOINTS = ("joint1", "joint2", "joint3")
DENSITY = 1025.0  # kg/m3
MOUNT = (1.4, 0.0, -0.5)  # m; not in the source
AREAS = np.array([3.06, 4.76, 5.04])  # m2, of the box that has the hull's inertia
WIDTHS = (0.24, 0.18, 0.17)  # m, of the links' strips; not in the source
TOOL = 0.483  # m, along link 3
FLIP = np.array([1.0, -1.0, -1.0])  # between z downwards and z upwards
START = np.array([0.0, 0.6, -1.2])  # rad, of the joints
SWITCH = 0.002  # s, in which a set point or the grip changes
LIFT_TIMES = {"grip": 20.0, "up": 30.0, "turn": 60.0, "down": 100.0, "drop": 130.0}
LIFT_SPAN = 160.0  # s


def values() -> dict[str, float]:
    """Return the numbers of the source by name, as they are used."""
    rows = tables.read("rov/parameters.csv")
    return {
        f"{row['system']}.{row['symbol']}": float(row["value_use"])
        for row in rows
        if row["value_use"]
    }


def added(
    mass: float, centre: np.ndarray, inertia: np.ndarray, share: float
) -> np.ndarray:
    """Return the share of a rigid body's 6x6 inertia about its origin."""
    c = np.array(
        [[0, -centre[2], centre[1]], [centre[2], 0, -centre[0]],
         [-centre[1], centre[0], 0]]
    )  # fmt: skip
    return share * np.block(
        [[inertia - mass * c @ c, mass * c], [-mass * c, mass * np.eye(3)]]
    )


def mechanism(
    wet: bool = True, payload: bool = True, arm: bool = True, held: float = 0.0
) -> djdyn.Mechanism:
    """Return hull, arm and object; `wet` adds the mass of the water around them.

    Without the object, the mass `held` is fixed to the tool.
    """
    of = values()
    moments = np.array([of[f"vehicle.I{a}"] for a in "xyz"])
    names = ("K_pdot", "M_qdot", "N_rdot", "X_udot", "Y_vdot", "Z_wdot")
    water = np.diag([of[f"vehicle.{name}"] for name in names])
    bodies = [
        djdyn.Body(
            "hull",
            "world",
            djdyn.Free(),
            of["vehicle.m_rov"],
            I_BC=np.diag(moments),
            A_B=water if wet else None,
        )
    ]
    frames = [djdyn.Frame("buoyancy0", "hull", translation((0.0, 0.0, 0.5)))]
    quarter = jnp.asarray(np.pi / 2)
    turns = (
        rotation_z(-quarter),
        rotation_z(quarter) @ rotation_x(quarter),
        jnp.eye(3),
    )
    parent, offset = "hull", MOUNT
    links = tables.read("titan4/links.csv")[:3] if arm else []
    for i, (row, R) in enumerate(zip(links, turns, strict=False), start=1):
        number = lambda *keys, row=row: np.array([float(row[k] or 0.108) for k in keys])
        centre = number(*(f"cg_{a}_m" for a in "xyz"))
        mass, inertia = (
            number("mass_kg"),
            np.diag(number("Ix_kgm2", "Iy_kgm2", "Iz_kgm2")),
        )
        bodies.append(
            djdyn.Body(
                f"link{i}", parent, djdyn.Revolute(), mass[0], centre, inertia,
                Pose(R, offset), added(mass[0], centre, inertia, 0.4) if wet else None,
                f"joint{i}", any_inertia=True,
            )
        )  # fmt: skip
        frames.append(djdyn.Frame(f"buoyancy{i}", f"link{i}", translation(centre)))
        offset = [float(row[f"next_joint_{a}_m"] or 0.0) for a in "xyz"]
        parent = f"link{i}"
    if arm:
        along = Pose(rotation_y(-quarter), jnp.zeros(3))  # x along the link's z
        frames.append(djdyn.Frame("pillar", "link1", along))
        frames.append(djdyn.Frame("tool", "link3", translation((TOOL, 0.0, 0.0))))
    if held:
        at = translation((TOOL, 0.0, 0.0))
        bodies.append(djdyn.Body("payload", "link3", djdyn.Fixed(), held, X_PJ=at))
    if payload:
        bodies.append(
            djdyn.Body("object", "world", djdyn.Cartesian(), of["object.m_o"])
        )
    return djdyn.Mechanism(tuple(bodies), tuple(frames))


def layout() -> ThrusterLayout:
    """Return the six thrusters: two aft, three upright and one athwart."""
    of = values()
    d1, d2, d3, d4, d6, d7 = (of[f"thruster.d{i}"] for i in (1, 2, 3, 4, 6, 7))
    c, s = np.cos(of["thruster.alpha"]), np.sin(of["thruster.alpha"])
    places = [[-d1, -d2, 0], [-d1, d2, 0], [d3, -d4, 0], [d3, d4, 0], [-d6, 0, 0]]
    ways = [[c, -s, 0], [c, s, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1], [0, 1, 0]]
    return ThrusterLayout(FLIP * np.array([*places, [d7, 0, 0]]), FLIP * np.array(ways))


def blades(mode: str = "thrust") -> ShaftAndDuct:
    """Return the law of the thrusters, in a loop for thrust or by torque."""
    of = values()
    names = ("p", "R", "J_p", "d_p", "m_w", "C_L", "C_D")
    numbers = [of[f"thruster.{name}"] for name in names]
    gains = of["pi_thruster.kpT_1"], of["pi_thruster.kiT_1"]
    return ShaftAndDuct(*numbers, DENSITY, mode, *gains)  # pyright: ignore


def gains(kind: str) -> Float[np.ndarray, "6"]:
    """Return a kind of gains of the vehicle: places, then angles."""
    of = values()
    names = ("x", "y", "z", "roll", "pitch", "yaw")
    return np.array([of[f"pid_vehicle.{kind}_{name}"] for name in names])


def water_parts(water: Fluid, arm: bool = True) -> dict[str, AbstractPart]:
    """Return what the water does to hull and arm, beside its added mass."""
    of = values()
    skin = [of[f"vehicle.d_{a}"] for a in "pqruvw"]
    quadratic = DENSITY / 2 * of["vehicle.Cd"] * AREAS
    parts: dict[str, AbstractPart] = {
        "lift0": Buoyancy("buoyancy0", of["vehicle.V_rov"], Fluid(DENSITY)),
        "damping": BodyDamping(
            "hull", skin, np.concatenate([np.zeros(3), quadratic]), water
        ),
    }
    still = Fluid(DENSITY)  # so deep that waves do not change what is displaced
    for i, (frame, length) in enumerate(
        (("pillar", 0.195), ("link2", 0.851), ("link3", TOOL)), start=1
    ):
        if arm:
            volume = of[f"manipulator.V_{i}"]
            parts[f"lift{i}"] = Buoyancy(f"buoyancy{i}", volume, still)
            parts[f"strips{i}"] = StripDrag(
                frame, length, WIDTHS[i - 1], of["manipulator.Cd_i"],
                of[f"manipulator.d_sf_{i}"], int(of["manipulator.s"]), True, water,
            )  # fmt: skip
    return parts


def lift_target() -> Interpolated:
    """Return the vehicle's set points in the lift: up, turn, down."""
    up, turn, down = (LIFT_TIMES[k] for k in ("up", "turn", "down"))
    x = np.zeros((7, 6))
    x[2:6, 2], x[4:, 5] = 0.5, -0.5
    times = [0.0, up, up + SWITCH, turn, turn + SWITCH, down, down + SWITCH]
    return Interpolated(times, x)


def closed() -> Moves:
    """Return the signal of the grip in the lift."""
    grip, drop = LIFT_TIMES["grip"], LIFT_TIMES["drop"]
    ends = [grip + SWITCH, drop + SWITCH]
    return Moves([0.0], [[1.0], [0.0]], [grip, drop], ends)


def arm_control(water: dict[str, AbstractPart]) -> ArmPID:
    """Return the controller of the arm with the gains of the source."""
    of = values()
    each = lambda k: [of[f"pid_manipulator.{k}_{i}"] for i in (1, 2, 3)]
    known = tuple(water[f"lift{i}"] for i in (1, 2, 3))
    return ArmPID(JOINTS, "arm_path", each("kp"), each("kd"), each("ki"), known=known)


def vehicle_parts(
    target: AbstractTimeFunction,
    arm_target: AbstractTimeFunction,
    water: Fluid,
    allocation: Allocation | None = None,
) -> dict[str, AbstractPart]:
    """Return water, thrusters and control of the vehicle with its arm."""
    of = values()
    wet = water_parts(water)
    ref = lambda *keys: [of[f"refmodel_vehicle.{k}"] for k in keys]
    masses = ref(*("m_ref",) * 3, "Ix_ref", "Iy_ref", "Iz_ref")
    damping = ref(*("d_lin",) * 3, *("d_ang",) * 3)
    share = Allocation(layout()) if allocation is None else allocation
    return wet | {
        "target": Reference(target),
        "path": SecondOrderReference(
            "target.value", np.zeros(6), masses, damping, of["refmodel_vehicle.k_ref"]
        ),
        "pid": VehiclePID(
            "hull", "path", gains("kp"), gains("kd"), gains("ki"), share
        ),
        "thrusters": Thrusters("hull", layout(), "pid.thrust", blades(), water),
        "arm_target": Reference(arm_target),
        "arm_path": SecondOrderReference(
            "arm_target.value", START, of["refmodel_manipulator.m_ref"],
            of["refmodel_manipulator.d_1"], of["refmodel_manipulator.k_ref"],
        ),
        "arm": arm_control(wet),
        "motors": JointActuator(JOINTS, "arm.u"),
    }  # fmt: skip


def build() -> djdyn.System:
    """Return the vehicle that lifts and places the object of the source."""
    object_of = lambda key: values()[f"object.{key}"]
    still = Interpolated([0.0, 1.0], np.tile(START, (2, 1)))
    sink = object_of("m_o") * 9.81 / object_of("ko_v")
    parts = vehicle_parts(lift_target(), still, Fluid(DENSITY)) | {
        "clock": Reference(closed()),
        "grip": Grip(
            "object", "tool", "clock.value", object_of("kg_v"), object_of("dg_v"),
            latch=True, switch_time=SWITCH,
        ),
        "pillars": Support(
            "object", tool_place()[2] + sink, object_of("ko_v"), object_of("do_v"),
            object_of("do_v"),
        ),
    }  # fmt: skip
    return djdyn.System(mechanism(), parts)


def tool_place() -> Float[Array, "3"]:
    """Return where the tool is at the start."""
    bare = mechanism(payload=False)
    q = jnp.concatenate([bare.q0()[:7], jnp.asarray(START)])
    return djdyn.frame_pose(bare, q, "tool").p


def start(system: djdyn.System) -> djdyn.State:
    """Return the state at rest, with the object on its pillar, within the gripper."""
    place = tool_place()
    m = system.mechanism
    q = m.q0().at[7:10].set(START).at[m.q_slice("object")].set(place)
    return eqx.tree_at(lambda y: y.q, system.initial_state(), q)
