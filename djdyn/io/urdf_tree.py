"""Links and joints of a URDF file, as numbers; checks of their inertias."""

import dataclasses
import math
import xml.etree.ElementTree as ET

import numpy as np
from scipy.spatial.transform import Rotation


MOVING = ("revolute", "continuous", "prismatic")
KINDS = ("fixed", *MOVING, "floating", "planar")
MIMIC = {"multiplier": "1", "offset": "0"}


@dataclasses.dataclass
class Mimic:
    """The joint that another follows, and its law."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclasses.dataclass
class Link:
    """A link, and the joint that hangs it on its parent; none hangs the root."""

    name: str
    mass: float = 0.0
    centre: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((3, 3)))
    parent: str = ""
    joint: str = ""
    kind: str = "fixed"
    R: np.ndarray = dataclasses.field(default_factory=lambda: np.eye(3))
    p: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))
    axis: np.ndarray = dataclasses.field(default_factory=lambda: np.eye(3)[0])
    damping: float = 0.0
    friction: float = 0.0
    lower: float | None = None
    upper: float | None = None
    effort: float = 0.0
    mimic: Mimic | None = None
    collides: bool = False


def read_links(robot: ET.Element) -> list[Link]:
    """All links of a robot, parents before children."""
    links = {}
    for element in robot.findall("link"):
        link = _link(element)
        if link.name in links:
            raise ValueError(f"two links are called {link.name!r}")
        links[link.name] = link
    if not links:
        raise ValueError("the robot has no links")
    for element in robot.findall("joint"):
        _hang(element, links)
    roots = [link.name for link in links.values() if not link.parent]
    if len(roots) != 1:
        raise ValueError(
            f"a robot has one root link, this one has {len(roots)}: {', '.join(roots)}"
        )
    order, waiting = [], roots
    while waiting:
        name = waiting.pop(0)
        order.append(links[name])
        waiting = [x.name for x in links.values() if x.parent == name] + waiting
    if len(order) != len(links):
        lost = [name for name in links if links[name] not in order]
        raise ValueError(f"links form a loop: {', '.join(lost)}")
    return order


def _link(element: ET.Element) -> Link:
    link = Link(_name(element), collides=element.find("collision") is not None)
    inertial = element.find("inertial")
    if inertial is None:
        return link
    where = f"link {link.name!r}"
    R, link.centre = _origin(inertial, where)
    link.mass = _number(inertial.find("mass"), "value", where)
    get = lambda key: _number(inertial.find("inertia"), key, where)
    xx, yy, zz, xy, xz, yz = map(get, ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    turned = R @ tensor @ R.T
    link.inertia = (turned + turned.T) / 2
    if link.mass < 0:
        raise ValueError(f"{where}: mass must be positive, got {link.mass:g} kg")
    return link


def _hang(element: ET.Element, links: dict[str, Link]) -> None:
    """Reads a joint into its child link."""
    name, kind = _name(element), element.get("type", "")
    where = f"joint {name!r}"
    ends = [element.find(end) for end in ("parent", "child")]
    parent, child = ("" if e is None else e.get("link", "") for e in ends)
    for end in (parent, child):
        if end not in links:
            raise ValueError(f"{where} hangs on unknown link {end!r}")
    link = links[child]
    if link.parent:
        raise ValueError(
            f"link {child!r} hangs on two joints, {link.joint!r}, {name!r}"
        )
    if kind not in KINDS:
        raise ValueError(f"{where} has type {kind!r}; there are {', '.join(KINDS)}")
    link.parent, link.joint, link.kind = parent, name, kind
    link.R, link.p = _origin(element, where)
    axis = element.find("axis")
    if axis is not None:
        link.axis = _numbers(axis.get("xyz", "1 0 0"), where)
    if kind in MOVING and not link.axis.any():
        raise ValueError(f"{where}: the axis must not be zero")
    if kind == "planar" and np.any(link.axis[:2]):
        raise ValueError(f"{where}: a planar joint's axis must be z")
    dynamics, limit = element.find("dynamics"), element.find("limit")
    if dynamics is not None:
        link.damping = float(dynamics.get("damping", 0.0))
        link.friction = float(dynamics.get("friction", 0.0))
    if limit is not None:
        link.effort = float(limit.get("effort", 0.0))
        if kind in ("revolute", "prismatic"):
            link.lower = float(limit.get("lower", 0.0))
            link.upper = float(limit.get("upper", 0.0))
    mimic = element.find("mimic")
    if mimic is not None:
        law = (_number(mimic, key, where, x) for key, x in MIMIC.items())
        link.mimic = Mimic(mimic.get("joint", ""), *law)


def check_mimics(links: list[Link]) -> None:
    """Raise unless every joint that follows another follows one that can move."""
    kinds = {link.joint: link.kind for link in links if link.parent}
    for link in links:
        if link.mimic is None:
            continue
        for name in (link.joint, link.mimic.joint):
            if name not in kinds:
                raise ValueError(f"joint {link.joint!r} mimics unknown joint {name!r}")
            if kinds[name] not in MOVING:
                raise ValueError(
                    f"joint {link.joint!r} mimics {link.mimic.joint!r}, but {name!r} "
                    f"is {kinds[name]}: both must have one freedom"
                )
        if link.joint == link.mimic.joint:
            raise ValueError(f"joint {link.joint!r} mimics itself")


def _origin(element: ET.Element, where: str) -> tuple[np.ndarray, np.ndarray]:
    origin = element.find("origin")
    if origin is None:
        return np.eye(3), np.zeros(3)
    rpy = _numbers(origin.get("rpy", "0 0 0"), where)
    p = _numbers(origin.get("xyz", "0 0 0"), where)
    return Rotation.from_euler("xyz", rpy).as_matrix(), p


def _name(element: ET.Element) -> str:
    name = element.get("name", "")
    if not name:
        raise ValueError(f"a {element.tag} has no name")
    return name


def _numbers(text: str, where: str) -> np.ndarray:
    try:
        values = np.array([float(x) for x in text.split()])
    except ValueError:
        values = np.full(3, np.nan)
    if values.shape != (3,) or not np.isfinite(values).all():
        raise ValueError(f"{where}: expected three numbers, got {text!r}")
    return values


def _number(
    element: ET.Element | None, key: str, where: str, default: str = ""
) -> float:
    text = default if element is None else element.get(key, default)
    try:
        if not math.isfinite(number := float(text)):
            raise ValueError
        return number
    except ValueError:
        raise ValueError(
            f"{where}: expected a number for {key}, got {text!r}"
        ) from None
