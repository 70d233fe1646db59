"""Mechanisms and systems from URDF files, as Pinocchio reads them.

Every link is a body, every joint goes by its own name. A floating base hangs on the
joint `"root_joint"`. Meshes are not read, so they need not be found.
"""

import os
import warnings
from collections.abc import Sequence

import jax.numpy as jnp

from ..multibody.joints import (
    AbstractJoint,
    Fixed,
    Free,
    Planar,
    Prismatic,
    Revolute,
)
from ..multibody.loops import LinearCoupling
from ..multibody.mechanism import WORLD, Body, Mechanism
from ..multibody.spatial import Pose
from ..parts.actuator import Actuator, MotorLaw
from ..parts.base import AbstractPart
from ..parts.joint import JointFriction, JointStop
from ..parts.transmission import JointTransmission
from ..system.system import System
from .mjcf import parse_xml, read_text
from .mjcf_draft import plain
from .unsupported import as_kinds, listing, refuse
from .urdf_inertia import idle_joints, is_physical, joint_inertias
from .urdf_tree import MOVING, Link, check_mimics, read_links
from .xml_safety import careful_xml


ROOT_JOINT = "root_joint"
STOP_TIME = 0.02  # s, of a stop's spring and damper, as MuJoCo's by default


@careful_xml
def from_urdf(
    path_or_text: str | os.PathLike,
    *,
    ignore: Sequence[str] = (),
    floating_base: bool = False,
    strict: bool = False,
) -> Mechanism:
    """Return the mechanism of a URDF file, or of its text.

    Every link stays a body; the root is fixed in the world, or floats. Masses and
    inertias are those of `<inertial>`; shapes are not read, so meshes need not be
    found. A joint with a `<mimic>` is coupled to the one it follows, by the loop
    `"<joint>:mimic"`. A link with a `<collision>` counts as contact.

    **Arguments:**

    - `ignore`: kinds of things to read the file without, such as `("limit",)`.
    - `floating_base`: hangs the root on a free joint, called `"root_joint"`.
    - `strict`: refuses inertias that no body has, and joints that move none. Otherwise
      the former are taken as they are and the latter are held fixed, with a warning.
    """
    links = _read(path_or_text, strict, ignore)
    found = []
    for link in links:
        if link.collides:
            found.append(("contact", f"link {link.name!r}"))
        joint = f"joint {link.joint!r}"
        if link.lower is not None:
            found.append(("limit", joint))
        if link.kind in MOVING and link.effort > 0:
            found.append(("saturation", joint))
        if link.damping:
            found.append(("damping", joint))
        if link.friction:
            found.append(("frictionloss", joint))
    refuse(found, ignore)
    return _mechanism(links, floating_base)


@careful_xml
def system_from_urdf(
    path_or_text: str | os.PathLike,
    *,
    ignore: Sequence[str] = (),
    floating_base: bool = False,
    strict: bool = False,
) -> System:
    """Return the system of a URDF file, or of its text.

    Its mechanism is that of `from_urdf`. Damping, friction and position limits of
    joints become parts. Each joint of one speed has a motor with its effort limit, if
    that is not zero, and an input `"<joint>:effort"` for it. A velocity limit is for
    controllers to respect. Collision shapes take no part in the motion.

    The stops' springs and dampers have a time constant of 0.02 s and a damping ratio of
    one on all that the joint carries.

    **Arguments:** those of `from_urdf`.

    !!! example

        ```python
        arm = djdyn.system_from_urdf("arm.urdf", floating_base=True)
        djdyn.simulate(arm, 1.0, inputs={"elbow:effort": 2.0})
        ```
    """
    links = _read(path_or_text, strict, ignore)
    ignore = as_kinds(ignore)
    refuse((), ignore, holder="System")
    parts: dict[str, AbstractPart] = {}
    inputs: dict[str, float] = {}
    carried = joint_inertias(links)
    for link in links:
        wants = lambda kind, link=link: link.kind in MOVING and kind not in ignore
        label = plain(link.joint)
        viscous = link.damping * wants("damping")
        coulomb = link.friction * wants("frictionloss")
        if viscous or coulomb:
            parts[f"{label}:friction"] = JointFriction(link.joint, viscous, coulomb)
        if link.lower is not None and link.upper is not None and wants("limit"):
            m = carried[link.joint][0]
            stop = (m / STOP_TIME**2, 2 * m / STOP_TIME)
            bounds = (link.lower, link.upper)
            parts[f"{label}:stop"] = JointStop(link.joint, *bounds, *stop)
        if wants("actuator"):
            command, path = f"{label}:effort", JointTransmission(link.joint)
            bounded = link.effort > 0 and wants("saturation")
            most = (-link.effort, link.effort) if bounded else None
            motor = Actuator(path, command, MotorLaw(), force_range=most)
            parts[f"{label}:actuator"], inputs[command] = motor, 0.0
    return System(_mechanism(links, floating_base), parts, inputs)


def _read(
    path_or_text: str | os.PathLike, strict: bool, ignore: Sequence[str]
) -> list[Link]:
    """The links, after what is odd about them was refused or said."""
    robot = parse_xml(read_text(path_or_text))
    if robot.tag != "robot":
        raise ValueError(f"a URDF file opens with <robot>, this one with <{robot.tag}>")
    links = read_links(robot)
    if "equality" in as_kinds(ignore):
        for link in links:
            link.mimic = None
    check_mimics(links)
    odd = [repr(link.name) for link in links if not is_physical(link)]
    idle = idle_joints(links)
    crossed = [x for x in links if x.lower is not None and x.lower > (x.upper or 0.0)]
    said = []
    if odd:
        said.append(
            f"inertias that no body has are taken as they are: links {listing(odd)}"
        )
    if idle:
        names = listing([repr(name) for name in idle])
        said.append(f"joints that move no mass are held fixed: {names}")
    if crossed:
        names = listing([repr(link.joint) for link in crossed])
        said.append(f"limits that cross are left out: joints {names}")
    if said and strict:
        raise ValueError(f"strict=True: {'; '.join(said)}")
    if said:
        warnings.warn("; ".join(said), stacklevel=3)
    for link in links:
        if link.joint in idle:
            link.kind, link.lower, link.upper = "fixed", None, None
            link.damping = link.friction = link.effort = 0.0
        if link in crossed:
            link.lower = link.upper = None
    return links


def _mechanism(links: list[Link], floating_base: bool) -> Mechanism:
    bodies, root = [], links[0]
    rename = {}
    taken = {link.joint for link in links}
    for link in links:
        joint: AbstractJoint = _joint(link)
        parent = rename.get(link.parent, link.parent) or WORLD
        label = link.joint
        if link is root:
            if root.name == WORLD and not floating_base:
                rename[WORLD] = WORLD
                continue
            if root.name == WORLD:
                rename[WORLD] = f"{WORLD}_link"
            joint = Free() if floating_base else Fixed()
            label = ROOT_JOINT if floating_base or root.name in taken else ""
        bodies.append(
            Body(
                rename.get(link.name, link.name),
                parent,
                joint,
                link.mass,
                link.centre,
                link.inertia,
                Pose(jnp.asarray(link.R, float), jnp.asarray(link.p, float)),
                joint_name=label,
                any_inertia=not is_physical(link),
            )
        )
    return Mechanism(tuple(bodies), loops=_mimics(links))


def _mimics(links: list[Link]) -> list[LinearCoupling]:
    """Joints that follow others; those that were held fixed follow and lead none."""
    moving = {link.joint for link in links if link.kind in MOVING}
    loops = []
    for link in links:
        if link.mimic and link.joint in moving:
            ratios = {link.joint: 1.0}
            if link.mimic.joint in moving:
                ratios[link.mimic.joint] = -link.mimic.multiplier
            name = f"{link.joint}:mimic"
            loops.append(LinearCoupling(name, ratios, link.mimic.offset))
    return loops


def _joint(link: Link) -> AbstractJoint:
    match link.kind:
        case "revolute" | "continuous":
            return Revolute(link.axis)
        case "prismatic":
            return Prismatic(link.axis)
        case "floating":
            return Free()
        case "planar":
            return Planar()
    return Fixed()
