"""What a compiled MuJoCo model has and a `Mechanism` cannot hold.

A model that would move differently without something is refused with the names of all
such things; the caller may leave them out by kind, never by accident. What the model's
own flags switch off is not counted.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, SupportsInt

import numpy as np


KINDS = (
    "actuator",
    "armature",
    "contact",
    "damping",
    "equality",
    "flex",
    "fluid",
    "frictionloss",
    "gravcomp",
    "limit",
    "mocap",
    "plugin",
    "saturation",
    "sleep",
    "stiffness",
    "tendon",
)


def import_mujoco() -> Any:
    """The `mujoco` package, which only the readers of its formats need."""
    try:
        import mujoco
    except ImportError as error:
        raise ImportError(
            "reading MJCF and URDF needs MuJoCo's compiler: pip install djdyn[formats]"
        ) from error
    return mujoco


def refuse(
    found: Iterable[tuple[str, str]],
    ignore: Sequence[str],
    kinds: Sequence[str] = KINDS,
    holder: str = "Mechanism",
) -> None:
    """Raises unless every kind found is one to ignore.

    **Arguments:**

    - `found`: pairs of a kind and the name of what has it.
    - `ignore`: kinds to leave out, of the `kinds` there are.
    - `holder`: what cannot hold the rest.
    """
    ignore = as_kinds(ignore)
    for kind in ignore:
        if kind not in kinds:
            raise ValueError(
                f"cannot ignore {kind!r}; what can be ignored is {', '.join(kinds)}"
            )
    culprits: dict[str, list[str]] = {}
    for kind, name in found:
        if kind not in ignore and name not in culprits.setdefault(kind, []):
            culprits[kind].append(name)
    if culprits:
        listed = "; ".join(f"{kind} of {listing(n)}" for kind, n in culprits.items())
        raise ValueError(
            f"the model has {listed}, which a {holder} cannot hold: take it out, or "
            f"pass ignore={tuple(culprits)!r} to read the model without it"
        )


def as_kinds(ignore: Sequence[str]) -> tuple[str, ...]:
    """Kinds as a tuple: one of them need not be in a list."""
    return (ignore,) if isinstance(ignore, str) else tuple(ignore)


MOST_NAMES = 3  # in one sentence


def listing(names: Sequence[str]) -> str:
    """The first few names, and how many there are more."""
    shown = ", ".join(names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def unsupported(model: Any) -> Iterator[tuple[str, str]]:
    """Pairs of a kind and the name of what has it, in a `mujoco.MjModel`."""
    yield from _joints(model)
    yield from _actuators(model)
    yield from _constraints(model)
    yield from whole_model(model)
    yield from _bodies_and_medium(model)


def disabled(model: Any, *flags: str) -> bool:
    """Whether one of the flags is set; those of another MuJoCo version are not."""
    mujoco = import_mujoco()
    bits = [getattr(mujoco.mjtDisableBit, "mjDSBL_" + flag, 0) for flag in flags]
    return any(model.opt.disableflags & int(bit) for bit in bits)


def _acts(model: Any, i: int, *fields: str) -> bool:
    """Whether row `i` of a field is not zero; one of another MuJoCo version is."""
    return any(np.any(getattr(model, f)[i]) for f in fields if hasattr(model, f))


def name_of(model: Any, kind: str, i: SupportsInt) -> str:
    """The element's name in quotes, or its number."""
    name = getattr(model, kind)(int(i)).name
    return f"{kind} {name!r}" if name else f"{kind} number {int(i)}"


def _joints(model: Any) -> Iterator[tuple[str, str]]:
    dampers = not disabled(model, "DAMPER", "PASSIVE")
    friction = not disabled(model, "CONSTRAINT", "FRICTIONLOSS")
    for i in range(model.nv):
        name = name_of(model, "joint", model.dof_jntid[i])
        if dampers and _acts(model, i, "dof_damping", "dof_dampingpoly"):
            yield "damping", name
        if friction and model.dof_frictionloss[i]:
            yield "frictionloss", name
    springs = not disabled(model, "SPRING", "PASSIVE")
    limits = not disabled(model, "CONSTRAINT", "LIMIT")
    for i in range(model.njnt):
        name = name_of(model, "joint", i)
        if springs and _acts(model, i, "jnt_stiffness", "jnt_stiffnesspoly"):
            yield "stiffness", name
        if limits and model.jnt_limited[i]:
            yield "limit", name
        if model.jnt_actfrclimited[i] and not disabled(model, "ACTUATION"):
            yield "saturation", name


def _actuators(model: Any) -> Iterator[tuple[str, str]]:
    """All but a torque or force on a hinge or slide: that is what `tau` is."""
    for i in range(len(model.actuator_trntype)):
        name = name_of(model, "actuator", i)
        if _acts(model, i, "actuator_armature"):
            yield "armature", name
        if _acts(model, i, "actuator_damping", "actuator_dampingpoly"):
            yield "damping", name
        group = int(model.actuator_group[i])
        off = 0 <= group < 31 and model.opt.disableactuator & (1 << group)
        if off or disabled(model, "ACTUATION"):
            continue
        if not _is_motor(model, i):
            yield "actuator", name
        elif model.actuator_ctrllimited[i] or model.actuator_forcelimited[i]:
            yield "saturation", name


def _is_motor(model: Any, i: int) -> bool:
    mujoco = import_mujoco()
    on_joint = (
        int(mujoco.mjtTrn.mjTRN_JOINT),
        int(mujoco.mjtTrn.mjTRN_JOINTINPARENT),
    )
    one_axis = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    return bool(
        model.actuator_trntype[i] in on_joint
        and model.jnt_type[model.actuator_trnid[i, 0]] in one_axis
        and model.actuator_gear[i, 0] == 1
        and model.actuator_gaintype[i] == int(mujoco.mjtGain.mjGAIN_FIXED)
        and model.actuator_gainprm[i, 0] == 1
        and model.actuator_biastype[i] == int(mujoco.mjtBias.mjBIAS_NONE)
        and model.actuator_dyntype[i] == int(mujoco.mjtDyn.mjDYN_NONE)
        and model.actuator_plugin[i] < 0
        and not (hasattr(model, "actuator_delay") and model.actuator_delay[i])
    )


def _constraints(model: Any) -> Iterator[tuple[str, str]]:
    tendon = {"tendon_armature"}
    if not disabled(model, "SPRING", "PASSIVE"):
        tendon |= {"tendon_stiffness", "tendon_stiffnesspoly"}
    if not disabled(model, "DAMPER", "PASSIVE"):
        tendon |= {"tendon_damping", "tendon_dampingpoly"}
    if not disabled(model, "CONSTRAINT", "FRICTIONLOSS"):
        tendon |= {"tendon_frictionloss"}
    if not disabled(model, "CONSTRAINT", "LIMIT"):
        tendon |= {"tendon_limited"}
    for i in range(model.ntendon):
        if _acts(model, i, *tendon):
            yield "tendon", name_of(model, "tendon", i)
    if not disabled(model, "CONSTRAINT", "CONTACT"):
        for i in sorted({g for pair in touching_pairs(model) for g in pair}):
            yield "contact", geom_name(model, i)


def geom_name(model: Any, i: SupportsInt) -> str:
    """The geom's name in quotes, or its number and body."""
    body = name_of(model, "body", model.geom_bodyid[int(i)])
    named = model.geom(int(i)).name
    return name_of(model, "geom", i) + ("" if named else f" on {body}")


def touching_pairs(model: Any) -> list[tuple[int, int]]:
    """Pairs of geoms that MuJoCo would look for a contact of."""
    pair = _filtered(model)
    pair[model.pair_geom1, model.pair_geom2] = True
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(pair | pair.T, 1))]


def _filtered(model: Any) -> np.ndarray:
    """For each two geoms, whether no filter keeps them apart."""
    kind, affinity = model.geom_contype, model.geom_conaffinity
    pair = (kind[:, None] & affinity[None]) | (kind[None] & affinity[:, None])
    body = model.geom_bodyid
    weld = model.body_weldid[body]
    above = model.body_weldid[model.body_parentid[weld]]
    pair = (pair != 0) & (weld[:, None] != weld[None])
    if not disabled(model, "FILTERPARENT"):
        child = (weld[:, None] == above[None]) | (above[:, None] == weld[None])
        pair &= ~(child & (weld[:, None] != 0) & (weld[None] != 0))
    for code in np.ravel(model.exclude_signature):
        a, b = body == code >> 16, body == code & 0xFFFF
        pair &= ~((a[:, None] & b[None]) | (b[:, None] & a[None]))
    return pair


def _bodies_and_medium(model: Any) -> Iterator[tuple[str, str]]:
    if model.opt.density or model.opt.viscosity:
        yield "fluid", "the medium"
    if np.any(model.opt.gravity) and not disabled(model, "GRAVITY"):
        for i in np.flatnonzero(model.body_gravcomp):
            yield "gravcomp", name_of(model, "body", i)


def _active_equalities(model: Any) -> list[int]:
    if disabled(model, "CONSTRAINT", "EQUALITY"):
        return []
    return np.flatnonzero(model.eq_active0).tolist()


def loop_equalities(model: Any) -> list[int]:
    """Numbers of the active equalities of bodies, sites and joints: they are loops."""
    kind = import_mujoco().mjtEq
    loops = {int(k) for k in (kind.mjEQ_CONNECT, kind.mjEQ_WELD, kind.mjEQ_JOINT)}
    return [i for i in _active_equalities(model) if int(model.eq_type[i]) in loops]


def whole_model(model: Any) -> Iterator[tuple[str, str]]:
    """Pairs of a kind and a name, of what a `System` cannot hold either."""
    mujoco = import_mujoco()
    loops = loop_equalities(model)
    for i in _active_equalities(model):
        if i not in loops:
            what = mujoco.mjtEq(int(model.eq_type[i])).name.removeprefix("mjEQ_")
            yield "equality", f"{name_of(model, 'equality', i)} ({what.lower()})"
    for i in np.flatnonzero(model.body_mocapid >= 0):
        yield "mocap", name_of(model, "body", i)
    for i in range(model.nflex):
        yield "flex", f"flex number {i}"
    for i in range(model.nplugin):
        yield "plugin", f"plugin number {i}"
    sleep = getattr(mujoco.mjtEnableBit, "mjENBL_SLEEP", 0)
    if model.opt.enableflags & int(sleep):
        yield "sleep", "bodies at rest"
