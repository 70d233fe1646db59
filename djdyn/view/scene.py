"""What a 3-D replay shows: solids, frames, arrows, points and polylines over time."""

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from . import colors, shapes
from .shapes import Faces, Vertices


@dataclasses.dataclass(frozen=True)
class Solid:
    """A rigid mesh G; one pose when it stands still, otherwise one a key frame."""

    name: str
    vertices: Vertices
    faces: Faces
    R_WG: Float[np.ndarray, "K 3 3"]
    p_WG: Float[np.ndarray, "K 3"]
    color: str
    opacity: float
    smooth: bool


@dataclasses.dataclass(frozen=True)
class Triad:
    """Red, green and blue arrows along x, y and z of a frame."""

    name: str
    R_WF: Float[np.ndarray, "K 3 3"]
    p_WF: Float[np.ndarray, "K 3"]
    size: float | None


@dataclasses.dataclass(frozen=True)
class Arrow:
    """A vector drawn from a point, `scale` metres long for each unit of it."""

    name: str
    p_W: Float[np.ndarray, "K 3"]
    vector_W: Float[np.ndarray, "K 3"]
    color: str
    scale: float | None
    unit: str


@dataclasses.dataclass(frozen=True)
class Path:
    """Balls, or a line through them; `size` is their diameter."""

    name: str
    kind: Literal["points", "polyline"]
    p_W: Float[np.ndarray, "K n 3"]
    color: str
    size: float | None


class Scene:
    """A 3-D replay, z up, in metres.

    Poses are `R` (`R_WB`, `[T, 3, 3]`) and `p` (`p_WB`, `[T, 3]`) at the times `t`; leave out
    the axis of time for what stands still. A shape sits at `offset = (R_BG, p_BG)` in its
    body. Things of one name share one entry of the legend.

    **Arguments:**

    - `t`: times, increasing. At most `frames` samples are kept, the nearest to an even grid.
    - `ground`: height of the ground grid; below everything when left out.
    """

    def __init__(self, t: ArrayLike, *, ground: float | None = None, frames: int = 300):
        self._t = _numbers(t, "t", "the scene")
        if self._t.ndim != 1 or not len(self._t) or (np.diff(self._t) <= 0).any():
            raise ValueError("times of a scene must be one increasing list")
        if not np.isfinite(self._t).all():
            raise ValueError("times of a scene must be finite")
        wanted = np.linspace(self._t[0], self._t[-1], min(frames, len(self._t)))
        middle = (self._t[1:] + self._t[:-1]) / 2
        self._keep = np.unique(np.searchsorted(middle, wanted))
        self.t: Float[np.ndarray, " K"] = self._t[self._keep]
        self.ground = ground
        self.items: list[Solid | Triad | Arrow | Path] = []

    def mesh(
        self,
        name: str,
        vertices: ArrayLike,
        faces: ArrayLike,
        R: ArrayLike | None = None,
        p: ArrayLike | None = None,
        *,
        offset: tuple[ArrayLike, ArrayLike] | None = None,
        color: str | None = None,
        opacity: float = 1.0,
        smooth: bool = False,
    ) -> None:
        """Triangles `faces` (`[F, 3]`, indices) between `vertices` (`[V, 3]`)."""
        vertices = _numbers(vertices, "vertices", name, (None, 3))
        triangles = _numbers(faces, "faces", name, (None, 3)).astype(int)
        if not np.isfinite(vertices).all():
            raise ValueError(f"vertices of {name!r} are not finite")
        if triangles.size and not 0 <= triangles.min() <= triangles.max() < len(vertices):
            raise ValueError(f"faces of {name!r} point beyond its {len(vertices)} vertices")
        R_WG, p_WG = self._pose(name, R, p)
        if offset is not None:
            R_BG = self._rotation(name, "offset R", offset[0])
            p_BG = self._track(name, "offset p", offset[1], (3,))
            p_WG = p_WG + np.einsum("kij,kj->ki", *_together(R_WG, p_BG))
            R_WG = R_WG @ R_BG
        R_WG, p_WG = _together(R_WG, p_WG)
        color = self._color(name, color)
        self.items.append(
            Solid(name, vertices, triangles, R_WG, p_WG, color, opacity, smooth)
        )

    def box(
        self,
        name: str,
        size: Sequence[float] | np.ndarray,
        R: ArrayLike | None = None,
        p: ArrayLike | None = None,
        *,
        offset: tuple[ArrayLike, ArrayLike] | None = None,
        color: str | None = None,
        opacity: float = 1.0,
    ) -> None:
        """A box with edges `size` along x, y and z."""
        mesh = shapes.box(_positive(name, "size", size, 3))
        look = {"offset": offset, "color": color, "opacity": opacity}
        self.mesh(name, *mesh, R, p, smooth=True, **look)

    def cylinder(
        self,
        name: str,
        radius: float,
        length: float,
        R: ArrayLike | None = None,
        p: ArrayLike | None = None,
        *,
        offset: tuple[ArrayLike, ArrayLike] | None = None,
        color: str | None = None,
        opacity: float = 1.0,
    ) -> None:
        """A cylinder along z."""
        size = _positive(name, "radius and length", (radius, length), 2)
        look = {"offset": offset, "color": color, "opacity": opacity}
        self.mesh(name, *shapes.cylinder(*map(float, size)), R, p, smooth=True, **look)

    def capsule(
        self,
        name: str,
        radius: float,
        length: float,
        R: ArrayLike | None = None,
        p: ArrayLike | None = None,
        *,
        offset: tuple[ArrayLike, ArrayLike] | None = None,
        color: str | None = None,
        opacity: float = 1.0,
    ) -> None:
        """A capsule along z, `length` between the centres of its round ends."""
        size = _positive(name, "radius and length", (radius, length), 2)
        look = {"offset": offset, "color": color, "opacity": opacity}
        self.mesh(name, *shapes.capsule(*map(float, size)), R, p, smooth=True, **look)

    def sphere(
        self,
        name: str,
        radius: float,
        p: ArrayLike | None = None,
        *,
        color: str | None = None,
        opacity: float = 1.0,
    ) -> None:
        """A sphere."""
        size = _positive(name, "radius", (radius,), 1)
        look = {"color": color, "opacity": opacity}
        self.mesh(name, *shapes.sphere(float(size[0])), None, p, smooth=True, **look)

    def frame(
        self,
        name: str,
        R: ArrayLike | None = None,
        p: ArrayLike | None = None,
        *,
        size: float | None = None,
    ) -> None:
        """The axes of a frame: x red, y green, z blue."""
        self.items.append(Triad(name, *_together(*self._pose(name, R, p)), size))

    def arrow(
        self,
        name: str,
        p: ArrayLike,
        vector: ArrayLike,
        *,
        color: str | None = None,
        scale: float | None = None,
        unit: str = "",
    ) -> None:
        """A vector (`[T, 3]`) at a point (`[T, 3]`), `scale` metres long for each unit.

        Left to itself, the longest it ever gets is a quarter of the scene. With a `unit`
        the legend tells the scale.
        """
        tail = self._track(name, "p", p, (3,))
        vector_W = self._track(name, "vector", vector, (3,))
        self.items.append(
            Arrow(
                name, *_together(tail, vector_W), self._color(name, color), scale, unit
            )
        )

    def points(
        self,
        name: str,
        p: ArrayLike,
        *,
        color: str | None = None,
        size: float | None = None,
    ) -> None:
        """Markers at `p` (`[T, n, 3]`), balls of diameter `size`."""
        track = self._track(name, "p", p, (None, 3))
        self.items.append(Path(name, "points", track, self._color(name, color), size))

    def polyline(
        self,
        name: str,
        p: ArrayLike,
        *,
        color: str | None = None,
        size: float | None = None,
    ) -> None:
        """A line through `p` (`[T, n, 3]`), as a cable, `size` thick."""
        track = self._track(name, "p", p, (None, 3))
        if track.shape[1] < 2:
            raise ValueError(f"polyline {name!r} needs at least two points")
        self.items.append(Path(name, "polyline", track, self._color(name, color), size))

    def _color(self, name: str, color: str | None) -> str:
        if color is not None:
            return colors.checked(color, name)
        known = {item.name: item.color for item in self.items if not isinstance(item, Triad)}
        return known.get(name, colors.PALETTE[len(known) % len(colors.PALETTE)])

    def _pose(
        self, name: str, R: ArrayLike | None, p: ArrayLike | None
    ) -> tuple[Float[np.ndarray, "J 3 3"], Float[np.ndarray, "K 3"]]:
        R_WB = self._rotation(name, "R", np.eye(3) if R is None else R)
        return R_WB, self._track(name, "p", np.zeros(3) if p is None else p, (3,))

    def _rotation(
        self, name: str, what: str, value: ArrayLike
    ) -> Float[np.ndarray, "K 3 3"]:
        R = self._track(name, what, value, (3, 3))
        error = np.abs(R @ R.swapaxes(-1, -2) - np.eye(3)).max(axis=(-1, -2))
        wrong = (error > 1e-3) | (np.linalg.det(R) < 0)
        if wrong.any():
            raise ValueError(
                f"{what} of {name!r} is not a rotation matrix {self._when(R, wrong)}"
            )
        return R

    def _track(
        self, name: str, what: str, value: ArrayLike, shape: tuple[int | None, ...]
    ) -> Float[np.ndarray, "K ..."]:
        """`value` at the key frames, or once when it has no axis of time."""
        track = _numbers(value, what, name, shape, len(self._t))
        if track.ndim == len(shape):
            track = track[None]
        wrong = ~np.isfinite(track).all(axis=tuple(range(1, track.ndim)))
        if wrong.any():
            raise ValueError(f"{what} of {name!r} is not finite {self._when(track, wrong)}")
        return track if len(track) == 1 else track[self._keep]

    def _when(self, track: np.ndarray, wrong: np.ndarray) -> str:
        if len(track) == 1:
            return "at any time"
        times = self._t if len(track) == len(self._t) else self.t
        return f"at t = {times[wrong.argmax()]:.6g}"


def _numbers(
    value: ArrayLike,
    what: str,
    name: str,
    shape: tuple[int | None, ...] | None = None,
    times: int | None = None,
) -> Float[np.ndarray, "..."]:
    """`value` as floats of the given shape, `None` being any length, over `times` or not."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{what} of {name!r} is not an array of numbers") from None
    if shape is None:
        return array
    allowed = [shape] if times is None else [(times, *shape), shape]
    for wanted in allowed:
        if len(wanted) == array.ndim and all(
            n in (None, m) for n, m in zip(wanted, array.shape, strict=True)
        ):
            return array
    spelled = " or ".join(
        "[" + ", ".join("n" if n is None else str(n) for n in wanted) + "]"
        for wanted in allowed
    )
    raise ValueError(
        f"{what} of {name!r} must have shape {spelled}, not {list(array.shape)}"
    )


def _positive(
    name: str, what: str, value: Sequence[float] | np.ndarray, count: int
) -> Float[np.ndarray, " n"]:
    size = _numbers(value, what, name, (count,))
    if not (np.isfinite(size).all() and (size > 0).all()):
        raise ValueError(f"{what} of {name!r} must be positive, not {size.tolist()}")
    return size


def _together(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both with as many key frames as the longer."""
    frames = max(len(a), len(b))
    return (
        np.broadcast_to(a, (frames, *a.shape[1:])),
        np.broadcast_to(b, (frames, *b.shape[1:])),
    )
