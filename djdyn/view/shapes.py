"""Triangle meshes of simple solids, centred on the origin, axes of revolution along z.

Vertices are shared inside a smooth surface and doubled along an edge, so that averaged
vertex normals shade a cylinder's side smoothly and keep its rim sharp.
"""

import numpy as np
from jaxtyping import Float, Int

from ._inputs import Numbers


Vertices = Float[np.ndarray, "_ 3"]
Faces = Int[np.ndarray, "_ 3"]


def join(*parts: tuple[Vertices, Faces]) -> tuple[Vertices, Faces]:
    """One mesh made of several."""
    starts = np.cumsum([0, *(len(vertices) for vertices, _ in parts[:-1])])
    faces = [faces + start for (_, faces), start in zip(parts, starts, strict=True)]
    return np.concatenate([vertices for vertices, _ in parts]), np.concatenate(faces)


def revolve(profile: Numbers, around: int = 32) -> tuple[Vertices, Faces]:
    """The surface swept by a polyline of `(radius, z)`; upwards walks face outwards."""
    r, z = np.asarray(profile, dtype=float).T
    angle = 2 * np.pi * np.arange(around) / around
    ring = np.stack([np.cos(angle), np.sin(angle), np.zeros(around)], axis=-1)
    vertices = r[:, None, None] * ring + z[:, None, None] * np.array([0.0, 0.0, 1.0])
    i, j = np.meshgrid(np.arange(len(r) - 1), np.arange(around), indexing="ij")
    near, far = i * around + j, i * around + (j + 1) % around
    lower = np.stack([near, far, far + around], axis=-1)[r[:-1] > 0]
    upper = np.stack([near, far + around, near + around], axis=-1)[r[1:] > 0]
    faces = np.concatenate([lower.reshape(-1, 3), upper.reshape(-1, 3)])
    return vertices.reshape(-1, 3), faces


def box(size: Float[np.ndarray, "3"]) -> tuple[Vertices, Faces]:
    """A box with edges `size` along x, y and z."""
    square = np.array([[-1.0, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]])
    halves = np.array([[0, 1, 2], [0, 2, 3]])
    sides = [
        np.roll(sign * square, axis, axis=1) for axis in range(3) for sign in (1, -1)
    ]
    windings = [halves, halves[:, ::-1]] * 3
    vertices, faces = join(*zip(sides, windings, strict=True))
    return vertices * size / 2, faces


def cylinder(radius: float, length: float) -> tuple[Vertices, Faces]:
    """A closed cylinder."""
    r, h = radius, length / 2
    walks = [[(0, -h), (r, -h)], [(r, -h), (r, h)], [(r, h), (0, h)]]
    return join(*(revolve(walk) for walk in walks))


def cone(radius: float, length: float) -> tuple[Vertices, Faces]:
    """A closed cone from its base at the origin to its tip at z = `length`."""
    return join(
        revolve([(0, 0), (radius, 0)], 20), revolve([(radius, 0), (0, length)], 20)
    )


def capsule(radius: float, length: float, rings: int = 8) -> tuple[Vertices, Faces]:
    """A cylinder with round ends; `length` between the centres of its half spheres."""
    angle = np.linspace(0, np.pi / 2, rings + 1)
    r, z = radius * np.cos(angle), radius * np.sin(angle) + length / 2
    r[-1] = 0
    if length == 0:  # a sphere: one equator, not two
        return revolve(np.stack([[*r[::-1], *r[1:]], [*-z[::-1], *z[1:]]], axis=-1))
    return revolve(np.stack([[*r[::-1], *r], [*-z[::-1], *z]], axis=-1))


def sphere(radius: float) -> tuple[Vertices, Faces]:
    """A sphere."""
    return capsule(radius, 0.0)
