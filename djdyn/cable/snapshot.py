"""A line at one instant: everything that follows from its state."""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..multibody.spatial import cross
from ..typing import Scalar, Vec3
from .ends import Place
from .properties import Measures
from .spline import Mesh, Nodes


LEAST_EXTENT = 1e-4  # m, of a piece of line that crosses the surface


class CableSnapshot(eqx.Module):
    r"""Nodes, their forces and inertias, and the powers that cross the line's ends.

    `v` are velocities of the material, `w` the same with held nodes at the speed of
    what holds them, `feed` is $\dot s$. `load` is what the line does on what holds its
    ends, and the force that accelerates free nodes; `drag` and `pushes` are shares of
    it, and `friction` is what damping does on the measures. `mass` holds a matrix a
    node and `mass_rate` its rate by payout.
    """

    cable: Any
    world: World
    places: tuple[Place | None, Place | None]
    length: Scalar
    offset: Scalar  # paid out at the tail
    rates: Float[Array, "2"]
    feed: Float[Array, " nodes"]
    r: Nodes
    v: Nodes
    w: Nodes
    r_dot: Nodes
    measures: Measures
    rate: Measures  # with the velocities v
    motion: Measures  # with the velocities w
    mass: Float[Array, "nodes 3 3"]
    mass_rate: Float[Array, "nodes 3 3"]
    load: Nodes
    torque: Float[Array, "2 3"]
    friction: Measures
    drag: Nodes
    current: Nodes
    rubbing: Nodes  # damping and friction of the sea bed
    pushes: Float[Array, "forces 3"]
    damping_loss: Scalar
    tension: Float[Array, " nodes"]
    eta: Float[Array, " nodes"]  # heights of the waves
    eta_rate: Float[Array, " nodes"]
    carried: Nodes  # forces of water that waves accelerate

    @staticmethod
    def of(
        cable: Any, t: Scalar, state: dict, world: World, rates: Array
    ) -> "CableSnapshot":
        """Return a cable's snapshot in a state, with its ends paying out at `rates`."""
        rope, mesh, dtype = cable.rope, cable.spline, state["r"].dtype
        places = (cable.tail.place(t, world), cable.head.place(t, world))
        length = cable.length_out(state)
        x = jnp.asarray(mesh.x, dtype)
        feed = x * rates[1] - (1 - x) * rates[0]
        r = _filled(state["r"], [None if p is None else p.p for p in places])
        w = _filled(state["v"], [None if p is None else p.v for p in places])
        still = jnp.zeros(3, dtype)
        turns = [still if p is None else p.w for p in places]

        offset = state["paid"][0] if cable.pays else jnp.zeros((), dtype)
        measure = _measure(cable, state, places, length, offset)
        measures, push = jax.linearize(measure, r, still, still)
        pull = jax.linear_transpose(push, r, still, still)
        held = np.ones(len(mesh.x))
        held[cable.free] = 0.0
        held = jnp.asarray(held, dtype)
        v = w - (held * feed)[:, None] * measures.slope
        motion = push(w, *turns)
        rate = push(v, *turns) if cable.pays else motion
        r_dot = w + ((1 - held) * feed)[:, None] * measures.slope

        # Inertia: of the line and masses on it, and added by the fluid.
        shares = jnp.asarray(_shares(cable), dtype)
        lumps = lambda length, offset: _lumps(cable, length, offset)[0]
        changes = (jnp.sum(rates), rates[0])
        m, m_rate = jax.jvp(lumps, (length, offset), changes)
        eye = jnp.eye(3, dtype=dtype)[None]
        mass, mass_rate = m[:, None, None] * eye, m_rate[:, None, None] * eye
        eta, eta_rate = _elevations(cable, t, r, r_dot)
        weight = jax.grad(lambda r: -_heights(cable, world, r, length, offset, eta))(r)
        force, current, drag, carried = weight, *(jnp.zeros_like(r) for _ in range(3))
        if cable.fluid is not None:
            fluid, slope = cable.fluid, measures.slope
            density = lambda r, eta: jax.vmap(fluid.density)(*_pieces(cable, r), eta)
            added = lambda r, slope, eta: rope.added(density(r, eta), slope)
            slope_rate = push(r_dot, *turns).slope if cable.pays else rate.slope
            moving = (r_dot, slope_rate, eta_rate)
            A, A_rate = jax.jvp(added, (r, slope, eta), moving)
            lengths = (shares * length)[:, None, None]
            mass = mass + lengths * A
            mass_rate = mass_rate + (jnp.sum(rates) / length) * lengths * A
            force = force - jnp.einsum("nij,nj->ni", lengths * A_rate, w) / 2
            current = jax.vmap(lambda p: fluid.velocity(p, t))(r)
            drag = lengths[:, 0] * rope.drag(density(r, eta), slope, w - current)
            if fluid.waves is not None:
                carried = _carried(cable, t, r, lengths, density(r, eta), A)
            force = force + drag + carried
        rubbing = jnp.zeros_like(r)
        if cable.ground is not None:
            area = shares * length * rope.diameter
            rubbing = jax.vmap(cable.ground.resistance)(r, w, area)
            force = force + rubbing

        # The line's own forces, by virtual work.
        stress = jax.grad(lambda x: rope.energy(mesh, length, x))(measures)
        damping = rope.damping(mesh, cable.length)
        lose = lambda y: rope.dissipation(mesh, length, damping, measures, y)
        loss, friction = jax.value_and_grad(lose)(rate)
        pushes = [f.force(t) for f in cable.forces]
        pushes = jnp.stack(pushes) if pushes else jnp.zeros((0, 3), dtype)
        p = jnp.einsum("nij,nj->ni", mass, v)
        both = lambda y: (y.slope, y.points)
        stress = eqx.tree_at(both, stress, (feed[:, None] * p, -pushes))
        inner, turn0, turn1 = pull(jax.tree.map(jnp.add, stress, friction))
        spent = jnp.einsum("nij,nj->ni", mass_rate, v)
        # At a drum the line comes with the momentum it has when it leaves.
        mu = rope.linear_density
        arrives = (mu * rates[0] * v[:1], 0 * v[1:-1], mu * rates[1] * v[-1:])
        load = force - inner - spent + held[:, None] * jnp.concatenate(arrives)
        return CableSnapshot(
            cable, world, places, length, offset, rates, feed, r, v, w, r_dot, measures,
            rate, motion, mass, mass_rate, load, -jnp.stack([turn0, turn1]), friction,
            drag, current, rubbing, pushes, 2 * loss,
            rope.tensions(measures, rate, damping), eta, eta_rate, carried,
        )  # fmt: skip

    @property
    def shares(self) -> Float[Array, " nodes"]:
        """Shares of the length that belong to the nodes."""
        return jnp.asarray(_shares(self.cable), self.r.dtype)

    def held(self) -> Iterator[tuple[int, Place]]:
        """Nodes at the ends that something holds, 0 and -1, and what does."""
        for node, place in zip((0, -1), self.places, strict=True):
            if place is not None:
                yield node, place

    def accelerations(self) -> Nodes:
        """Accelerations of the nodes; those of held ones mean nothing."""
        if self.cable.fluid is None:
            return self.load / self.mass[:, 0, :1]
        return _solve3(self.mass, self.load)

    def potential(self, r: Nodes, length: Scalar, offset: Scalar) -> Scalar:
        """Elastic energy and that of weight and buoyancy."""
        cable, still = self.cable, jnp.zeros(3, r.dtype)
        state = {"twist": self.measures.twist}
        x = _measure(cable, state, self.places, length, offset)(r, still, still)
        elastic = cable.rope.energy(cable.spline, length, x)
        return elastic + _heights(cable, self.world, r, length, offset, self.eta)

    def wave_power(self) -> Scalar:
        """Power of waves that raise the surface and accelerate the water."""
        raise_all = lambda eta: _heights(
            self.cable, self.world, self.r, self.length, self.offset, eta
        )
        _, raised = jax.jvp(raise_all, (self.eta,), (self.eta_rate,))
        return raised + jnp.sum(self.carried * self.w)

    def winch_power(self) -> Scalar:
        """Power of the winches at both ends, with the energy of line that enters."""
        still = jnp.zeros(3, self.r.dtype)
        state = {"twist": self.measures.twist}
        measure = _measure(self.cable, state, self.places, self.length, self.offset)
        damped = -jax.vjp(lambda r: measure(r, still, still), self.r)[1](self.friction)[
            0
        ]
        fixed_r = lambda length, offset: self.potential(self.r, length, offset)
        changes = (jnp.sum(self.rates), self.rates[0])
        _, power = jax.jvp(fixed_r, (self.length, self.offset), changes)
        moved = self.feed[:, None] * self.measures.slope
        slope = jax.grad(self.potential)(self.r, self.length, self.offset)
        free = self.cable.free
        power += jnp.sum(slope[free] * moved[free])
        p = jnp.einsum("nij,nj->ni", self.mass, self.v)
        power -= jnp.sum(self.feed[:, None] * p * self.motion.slope)
        spent = jnp.einsum("nij,nj->ni", self.mass_rate, self.v)
        power -= jnp.sum(self.v[free] * spent[free]) / 2
        mu = self.cable.rope.linear_density
        for node, place in self.held():
            v, w = self.v[node], place.v
            power += moved[node] @ damped[node] + w @ self.mass_rate[node] @ w / 2
            power += (mu * self.rates[node] * v - spent[node]) @ w
        return power

    def at(self, s: Scalar, ends: list[Vec3]) -> dict[str, Array]:
        """Quantities by name at arclength `s`, given the accelerations of held ends."""
        mesh, plain = self.cable.spline, Mesh(self.cable.mesh)
        length, x = self.length, s / self.length
        bent = lambda y: y.curvature * length**2
        p, slope, curvature = mesh.at(self.r, bent(self.measures), x)
        v, v_slope, _ = mesh.at(self.v, bent(self.rate), x)
        free = self.cable.free
        rows = [self.accelerations()[free]]
        rows = [ends[0][None]] * (free.start == 1) + rows
        a = jnp.concatenate(rows + [ends[1][None]] * (free.stop < len(self.r)))
        a = plain.at(a, plain.curvatures(a, (None, None)), x)[0]
        feed = jnp.interp(x, jnp.asarray(mesh.x, x.dtype), self.feed)
        return {
            "position": p,
            "velocity": v,
            "acceleration": a - feed * v_slope / length,
            "tangent": slope / jnp.sqrt(slope @ slope),
            "tension": mesh.hats(x) @ self.tension,
            "curvature": curvature / length**2,
            "twist": self.measures.twist / length,
        }


def _filled(inner: Float[Array, "free 3"], ends: list[Vec3 | None]) -> Nodes:
    rows = [inner]
    rows = rows if ends[0] is None else [ends[0][None], *rows]
    rows = rows if ends[1] is None else [*rows, ends[1][None]]
    return jnp.concatenate(rows) if len(rows) > 1 else inner


def _shares(cable: Any) -> np.ndarray:
    mesh = cable.spline
    return mesh.weights if cable.lumping == "spline" else mesh.halves


def _measure(cable: Any, state: dict, places: Any, length: Scalar, offset: Scalar):
    """Measures of nodes and small rotations of the ends."""
    points = [(f.position + offset) / length for f in cable.forces]

    def measure(r: Nodes, turn0: Vec3, turn1: Vec3) -> Measures:
        turned = zip(places, (turn0, turn1), strict=True)
        clamps = tuple(None if p is None else p.turned(a) for p, a in turned)
        x = cable.rope.measures(cable.spline, length, r, clamps, points)
        if "twist" in state:  # whole turns are counted by the state
            before = jax.lax.stop_gradient(state["twist"])
            turns = jnp.round((before - x.twist) / (2 * jnp.pi))
            whole = 2 * jnp.pi * jax.lax.stop_gradient(turns)
            x = eqx.tree_at(lambda y: y.twist, x, x.twist + whole)
        return x

    return measure


def _lumps(cable: Any, length: Scalar, offset: Scalar) -> tuple[Array, Array]:
    """Masses and volumes at the nodes."""
    share = length * jnp.asarray(_shares(cable), length.dtype)
    mass, volume = cable.rope.linear_density * share, cable.rope.area * share
    for point in cable.masses:
        hats = cable.spline.hats((point.position + offset) / length)
        mass, volume = mass + point.mass * hats, volume + point.volume * hats
    return mass, volume


def _pieces(cable: Any, r: Nodes) -> tuple[Nodes, Float[Array, " nodes"]]:
    """Centres and vertical extents of the pieces of line that belong to the nodes."""
    if cable.fluid.surface is None:
        return r, jnp.broadcast_to(cable.rope.diameter, r.shape[:1])
    middle = (r[1:] + r[:-1]) / 2
    ends = jnp.concatenate([r[:1], middle]), jnp.concatenate([middle, r[-1:]])
    rise = (ends[1] - ends[0])[:, 2]
    least = jnp.maximum(cable.rope.diameter, LEAST_EXTENT)
    return (ends[0] + ends[1]) / 2, jnp.sqrt(rise**2 + least**2)


def _elevations(cable: Any, t: Scalar, r: Nodes, r_dot: Nodes) -> tuple[Array, Array]:
    """Heights of the waves at the pieces of line, and their rates as these move."""
    if cable.fluid is None or cable.fluid.waves is None:
        return jnp.zeros_like(r[:, 0]), jnp.zeros_like(r[:, 0])
    heights = lambda r, t: jax.vmap(lambda p: cable.fluid.elevation(p, t))(
        _pieces(cable, r)[0]
    )
    return jax.jvp(heights, (r, t), (r_dot, jnp.ones_like(t)))


def _carried(
    cable: Any,
    t: Scalar,
    r: Nodes,
    lengths: Float[Array, "nodes 1 1"],
    density: Array,
    added: Float[Array, "nodes 3 3"],
) -> Nodes:
    """Forces of water that waves accelerate: on what it displaces, and on added mass.

    The pressure of waves acts as that at rest does, whose lift is all vertical: also
    along the line, where it makes up for the pressure in the line's tension.
    """
    a = jax.vmap(lambda p: cable.fluid.acceleration(p, t))(r)
    displaced = (density * cable.rope.area)[:, None] * a
    return lengths[:, 0] * (displaced + jnp.einsum("nij,nj->ni", added, a))


def _heights(
    cable: Any, world: World, r: Nodes, length: Scalar, offset: Scalar, eta: Array
) -> Scalar:
    """Potential energy of weight and buoyancy, and that of the sea bed."""
    mass, volume = _lumps(cable, length, offset)
    energy = -jnp.einsum("n,ni,i->", mass, r, world.gravity_W)
    if cable.fluid is not None:
        p, extent = _pieces(cable, r)
        column = jax.vmap(cable.fluid.column)(p, extent, eta)
        # The whole volume rides at the node, wherever its piece is wet.
        column = column - jax.vmap(cable.fluid.density)(p, extent, eta) * (p - r)[:, 2]
        energy += world.gravity_W[2] * volume @ column
    if cable.ground is not None:
        area = jnp.asarray(_shares(cable), length.dtype) * length * cable.rope.diameter
        energy += jnp.sum(jax.vmap(cable.ground.energy)(r, area))
    return energy


def _solve3(M: Float[Array, "n 3 3"], b: Nodes) -> Nodes:
    """Solve 3x3 systems by Cramer's rule."""
    rows = [cross(M[:, i], M[:, j]) for i, j in ((1, 2), (2, 0), (0, 1))]
    det = jnp.sum(M[:, 0] * rows[0], -1)[:, None]
    return jnp.stack([jnp.sum(row * b, -1) for row in rows], -1) / det
