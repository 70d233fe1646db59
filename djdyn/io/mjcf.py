r"""Mechanisms from MJCF files, read by MuJoCo's own compiler.

Coordinates `q` are MuJoCo's `qpos`. Speeds `v` are its `qvel`, but for a free joint,
which is (linear, angular) there and (angular, linear) here.

A body's frame is the moving frame of its last joint: MuJoCo's body frame, shifted to
the joint's anchor. Where the two differ, MuJoCo's is the frame `"<body>:origin"`.
"""

import os
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..multibody.joints import (
    AbstractJoint,
    Fixed,
    Free,
    Prismatic,
    Revolute,
    Spherical,
)
from ..multibody.mechanism import WORLD, Body, Frame, Mechanism
from ..multibody.spatial import (
    Pose,
    identity_pose,
    rotation_about,
    translation,
)
from .mjcf_loops import with_loops
from .unsupported import as_kinds, import_mujoco, refuse, unsupported
from .xml_safety import careful_xml


@careful_xml
def from_mjcf(
    text_or_path: str | os.PathLike, *, ignore: Sequence[str] = ()
) -> Mechanism:
    """Return the mechanism of an MJCF file, or of its text.

    A body with several joints hangs on massless ones, called `"<body>:<joint>"`. Sites
    become frames; equalities of bodies, sites and joints become loops. Motors of gear
    one are accepted, since `tau` is what they give. All else that moves the bodies and
    has no place in a `Mechanism` is an error.

    **Arguments:**

    - `ignore`: kinds of things to read the model without, such as `("damping",)`.

    !!! example

        ```python
        arm = djdyn.from_mjcf("arm.xml", ignore=("damping",))
        ```
    """
    return from_mujoco(load_model(text_or_path), ignore=ignore)


def load_model(text_or_path: str | os.PathLike) -> Any:
    """The compiled model of an MJCF file, or of its text."""
    mujoco = import_mujoco()
    text = read_text(text_or_path)
    if parse_xml(text).tag == "robot":
        raise ValueError("this is a URDF file: read it with `from_urdf`")
    if os.fspath(text_or_path) == text:
        return mujoco.MjModel.from_xml_string(text)
    return mujoco.MjModel.from_xml_path(os.fspath(text_or_path))


def from_mujoco(model: Any, *, ignore: Sequence[str] = ()) -> Mechanism:
    """The mechanism of a compiled `mujoco.MjModel`.

    **Arguments:**

    - `ignore`: kinds of things to read the model without.
    """
    refuse(unsupported(model), ignore)
    return mechanism_of(model, ignore)


def mechanism_of(model: Any, ignore: Sequence[str] = ()) -> Mechanism:
    """Bodies, joints, sites, loops and gravity of a compiled model, and nothing else.

    **Arguments:**

    - `ignore`: with `"equality"` among it, loops are left open.
    """
    bodies: list[Body] = []
    frames: list[Frame] = []
    anchors = [np.zeros(3)]  # of the moving frame, in MuJoCo's body frame
    names = [WORLD]
    for i in range(1, model.nbody):
        names.append(model.body(i).name or f"body{i}")
        bodies += _chain(model, i, names, anchors)
        if anchors[i].any():
            frames.append(
                Frame(f"{names[i]}:origin", names[i], translation(-anchors[i]))
            )
    taken = {WORLD, *(body.name for body in bodies)}
    for i in range(model.nsite):
        name, b = model.site(i).name, int(model.site_bodyid[i])
        if name:
            X_BF = _pose(model.site_pos[i] - anchors[b], model.site_quat[i])
            name = f"site:{name}" if name in taken else name
            frames.append(Frame(name, names[b], X_BF))
    tree = Mechanism(tuple(bodies), tuple(frames), _gravity(model))
    return tree if "equality" in as_kinds(ignore) else with_loops(model, tree)


def _chain(model: Any, i: int, names: list[str], anchors: list) -> list[Body]:
    """MuJoCo's body `i`, below a massless body for each of its joints but the last.

    With B MuJoCo's body frame and `a` a joint's anchor in it, the moving frame is B
    shifted by `a`, so from one joint to the next is a shift by the difference.
    """
    body, parent = names[i], int(model.body_parentid[i])
    first, count = model.body_jntadr[i], model.body_jntnum[i]
    joints = [_joint(model, j) for j in range(first, first + count)]
    joints = joints or [(Fixed(), identity_pose(), np.zeros(3), "")]
    X_PB = translation(-anchors[parent]) @ _pose(model.body_pos[i], model.body_quat[i])
    rotors = [_armature(model, j) for j in range(first, first + count)] or [None]
    above, here, chain = names[parent], np.zeros(3), []
    for (joint, X_JJ, anchor, label), rotor in zip(joints[:-1], rotors, strict=False):
        X_PJ = X_PB @ translation(anchor - here) @ X_JJ
        label = label or f"joint{len(chain) + 1}"
        name = f"{body}:{label}"
        chain.append(
            Body(name, above, joint, 0.0, X_PJ=X_PJ, joint_name=label, armature=rotor)
        )
        above, here, X_PB = name, anchor, identity_pose()
    joint, X_JJ, anchor, label = joints[-1]
    if isinstance(joint, Free):  # its coordinates are the pose in the world
        X_PB = identity_pose()
    anchors.append(anchor)
    R_BC = _rotation(model.body_iquat[i])
    last = Body(
        body,
        above,
        joint,
        model.body_mass[i],
        model.body_ipos[i] - anchor,
        R_BC @ np.diag(model.body_inertia[i]) @ R_BC.T,
        X_PB @ translation(anchor - here) @ X_JJ,
        joint_name=label or _unnamed(model, body),
        armature=rotors[-1],
    )
    return [*chain, last]


def _joint(model: Any, j: int) -> tuple[AbstractJoint, Pose, np.ndarray, str]:
    """The joint, its frame at `q = 0` as seen from the model's start, anchor, name."""
    kind, axis, name = int(model.jnt_type[j]), model.jnt_axis[j], model.joint(j).name
    types = import_mujoco().mjtJoint
    start = float(model.qpos0[model.jnt_qposadr[j]])
    if kind == types.mjJNT_FREE:
        return Free(), identity_pose(), np.zeros(3), name
    if kind == types.mjJNT_BALL:
        return Spherical(), identity_pose(), model.jnt_pos[j], name
    if kind == types.mjJNT_SLIDE:
        return Prismatic(axis), translation(-start * axis), np.zeros(3), name
    back = rotation_about(jnp.asarray(axis), jnp.asarray(-start))
    return Revolute(axis), Pose(back, jnp.zeros(3)), model.jnt_pos[j], name


def _armature(model: Any, j: int) -> np.ndarray | None:
    """The rotor's inertia for each of the joint's speeds, in our order of them."""
    first, free = int(model.jnt_dofadr[j]), import_mujoco().mjtJoint.mjJNT_FREE
    count = int(np.sum(model.dof_jntid == j))
    rotor = model.dof_armature[first : first + count]
    rotor = np.roll(rotor, 3) if model.jnt_type[j] == free else rotor
    return rotor.copy() if rotor.any() else None


def _unnamed(model: Any, body: str) -> str:
    """An empty name, so that the joint goes by the body's, unless another does."""
    taken = any(model.joint(j).name == body for j in range(model.njnt))
    return f"{body}:joint" if taken else ""


def _pose(p: np.ndarray, quaternion: np.ndarray) -> Pose:
    return Pose(jnp.asarray(_rotation(quaternion)), jnp.asarray(p))


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    """In double precision, whatever that of JAX."""
    R = np.zeros(9)
    import_mujoco().mju_quat2Mat(R, quaternion / np.linalg.norm(quaternion))
    return R.reshape(3, 3)


def _gravity(model: Any) -> np.ndarray:
    off = import_mujoco().mjtDisableBit.mjDSBL_GRAVITY
    return model.opt.gravity * (0.0 if model.opt.disableflags & int(off) else 1.0)


def read_text(text_or_path: str | os.PathLike) -> str:
    """The text itself, or that of a file."""
    if isinstance(text_or_path, str) and text_or_path.lstrip().startswith("<"):
        return text_or_path
    return Path(text_or_path).read_text(encoding="utf-8")


def parse_xml(text: str) -> ET.Element:
    """The root of an XML text."""
    try:
        return ET.fromstring(text)
    except ET.ParseError as error:
        raise ValueError(f"the file is not well-formed XML: {error}") from error
