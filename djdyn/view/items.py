"""The things a scene holds, checked and at its key frames."""

import dataclasses
from typing import Literal

import numpy as np
from jaxtyping import Float

from .shapes import Faces, Vertices


@dataclasses.dataclass(frozen=True)
class Solid:
    """A rigid mesh G; one pose when it stands still, otherwise one a key frame."""

    name: str
    color: str
    vertices: Vertices
    faces: Faces
    R_WG: Float[np.ndarray, "K 3 3"]
    p_WG: Float[np.ndarray, "K 3"]
    opacity: float
    smooth: bool


@dataclasses.dataclass(frozen=True)
class Triad:
    """Red, green and blue arrows along x, y and z of a frame F."""

    name: str
    color: str
    R_WF: Float[np.ndarray, "K 3 3"]
    p_WF: Float[np.ndarray, "K 3"]
    size: float | None


@dataclasses.dataclass(frozen=True)
class Arrow:
    """A vector drawn from a point, `scale` metres long for each unit of it."""

    name: str
    color: str
    p_W: Float[np.ndarray, "K 3"]
    vector_W: Float[np.ndarray, "K 3"]
    scale: float | None
    unit: str


@dataclasses.dataclass(frozen=True)
class Path:
    """Balls, or a line through them; `size` is their diameter."""

    name: str
    color: str
    kind: Literal["points", "polyline"]
    p_W: Float[np.ndarray, "K n 3"]
    size: float | None


Item = Solid | Triad | Arrow | Path
