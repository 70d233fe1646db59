"""Export of a mechanism of revolute joints as URDF or SDF.

The mechanism stands on a fixed link `base`, whose inertia has no effect but is required
by some engines.
"""

import numpy as np
from scipy.spatial.transform import Rotation

import djdyn
from djdyn.multibody.mechanism import AnyBody


ENTRIES = ("xx", "xy", "xz", "yy", "yz", "zz")


def urdf(mechanism: djdyn.Mechanism) -> str:
    """Return the URDF, with links and joints in the order of the bodies."""
    text = ['<robot name="machine">', _urdf_link("base", 1.0, np.zeros(3), np.eye(3))]
    for body, name, axis in _hinges(mechanism):
        text.append(_urdf_link(body.name, body.mass, body.p_BC, body.I_BC))
        text.append(
            f'<joint name="{name}" type="continuous">'
            f'<parent link="{_parent(body)}"/><child link="{body.name}"/>'
            f'<origin xyz="{_numbers(body.X_PJ.p)}" rpy="{_angles(body.X_PJ.R)}"/>'
            f'<axis xyz="{axis}"/></joint>'
        )
    return "\n".join([*text, "</robot>"])


def sdf(mechanism: djdyn.Mechanism) -> str:
    """Return the SDF."""
    text = [
        '<sdf version="1.10"><model name="machine"><joint name="root" type="fixed">'
        "<parent>world</parent><child>base</child></joint>",
        _sdf_link("base", "", 1.0, np.zeros(3), np.eye(3)),
    ]
    for body, name, axis in _hinges(mechanism):
        pose = f"{_numbers(body.X_PJ.p)} {_angles(body.X_PJ.R)}"
        text.append(
            f'<joint name="{name}" type="revolute">'
            f'<pose relative_to="{_parent(body)}">{pose}</pose>'
            f"<parent>{_parent(body)}</parent><child>{body.name}</child>"
            f"<axis><xyz>{axis}</xyz>"
            "<limit><lower>-1e16</lower><upper>1e16</upper></limit></axis></joint>"
        )
        place = f'<pose relative_to="{name}">0 0 0 0 0 0</pose>'
        text.append(_sdf_link(body.name, place, body.mass, body.p_BC, body.I_BC))
    return "\n".join([*text, "</model></sdf>"])


def _hinges(mechanism: djdyn.Mechanism):
    for body, name in zip(mechanism.bodies, mechanism.joint_names, strict=True):
        joint = body.joint
        if not (isinstance(body, djdyn.Body) and isinstance(joint, djdyn.Revolute)):
            raise ValueError(f"joint {name!r} is no hinge")
        yield body, name, _numbers(joint.axis)


def _parent(body: AnyBody) -> str:
    return "base" if body.parent == "world" else body.parent


def _urdf_link(name: str, mass, p_BC, I_BC) -> str:
    moments = " ".join(f'i{k}="{value!r}"' for k, value in _moments(I_BC))
    return (
        f'<link name="{name}"><inertial><origin xyz="{_numbers(p_BC)}" rpy="0 0 0"/>'
        f'<mass value="{_numbers(mass)}"/><inertia {moments}/></inertial></link>'
    )


def _sdf_link(name: str, place: str, mass, p_BC, I_BC) -> str:
    moments = "".join(f"<i{k}>{value!r}</i{k}>" for k, value in _moments(I_BC))
    return (
        f'<link name="{name}">{place}<inertial><pose>{_numbers(p_BC)} 0 0 0</pose>'
        f"<mass>{_numbers(mass)}</mass><inertia>{moments}</inertia></inertial></link>"
    )


def _moments(I_BC) -> list[tuple[str, float]]:
    at = lambda k: tuple("xyz".index(letter) for letter in k)
    return [(k, float(np.asarray(I_BC)[at(k)])) for k in ENTRIES]


def _numbers(x) -> str:
    return " ".join(repr(float(value)) for value in np.ravel(x))


def _angles(R) -> str:
    return _numbers(Rotation.from_matrix(np.asarray(R)).as_euler("xyz"))
