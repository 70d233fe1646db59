"""Joints that move nothing: where the mass matrix is singular, and why, in words."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from ..typing import known
from .dynamics import mass_matrix
from .flexible.body import FlexibleBody, FlexibleRow
from .joints import RollPitchYaw
from .mechanism import AnyBody, Mechanism


MOVED_SHARE = 0.3  # of the largest entry of a direction: joints that take part in it

GIMBAL_LOCK = 0.02  # cosine of a pitch about one degree from ninety


def why_singular(
    mechanism: Mechanism, q: Float[Array, " nq"], limit: float | None = None
) -> str:
    """Return why the mass matrix is singular at `q`, or nothing if it is not.

    **Arguments:**

    - `limit`: smallest eigenvalue of the matrix, scaled to ones on its diagonal, that
      is not zero; by default round-off.
    """
    M = _mass_matrix(mechanism, q)
    if not known(M):  # within a trace, where numbers cannot be looked at
        return ""
    M = np.asarray(M)
    if not M.size or not np.all(np.isfinite(M)):
        return ""
    size = np.sqrt(np.maximum(np.diag(M), 0.0))
    limit = 16 * len(M) * np.finfo(M.dtype).eps if limit is None else limit
    still = size <= limit * size.max()
    scale = np.where(still, 1.0, size)
    values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
    if values[0] > limit:
        return ""
    moved = np.abs(vectors[:, 0] / scale)
    rows = mechanism.speed_rows[moved >= MOVED_SHARE * moved.max()] - 1
    bodies = [mechanism.bodies[i] for i in dict.fromkeys(rows.tolist())]
    names = " and ".join(repr(body.joint_name or body.name) for body in bodies)
    said = (
        f"joint {names} can move" if len(bodies) == 1 else f"joints {names} can move"
    ) + " without moving any inertia there, so the mass matrix is singular"
    if any(isinstance(body.joint, RollPitchYaw) for body in bodies):
        said += " (roll and yaw coincide at a pitch of ninety degrees: use Spherical)"
    return said


def near_gimbal_lock(
    mechanism: Mechanism, q: Float[Array, "n nq"]
) -> tuple[str, int] | None:
    """Return the joint whose roll and yaw nearly coincide or have coincided between
    two of the states, and the number of that state; or None.
    """
    for body, name in zip(mechanism.bodies, mechanism.joint_names, strict=True):
        if isinstance(body.joint, RollPitchYaw):
            level = np.cos(np.asarray(q)[:, mechanism.q_slice(name)][:, 1])
            turned = np.diff(np.sign(level), prepend=np.sign(level[:1])) != 0
            near = np.flatnonzero((np.abs(level) < GIMBAL_LOCK) | turned)
            if near.size:
                return name, int(near[0])
    return None


def may_be_singular(mechanism: Mechanism) -> bool:
    """Whether a body has no mass, or none about some axis that its joint turns about.

    A quick look at numbers, which rules out nearly all machines.
    """
    return any(_is_thin(body) for body in mechanism.bodies)


def _is_thin(body: AnyBody) -> bool:
    if isinstance(body, FlexibleBody | FlexibleRow) or not body.joint.nv:
        return False
    if not known(body.mass, body.p_BC, body.I_BC):
        return False
    mass, c, I_BC = (np.asarray(x, float) for x in (body.mass, body.p_BC, body.I_BC))
    if mass == 0:
        return True
    if body.joint.nv == 1 or body.A_B is not None:
        return False
    moments = np.linalg.eigvalsh(I_BC + mass * (c @ c * np.eye(3) - np.outer(c, c)))
    return bool(moments[0] <= 1e-9 * moments[2])


_mass_matrix = eqx.filter_jit(mass_matrix)
