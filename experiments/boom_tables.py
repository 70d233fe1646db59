"""The cranes of the boom-crane study, from the report's tables of links."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from djdyn.io import DHLink, dh_initial_q, from_dh
from djdyn.spatial import pose_rpy

from . import tables


REVOLUTE = "4.4.1_revolute"
PRISMATIC = "4.4.2_prismatic"
DOUBLE_PENDULUM = "4.4.3_double_pendulum"
TURNING_SLIDE = "4.4.4-4.4.6_centripetal_coriolis_energy"
PALFINGER = "4.4.9-4.4.12_palfinger"

UPRIGHT = (0.0, 0.0, 0.0, np.pi / 2, 0.0, 0.0)  # the first joint's axis along -y
BASES = {  # m, rad: position, roll, pitch, yaw
    REVOLUTE: UPRIGHT,
    PRISMATIC: (0.0,) * 6,
    DOUBLE_PENDULUM: UPRIGHT,
    TURNING_SLIDE: (0.0,) * 6,
    PALFINGER: (-1.35, 0.0, -1.4, 0.0, 0.0, 0.0),
}
# The print gives link 1 of the Palfinger crane its centre in the axes of its far end.
CENTRES = {(PALFINGER, 1): (-0.35, 0.0, 0.7)}


def links(case: str) -> list[DHLink]:
    """The rows of a case, from base to tip."""
    rows = [r for r in tables.read("ship_dh_parameters.csv") if r["case"] == case]
    masses = [r for r in tables.read("ship_link_properties.csv") if r["case"] == case]
    found = []
    for number, (row, body) in enumerate(zip(rows, masses, strict=True), start=1):
        centre = tables.columns([body], "cg_x_m", "cg_y_m", "cg_z_m")[0]
        found.append(
            DHLink(
                f"link{number}",
                "revolute" if row["joint_variable"] == "theta" else "prismatic",
                np.deg2rad(float(row["alpha_deg"])),
                float(row["a_m"]),
                float(row["d_m"]),
                np.deg2rad(float(row["theta_deg"])),
                float(body["mass_kg"]),
                CENTRES.get((case, number), centre),
                tables.columns([body], "Ixx_kgm2", "Iyy_kgm2", "Izz_kgm2")[0],
            )
        )
    return found


def crane(case: str) -> tuple[djdyn.Mechanism, Float[Array, " nq"]]:
    """The mechanism of a case, and where its joints start."""
    base = BASES[case]
    found = links(case)
    return from_dh(found, base=pose_rpy(base[:3], base[3:])), dh_initial_q(found)


def lock(
    mechanism: djdyn.Mechanism, q: Float[Array, " nq"], free: Sequence[str]
) -> djdyn.Mechanism:
    """The mechanism with all joints but the free ones rigid at their places in `q`."""
    bodies = []
    for body in mechanism.bodies:
        if body.name not in free:
            X_JM = body.joint.pose(q[mechanism.q_slice(body.name)], jnp.zeros(()))
            rigid = (djdyn.Fixed(), body.X_PJ @ X_JM)
            body = eqx.tree_at(lambda b: (b.joint, b.X_PJ), body, rigid)
        bodies.append(body)
    return djdyn.Mechanism(tuple(bodies), mechanism.frames, mechanism.gravity_W)
