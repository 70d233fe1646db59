"""Gravity compensation: bodies whose weight something else carries."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..multibody.spatial import cross
from ..typing import Scalar, si
from .base import AbstractPassivePart, Response, Signals
from .joint import names
from .loads import BodyLoads


class GravityCompensation(AbstractPassivePart):
    """A force at the centre of mass of each of `bodies` against its weight.

    It is the weight times `fraction`, one number or one for each body: one makes a body
    float, more lifts it.
    """

    bodies: tuple[str, ...] = eqx.field(static=True, converter=names)
    fraction: Float[Array, "*#n"] = eqx.field(converter=si("1"), default=1.0)

    def __check_init__(self):
        if self.fraction.shape not in ((), (len(self.bodies),)):
            raise ValueError(
                f"fraction has shape {self.fraction.shape}, expected one number, or one"
                f" for each of the bodies {', '.join(self.bodies)}"
            )

    def initial_state(self) -> dict:
        return {}

    def _shares(self, world: World) -> Float[Array, " bodies"]:
        """The fraction of every body of the mechanism."""
        rows = [world.mechanism.index(body) for body in self.bodies]
        table = np.arange(len(world.m)) == np.array(rows)[:, None]
        each = jnp.broadcast_to(self.fraction, (len(rows),))
        return each @ jnp.asarray(table, each.dtype)

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del t, signals
        share = self._shares(world)
        up = -world.gravity_W[None]
        moment = jnp.einsum("nij,nj->ni", world.X_WB.R, world.h_B)
        f, tau = world.m[:, None] * up, cross(moment, up)
        return Response(
            state, (BodyLoads(share[:, None] * jnp.concatenate([tau, f], -1)),)
        )

    def energy(self, state: Any, world: World) -> Scalar:
        del state
        moment = jnp.einsum("nij,nj->ni", world.X_WB.R, world.h_B)
        moment = moment + world.m[:, None] * world.X_WB.p
        return self._shares(world) @ (moment @ world.gravity_W)

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t, state, world, signals
        return jnp.zeros(())
