"""Shapes of contacts: their surfaces, and the inertia of solids."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.spatial import ConvexHull, QhullError

from ..typing import Mat3, Scalar, Vec3, check_values, si


Points = Float[Array, "_ 3"]
PRISM_SIDES = 32  # of the prism that stands for a cylinder


class AbstractShape(eqx.Module):
    """A shape, given in the axes of a frame."""

    def __check_init__(self):
        check_values(self)


class HalfSpace(AbstractShape):
    """Everything below the xy plane of its frame."""


class Bowl(AbstractShape):
    """Everything outside of a sphere around the origin of its frame."""

    radius: Scalar = eqx.field(converter=si("m", above=0.0))


class HeightField(AbstractShape):
    """Everything below heights on a grid around the origin of its frame.

    `heights[i, j]` is above `x[i]`, `y[j]`, which are evenly spaced; between them the
    surface is bilinear, and beyond the edges it continues level.
    """

    heights: Float[Array, "nx ny"] = eqx.field(converter=si("m"))
    spacing: Scalar = eqx.field(converter=si("m", above=0.0))

    def height(self, x: Scalar, y: Scalar) -> Scalar:
        """Return the height of the surface above a point of the xy plane."""

        def cell(u: Scalar, n: int) -> tuple[Array, Scalar]:
            u = jnp.clip(u / self.spacing + (n - 1) / 2, 0.0, n - 1.0)
            i = jnp.clip(jnp.floor(u), 0, n - 2)
            return i.astype(int), u - i

        (i, a), (j, b) = (
            cell(u, n) for u, n in zip((x, y), self.heights.shape, strict=True)
        )
        low = (1 - a) * self.heights[i, j] + a * self.heights[i + 1, j]
        high = (1 - a) * self.heights[i, j + 1] + a * self.heights[i + 1, j + 1]
        return (1 - b) * low + b * high


class AbstractSolid(AbstractShape):
    """A convex shape with a volume: all points within `radius` of its core's hull."""

    @abc.abstractmethod
    def volume(self) -> Scalar:
        """Return the volume, m^3."""

    @abc.abstractmethod
    def centre(self) -> Vec3:
        """Return the centroid of the volume."""

    @abc.abstractmethod
    def second_moment(self) -> Mat3:
        r"""Return $\int x x^\top dV$ about the centroid."""

    @abc.abstractmethod
    def core(self) -> Points:
        """Return points whose convex hull, grown by `rounding`, is the shape."""

    @abc.abstractmethod
    def rounding(self) -> Scalar:
        """Return the distance from the hull of the core to the surface, m."""

    @abc.abstractmethod
    def planes(self) -> tuple[Points, Float[Array, " planes"]]:
        """Return outward unit normals and offsets of the core's faces."""

    @abc.abstractmethod
    def edges(self) -> Points:
        """Return the directions of the core's edges, each once."""

    def inertia(self, density: Any) -> dict[str, Array]:
        """Return `mass`, `p_BC` and `I_BC` of a body, as `Body` takes them."""
        S = density * self.second_moment()
        I_BC = jnp.trace(S) * jnp.eye(3) - S
        return {"mass": density * self.volume(), "p_BC": self.centre(), "I_BC": I_BC}

    def equivalent_radius(self) -> Scalar:
        """Return the radius of the sphere of the same volume."""
        return jnp.cbrt(3 * self.volume() / (4 * jnp.pi))


class AbstractCentred(AbstractSolid):
    """A solid whose centre is the origin."""

    def centre(self) -> Vec3:
        return jnp.zeros(3)


class Sphere(AbstractCentred):
    """A ball around the origin of its frame."""

    radius: Scalar = eqx.field(converter=si("m", above=0.0))

    def volume(self) -> Scalar:
        return 4 / 3 * jnp.pi * self.radius**3

    def second_moment(self) -> Mat3:
        return self.volume() * self.radius**2 / 5 * jnp.eye(3)

    def core(self) -> Points:
        return jnp.zeros((1, 3))

    def rounding(self) -> Scalar:
        return self.radius

    def planes(self) -> tuple[Points, Float[Array, " planes"]]:
        return jnp.zeros((0, 3)), jnp.zeros(0)

    def edges(self) -> Points:
        return jnp.zeros((0, 3))


class Capsule(AbstractCentred):
    """A cylinder of `length` along z with half spheres on its ends."""

    radius: Scalar = eqx.field(converter=si("m", above=0.0))
    length: Scalar = eqx.field(converter=si("m", above=0.0))

    def volume(self) -> Scalar:
        return jnp.pi * self.radius**2 * (self.length + 4 / 3 * self.radius)

    def second_moment(self) -> Mat3:
        r, h = self.radius, self.length / 2
        rod, ball = jnp.pi * r**2 * 2 * h, 4 / 3 * jnp.pi * r**3
        across = rod * r**2 / 4 + ball * r**2 / 5
        along = rod * h**2 / 3 + ball * (r**2 / 5 + h**2 + 2 * h * 3 / 8 * r)
        return jnp.diag(jnp.stack([across, across, along]))

    def core(self) -> Points:
        z = self.length / 2 * jnp.array([-1.0, 1.0])
        return z[:, None] * jnp.array([[0.0, 0.0, 1.0]])

    def rounding(self) -> Scalar:
        return self.radius

    def planes(self) -> tuple[Points, Float[Array, " planes"]]:
        return jnp.zeros((0, 3)), jnp.zeros(0)

    def edges(self) -> Points:
        return jnp.array([[0.0, 0.0, 1.0]])


class Cylinder(AbstractCentred):
    """A cylinder of `length` along z.

    Against other solids it is a circumscribed prism of `PRISM_SIDES` sides.
    """

    radius: Scalar = eqx.field(converter=si("m", above=0.0))
    length: Scalar = eqx.field(converter=si("m", above=0.0))

    def volume(self) -> Scalar:
        return jnp.pi * self.radius**2 * self.length

    def second_moment(self) -> Mat3:
        across, along = self.radius**2 / 4, self.length**2 / 12
        return self.volume() * jnp.diag(jnp.stack([across, across, along]))

    def core(self) -> Points:
        angle = 2 * jnp.pi * jnp.arange(PRISM_SIDES) / PRISM_SIDES
        ring = jnp.stack([jnp.cos(angle), jnp.sin(angle), 0 * angle], 1)
        ring = self.radius / np.cos(np.pi / PRISM_SIDES) * ring
        up = self.length / 2 * jnp.array([[0.0, 0.0, 1.0]])
        return jnp.concatenate([ring - up, ring + up])

    def rounding(self) -> Scalar:
        return jnp.zeros(())

    def planes(self) -> tuple[Points, Float[Array, " planes"]]:
        angle = 2 * jnp.pi * (jnp.arange(PRISM_SIDES) + 0.5) / PRISM_SIDES
        sides = jnp.stack([jnp.cos(angle), jnp.sin(angle), 0 * angle], 1)
        ends = jnp.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
        far = jnp.repeat(
            jnp.stack([self.radius, self.length / 2]), np.array([PRISM_SIDES, 2])
        )
        return jnp.concatenate([sides, ends]), far

    def edges(self) -> Points:
        angle = 2 * jnp.pi * jnp.arange(PRISM_SIDES // 2) / PRISM_SIDES
        sides = jnp.stack([jnp.cos(angle), jnp.sin(angle), 0 * angle], 1)
        return jnp.concatenate([sides, jnp.array([[0.0, 0.0, 1.0]])])


class AbstractPolyhedron(AbstractSolid):
    """A solid whose faces are all flat."""

    def rounding(self) -> Scalar:
        return jnp.zeros(())


class Cuboid(AbstractPolyhedron, AbstractCentred):
    """A box of `size` along its axes, around the origin of its frame."""

    size: Vec3 = eqx.field(converter=si("m", above=0.0))

    def volume(self) -> Scalar:
        return jnp.prod(self.size)

    def second_moment(self) -> Mat3:
        return self.volume() * jnp.diag(self.size**2) / 12

    def core(self) -> Points:
        corners = np.array(
            [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
        )
        return jnp.asarray(corners, self.size.dtype) * self.size[None] / 2

    def planes(self) -> tuple[Points, Float[Array, " planes"]]:
        eye = jnp.eye(3)
        return jnp.concatenate([eye, -eye]), jnp.concatenate([self.size, self.size]) / 2

    def edges(self) -> Points:
        return jnp.eye(3)


class Polyhedron(AbstractPolyhedron):
    """The convex hull of `vertices`, all of which must be corners of it.

    Which vertices make a face is found once, when the shape is built.
    """

    vertices: Points = eqx.field(converter=si("m"))
    faces: tuple[tuple[int, int, int], ...] = eqx.field(static=True, init=False)
    flats: tuple[int, ...] = eqx.field(static=True, init=False)
    rims: tuple[tuple[int, int], ...] = eqx.field(static=True, init=False)

    def __init__(self, vertices: Any):
        self.vertices = jnp.asarray(vertices, dtype=float)
        if self.vertices.ndim != 2 or self.vertices.shape[1] != 3:
            raise ValueError(
                f"vertices of a polyhedron have the shape (k, 3), not "
                f"{self.vertices.shape}"
            )
        self.faces, self.flats, self.rims = _hull(np.asarray(vertices, float))

    @classmethod
    def from_file(cls, path: Any, scale: float = 1.0) -> "Polyhedron":
        """Return the polyhedron of a convex mesh in any format that trimesh reads."""
        import trimesh

        mesh: Any = trimesh.load_mesh(path)
        if not mesh.is_convex:
            raise ValueError(f"the mesh of {path} is not convex: split it into parts")
        hull = ConvexHull(mesh.vertices)
        return cls(scale * mesh.vertices[hull.vertices])

    def _corners(self) -> tuple[Points, Points, Points]:
        a, b, c = (self.vertices[jnp.array(i)] for i in zip(*self.faces, strict=True))
        return a, b, c

    def _volumes(self) -> tuple[Float[Array, " faces"], tuple[Points, Points, Points]]:
        a, b, c = self._corners()
        return jnp.sum(a * jnp.cross(b, c), -1) / 6, (a, b, c)

    def volume(self) -> Scalar:
        return jnp.sum(self._volumes()[0])

    def centre(self) -> Vec3:
        volumes, (a, b, c) = self._volumes()
        return volumes @ (a + b + c) / (4 * jnp.sum(volumes))

    def second_moment(self) -> Mat3:
        volumes, corners = self._volumes()
        middle = self.centre()
        corners = jnp.stack([x for x in corners])  # and the origin
        total = jnp.sum(corners, 0)
        S = jnp.einsum("f,cfi,cfj->ij", volumes, corners, corners)
        S = (S + jnp.einsum("f,fi,fj->ij", volumes, total, total)) / 20
        return S - jnp.sum(volumes) * jnp.outer(middle, middle)

    def core(self) -> Points:
        return self.vertices

    def planes(self) -> tuple[Points, Float[Array, " planes"]]:
        a, b, c = (x[jnp.array(self.flats)] for x in self._corners())
        n = jnp.cross(b - a, c - a)
        n = n / jnp.linalg.norm(n, axis=1, keepdims=True)
        return n, jnp.sum(n * a, 1)

    def edges(self) -> Points:
        i, j = (jnp.array(k) for k in zip(*self.rims, strict=True))
        e = self.vertices[j] - self.vertices[i]
        return e / jnp.linalg.norm(e, axis=1, keepdims=True)


def _hull(x: np.ndarray) -> tuple[Any, Any, Any]:
    """Return outward triangles, one triangle of each face, and edges by direction."""
    try:
        hull = ConvexHull(x)
    except (QhullError, ValueError) as error:
        raise ValueError(
            f"{len(x)} vertices span no volume: a polyhedron needs four that are not "
            "in one plane"
        ) from error
    inside = sorted(set(range(len(x))) - set(hull.vertices))
    if inside:
        raise ValueError(
            f"vertex {inside[0]} lies inside the others or on a face: vertices of a "
            "polyhedron are the corners of a convex body"
        )
    faces = []
    for (i, j, k), plane in zip(hull.simplices, hull.equations, strict=True):
        turned = np.cross(x[j] - x[i], x[k] - x[i]) @ plane[:3] > 0
        faces.append((int(i), int(j), int(k)) if turned else (int(i), int(k), int(j)))
    planes = hull.equations / [1, 1, 1, np.ptp(x, 0).max()]
    flats = {tuple(np.round(row, 7)): i for i, row in enumerate(planes)}
    rims: dict[Any, tuple[int, int]] = {}
    for i, neighbours in enumerate(hull.neighbors):
        for j in neighbours:
            shared = sorted(set(hull.simplices[i]) & set(hull.simplices[j]))
            if hull.equations[i][:3] @ hull.equations[j][:3] > 1 - 1e-10:
                continue  # a diagonal of a flat
            a, b = (int(k) for k in shared)
            e = (x[b] - x[a]) / np.linalg.norm(x[b] - x[a])
            e = e * np.sign(e[np.argmax(np.abs(e) > 1e-6)])
            rims.setdefault(tuple(np.round(e, 7)), (a, b))
    return tuple(faces), tuple(sorted(flats.values())), tuple(rims.values())
