"""A system at one instant: loads, accelerations, reactions and energy."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..multibody import dynamics, reactions
from ..multibody.joints import Prescribed
from ..multibody.kinematics import World
from ..multibody.loop_rows import loop_reaction, loop_wrenches
from ..multibody.loops import LoopRows
from ..multibody.mechanism import Mechanism
from ..multibody.spatial import shift_twist
from ..parts.base import AbstractPart, Response
from ..typing import Scalar
from .state import State


class AbstractSystem(eqx.Module):
    """A mechanism with parts; its one implementation is `System`."""

    mechanism: eqx.AbstractVar[Mechanism]
    parts: eqx.AbstractVar[dict[str, AbstractPart]]


class Instant(eqx.Module):
    """Everything that happens in a system at one time."""

    system: AbstractSystem
    y: State
    world: World
    responses: dict[str, Response]
    signals: dict[str, Array]
    tau: Float[Array, " nv"]
    F_WB: Float[Array, "bodies 6"]
    v_dot: Float[Array, " nv"]
    added_inertia_W: Float[Array, "bodies 6 6"] | None = None
    held_W: Float[Array, "bodies 6"] | None = None  # of F_WB, what constraints exert
    loops_W: Float[Array, "bodies 6"] | None = None  # of F_WB, what loop joints exert
    rows: LoopRows | None = None
    multipliers: Float[Array, " m"] | None = None

    def with_loops(self, rows: LoopRows, multipliers: Float[Array, " m"]) -> "Instant":
        """The same with what loops carry."""
        loops_W = loop_wrenches(self.world, rows, multipliers)
        at = lambda i: (i.F_WB, i.loops_W, i.rows, i.multipliers)
        new = (self.F_WB + loops_W, loops_W, rows, multipliers)
        return eqx.tree_at(at, self, new, is_leaf=lambda x: x is None)

    @property
    def with_added_inertia(self) -> World:
        """The world with the inertias that parts hang on its bodies."""
        return with_added_inertia_of(self.world, self.added_inertia_W)

    @property
    def A_WB(self) -> Float[Array, "bodies 6"]:
        """Accelerations of all bodies at their origins, in world axes."""
        return dynamics.accelerations(self.world, self.v_dot)

    def energy(self) -> Scalar:
        """Kinetic, potential, and what the parts store."""
        total = reactions.kinetic_energy(self.world)
        total += reactions.potential_energy(self.world)
        for name, part in self.system.parts.items():
            total += part.energy(self.y.parts[name], self.world)
        return total

    def reaction(self, joint: str) -> Float[Array, " k"]:
        """Wrench that the joint transmits to its body, at its origin, in its axes.

        Of a loop, the wrench on its child, at the child's frame in its axes; of a
        coupling, the multiplier of its law.
        """
        if any(loop.name == joint for loop in self.world.mechanism.loops):
            assert self.rows is not None and self.multipliers is not None
            return loop_reaction(self.world, self.rows, self.multipliers, joint)
        row = self.world.mechanism.joint_index(joint)
        return reactions.reactions(self.with_added_inertia, self.v_dot, self.F_WB)[row]

    def constraint_force(
        self, joint: str, directions: Float[Array, "k 6"]
    ) -> Float[Array, " k"]:
        """The joint's loads along chosen directions, by auxiliary speeds."""
        return reactions.constraint_force(
            self.with_added_inertia, self.v_dot, joint, directions, self.F_WB
        )

    def constraint_loss(self) -> Scalar:
        """What constraints take from the bodies they hold: friction, and landing."""
        if self.held_W is None:
            return jnp.zeros((), self.world.v.dtype)
        return -jnp.sum(self.held_W * self.world.V_WB)

    def bending_loss(self) -> Scalar:
        """What flexible bodies turn into heat."""
        flexion = self.world.flexion
        return jnp.zeros((), self.world.v.dtype) if flexion is None else flexion.lost

    def boundary_power(self) -> Scalar:
        """What the drives of prescribed joints and of moving loops put in."""
        world, mechanism = self.world, self.world.mechanism
        power = jnp.zeros((), world.v.dtype)
        if self.rows is not None and self.multipliers is not None:
            power += self.multipliers @ (self.rows.jacobian @ world.v)
        driven = [
            i
            for i, body in enumerate(mechanism.bodies, start=1)
            if isinstance(body.joint, Prescribed)
        ]
        if driven:
            wrenches = reactions.reactions(
                self.with_added_inertia, self.v_dot, self.F_WB
            )
            for b in driven:
                p = mechanism.parents[b]
                step = world.X_WB.p[b] - world.X_WB.p[p]
                V = world.V_WB[b] - shift_twist(world.V_WB[p], step)
                V_B = (V.reshape(2, 3) @ world.X_WB.R[b]).reshape(6)
                power += wrenches[b] @ V_B
        return power


def with_added_inertia_of(world: World, added_inertia_W: Array | None) -> World:
    """Return the world with the added inertia of parts, if they have any."""
    if added_inertia_W is None:
        return world
    at = lambda w: w.added_inertia_W
    return eqx.tree_at(at, world, added_inertia_W, is_leaf=lambda x: x is None)
