r"""Loops of a mechanism: joints between frames, and couplings between joints.

All of them together are residuals $g(q, t)$ with rates $\dot g = Jv + g_t$, and
accelerations $\ddot g = J\dot v + \gamma$. Rows that roll have a rate and no residual.
"""

import abc
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..typing import Scalar, si
from .joints import AbstractJoint, Free
from .loop_joints import LoopJoint, count_rows
from .spatial import Pose


Coordinates = Float[Array, " k"]


class AbstractLoop(eqx.Module):
    """Something that ties the mechanism's coordinates to each other."""

    name: eqx.AbstractVar[str]


class Loop(AbstractLoop):
    """A joint that closes a chain: it ties the frame `child` to the frame `parent`.

    `joint` is any joint that a body may hang on, or one of `PointOnLine`,
    `PointOnPlane`, `PointOnSurface`, `Distance`, `RollingDisc`. `motion`, if given,
    moves its place on the parent's frame by a pose that depends on time.
    """

    name: str = eqx.field(static=True)
    parent: str = eqx.field(static=True)
    child: str = eqx.field(static=True)
    joint: LoopJoint
    motion: Callable[[Scalar], Pose] | None = None

    def __check_init__(self):
        if isinstance(self.joint, Free):
            raise ValueError(f"loop {self.name!r}: a Free joint closes nothing")
        if self.motion is None:
            return
        if count_rows(self.joint)[1]:
            raise ValueError(f"loop {self.name!r}: what rolls cannot have a motion")
        at = eqx.filter_eval_shape(lambda motion: motion(jnp.zeros(())), self.motion)
        if not isinstance(at, Pose):
            raise ValueError(
                f"loop {self.name!r}: its motion is a pose that depends on time, such "
                "as Heave or DeckMotion"
            )


class AbstractCoupling(AbstractLoop):
    """A law between coordinates of joints of one coordinate each."""

    @property
    @abc.abstractmethod
    def joints(self) -> tuple[str, ...]:
        """Names of the joints whose coordinates it ties."""

    @abc.abstractmethod
    def residual(self, q: Coordinates, t: Scalar) -> Scalar:
        """What is zero where the coupling holds."""


class LinearCoupling(AbstractCoupling):
    r"""Gears, racks, differentials, mimics: $\sum_i c_i q_i = b + f(t)$.

    `ratios` holds $c_i$ by joint; a pair of gears of 20 and 60 teeth has
    `{"pinion": 20, "wheel": 60}`. `motion` is a function $f$ of time.
    """

    name: str = eqx.field(static=True)
    ratios: dict[str, Array] = eqx.field(
        converter=lambda d: {k: jnp.asarray(x, dtype=float) for k, x in d.items()}
    )
    offset: Scalar = eqx.field(converter=si("rad, m"), default=0.0)
    motion: Callable[[Scalar], Scalar] | None = None

    def __check_init__(self):
        if not self.ratios:
            raise ValueError(f"coupling {self.name!r} names no joint")

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints that it couples."""
        return tuple(self.ratios)

    def residual(self, q: Coordinates, t: Scalar) -> Scalar:
        moved = self.offset if self.motion is None else self.offset + self.motion(t)
        return jnp.stack(list(self.ratios.values())) @ q - moved


class PolynomialCoupling(AbstractCoupling):
    r"""A joint that follows another: $q = \sum_k a_k q_{driver}^k$."""

    name: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    driver: str = eqx.field(static=True)
    coefficients: Float[Array, " k"] = eqx.field(converter=si("rad, m"))

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joint that follows and of its driver."""
        return (self.joint, self.driver)

    def residual(self, q: Coordinates, t: Scalar) -> Scalar:
        del t
        return q[0] - jnp.polyval(self.coefficients[::-1], q[1])


class FrameRows(eqx.Module):
    """Loops of one kind: how their rows push on the bodies that they tie.

    `push` is the wrench on the child per unit of each row's multiplier, at the child
    frame's origin in the parent frame's axes.
    """

    members: tuple[int, ...] = eqx.field(static=True)
    parents: tuple[int, ...] = eqx.field(static=True)
    children: tuple[int, ...] = eqx.field(static=True)
    push: Float[Array, "n m 6"]
    R_WA: Float[Array, "n 3 3"]
    p_WB: Float[Array, "n 3"]


class LoopRows(eqx.Module):
    r"""All rows in the order of the loops: $g$, $\dot g$, $\gamma$ and $J$.

    `starts` says where the rows of each loop begin.
    """

    gap: Float[Array, " m"]
    rate: Float[Array, " m"]
    bias: Float[Array, " m"]
    jacobian: Float[Array, "m nv"]
    frames: list[FrameRows]
    starts: tuple[int, ...] = eqx.field(static=True)


def check_loops(
    loops: tuple[AbstractLoop, ...],
    frames: Mapping[str, str],
    joints: Mapping[str, AbstractJoint],
) -> None:
    """Raise unless all loops tie frames of different bodies or joints that exist.

    **Arguments:**

    - `frames`: the body of each frame.
    - `joints`: the joints that bodies hang on.
    """
    seen: set[str] = set()
    for loop in loops:
        if loop.name in seen or loop.name in joints or loop.name in frames:
            raise ValueError(
                f"loop {loop.name!r} has the name of another loop, joint or frame"
            )
        seen.add(loop.name)
        if isinstance(loop, Loop):
            for name in (loop.parent, loop.child):
                if name not in frames:
                    there = ", ".join(frames)
                    raise ValueError(
                        f"loop {loop.name!r}: unknown frame {name!r}; there are {there}"
                    )
            if frames[loop.parent] == frames[loop.child]:
                raise ValueError(
                    f"loop {loop.name!r} joins two frames of body "
                    f"{frames[loop.parent]!r}, which cannot move apart"
                )
        elif isinstance(loop, AbstractCoupling):
            for name in loop.joints:
                if name not in joints:
                    there = ", ".join(joints)
                    raise ValueError(
                        f"coupling {loop.name!r}: unknown joint {name!r}; there are "
                        f"{there}"
                    )
                if joints[name].nq != 1 or joints[name].nv != 1:
                    raise ValueError(
                        f"coupling {loop.name!r}: joint {name!r} has "
                        f"{joints[name].nq} coordinates, and one can be coupled"
                    )
            if len(set(loop.joints)) != len(loop.joints):
                raise ValueError(f"coupling {loop.name!r} names a joint twice")


def row_counts(loop: AbstractLoop) -> tuple[int, int]:
    """Return how many residuals a loop has, and how many further rows in speeds."""
    if isinstance(loop, Loop):
        return count_rows(loop.joint)
    return 1, 0


def kinds(loops: tuple[AbstractLoop, ...]) -> list[list[int]]:
    """Return numbers of loops that can be looked at together, by kind."""
    groups: dict[Any, list[int]] = {}
    for i, loop in enumerate(loops):
        if isinstance(loop, Loop):
            leaves, tree = jax.tree.flatten((loop.joint, loop.motion))
            plain = all(eqx.is_array(x) for x in leaves)
            shapes = tuple(np.shape(x) for x in leaves) if plain else i
            groups.setdefault((tree, shapes), []).append(i)
        else:
            groups.setdefault(i, []).append(i)
    return list(groups.values())
