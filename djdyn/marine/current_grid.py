"""Currents that change with place and time, given on a grid."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..smooth import hat_weights
from ..typing import Scalar, Vec3, check_values, known, si


class CurrentGrid(eqx.Module):
    """Velocities at the points of a grid, linear between them along each axis.

    Beyond the grid the current is as at its edge. An axis of one point is uniform.
    Within `corner` (m, and s in time) of the grid's lines the slopes are rounded.
    """

    x: Float[Array, " nx"] = eqx.field(converter=si("m"))
    y: Float[Array, " ny"] = eqx.field(converter=si("m"))
    z: Float[Array, " nz"] = eqx.field(converter=si("m"))
    times: Float[Array, " nt"] = eqx.field(converter=si("s"))
    currents: Float[Array, "nx ny nz nt 3"] = eqx.field(converter=si("m/s"))
    corner: Scalar = eqx.field(converter=si("m, s", above=0.0), default=0.1)

    def __check_init__(self):
        check_values(self)
        axes = (self.x, self.y, self.z, self.times)
        shape = (*(len(axis) for axis in axes), 3)
        if self.currents.shape != shape:
            raise ValueError(
                f"currents on this grid have shape {shape}, got {self.currents.shape}"
            )
        for axis in axes:
            if known(axis) and np.any(np.diff(axis) <= 0):
                raise ValueError("the lines of a current's grid must increase")

    def velocity(self, p_W: Vec3, t: Scalar) -> Vec3:
        """Return the current at a point and time."""
        u = self.currents
        places = (p_W[0], p_W[1], p_W[2], t.astype(p_W.dtype))
        axes = (self.x, self.y, self.z, self.times)
        for at, axis in zip(places, axes, strict=True):
            u = jnp.tensordot(hat_weights(at, axis, self.corner), u, 1)
        return u
