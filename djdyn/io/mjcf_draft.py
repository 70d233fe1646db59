"""A system in the making, from a compiled MuJoCo model: names, parts, refusals."""

from collections.abc import Sequence
from typing import Any, SupportsInt

import numpy as np

from ..multibody.mechanism import Frame, Mechanism
from ..parts.base import AbstractPart
from .unsupported import as_kinds, import_mujoco


class SystemDraft:
    """What has been read of a model so far, and what a `System` cannot hold of it."""

    def __init__(self, model: Any, mechanism: Mechanism, ignore: Sequence[str]):
        self.model, self.mechanism = model, mechanism
        self.ignore = as_kinds(ignore)
        self.parts: dict[str, AbstractPart] = {}
        self.inputs: dict[str, float] = {}
        self.frames: dict[str, Frame] = {}
        self.refused: list[tuple[str, str]] = []
        self.skipped: list[tuple[str, str]] = []

    def wants(self, kind: str) -> bool:
        """Whether things of this kind are to be read."""
        return kind not in self.ignore

    def refuse(self, kind: str, name: str) -> None:
        """Notes what a system cannot hold."""
        if self.wants(kind):
            self.refused.append((kind, name))

    def skip(self, kind: str, name: str) -> None:
        """Notes what moves nothing and has no counterpart."""
        if self.wants(kind):
            self.skipped.append((kind, name))

    def add_part(self, name: str, part: AbstractPart) -> str:
        """Adds a part, and returns the name it goes by."""
        name = self.free_name(name)
        self.parts[name] = part
        return name

    def add_input(self, name: str, other: str) -> str:
        """Adds an input of that name, or, if it is taken, of the other."""
        name = plain(name)
        name = self.free_name(other) if self._taken(name) else name
        self.inputs[name] = 0.0
        return name

    def add_frame(self, frame: Frame) -> str:
        """Adds a frame to those of the mechanism, unless it is there, by its name."""
        self.frames.setdefault(frame.name, frame)
        return frame.name

    def free_name(self, name: str) -> str:
        """The name without dots, numbered if it is taken."""
        name = wanted = plain(name)
        count = 1
        while self._taken(name):
            count += 1
            name = f"{wanted}:{count}"
        return name

    def is_free(self, name: str) -> bool:
        """Whether a part may have this name."""
        return "." not in name and not self._taken(name)

    def _taken(self, name: str) -> bool:
        m = self.mechanism
        return name in {
            "world",
            *m.joint_names,
            *(body.name for body in m.bodies),
            *(frame.name for frame in m.frames),
            *(loop.name for loop in m.loops),
            *self.frames,
            *self.parts,
            *self.inputs,
        }

    # Names of MuJoCo's things -----------------------------------------------------

    def body(self, i: SupportsInt) -> str:
        """The name of the mechanism's body for MuJoCo's body `i`."""
        return body_name(self.model, i)

    def joint(self, j: int) -> str:
        """The name of the mechanism's joint for MuJoCo's joint `j`."""
        return joint_names(self.model, self.mechanism)[j]


def plain(name: str) -> str:
    """A name fit for signals, in which a dot parts owner and output."""
    return name.replace(".", "_")


def body_name(model: Any, i: SupportsInt) -> str:
    """The name of a body, the world's included; unnamed ones have a number."""
    i = int(i)
    return "world" if i == 0 else model.body(i).name or f"body{i}"


def joint_names(model: Any, mechanism: Mechanism) -> list[str]:
    """Names in the mechanism of all joints of the model."""
    rows = mechanism.v_starts
    names = dict(zip(rows[:-1], mechanism.joint_names, strict=True))
    for start, end, name in zip(
        rows[:-1], rows[1:], mechanism.joint_names, strict=True
    ):
        if end > start:
            names[start] = name
    return [names[int(start)] for start in model.jnt_dofadr]


def speed_order(model: Any) -> np.ndarray:
    """Where our speeds are in MuJoCo's: a free joint's angular ones come first."""
    order = np.arange(model.nv)
    for j in np.flatnonzero(model.jnt_type == import_mujoco().mjtJoint.mjJNT_FREE):
        first = int(model.jnt_dofadr[j])
        order[first : first + 6] = first + np.array([3, 4, 5, 0, 1, 2])
    return order
