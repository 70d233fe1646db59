"""What a flexible body adds to a mechanism: rows for its modes and its nodes."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...typing import Mat3, Scalar, Vec3
from ..joints import AbstractJoint, AbstractVectorJoint
from ..spatial import Pose, identity_pose, skew
from .beams import Beam
from .finite_elements import FiniteElements
from .reduction import symmetric_eigen


class Modal(AbstractVectorJoint):
    """Owns the modal coordinates of a flexible body; by itself it moves nothing."""

    size: int = eqx.field(static=True)

    @property
    def nq(self) -> int:
        """Number of modes."""
        return self.size

    @property
    def nv(self) -> int:
        """Number of modes."""
        return self.size

    def pose(self, q: Float[Array, " nq"], t: Scalar) -> Pose:
        del q, t
        return identity_pose()

    def subspace(self, q: Float[Array, " nq"]) -> Float[Array, "nv 6"]:
        return jnp.zeros((self.size, 6), q.dtype)


class FlexibleRow(eqx.Module):
    """A row of a mechanism that belongs to a flexible body: its modes, or a node."""

    name: str = eqx.field(static=True)
    parent: str = eqx.field(static=True)
    joint: AbstractJoint

    joint_name = ""
    any_inertia = False
    armature = None
    A_B = None

    @property
    def mass(self) -> Scalar:
        """None of its own."""
        return jnp.zeros(())

    @property
    def p_BC(self) -> Vec3:
        """The origin, for want of mass."""
        return jnp.zeros(3)

    @property
    def I_BC(self) -> Mat3:
        """None of its own."""
        return jnp.zeros((3, 3))

    @property
    def J_B(self) -> Mat3:
        """None of its own."""
        return jnp.zeros((3, 3))

    @property
    def X_PJ(self) -> Pose:
        """The reference's own place: nodes are placed by the modes."""
        return identity_pose()


class Nodes(eqx.Module):
    """Attachment nodes: places, and displacements and rotations per mode.

    `G` is what pairs of modes take from the length; see `shape_integrals`.
    """

    p0: Float[Array, "k 3"]
    Psi: Float[Array, "k m 3"]
    Theta: Float[Array, "k m 3"]
    G: Float[Array, "k m m"]


def attachment_nodes(
    model: Beam | FiniteElements,
    modes: Float[Array, "dofs m"],
    nodes: Sequence[np.ndarray],
    origin: Vec3,
    shortening: Float[Array, "nodes m m"] | None,
) -> Nodes:
    """Return places and modes of the attachments; several nodes move their mean."""
    dofs, x, m = model.node_dofs, model.positions, modes.shape[1]
    moved = jnp.swapaxes(modes.reshape(len(x), dofs, m), 1, 2)  # [node, mode, dof]
    none, still = jnp.zeros((m, m), x.dtype), jnp.zeros((m, 3), x.dtype)
    p0, Psi, Theta, G = [], [], [], []
    for own in nodes:
        centre = jnp.mean(x[own], 0)
        p0.append(centre - origin)
        Psi.append(jnp.mean(moved[own, :, :3], 0))
        turned = moved[own[0], :, 3:] if dofs == 6 else still
        if len(own) > 1:
            turned = _mean_rotation(x[own] - centre[None], moved[own, :, :3])
        Theta.append(turned)
        G.append(none if shortening is None else jnp.mean(shortening[own], 0))
    stack = lambda rows, *shape: (
        jnp.stack(rows) if rows else jnp.zeros((0, *shape), x.dtype)
    )
    return Nodes(stack(p0, 3), stack(Psi, m, 3), stack(Theta, m, 3), stack(G, m, m))


def _mean_rotation(
    arms: Float[Array, "n 3"], moved: Float[Array, "n m 3"]
) -> Float[Array, "m 3"]:
    """The small rotation that fits displacements best, for each mode.

    Nodes on one line do not tell how they turn about it: that is left out.
    """
    levers = skew(arms)
    normal = jnp.einsum("nka,nkb->ab", levers, levers)
    told = jnp.einsum("nab,nmb->ma", levers, moved)
    values, axes = symmetric_eigen(normal)
    seen = values > 1e-9 * values[-1]
    share = jnp.where(seen, 1 / jnp.where(seen, values, 1.0), 0.0)
    return jnp.einsum("ab,b,cb,mc->ma", axes, share, axes, told)
