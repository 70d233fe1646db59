"""A massless elastic line of variable length between two frames, for 1-D winches."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from djdyn.multibody.kinematics import World
from djdyn.parts.base import AbstractPart, Response, Signals
from djdyn.parts.loads import Load
from djdyn.smooth import norm
from djdyn.typing import Scalar, si


class Line(AbstractPart):
    top: str = eqx.field(static=True)
    bottom: str = eqx.field(static=True)
    rate: str = eqx.field(static=True)
    length: Scalar = eqx.field(converter=si("m", above=0.0))
    EA: Scalar = eqx.field(converter=si("N", above=0.0))
    damping: Scalar = eqx.field(converter=si("N s/m", at_least=0.0))

    def initial_state(self) -> dict:
        return {"length": self.length}

    def _stretch(self, state: dict, world: World) -> tuple:
        (p_top, v_top), (p, v) = world.point(self.top), world.point(self.bottom)
        distance = norm(p_top - p)
        e_W = (p_top - p) / distance
        return e_W, p, distance - state["length"], (v_top - v) @ e_W

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        del t
        e_W, p, x, speed = self._stretch(state, world)
        rate = signals[self.rate]
        tension = self.EA * x / state["length"] + self.damping * (speed - rate)
        on, against = (world.mechanism.frame(f).body for f in (self.bottom, self.top))
        load = Load(on, against, p, tension * e_W, jnp.zeros(3))
        outputs = {"tension_start": tension, "tension_end": tension}
        return Response({"length": rate}, (load,), outputs)

    def energy(self, state: Any, world: World) -> Scalar:
        return self.EA * self._stretch(state, world)[2] ** 2 / state["length"] / 2

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del t
        speed = self._stretch(state, world)[3] - signals[self.rate]
        return self.damping * speed**2

    def power_in(self, t: Scalar, state: Any, world: World, signals: Signals) -> Scalar:
        """Return the work at the drum and the energy of the strained line paid out."""
        tension = self(t, state, world, signals).outputs["tension_start"]
        strain = self._stretch(state, world)[2] / state["length"]
        return -(tension + self.EA * strain**2 / 2) * signals[self.rate]
