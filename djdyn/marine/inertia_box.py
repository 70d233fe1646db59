"""Drag on the box that has a body's inertia: MuJoCo's model of a medium."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from ..multibody.kinematics import World
from ..parts.base import AbstractPart, Response, Signals
from ..parts.loads import Load
from ..typing import Scalar, Vec3, Vec6, si


class InertiaBoxDrag(AbstractPart):
    r"""Drag on a box of edges `size` $a_i$ along the axes of `frame`, about its origin.

    With $u$ the velocity through the medium of density $\rho$ and viscosity $\beta$,
    $\omega$ the angular velocity, both in the frame's axes, and $d$ the mean edge,

    $$f_i = -\tfrac12\rho\,a_j a_k |u_i| u_i - 3\pi d\beta\,u_i,\qquad
      \tau_i = -\tfrac1{64}\rho\,a_i(a_j^4 + a_k^4)|\omega_i|\omega_i
      - \pi d^3\beta\,\omega_i .$$
    """

    frame: str = eqx.field(static=True)
    size: Vec3 = eqx.field(converter=si("m", at_least=0.0))
    density: Scalar = eqx.field(converter=si("kg/m^3", at_least=0.0), default=0.0)
    viscosity: Scalar = eqx.field(converter=si("Pa s", at_least=0.0), default=0.0)
    wind_W: Vec3 = eqx.field(converter=si("m/s"), default=(0.0, 0.0, 0.0))

    def initial_state(self) -> dict:
        return {}

    def _forces(self, world: World) -> tuple[Load, Vec6]:
        """The load, and the twist of the frame."""
        X_WC, V = world.pose(self.frame), world.twist(self.frame)
        w, u = V[:3] @ X_WC.R, (V[3:] - self.wind_W) @ X_WC.R
        a, d = self.size, jnp.mean(self.size)
        b, c = jnp.roll(a, -1), jnp.roll(a, -2)
        face, fourth = b * c, b**4 + c**4
        f = -self.density / 2 * face * jnp.abs(u) * u
        f = f - 3 * jnp.pi * d * self.viscosity * u
        tau = -self.density / 64 * a * fourth * jnp.abs(w) * w
        tau = tau - jnp.pi * d**3 * self.viscosity * w
        body = world.mechanism.frame(self.frame).body
        return Load(body, "world", X_WC.p, X_WC.R @ f, X_WC.R @ tau), V

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, signals
        load, _ = self._forces(world)
        return Response(state, (load,), {"force": load.f_W, "torque": load.tau_W})

    def energy(self, state: Any, world: World) -> Scalar:
        del state, world
        return jnp.zeros(())

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t, state, signals
        load, V = self._forces(world)
        return -load.f_W @ (V[3:] - self.wind_W) - load.tau_W @ V[:3]

    def power_in(self, t: Scalar, state: Any, world: World, signals: Signals) -> Scalar:
        """The work of the wind."""
        del t, state, signals
        return self._forces(world)[0].f_W @ self.wind_W
