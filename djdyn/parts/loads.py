"""Loads and inertias by which parts act on the mechanism."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..multibody.kinematics import World
from ..multibody.spatial import cross, skew
from ..typing import Mat3, Scalar, Vec3


class Load(eqx.Module):
    """A force and torque on one body, and their opposites on another.

    Both act at the same point P of space, so no momentum can leak.
    """

    on: str = eqx.field(static=True)
    against: str = eqx.field(static=True)
    p_WP: Vec3
    f_W: Vec3
    tau_W: Vec3

    def wrenches(self, world: World) -> Float[Array, "bodies 6"]:
        """About the bodies' origins."""
        rows = range(len(world.V_WB))
        F_WB = jnp.zeros_like(world.V_WB)
        for name, sign in ((self.on, 1.0), (self.against, -1.0)):
            b = world.mechanism.index(name)
            tau_W = self.tau_W + cross(self.p_WP - world.X_WB.p[b], self.f_W)
            here = np.array([sign * (row == b) for row in rows])  # cheaper than scatter
            F = jnp.concatenate([tau_W, self.f_W])
            F_WB = F_WB + jnp.asarray(here, F.dtype)[:, None] * F[None]
        return F_WB

    def power(self, world: World) -> Scalar:
        """What the load does on the mechanism."""
        return jnp.sum(self.wrenches(world) * world.V_WB)


class BodyLoads(eqx.Module):
    """Wrenches on all bodies about their origins, of a part that meets many of them.

    Their sum over bodies and world should be nothing.
    """

    F_WB: Float[Array, "bodies 6"]

    def wrenches(self, world: World) -> Float[Array, "bodies 6"]:
        """Wrenches on all bodies about their origins."""
        del world
        return self.F_WB

    def power(self, world: World) -> Scalar:
        """What they do on the mechanism."""
        return jnp.sum(self.F_WB * world.V_WB)


class JointLoad(eqx.Module):
    """A force along each of a joint's speeds, from the parent on the child."""

    joint: str = eqx.field(static=True)
    force: Float[Array, " nv"]

    def forces(self, world: World) -> Float[Array, " nv"]:
        """One for every speed of the mechanism."""
        where = world.mechanism.v_slice(self.joint)
        if self.force.shape != (where.stop - where.start,):
            raise ValueError(
                f"a force of shape {self.force.shape} on joint {self.joint!r}, which "
                f"has {where.stop - where.start} speeds"
            )
        return jnp.pad(self.force, (int(where.start), len(world.v) - int(where.stop)))

    def power(self, world: World) -> Scalar:
        """What the load does on the mechanism."""
        return self.force @ world.joint(self.joint)[1]


class Inertia(eqx.Module):
    """A mass at a point P that moves with a body; a matrix, since added mass of a fluid
    is not alike in all directions.

    It resists acceleration and has no weight. Its kinetic energy is the part's to book.
    """

    body: str = eqx.field(static=True)
    p_WP: Vec3
    mass_W: Mat3

    def _arm(self, world: World) -> Vec3:
        return self.p_WP - world.X_WB.p[world.mechanism.index(self.body)]

    def _rows(self, world: World, x: Array) -> Array:
        """`x` in the body's row."""
        rows = np.arange(len(world.V_WB)) == world.mechanism.index(self.body)
        rows = rows.reshape(-1, *(1,) * x.ndim)
        return jnp.asarray(rows, x.dtype) * x[None]

    def matrices(self, world: World) -> Float[Array, "bodies 6 6"]:
        """About the bodies' origins, in world axes."""
        arm = skew(self._arm(world))
        lever = jnp.concatenate([-arm, jnp.eye(3, dtype=arm.dtype)], 1)
        return self._rows(world, lever.T @ self.mass_W @ lever)

    def wrenches(self, world: World) -> Float[Array, "bodies 6"]:
        """Its pull outwards when the body turns."""
        arm, w = self._arm(world), world.V_WB[world.mechanism.index(self.body), :3]
        f_W = -self.mass_W @ cross(w, cross(w, arm))
        return self._rows(world, jnp.concatenate([cross(arm, f_W), f_W]))

    def power(self, world: World, A_WB: Float[Array, "bodies 6"]) -> Scalar:
        """What it does on the mechanism whose bodies accelerate with `A_WB`."""
        F = self.wrenches(world)
        F = F - jnp.einsum("nij,nj->ni", self.matrices(world), A_WB)
        return jnp.sum(F * world.V_WB)
