"""What a 3-D replay shows: solids, frames, arrows, points and polylines over time."""

from typing import TypedDict, Unpack

import numpy as np
from jaxtyping import Float

from . import colors, shapes
from ._inputs import Numbers, increasing, numbers, positive, positive_or_none, together
from .items import Arrow, Item, Path, Solid, Triad


class Look(TypedDict, total=False):
    """Where a shape sits in its body, `(R_BG, p_BG)`, and how it looks."""

    offset: tuple[Numbers, Numbers] | None
    color: str | None
    opacity: float


class Scene:
    """A 3-D replay, z up, in metres.

    Poses are `R` (`R_WB`, `[T, 3, 3]`) and `p` (`p_WB`, `[T, 3]`) at the times `t`;
    leave out the axis of time for what stands still. Shapes take `color="#rrggbb"`,
    `opacity` and `offset=(R_BG, p_BG)`, the pose of the shape in its body. Things of
    one name share one colour and one entry of the legend.

    **Arguments:**

    - `t`: times in s, increasing.
    - `ground`: height of the ground grid; below all but arrows when left out.
    - `frames`: how many samples to keep at most, the nearest to an even grid. The view
      turns the shorter way from one to the next: what spins faster than half a turn a
      frame seems to spin backwards.
    """

    def __init__(self, t: Numbers, *, ground: Numbers | None = None, frames: int = 300):
        self._t = increasing(t, "scene")
        grid = np.linspace(self._t[0], self._t[-1], max(2, min(frames, len(self._t))))
        self._keep = np.unique(np.searchsorted((self._t[1:] + self._t[:-1]) / 2, grid))
        self.t: Float[np.ndarray, " K"] = self._t[self._keep]
        self.ground = (
            None if ground is None else float(numbers(ground, "ground", "scene", ()))
        )
        self.items: list[Item] = []

    def mesh(
        self,
        name: str,
        vertices: Numbers,
        faces: Numbers,
        R: Numbers | None = None,
        p: Numbers | None = None,
        *,
        smooth: bool = False,
        **look: Unpack[Look],
    ) -> None:
        """Triangles `faces` (`[F, 3]`, indices) between `vertices` (`[V, 3]`)."""
        corners = numbers(vertices, "vertices", name, (None, 3))
        triangles = numbers(faces, "faces", name, (None, 3)).astype(int)
        if not np.isfinite(corners).all() or not len(triangles):
            raise ValueError(f"mesh {name!r} must have triangles and finite vertices")
        if not 0 <= triangles.min() <= triangles.max() < len(corners):
            raise ValueError(
                f"faces of {name!r} point beyond its {len(corners)} vertices"
            )
        R_WG, p_WG = self._pose(name, R, p)
        if (offset := look.get("offset")) is not None:
            R_BG = self._rotation(name, "offset R", offset[0])
            p_BG = self._track(name, "offset p", offset[1], (3,))
            p_WG = p_WG + (R_WG @ p_BG[..., None])[..., 0]
            R_WG = R_WG @ R_BG
        color = self._color(name, look.get("color"))
        opacity = float(look.get("opacity", 1.0))
        pose = together(R_WG, p_WG)
        self.items.append(
            Solid(name, color, corners, triangles, *pose, opacity, smooth)
        )

    def box(
        self,
        name: str,
        size: Numbers,
        R: Numbers | None = None,
        p: Numbers | None = None,
        **look: Unpack[Look],
    ) -> None:
        """A box with edges `size` along x, y and z."""
        edges = numbers(size, "size", name, (3,))
        mesh = shapes.box(np.array([positive(edge, "size", name) for edge in edges]))
        self.mesh(name, *mesh, R, p, smooth=True, **look)

    def cylinder(
        self,
        name: str,
        radius: Numbers,
        length: Numbers,
        R: Numbers | None = None,
        p: Numbers | None = None,
        **look: Unpack[Look],
    ) -> None:
        """A cylinder along z."""
        size = positive(radius, "radius", name), positive(length, "length", name)
        self.mesh(name, *shapes.cylinder(*size), R, p, smooth=True, **look)

    def capsule(
        self,
        name: str,
        radius: Numbers,
        length: Numbers,
        R: Numbers | None = None,
        p: Numbers | None = None,
        **look: Unpack[Look],
    ) -> None:
        """A capsule along z, `length` between the centres of its round ends."""
        size = positive(radius, "radius", name), positive(length, "length", name)
        self.mesh(name, *shapes.capsule(*size), R, p, smooth=True, **look)

    def sphere(
        self,
        name: str,
        radius: Numbers,
        R: Numbers | None = None,
        p: Numbers | None = None,
        **look: Unpack[Look],
    ) -> None:
        """A sphere."""
        mesh = shapes.sphere(positive(radius, "radius", name))
        self.mesh(name, *mesh, R, p, smooth=True, **look)

    def frame(
        self,
        name: str,
        R: Numbers | None = None,
        p: Numbers | None = None,
        *,
        size: Numbers | None = None,
    ) -> None:
        """The axes of a frame: x red, y green, z blue."""
        pose = together(*self._pose(name, R, p))
        length = positive_or_none(size, "size", name)
        self.items.append(Triad(name, colors.MUTED, *pose, length))

    def arrow(
        self,
        name: str,
        p: Numbers,
        vector: Numbers,
        *,
        color: str | None = None,
        scale: Numbers | None = None,
        unit: str = "",
    ) -> None:
        """A vector (`[T, 3]`) at a point (`[T, 3]`), `scale` metres long for each unit.

        Left to itself, the longest it ever gets is about a quarter of the scene; arrows
        of one `unit` share their scale, and the legend tells it.
        """
        tail = self._track(name, "p", p, (3,))
        tracks = together(tail, self._track(name, "vector", vector, (3,)))
        color = self._color(name, color)
        metres = positive_or_none(scale, "scale", name)
        self.items.append(Arrow(name, color, *tracks, metres, unit))

    def points(
        self,
        name: str,
        p: Numbers,
        *,
        color: str | None = None,
        size: Numbers | None = None,
    ) -> None:
        """Markers at `p` (`[T, n, 3]`), balls of diameter `size`."""
        track = self._track(name, "p", p, (None, 3))
        width = positive_or_none(size, "size", name)
        self.items.append(Path(name, self._color(name, color), "points", track, width))

    def polyline(
        self,
        name: str,
        p: Numbers,
        *,
        color: str | None = None,
        size: Numbers | None = None,
    ) -> None:
        """A line through `p` (`[T, n, 3]`), such as a cable, `size` thick."""
        track = self._track(name, "p", p, (None, 3))
        if track.shape[1] < 2:
            raise ValueError(f"polyline {name!r} needs at least two points")
        width = positive_or_none(size, "size", name)
        self.items.append(
            Path(name, self._color(name, color), "polyline", track, width)
        )

    def _color(self, name: str, color: str | None) -> str:
        if color is not None:
            return colors.checked(color, name)
        known = {i.name: i.color for i in self.items if not isinstance(i, Triad)}
        return known.get(name, colors.PALETTE[len(known) % len(colors.PALETTE)])

    def _pose(
        self, name: str, R: Numbers | None, p: Numbers | None
    ) -> tuple[Float[np.ndarray, "J 3 3"], Float[np.ndarray, "K 3"]]:
        R_WB = self._rotation(name, "R", np.eye(3) if R is None else R)
        return R_WB, self._track(name, "p", np.zeros(3) if p is None else p, (3,))

    def _rotation(
        self, name: str, what: str, value: Numbers
    ) -> Float[np.ndarray, "K 3 3"]:
        R = self._track(name, what, value, (3, 3))
        error = np.abs(R @ R.swapaxes(-1, -2) - np.eye(3)).max(axis=(-1, -2))
        if (error > 1e-3).any() or (np.linalg.det(R) < 0).any():
            raise ValueError(f"{what} of {name!r} is not a rotation matrix")
        return R

    def _track(
        self, name: str, what: str, value: Numbers, shape: tuple[int | None, ...]
    ) -> Float[np.ndarray, "K ..."]:
        """`value` at the key frames, or once when it has no axis of time."""
        track = numbers(value, what, name, (len(self._t), *shape), shape)
        if track.ndim == len(shape):
            track = track[None]
        wrong = ~np.isfinite(track).all(axis=tuple(range(1, track.ndim)))
        if wrong.any():
            when = self._t[wrong.argmax()]
            raise ValueError(f"{what} of {name!r} is not finite at t = {when:.6g} s")
        return track if len(track) == 1 else track[self._keep]
