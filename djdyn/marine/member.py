r"""Slender rigid cylinders in water: Morison's forces, buoyancy and the sea bed.

With $u_n$ and $u_t$ the velocity through the water across and along the axis, the water
pushes with $-\tfrac12\rho d\,C_n |u_n| u_n$ per unit of length and with
$-\tfrac12\rho\,\tfrac\pi4 d^2\,C_e |u_t| u_t$ on each end. It adds the mass
$\rho\,\tfrac\pi4 d^2\,C_a$ per unit of length across the axis, and
$\rho\,\tfrac\pi{12} d^3\,C_{ae}$ along it at each end.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..multibody.spatial import cross
from ..parts.base import AbstractPart, Response, Signals
from ..parts.loads import Inertia, Load
from ..smooth import norm
from ..typing import Scalar, Vec3, si
from .sea_bed import SeaBed
from .water import Fluid


GAUSS = np.array([0.5 - np.sqrt(1 / 12), 0.5 + np.sqrt(1 / 12)])


class Stations(eqx.Module):
    """Points along a member at an instant: in its strips, then its two ends."""

    p: Float[Array, "n 3"]
    v: Float[Array, "n 3"]
    density: Float[Array, " n"]
    current: Float[Array, "n 3"]
    drag: Float[Array, "n 3"]
    rubbing: Float[Array, "n 3"]
    push: Float[Array, "n 3"]  # buoyancy, and the elastic force of the sea bed


class MorisonMember(AbstractPart):
    r"""What water and sea bed do to a cylinder along the z axis of `frame`.

    It starts at the frame's origin, and is wet as far as it is under water at the
    instant. Weight and inertia are those of its body.

    **Arguments:**

    - `normal_drag`, `end_drag`, `added_mass`, `end_added_mass`: $C_n$, $C_e$, $C_a$ and
      $C_{ae}$.
    - `strips`: into which it is cut, with two points each; added mass is that of its
      two halves.
    - `ground`: the sea bed it may touch, by its diameter.

    Water that waves accelerate pushes with its displaced and its added mass. Outputs:
    `force` and `torque` (about the origin of `frame`) of water and sea bed, without
    added mass and without the acceleration of waves.
    """

    signal_units: ClassVar[Mapping[str, str]] = {"force": "N", "torque": "N m"}
    frame: str = eqx.field(static=True)
    length: Scalar = eqx.field(converter=si("m", above=0.0))
    diameter: Scalar = eqx.field(converter=si("m", above=0.0))
    normal_drag: Scalar = eqx.field(converter=si("1", at_least=0.0), default=0.0)
    end_drag: Scalar = eqx.field(converter=si("1", at_least=0.0), default=0.0)
    added_mass: Scalar = eqx.field(converter=si("1", at_least=0.0), default=0.0)
    end_added_mass: Scalar = eqx.field(converter=si("1", at_least=0.0), default=0.0)
    strips: int = eqx.field(static=True, default=5)
    fluid: Fluid = eqx.field(default_factory=Fluid)
    ground: SeaBed | None = None

    def initial_state(self) -> dict:
        return {}

    def _axis(self, world: World) -> tuple[Vec3, Vec3, Vec3, Vec3]:
        """Return origin, its velocity, the axis and the angular velocity."""
        X, V = world.pose(self.frame), world.twist(self.frame)
        return X.p, V[3:], X.R[:, 2], V[:3]

    def _pieces(self, dtype: Any) -> tuple[Array, Array, Scalar]:
        """Return places along the axis, lengths (none at the ends) and wet extents."""
        x = np.concatenate([(i + GAUSS) / self.strips for i in range(self.strips)])
        piece = self.length / (2 * self.strips)
        x = jnp.asarray(np.concatenate([x, [0.0, 1.0]]), dtype) * self.length
        inner = jnp.asarray(np.arange(len(x)) < 2 * self.strips, dtype)
        return x, inner * piece, jnp.maximum(self.diameter, piece)

    def _stations(self, t: Scalar, world: World) -> Stations:
        p0, v0, e, w = self._axis(world)
        x, lengths, extent = self._pieces(p0.dtype)
        p = p0[None] + x[:, None] * e[None]
        v = v0[None] + x[:, None] * cross(w, e)[None]
        fluid, area = self.fluid, jnp.pi / 4 * self.diameter**2
        density = self._densities(p, extent, t)
        current = jax.vmap(lambda p: fluid.velocity(p, t))(p)
        through = v - current
        along = (through @ e)[:, None] * e[None]
        across = through - along
        ends = jnp.where(lengths > 0, 0.0, area)
        sides = self.normal_drag * self.diameter * lengths * norm(across)
        drag = sides[:, None] * across
        drag = drag + (self.end_drag * ends * norm(along))[:, None] * along
        lift = -density * area * lengths * world.gravity_W[2]
        push = lift[:, None] * jnp.eye(3, dtype=p.dtype)[2][None]
        rubbing = jnp.zeros_like(p)
        if self.ground is not None:
            touched = self.diameter * lengths
            push = push + jax.vmap(self.ground.push)(p, touched)
            rubbing = jax.vmap(self.ground.resistance)(p, v, touched)
        drag = -density[:, None] / 2 * drag
        return Stations(p, v, density, current, drag, rubbing, push)

    def _densities(self, p: Float[Array, "n 3"], extent: Scalar, t: Scalar) -> Array:
        """Return densities of the water at points, under the waves of the moment."""
        fluid = self.fluid
        one = lambda p: fluid.density(p, extent, fluid.elevation(p, t))
        return jax.vmap(one)(p)

    def _halves(
        self, p0: Vec3, e: Vec3, t: Scalar
    ) -> tuple[Array, Float[Array, "2 3 3"]]:
        """Return two points, and the mass that the water adds there."""
        p = p0[None] + jnp.asarray(GAUSS, p0.dtype)[:, None] * self.length * e[None]
        extent = jnp.maximum(self.diameter, self.length / 2)
        density = self._densities(p, extent, t)
        across = jnp.pi / 4 * self.diameter**2 * self.length / 2 * self.added_mass
        along = jnp.pi / 12 * self.diameter**3 * self.end_added_mass
        axial = e[:, None] * e[None]
        one = across * (jnp.eye(3, dtype=e.dtype) - axial) + along * axial
        return p, density[:, None, None] * one[None]

    def _added(self, world: World) -> tuple[Array, Array, Array, Array]:
        """Return points of added mass, their velocities, the masses and their rates."""
        p0, v0, e, w = self._axis(world)
        moving = (v0, cross(w, e), jnp.ones_like(world.t))
        (p, mass), (v, rate) = jax.jvp(self._halves, (p0, e, world.t), moving)
        return p, v, mass, rate

    def _carried(self, t: Scalar, world: World) -> tuple[Array, Array, Array]:
        """Return two points, their velocities and the forces of accelerating water."""
        p, v, mass, _ = self._added(world)
        extent = jnp.maximum(self.diameter, self.length / 2)
        volume = jnp.pi / 8 * self.diameter**2 * self.length
        displaced = self._densities(p, extent, t) * volume
        a = jax.vmap(lambda p: self.fluid.acceleration(p, t))(p)
        return p, v, displaced[:, None] * a + jnp.einsum("nij,nj->ni", mass, a)

    def __call__(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Response:
        del signals
        now = self._stations(t, world)
        p, v, mass, rate = self._added(world)
        origin, body = self._axis(world)[0], world.mechanism.frame(self.frame).body
        pushes = now.drag + now.rubbing + now.push
        change = -jnp.einsum("nij,nj->ni", rate, v) / 2
        if self.fluid.waves is not None:
            change = change + self._carried(t, world)[2]
        force, torque = jnp.sum(pushes, 0), _moment(now.p - origin[None], pushes)
        load = Load(
            body,
            "world",
            origin,
            force + jnp.sum(change, 0),
            torque + _moment(p - origin[None], change),
        )
        inertias = tuple(Inertia(body, p[i], mass[i]) for i in range(2))
        outputs = {"force": force, "torque": torque}
        return Response(state, (load,), outputs, inertias)

    def energy(self, state: Any, world: World) -> Scalar:
        """Return the energy of buoyancy, of the sea bed and of the added mass."""
        del state
        p0, _, e, _ = self._axis(world)
        x, lengths, extent = self._pieces(p0.dtype)
        p = p0[None] + x[:, None] * e[None]
        fluid = self.fluid
        column = lambda p: fluid.column(p, extent, fluid.elevation(p, world.t))
        column = jax.vmap(column)(p)
        area = jnp.pi / 4 * self.diameter**2
        energy = world.gravity_W[2] * area * jnp.sum(lengths * column)
        if self.ground is not None:
            stored = jax.vmap(self.ground.energy)(p, self.diameter * lengths)
            energy = energy + jnp.sum(stored)
        _, v, mass, _ = self._added(world)
        return energy + jnp.einsum("ni,nij,nj->", v, mass, v) / 2

    def power_loss(
        self, t: Scalar, state: Any, world: World, signals: Signals
    ) -> Scalar:
        del state, signals
        now = self._stations(t, world)
        slip = now.v - now.current
        return -jnp.sum(now.drag * slip) - jnp.sum(now.rubbing * now.v)

    def power_in(self, t: Scalar, state: Any, world: World, signals: Signals) -> Scalar:
        """Return the work of current and waves."""
        del state, signals
        now = self._stations(t, world)
        power = jnp.sum(now.drag * now.current)
        if self.fluid.waves is None:
            return power
        _, v, carried = self._carried(t, world)
        _, lengths, extent = self._pieces(now.p.dtype)
        raised = jax.vmap(lambda p, v: self.fluid.raised(p, v, t, extent))(now.p, now.v)
        area = jnp.pi / 4 * self.diameter**2
        power = power - world.gravity_W[2] * area * jnp.sum(lengths * raised)
        return power + jnp.sum(carried * v)


def _moment(arms: Float[Array, "n 3"], forces: Float[Array, "n 3"]) -> Vec3:
    return jnp.sum(cross(arms, forces), 0)
