"""Model of the offshore crane: vessel on springs, crane joints and PD control."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import djdyn
from controllers import JointPID, Reference
from djdyn.multibody.spatial import Pose, rotation_x, rotation_z, translation
from djdyn.multibody.time_functions import Moves
from djdyn.parts import JointActuator, JointSpring
from djdyn.system.instant import Instant

from ...harness import tables


MASSES = (10000.0, 1000.0, 600.0, 400.0)  # kg: vessel, king, inner boom, outer boom
LENGTHS = (5.0, 2.0, 2.0, 2.0)  # m: pivot to crane foot, king, inner boom, outer boom
CENTRES = (2.5, 1.0, 1.0, 1.0)  # m, mass centres from each body's origin
STIFFNESS = 8e7  # N m/rad^3, roll, pitch and yaw
KP, KD = 5e5, 5e4  # N m/rad, N m s/rad
GRAVITY = 9.81  # m/s^2

JOINTS = ("king", "inner", "outer")
BEARING_ROWS = np.array([0, 1, 3, 4, 5])  # all but the moment about the slewing axis
BEARING = np.eye(6)[BEARING_ROWS]
DEG = 180 / np.pi


def mechanism(
    masses: Sequence | Array = MASSES, gravity: float | Array = GRAVITY
) -> djdyn.Mechanism:
    """Return vessel, king, inner and outer boom (equations 51 to 62 and 73)."""
    slender = ((1, 1, 1), (1, 1, 0.1), (0, 1, 1), (0, 1, 1))
    inertia = [
        m * length**2 / 12 * jnp.diag(jnp.array(s, float))
        for m, length, s in zip(masses, LENGTHS, slender, strict=True)
    ]
    luff = rotation_z(jnp.array(jnp.pi / 2)) @ rotation_x(jnp.array(jnp.pi / 2))
    slew = djdyn.Revolute()
    up, out = (lambda d: (0.0, 0.0, d)), (lambda d: (d, 0.0, 0.0))
    l1, l2, l3, _ = LENGTHS
    return djdyn.Mechanism(
        (
            djdyn.Body(
                "vessel",
                "world",
                djdyn.RollPitchYaw(),
                masses[0],
                up(CENTRES[0]),
                inertia[0],
            ),
            djdyn.Body(
                "king",
                "vessel",
                slew,
                masses[1],
                up(CENTRES[1]),
                inertia[1],
                translation(up(l1)),
            ),
            djdyn.Body(
                "inner",
                "king",
                slew,
                masses[2],
                out(CENTRES[2]),
                inertia[2],
                Pose(luff, up(l2)),
            ),
            djdyn.Body(
                "outer",
                "inner",
                slew,
                masses[3],
                out(CENTRES[3]),
                inertia[3],
                translation(out(l3)),
            ),
        ),
        (djdyn.Frame("tip", "outer", translation(out(LENGTHS[3]))),),
        gravity_W=jnp.array([0.0, 0.0, -1.0]) * gravity,
    )


def moves() -> Moves:
    """Return the hoisting cycle: slew, reach out, lift, slew back, reach out."""
    rows = tables.read("crane/motion_sequence.csv")
    points = np.deg2rad(tables.columns(rows, "q4_deg", "q5_deg", "q6_deg"))
    start, end = tables.columns(rows[1:], "t_start_s", "t_end_s").T
    return Moves(points[0], points[1:], start, end)


def build(
    masses: Sequence | Array = MASSES,
    stiffness: float | Array = STIFFNESS,
    kp: float | Array = KP,
    kd: float | Array = KD,
    gravity: float | Array = GRAVITY,
) -> djdyn.System:
    """Return the crane under PD control along its motion sequence."""
    return djdyn.System(
        mechanism(masses, gravity),
        {
            "springs": JointSpring("vessel", stiffness, exponent=3),
            "reference": Reference(moves()),
            "pd": JointPID(JOINTS, "reference.value", kp, kd, rate="reference.rate"),
            "motors": JointActuator(JOINTS, "pd.u"),
        },
    )


def start(system: djdyn.System) -> djdyn.State:
    """Return the state at rest, with the vessel upright and the crane parked."""
    parked = moves().first
    return system.initial_state(q={joint: parked[i] for i, joint in enumerate(JOINTS)})


def observe(now: Instant) -> dict[str, Any]:
    """Return loads on the king, energy, reference and body poses.

    The five loads are in the axes of the king (frame 2) and of the vessel (frame 1);
    `recursive` is an independent calculation of the former, by recursive Newton–Euler.
    """
    rho = now.constraint_force("king", jnp.asarray(BEARING))
    (angle,), _ = now.world.joint("king")
    R_12 = rotation_z(angle)
    return {
        "loads": rho,
        "loads_vessel": jnp.concatenate([R_12[:2, :2] @ rho[:2], R_12 @ rho[2:]]),
        "recursive": now.reaction("king")[BEARING_ROWS],
        "energy": now.energy(),
        "wanted": now.signals["reference.value"],
        "X_WB": now.world.X_WB,
    }
