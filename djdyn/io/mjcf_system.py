"""Systems from MJCF files: the mechanism with its springs, limits, actuators, sensors.

A part goes by the name of its joint, tendon, actuator, sensor or body with its kind
behind it, such as `"elbow:friction"`; a command is an input named after its actuator.
"""

import os
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..marine.inertia_box import InertiaBoxDrag
from ..multibody.mechanism import Mechanism
from ..parts.gravity import GravityCompensation
from ..system.system import System
from .mjcf import load_model, mechanism_of
from .mjcf_actuators import command_names, command_row, part_name, read_actuators
from .mjcf_contacts import read_contacts
from .mjcf_draft import SystemDraft, speed_order
from .mjcf_frames import inertia_frame
from .mjcf_joints import read_joints
from .mjcf_sensors import read_sensors
from .mjcf_tendons import read_tendons
from .unsupported import (
    KINDS,
    as_kinds,
    disabled,
    import_mujoco,
    listing,
    name_of,
    refuse,
    whole_model,
)
from .xml_safety import careful_xml


SYSTEM_KINDS = (*KINDS, "sensor")


@careful_xml
def system_from_mjcf(
    text_or_path: str | os.PathLike,
    *,
    ignore: Sequence[str] = (),
    contacts: bool = True,
) -> System:
    """Return the system of an MJCF file, or of its text.

    Its mechanism is that of `from_mjcf`; joints, tendons, actuators, sensors, contacts,
    gravity compensation and the medium become parts. Each actuator takes its command
    from an input named after it. What a `System` cannot hold is refused by name.

    **Arguments:**

    - `ignore`: kinds of things to read the model without, such as `("equality",)`.
    - `contacts`: whether geoms touch, where the file lets them; a mesh does as its
      convex hull of a few corners.

    !!! example

        ```python
        arm = djdyn.system_from_mjcf("arm.xml")
        trajectory = djdyn.simulate(arm, 2.0, inputs={"elbow": 0.5})
        ```
    """
    ignore = as_kinds(ignore) if contacts else (*as_kinds(ignore), "contact")
    return system_from_mujoco(load_model(text_or_path), ignore=ignore)


def system_from_mujoco(model: Any, *, ignore: Sequence[str] = ()) -> System:
    """The system of a compiled `mujoco.MjModel`."""
    draft = read_model(model, ignore)
    refuse(draft.refused, draft.ignore, SYSTEM_KINDS, "System")
    if draft.skipped:
        names = listing([name for _, name in draft.skipped])
        warnings.warn(f"read without {names}: no signal is like it", stacklevel=3)
    m = draft.mechanism
    frames = (*m.frames, *draft.frames.values())
    mechanism = Mechanism(m.bodies, frames, m.gravity_W, m.loops, m.closure)
    return System(mechanism, draft.parts, draft.inputs)


def read_model(model: Any, ignore: Sequence[str]) -> SystemDraft:
    """All that can be read of a model, and what cannot."""
    draft = SystemDraft(model, mechanism_of(model, ignore), ignore)
    for kind, name in whole_model(model):
        draft.refuse(kind, name)
    read_joints(draft)
    read_tendons(draft)
    read_actuators(draft)
    _gravity_compensation(draft)
    _medium(draft)
    read_sensors(draft)
    read_contacts(draft)
    return draft


def _gravity_compensation(draft: SystemDraft) -> None:
    model = draft.model
    rows = np.flatnonzero(model.body_gravcomp)
    on = not disabled(model, "GRAVITY") and np.any(model.opt.gravity)
    if len(rows) and on and draft.wants("gravcomp"):
        bodies = tuple(draft.body(i) for i in rows)
        part = GravityCompensation(bodies, model.body_gravcomp[rows])
        draft.add_part("gravity_compensation", part)


def _medium(draft: SystemDraft) -> None:
    """Drag on every body's inertia box; that on ellipsoids has no counterpart."""
    model, mujoco = draft.model, import_mujoco()
    some = model.opt.density or model.opt.viscosity
    if not some or disabled(model, "PASSIVE") or not draft.wants("fluid"):
        return
    for i in range(1, model.nbody):
        mass, moments = model.body_mass[i], model.body_inertia[i]
        geoms = np.flatnonzero(model.geom_bodyid == i)
        if np.any(model.geom_fluid[geoms, 0]):
            draft.refuse("fluid", f"{name_of(model, 'body', i)} (an ellipsoid)")
        elif mass > mujoco.mjMINVAL:
            across = np.maximum(moments.sum() - 2 * moments, mujoco.mjMINVAL)
            medium = model.opt.density, model.opt.viscosity, model.opt.wind
            frame, size = inertia_frame(draft, i), np.sqrt(6 * across / mass)
            part = InertiaBoxDrag(frame, size, *medium)
            draft.add_part(f"{draft.body(i)}:drag", part)


class Keyframe(NamedTuple):
    """A stored moment of a model: where it is, and the commands then.

    The first three are the arguments of `System.initial_state`, `inputs` is that of
    `simulate` and `rollout`.
    """

    q: Float[np.ndarray, " nq"]
    v: Float[np.ndarray, " nv"]
    parts: dict[str, dict[str, Array]]
    inputs: dict[str, float]


@careful_xml
def keyframes(
    text_or_path: str | os.PathLike, *, ignore: Sequence[str] = ()
) -> dict[str, Keyframe]:
    """Return the keyframes of an MJCF file by name, for the system of that file.

    **Arguments:**

    - `ignore`: what the system was read without.

    !!! example

        ```python
        home = djdyn.keyframes("arm.xml")["home"]
        start = arm.initial_state(home.q, home.v, home.parts)
        djdyn.simulate(arm, 2.0, start, inputs=home.inputs)
        ```
    """
    model = load_model(text_or_path)
    draft, found = read_model(model, ignore), {}
    order, commands = speed_order(model), command_names(draft)
    for k in range(model.nkey):
        states = {
            part_name(model, i): {"activation": jnp.asarray(model.key_act[k, a])}
            for i in commands
            if (a := int(model.actuator_actadr[i])) >= 0
        }
        inputs = {
            name: float(model.key_ctrl[k, command_row(model, i)])
            for i, name in commands.items()
        }
        name = model.key(k).name or f"key{k}"
        q, v = model.key_qpos[k].copy(), model.key_qvel[k][order]
        found[name] = Keyframe(q, v, states, inputs)
    return found
