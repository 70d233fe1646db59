r"""The sea bed: what lies on it is pressed up, slowed down and held back.

With $\delta$ the penetration of a point, $g = \partial\delta/\partial p$ and $n$ its
direction, an area $A$ at velocity $v$ feels

$$f = -A\,\bigl(k\,\delta + c\,\dot\delta\bigr)\,g
  - \mu\,A\,k\,\delta\,|g|\,\frac{v_t}{\sqrt{v_t^2 + v_0^2}},$$

with $v_t$ the velocity along the bed. The corner at $\delta = 0$ is rounded within
`width`, damping sets in there, and friction is viscous below the speed $v_0$.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..smooth import hat_weights, ramp, ramp_area
from ..typing import Mat3, Scalar, Vec3, check_values, known, optional, si


class SeaBed(eqx.Module):
    """An elastic bed with damping and friction, flat or given on a grid.

    **Arguments:**

    - `height`: of the bed; with `x` and `y` one at each point of their grid, and
      bilinear between them. Beyond the grid it is as at its edge.
    - `stiffness`, `damping`: pressure by penetration and by its rate.
    - `friction`: coefficient; below about `slip_speed` friction is viscous.
    - `width`: penetration within which contact sets in.
    - `corner`: distance from the grid's lines within which slopes change.
    """

    height: Float[Array, "..."] = eqx.field(converter=si("m"))
    stiffness: Scalar = eqx.field(converter=si("Pa/m", at_least=0.0), default=3e6)
    damping: Scalar = eqx.field(converter=si("Pa s/m", at_least=0.0), default=3e5)
    friction: Scalar = eqx.field(converter=si("1", at_least=0.0), default=0.0)
    slip_speed: Scalar = eqx.field(converter=si("m/s", above=0.0), default=0.01)
    width: Scalar = eqx.field(converter=si("m", above=0.0), default=1e-3)
    x: Float[Array, " nx"] | None = eqx.field(converter=optional(si("m")), default=None)
    y: Float[Array, " ny"] | None = eqx.field(converter=optional(si("m")), default=None)
    corner: Scalar = eqx.field(converter=si("m", above=0.0), default=0.1)

    def __check_init__(self):
        check_values(self)
        lines = [axis for axis in (self.x, self.y) if axis is not None]
        shape = tuple(len(axis) for axis in lines)
        if len(lines) == 1 or self.height.shape != shape:
            raise ValueError(
                "a sea bed has one height, or one at each point of a grid of x and y: "
                f"got heights {self.height.shape} on a grid {shape}"
            )
        for axis in lines:
            if known(axis) and np.any(np.diff(axis) <= 0):
                raise ValueError("the lines of a sea bed's grid must increase")

    def level(self, p_W: Vec3) -> Scalar:
        """Return the height of the bed below or above a point."""
        if self.x is None or self.y is None:
            return self.height
        along_x = hat_weights(p_W[0], self.x, self.corner)
        return along_x @ self.height @ hat_weights(p_W[1], self.y, self.corner)

    def _penetration(self, p_W: Vec3) -> tuple[Scalar, Vec3]:
        """Return the penetration of a point and its derivative by the point."""
        return jax.value_and_grad(lambda p: self.level(p) - p[2])(p_W)

    def energy(self, p_W: Vec3, area: Scalar) -> Scalar:
        """Return the energy stored under an area, J."""
        depth = self.level(p_W) - p_W[2]
        return area * self.stiffness * ramp_area(depth, self.width)

    def push(self, p_W: Vec3, area: Scalar) -> Vec3:
        """Return the elastic force on an area, N."""
        depth, g = self._penetration(p_W)
        return -area * self.stiffness * ramp(depth, self.width) * g

    def resistance(self, p_W: Vec3, v_W: Vec3, area: Scalar) -> Vec3:
        """Return the force of damping and friction on an area, N."""
        depth, g = self._penetration(p_W)
        square = g @ g
        touch = jnp.clip((depth / self.width + 1) / 2, 0.0, 1.0)
        damped = self.damping * touch * (g @ v_W) * g
        v_t = v_W - (g @ v_W) / square * g
        pressure = self.stiffness * ramp(depth, self.width) * jnp.sqrt(square)
        slip = jnp.sqrt(v_t @ v_t + self.slip_speed**2)
        return -area * (damped + self.friction * pressure / slip * v_t)

    def slopes(self, p_W: Vec3, v_W: Vec3, area: Scalar) -> tuple[Mat3, Mat3]:
        """Return stiffness and damping of the force on an area, positive and rough."""
        depth, g = self._penetration(p_W)
        touch = jnp.clip((depth / self.width + 1) / 2, 0.0, 1.0)
        across = g[:, None] * g[None]
        square = g @ g
        v_t = v_W - (g @ v_W) / square * g
        held = self.friction * self.stiffness * ramp(depth, self.width)
        held = held * jnp.sqrt(square) / jnp.sqrt(v_t @ v_t + self.slip_speed**2)
        along = jnp.eye(3, dtype=p_W.dtype) - across / square
        damping = self.damping * touch * across + held * along
        return area * self.stiffness * touch * across, area * damping
