r"""How a body's inertia changes with its shape.

A particle at $x$ of the undeformed body is at $r = x + \phi\eta + \tfrac12(\eta^\top
G\eta)\,e_x$: modes, and what bending takes from the length. With $\Sigma(T) =
\operatorname{tr}(T)1 - T$, up to second order in $\eta$,

$$\begin{aligned}
h &= \int r = h_0 + S\eta + \tfrac12\,(\eta^\top H\eta)\,e_x, &
\textstyle\int\phi_j + \dots &= \partial h/\partial\eta_j,\\
J &= \Sigma\!\int rr^\top = J_0 + J_{1i}\eta_i + \tfrac12 J_{2ij}\eta_i\eta_j, &
\textstyle\int r\times\phi_j + \dots &= Q_{0j} + Q_{1ij}\eta_i ,
\end{aligned}$$

and $\int\phi_i\cdot\phi_j = M_{ff}$, all per unit of mass. Whatever these tensors hold,
the equations that follow from them conserve energy and momentum: the kinetic energy is
one form of all speeds, and $\int\phi + \dots$ is the derivative of $h$.

The second-order term of the length is the stress stiffening: in $J_2$ that of
rotation, in $H$ that of weight and acceleration along the beam, and, as nodes move by
it too, that of all loads on them.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...typing import Mat3, Scalar, Vec3
from ..spatial import cross, skew
from .beams import Beam, MassPoints
from .finite_elements import FiniteElements


class ShapeIntegrals(eqx.Module):
    """The tensors of the equations above, in the axes of the body, about its origin."""

    mass: Scalar
    h0: Vec3
    S: Float[Array, "m 3"]
    H: Float[Array, "m m"]
    J0: Mat3
    J1: Float[Array, "m 3 3"]
    J2: Float[Array, "m m 3 3"]
    Q0: Float[Array, "m 3"]
    Q1: Float[Array, "m m 3"]
    M_ff: Float[Array, "m m"]


def _inertia(T: Float[Array, "*n 3 3"]) -> Float[Array, "*n 3 3"]:
    """Inertia of a second moment."""
    trace = jnp.einsum("...aa,bc->...bc", T, jnp.eye(3, dtype=T.dtype))
    return trace - 0.5 * (T + jnp.swapaxes(T, -1, -2))


class SecondMoments(NamedTuple):
    """Moments of particles, or of nodes with their shares of mass, and modes."""

    first: Float[Array, "m 3 3"]  # of x and phi_i
    second: Float[Array, "m m 3 3"]  # of phi_i and phi_j
    short: Float[Array, "m m 3"]  # of x and what is taken from the length
    H: Float[Array, "m m"]


def second_moments(
    model: Beam | FiniteElements,
    modes: Float[Array, "dofs m"],
    reference: np.ndarray,
    stiffening: bool,
) -> tuple[SecondMoments, Float[Array, "nodes m m"] | None]:
    """Return moments of a model about its reference nodes, and what pairs of modes take
    from its length, at its nodes: nothing without `stiffening`, or where it is not
    known.
    """
    origin = jnp.mean(model.positions[reference], 0)
    if isinstance(model, FiniteElements):
        return moments_of_nodes(model, origin, modes), None
    at_nodes = G = None
    if stiffening:
        at_nodes, G = model.shortening(modes)
        there = at_nodes[reference[0]][None]
        at_nodes, G = at_nodes - there, G - there
    return moments_of_points(model.mass_points(), origin, modes, G), at_nodes


def moments_of_points(
    points: MassPoints,
    origin: Vec3,
    modes: Float[Array, "dofs m"],
    G: Float[Array, "points m m"] | None,
) -> SecondMoments:
    """Moments over particles: exact where a quadrature of the body is."""
    w, x = points.mass, points.position - origin[None]
    phi = jnp.einsum("pad,dm->pma", points.shapes, modes)
    m = phi.shape[1]
    G = jnp.zeros((len(w), m, m), w.dtype) if G is None else G
    return SecondMoments(
        jnp.einsum("p,pa,pmb->mab", w, x, phi),
        jnp.einsum("p,pia,pjb->ijab", w, phi, phi),
        jnp.einsum("p,pij,pa->ija", w, G, x),
        jnp.einsum("p,pij->ij", w, G),
    )


def moments_of_nodes(
    model: FiniteElements, origin: Vec3, modes: Float[Array, "dofs m"]
) -> SecondMoments:
    """Moments over nodes, by the translations' shares of a mass matrix.

    With three degrees of freedom a node and a mass matrix alike in all directions they
    are exact. What rotations do between nodes is not known from a mass matrix.
    """
    n, dofs, m = model.n_nodes, model.node_dofs, modes.shape[1]
    M = model.matrices()[0].reshape(n, dofs, n, dofs)
    share = jnp.einsum("iaja->ij", M[:, :3, :, :3]) / 3
    if dofs > 3:
        share = jnp.diag(jnp.sum(share, 1))
    x, phi = model.positions - origin[None], modes.reshape(n, dofs, m)[:, :3]
    zero = jnp.zeros((m, m, 3), M.dtype)
    return SecondMoments(
        jnp.einsum("kl,ka,lbm->mab", share, x, phi),
        jnp.einsum("kl,kai,lbj->ijab", share, phi, phi),
        zero,
        zero[..., 0],
    )


def shape_integrals(
    model: Beam | FiniteElements,
    origin: Vec3,
    modes: Float[Array, "dofs m"],
    moments: SecondMoments,
) -> ShapeIntegrals:
    """Return the tensors of a body: those of its undeformed shape and of first order by
    projection of rigid motions and modes onto the mass matrix, the rest by moments.
    """
    M, _ = model.matrices()
    shift, turn = rigid_motions(model, origin)
    moved = M @ modes
    carried, J0 = shift.T @ M @ turn, turn.T @ M @ turn  # the first is -skew(h0)
    first, second, short, H = moments
    e_x = jnp.array([1.0, 0.0, 0.0], M.dtype)
    return ShapeIntegrals(
        mass=jnp.trace(shift.T @ M @ shift) / 3,
        h0=jnp.stack([carried[1, 2], carried[2, 0], carried[0, 1]]),
        S=moved.T @ shift,
        H=H,
        J0=0.5 * (J0 + J0.T),
        J1=2 * _inertia(first),
        J2=2 * _inertia(second + jnp.einsum("ija,b->ijab", short, e_x)),
        Q0=moved.T @ turn,
        Q1=_crossed(second) + cross(short, jnp.broadcast_to(e_x, short.shape)),
        M_ff=modes.T @ moved,
    )


def _crossed(T: Float[Array, "*n 3 3"]) -> Float[Array, "*n 3"]:
    r"""$\int a\times b$ of $T = \int ab^\top$."""
    t = lambda i, j: T[..., i, j] - T[..., j, i]
    return jnp.stack([t(1, 2), t(2, 0), t(0, 1)], -1)


def rigid_motions(model: Beam | FiniteElements, origin: Vec3) -> tuple[Array, Array]:
    """Translations along the axes and rotations about them, by degree of freedom."""
    n, dofs = model.n_nodes, model.node_dofs
    one = jnp.eye(3, dtype=origin.dtype)
    rotated = -skew(model.positions - origin[None])
    shift = jnp.broadcast_to(one, (n, 3, 3))
    if dofs == 6:
        shift = jnp.concatenate([shift, jnp.zeros_like(shift)], 1)
        rotated = jnp.concatenate([rotated, jnp.broadcast_to(one, (n, 3, 3))], 1)
    return shift.reshape(-1, 3), rotated.reshape(-1, 3)
