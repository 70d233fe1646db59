"""Hydraulic cylinders and their end stops."""

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from ..multibody.kinematics import World
from ..smooth import eased_square, step
from ..typing import Scalar, check_values, si
from .component import AbstractComponent, Conditions, Effect, States
from .friction import AbstractFriction
from .linkage import AbstractLinkage
from .oil import Oil


class EndStop(eqx.Module):
    r"""A stop at the ends of a piston's stroke.

    With $x$ the depth beyond an end, a piston that runs into it feels

    $$F = s(x/w)\bigl(k\,x + c\,\dot x\,s(\dot x/w_v)\bigr),$$

    $s = 3\xi^2 - 2\xi^3$; it is damped on its way in only (Baharudin, doctoral
    dissertation, Lappeenranta, 2016, publication III, eq. 25, corrected). Over the last
    `cushion` of the stroke a further damping `cushioning` comes in, from oil that
    leaves through a narrowing gap.
    """

    stiffness: Scalar = eqx.field(converter=si("N/m", at_least=0.0))
    damping: Scalar = eqx.field(converter=si("N s/m", at_least=0.0), default=0.0)
    cushion: Scalar = eqx.field(converter=si("m", above=0.0), default=0.01)
    cushioning: Scalar = eqx.field(converter=si("N s/m", at_least=0.0), default=0.0)
    width: Scalar = eqx.field(converter=si("m", above=0.0), default=1e-4)
    speed_width: Scalar = eqx.field(converter=si("m/s", above=0.0), default=1e-3)

    def __check_init__(self):
        check_values(self)

    def force(self, x: Scalar, v: Scalar) -> tuple[Scalar, Scalar]:
        """Return the force at the depth `x`, against motion into it, and its spring."""
        depth, near = jnp.maximum(x, 0.0), x + self.cushion
        spring = step(x, self.width) * self.stiffness * depth
        brake = step(x, self.width) * self.damping
        brake = brake + step(near, self.cushion) * self.cushioning
        return spring + brake * v * step(v, self.speed_width), spring

    def energy(self, x: Scalar) -> Scalar:
        """Return the energy of the spring at the depth `x`, J."""
        return self.stiffness * eased_square(jnp.maximum(x, 0.0), self.width)


class HydraulicCylinder(AbstractComponent):
    r"""A cylinder: pressure at node `a` extends it, pressure at `b` retracts it.

    With $x$ the extension, the linkage's length less `retracted`,

    $$F = p_aA_a - p_bA_b - F_\mu,\qquad V_a = xA_a,\quad V_b = (l - x)A_b ;$$

    dead volumes stand at the nodes. Equal areas make a double-rod cylinder. With
    `follow=False` the nodes' volumes stay as they are (an idealisation: the energy
    ledger then counts the compression of the displaced oil as lost, or drawn from
    outside).
    """

    signal_units: ClassVar[Mapping[str, str]] = {
        "force": "N",
        "x": "m",
        "v": "m/s",
        "bristle_um": "um",
    }
    ports: ClassVar[tuple[str, ...]] = ("a", "b")
    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    linkage: AbstractLinkage
    area_a: Scalar = eqx.field(converter=si("m^2", above=0.0))
    area_b: Scalar = eqx.field(converter=si("m^2", above=0.0))
    stroke: Scalar = eqx.field(converter=si("m", above=0.0))
    retracted: Scalar = eqx.field(converter=si("m"), default=0.0)
    friction: AbstractFriction | None = None
    end_stop: EndStop | None = None
    follow: bool = eqx.field(static=True, default=True)

    def initial_state(self) -> States:
        return {} if self.friction is None else self.friction.initial_state()

    def extension(self, world: World) -> tuple[Scalar, Scalar]:
        """Return the extension and its rate."""
        length, rate = self.linkage.length(world)
        return length - self.retracted, rate

    def chambers(self, world: World) -> Mapping[str, tuple[Scalar, Scalar]]:
        x, v = self.extension(world)
        V_a, V_b = x * self.area_a, (self.stroke - x) * self.area_b
        if not self.follow:
            V_a = V_b = jnp.zeros_like(x)
        return {self.a: (V_a, self.area_a * v), self.b: (V_b, -self.area_b * v)}

    def act(self, state: States, now: Conditions) -> Effect:
        x, v = self.extension(now.world)
        push = now[self.a] * self.area_a - now[self.b] * self.area_b
        force, loss, rate = push, jnp.zeros(()), {}
        if self.friction is not None:
            held, lost, rate = self.friction.act(v, push, state)
            force, loss = force - held, loss + lost
        if self.end_stop is not None:
            for out, depth in ((1.0, x - self.stroke), (-1.0, -x)):
                stopped, spring = self.end_stop.force(depth, out * v)
                force = force - out * stopped
                loss = loss + (stopped - spring) * out * v
        source = jnp.zeros(())
        if not self.follow:
            e = now.oil.energy
            kept = (e(now[self.a]) * self.area_a - e(now[self.b]) * self.area_b) * v
            loss, source = loss + jnp.maximum(kept, 0.0), jnp.maximum(-kept, 0.0)
        return Effect(
            {},
            loss,
            source,
            rate,
            self.linkage.loads(now.world, force),
            {"force": force, "x": x, "v": v},
        )

    def energy(self, state: States, world: World, oil: Oil) -> Scalar:
        del oil
        total = jnp.zeros(())
        if self.friction is not None:
            total += self.friction.energy(state)
        if self.end_stop is not None:
            x, _ = self.extension(world)
            total += self.end_stop.energy(x - self.stroke) + self.end_stop.energy(-x)
        return total
