"""Frames of a MuJoCo model's sites, geoms and inertias."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..multibody.mechanism import WORLD, Frame, Mechanism
from ..multibody.spatial import Pose
from .mjcf_draft import SystemDraft
from .unsupported import import_mujoco


def site_frame(draft: SystemDraft, i: int) -> str:
    """The frame of a site."""
    name = draft.model.site(i).name
    taken = {WORLD, *(body.name for body in draft.mechanism.bodies)}
    return f"site:{name}" if name in taken else name


def inertia_frame(draft: SystemDraft, i: int) -> str:
    """The frame of a body's principal axes at its centre of mass, added if missing."""
    model = draft.model
    place = model.body_ipos[i], model.body_iquat[i]
    return draft.add_frame(_on_body(draft, f"{draft.body(i)}:inertia", i, *place))


def geom_frame(draft: SystemDraft, i: int) -> str:
    """The frame of a geom, added to those of the mechanism."""
    model = draft.model
    name = f"geom:{model.geom(i).name or i}"
    place = model.geom_pos[i], model.geom_quat[i]
    return draft.add_frame(_on_body(draft, name, int(model.geom_bodyid[i]), *place))


def _on_body(draft: SystemDraft, name: str, i: int, p: Any, quat: Any) -> Frame:
    body = draft.body(i)
    return Frame(name, body, frame_on(draft.mechanism, body, p, quat))


def frame_on(mechanism: Mechanism, body: str, p: Any, quat: Any) -> Pose:
    """A place given in MuJoCo's body frame, which may be off the moving one."""
    R = np.zeros(9)
    import_mujoco().mju_quat2Mat(R, quat / np.linalg.norm(quat))
    shift = np.zeros(3)
    for frame in mechanism.frames:
        if frame.name == f"{body}:origin":
            shift = np.asarray(frame.X_BF.p)
    return Pose(jnp.asarray(R.reshape(3, 3)), jnp.asarray(p + shift))
