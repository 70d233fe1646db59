"""Convex solids of any class in arrays of one shape, so that a group may mix them."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..typing import Mat3, Scalar, Vec3, si
from .shapes import AbstractSolid, Points


class RoundedHull(AbstractSolid):
    """All points within `radius` of the convex hull of `points`.

    Its faces have outward unit `normals` at `offsets`; `directions` are those of its
    edges. Rows of zeros stand for no face and no edge, repeated points for one. Volume,
    centroid and second moment are those of the solid that it was made from, with `of`.
    """

    points: Points = eqx.field(converter=si("m"))
    radius: Scalar = eqx.field(converter=si("m", at_least=0.0))
    normals: Points
    offsets: Float[Array, " planes"] = eqx.field(converter=si("m"))
    directions: Points
    solid_volume: Scalar = eqx.field(converter=si("m^3", above=0.0))
    centroid: Vec3 = eqx.field(converter=si("m"))
    moment: Mat3 = eqx.field(converter=si("m^5"))

    @classmethod
    def of(cls, solid: AbstractSolid, sizes: tuple[int, int, int] = (0, 0, 0)) -> Any:
        """Return a solid as a rounded hull.

        **Arguments:**

        - `sizes`: the numbers of points, faces and edges to fill up to.
        """
        n, d = solid.planes()
        points = solid.core()
        missing = max(sizes[0] - len(points), 0)
        points = jnp.concatenate([points, jnp.repeat(points[:1], missing, axis=0)])
        rows = lambda x, k: jnp.pad(x, ((0, max(k - len(x), 0)), (0, 0)))
        return cls(
            points,
            solid.rounding(),
            rows(n, sizes[1]),
            jnp.pad(d, (0, max(sizes[1] - len(d), 0))),
            rows(solid.edges(), sizes[2]),
            solid.volume(),
            solid.centre(),
            solid.second_moment(),
        )

    def volume(self) -> Scalar:
        return self.solid_volume

    def centre(self) -> Vec3:
        return self.centroid

    def second_moment(self) -> Mat3:
        return self.moment

    def core(self) -> Points:
        return self.points

    def rounding(self) -> Scalar:
        return self.radius

    def planes(self) -> tuple[Points, Float[Array, " planes"]]:
        return self.normals, self.offsets

    def edges(self) -> Points:
        return self.directions


def hull_sizes(solid: AbstractSolid) -> tuple[int, int, int]:
    """Return the numbers of points, faces and edges of a solid's core."""
    return len(solid.core()), len(solid.planes()[1]), len(solid.edges())


def rounded_hulls(solids: dict[str, AbstractSolid]) -> dict[str, RoundedHull]:
    """Return solids of any classes as rounded hulls with arrays of the same shapes."""
    sizes = np.max([hull_sizes(solid) for solid in solids.values()], axis=0)
    most = (int(sizes[0]), int(sizes[1]), int(sizes[2]))
    return {name: RoundedHull.of(solid, most) for name, solid in solids.items()}
