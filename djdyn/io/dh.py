r"""Mechanisms from tables of Denavit-Hartenberg parameters.

The joint variable is the table's $\theta$ (revolute) or $d$ (prismatic) itself; the
value that a table gives it is where the machine starts, see `dh_initial_q`.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..multibody.joints import Prismatic, Revolute
from ..multibody.mechanism import WORLD, Body, Frame, Mechanism
from ..multibody.spatial import Pose, identity_pose, rotation_x, rotation_z, translation
from ..typing import known


@dataclasses.dataclass(frozen=True)
class DHLink:
    """A row of the table, in rad and m, with the link's mass, centre and inertia.

    `type` is `"revolute"` or `"prismatic"`.

    `com` is the centre of mass at zero displacement, in the frame that the joint turns
    or slides, and `inertia` (its diagonal, or 3x3) is about it in the same axes. That
    frame is the one before the row's transform in Paul's convention (proximal), the one
    after it in Craig's.
    """

    name: str
    type: str = "revolute"
    alpha: Any = 0.0
    a: Any = 0.0
    d: Any = 0.0
    theta: Any = 0.0
    mass: Any = 0.0
    com: Any = (0.0, 0.0, 0.0)
    inertia: Any = (0.0, 0.0, 0.0)


Table = Sequence[DHLink | Mapping[str, Any]]


def from_dh(
    table: Table, *, base: Pose | None = None, convention: str = "paul"
) -> Mechanism:
    r"""Return a serial chain from Denavit-Hartenberg parameters.

    From one link's end to the next, in Paul's (standard) and Craig's (modified) form,

    $$X = T_z(d)\,R_z(\theta)\,T_x(a)\,R_x(\alpha), \qquad
      X = R_x(\alpha)\,T_x(a)\,R_z(\theta)\,T_z(d)$$

    (Paul, *Robot Manipulators*, 1981; Craig, *Introduction to Robotics*, 1986). The end
    of each link is the frame `"<name>.end"`. All numbers may be traced.

    **Arguments:**

    - `table`: rows, from the base outwards: `DHLink`s, or mappings with its fields.
    - `base`: where the first row starts, in the world.
    - `convention`: `"paul"` or `"craig"`.

    !!! example

        ```python
        link = {"name": "link", "type": "revolute", "a": 1.0, "mass": 2.0}
        arm = djdyn.from_dh([link])
        ```
    """
    if convention not in ("paul", "craig"):
        raise ValueError(f"unknown convention {convention!r}; there are paul and craig")
    parent, X_PE = WORLD, identity_pose() if base is None else base
    bodies, frames = [], []
    for link in _links(table):
        screw_z = _fixed_part_of_z(link)
        screw_x = _screw(rotation_x(_number(link.alpha)), [link.a, 0.0, 0.0])
        if convention == "paul":
            X_PJ, X_BE = X_PE, screw_z @ screw_x
        else:
            X_PJ, X_BE = X_PE @ screw_x @ screw_z, identity_pose()
        inertia = jnp.asarray(link.inertia, dtype=float)
        bodies.append(
            Body(
                link.name,
                parent,
                Revolute() if link.type == "revolute" else Prismatic(),
                link.mass,
                link.com,
                jnp.diag(inertia) if inertia.ndim == 1 else inertia,
                X_PJ,
            )
        )
        frames.append(Frame(f"{link.name}.end", link.name, X_BE))
        parent, X_PE = link.name, X_BE
    return Mechanism(tuple(bodies), tuple(frames))


def dh_initial_q(table: Table) -> Float[Array, " nq"]:
    """Return the coordinates at the table's own values of the joint variables."""
    values = [x.theta if x.type == "revolute" else x.d for x in _links(table)]
    return jnp.stack([_number(x) for x in values])


def _links(table: Table) -> list[DHLink]:
    fields = {field.name for field in dataclasses.fields(DHLink)}
    links = []
    for number, row in enumerate(table, start=1):
        if isinstance(row, Mapping):
            unknown = sorted(set(row) - fields)
            if unknown or "name" not in row:
                raise ValueError(
                    f"row {number} has unknown {', '.join(unknown)}"
                    if unknown
                    else f"row {number} has no name"
                )
            row = DHLink(**row)
        if not isinstance(row, DHLink) or not isinstance(row.name, str):
            raise ValueError(f"row {number} is no link with a name")
        _check_numbers(row)
        if row.type not in ("revolute", "prismatic"):
            raise ValueError(
                f"link {row.name!r}: type must be revolute or prismatic, "
                f"not {row.type!r}"
            )
        links.append(row)
    if not links:
        raise ValueError("the table has no rows")
    return links


def _check_numbers(link: DHLink) -> None:
    """Raise where a value is known and is not one or more finite numbers."""
    for field in ("alpha", "a", "d", "theta", "mass", "com", "inertia"):
        value = getattr(link, field)
        if not known(*(value if isinstance(value, list | tuple) else (value,))):
            continue
        try:
            finite = np.all(np.isfinite(np.asarray(value, dtype=float)))
        except (TypeError, ValueError, OverflowError):
            finite = False
        if not finite:
            raise ValueError(f"link {link.name!r}: {field} must be finite numbers")


def _fixed_part_of_z(link: DHLink) -> Pose:
    """The turn about z, or shift along it, that is not the joint's."""
    if link.type == "revolute":
        return translation(jnp.stack([_number(x) for x in (0.0, 0.0, link.d)]))
    return Pose(rotation_z(_number(link.theta)), jnp.zeros(3))


def _screw(R: Array, p: Sequence[Any]) -> Pose:
    return Pose(R, jnp.stack([_number(x) for x in p]))


def _number(x: Any) -> Float[Array, ""]:
    return jnp.asarray(x, dtype=float)
