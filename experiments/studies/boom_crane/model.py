"""Cranes of the boom-crane study, from the link tables of the report."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import djdyn
from djdyn.io import DHLink, dh_initial_q, from_dh
from djdyn.multibody.mechanism import AnyBody
from djdyn.multibody.spatial import Pose, identity_pose, pose_rpy

from ...harness import tables


REVOLUTE = "4.4.1_revolute"
PRISMATIC = "4.4.2_prismatic"
DOUBLE_PENDULUM = "4.4.3_double_pendulum"
TURNING_SLIDE = "4.4.4-4.4.6_centripetal_coriolis_energy"
PALFINGER = "4.4.9-4.4.12_palfinger"
LANDING = "4.5.4_all_sim_objects"

UPRIGHT = (0.0, 0.0, 0.0, np.pi / 2, 0.0, 0.0)  # the first joint's axis along -y
BASES = {  # m, rad: position, roll, pitch, yaw
    REVOLUTE: UPRIGHT,
    PRISMATIC: (0.0,) * 6,
    DOUBLE_PENDULUM: UPRIGHT,
    TURNING_SLIDE: (0.0,) * 6,
    PALFINGER: (-1.35, 0.0, -1.4, 0.0, 0.0, 0.0),
    LANDING: (0.0,) * 6,
}
# The report gives the mass centre of link 1 of the Palfinger crane in other axes.
CENTRES = {(case, 1): (-0.35, 0.0, 0.7) for case in (PALFINGER, LANDING)}


def links(case: str) -> list[DHLink]:
    """Return the links of a case, from base to tip."""
    rows = [r for r in tables.read("boom_crane/dh_parameters.csv") if r["case"] == case]
    masses = [
        r for r in tables.read("boom_crane/link_properties.csv") if r["case"] == case
    ]
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
    """Return the mechanism of a case and its initial joint coordinates."""
    base = BASES[case]
    found = links(case)
    return from_dh(found, base=pose_rpy(base[:3], base[3:])), dh_initial_q(found)


def lock(
    mechanism: djdyn.Mechanism, q: Float[Array, " nq"], free: Sequence[str]
) -> djdyn.Mechanism:
    """Return the mechanism with all but the free joints locked at `q`.

    Rigidly joined bodies become one body; bodies fixed to the world are left out. All
    numbers may be traced.
    """
    places = {"world": ("world", identity_pose())}  # by body: the one it is part of
    joints: dict[str, tuple[AnyBody, str, Pose]] = {}
    lumps: dict[str, list[tuple[Pose, AnyBody]]] = {"world": []}
    for body in mechanism.bodies:
        assert isinstance(body, djdyn.Body)
        whole, X_HP = places[body.parent]
        X_HJ = X_HP @ body.X_PJ
        if body.name in free:
            joints[body.name] = (body, whole, X_HJ)
            places[body.name], lumps[body.name] = (body.name, identity_pose()), []
        else:
            X_JB = body.joint.pose(q[mechanism.q_slice(body.name)], jnp.zeros(()))
            places[body.name] = (whole, X_HJ @ X_JB)
        whole, X_HB = places[body.name]
        lumps[whole].append((X_HB, body))
    bodies = [
        djdyn.Body(name, parent, body.joint, *together(lumps[name]), X_HJ)
        for name, (body, parent, X_HJ) in joints.items()
    ]
    frames = []
    for frame in mechanism.frames:
        whole, X_HB = places[frame.body]
        frames.append(djdyn.Frame(frame.name, whole, X_HB @ frame.X_BF))
    return djdyn.Mechanism(tuple(bodies), tuple(frames), mechanism.gravity_W)


def together(lumps: Sequence[tuple[Pose, AnyBody]]) -> tuple[Array, Array, Array]:
    """Return mass, mass centre and central inertia of bodies at given poses."""
    mass = jnp.stack([body.mass for _, body in lumps])
    centres = jnp.stack([X_HB.act(body.p_BC) for X_HB, body in lumps])
    total = jnp.sum(mass)
    centre = mass @ centres / total
    inertia = jnp.zeros((3, 3))
    for (X_HB, body), p in zip(lumps, centres - centre[None], strict=True):
        inertia += X_HB.R @ body.I_BC @ X_HB.R.T
        inertia += body.mass * (p @ p * jnp.eye(3) - jnp.outer(p, p))
    return total, centre, inertia
