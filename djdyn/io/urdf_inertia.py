"""Inertias that the joints of a URDF tree move, and joints that move none.

The articulated inertias of Featherstone's algorithm, in NumPy, at a position with no
symmetry: a joint that moves nothing there moves nothing anywhere.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from .urdf_tree import MOVING, Link


NOTHING = 1e-12  # relative to what the joint would move, were all below it held


def is_physical(link: Link) -> bool:
    """Whether some distribution of mass has the link's inertia."""
    low, middle, high = np.linalg.eigvalsh(link.inertia)
    slack = 1e-6 * max(abs(low), abs(high))
    if link.mass == 0 and (low or high):
        return False
    return bool(low >= -slack and high <= low + middle + slack)


def joint_inertias(
    links: Sequence[Link], q: Mapping[str, float] | None = None
) -> dict[str, tuple[float, float]]:
    """Inertia about each joint's axis, by the joint's name.

    The first is that of all it carries, held together; the second what is left where
    the joints below may give way.
    """
    poses: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    twists: dict[str, np.ndarray] = {}
    for link in links:
        R, p = poses.get(link.parent, (np.eye(3), np.zeros(3)))
        p, R = p + R @ link.p, R @ link.R
        if link.kind in MOVING:
            axis = link.axis / np.linalg.norm(link.axis)
            angle = (q or {}).get(link.joint, 0.0)
            along = R @ axis
            if link.kind == "prismatic":
                twists[link.name] = np.concatenate([np.zeros(3), along])
                p = p + angle * along
            else:
                twists[link.name] = np.concatenate([along, np.cross(p, along)])
                R = R @ Rotation.from_rotvec(angle * axis).as_matrix()
        poses[link.name] = R, p
    held = {link.name: _inertia(link, *poses[link.name]) for link in links}
    free = {name: I.copy() for name, I in held.items()}
    found = {}
    for link in reversed(links):
        shown, S = free[link.name], twists.get(link.name)
        if S is not None:
            U, whole = shown @ S, float(S @ held[link.name] @ S)
            left = float(S @ U)
            found[link.joint] = whole, left
            if left > NOTHING * whole > 0:
                shown = shown - np.outer(U, U) / left
        if link.kind in ("floating", "planar"):
            shown = np.zeros((6, 6))
        if link.parent:
            held[link.parent] = held[link.parent] + held[link.name]
            free[link.parent] = free[link.parent] + shown
    return found


def _inertia(link: Link, R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The 6x6 inertia about the world's origin."""
    c = p + R @ link.centre
    C = np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
    turning = R @ link.inertia @ R.T + link.mass * C @ C.T
    top = np.hstack([turning, link.mass * C])
    return np.vstack([top, np.hstack([link.mass * C.T, link.mass * np.eye(3)])])


def idle_joints(links: Sequence[Link]) -> list[str]:
    """Joints that move nothing with inertia: no force on them has an acceleration."""
    q = {link.joint: 0.3 + 0.7 * np.sin(i) for i, link in enumerate(links, start=1)}
    idle = []
    for name, (whole, left) in joint_inertias(links, q).items():
        if not left > NOTHING * whole:
            idle.append(name)
    return idle[::-1]
