r"""Loops of a MuJoCo model: equalities of bodies, sites and joints.

MuJoCo's equalities are soft, by `solref` and `solimp`; loops are exact.
"""

from typing import Any

import numpy as np

from ..multibody.joints import Fixed, Spherical
from ..multibody.loops import AbstractLoop, LinearCoupling, Loop, PolynomialCoupling
from ..multibody.mechanism import WORLD, Frame, Mechanism
from .mjcf_draft import body_name, joint_names
from .mjcf_frames import frame_on
from .unsupported import import_mujoco, loop_equalities


def with_loops(model: Any, mechanism: Mechanism) -> Mechanism:
    """The mechanism with the equalities of a compiled model that are active."""
    rows = loop_equalities(model)
    if not rows:
        return mechanism
    m = mechanism
    taken = {WORLD, *m.joint_names, *(body.name for body in m.bodies)}
    taken |= {frame.name for frame in m.frames}
    frames, loops = list(m.frames), []
    for i in rows:
        name = model.equality(i).name or f"equality{i}"
        name = f"equality:{name}" if name in taken else name
        loop, ends = _loop(model, m, i, name)
        loops.append(loop)
        frames += ends
    return Mechanism(m.bodies, tuple(frames), m.gravity_W, tuple(loops), m.closure)


def _loop(
    model: Any, mechanism: Mechanism, i: int, name: str
) -> tuple[AbstractLoop, list[Frame]]:
    """Equality number `i` as a loop or a coupling, with its frames."""
    kinds, kind = import_mujoco().mjtEq, int(model.eq_type[i])
    if kind == int(kinds.mjEQ_JOINT):
        return _coupling(model, mechanism, i, name), []
    ends = _ends(model, mechanism, i, name)
    turns = kind == int(kinds.mjEQ_CONNECT) or not model.eq_data[i, 10]
    joint = Spherical() if turns else Fixed()
    return Loop(name, ends[0].name, ends[1].name, joint), ends


def _coupling(
    model: Any, mechanism: Mechanism, i: int, name: str
) -> LinearCoupling | PolynomialCoupling:
    """A joint that follows a polynomial of another, both counted from `qpos0`."""
    names = joint_names(model, mechanism)
    ids = [int(model.eq_obj1id[i]), int(model.eq_obj2id[i])]
    start = [float(model.qpos0[model.jnt_qposadr[j]]) for j in ids if j >= 0]
    law = np.polynomial.Polynomial(model.eq_data[i, :5])
    if ids[1] < 0:
        return LinearCoupling(name, {names[ids[0]]: 1.0}, start[0] + law.coef[0])
    law = law(np.polynomial.Polynomial([-start[1], 1.0])) + start[0]
    coefficients = np.zeros(max(2, len(law.trim().coef)))
    coefficients[: len(law.trim().coef)] = law.trim().coef
    return PolynomialCoupling(name, names[ids[0]], names[ids[1]], coefficients)


def _ends(model: Any, mechanism: Mechanism, i: int, name: str) -> list[Frame]:
    """Frames on the two bodies that coincide, or their origins, where it holds."""
    mujoco, data = import_mujoco(), model.eq_data[i]
    ids = [int(model.eq_obj1id[i]), int(model.eq_obj2id[i])]
    unturned = np.array([1.0, 0.0, 0.0, 0.0])
    if int(model.eq_objtype[i]) == int(mujoco.mjtObj.mjOBJ_SITE):
        bodies = [int(model.site_bodyid[s]) for s in ids]
        places = [(model.site_pos[s], model.site_quat[s]) for s in ids]
    elif int(model.eq_type[i]) == int(mujoco.mjtEq.mjEQ_CONNECT):
        bodies, places = ids, [(data[:3], unturned), (data[3:6], unturned)]
    else:
        bodies, places = ids, [(data[3:6], data[6:10]), (data[:3], unturned)]
    frames = []
    for k, (body, (p, quat)) in enumerate(zip(bodies, places, strict=True), start=1):
        X_BF = frame_on(mechanism, body_name(model, body), p, quat)
        frames.append(Frame(f"{name}:{k}", body_name(model, body), X_BF))
    return frames
