r"""Straight beams in space as finite elements, along x of their body.

An element has two nodes with $(u, v, w, \theta_x, \theta_y, \theta_z)$ each. Bending is
interpolated by the exact shapes of an element without loads: cubics of Euler and
Bernoulli, or those of Timoshenko with $\Phi = 12EI/(\kappa GA\,\ell^2)$, which do not
lock (Przemieniecki, *Theory of Matrix Structural Analysis*, 1968). Axial displacement
and twist are linear. Matrices are integrated at five Gauss points, which is exact for
sections whose sizes change linearly.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...typing import Scalar, check_values, si
from .sections import AbstractSection, SectionProperties


DOFS = 6  # of a node: three displacements, three rotations
POINTS, WEIGHTS = (x / 2 for x in np.polynomial.legendre.leggauss(5))
POINTS = POINTS + 0.5  # on [0, 1]
INNER, INNER_WEIGHTS = (x / 2 for x in np.polynomial.legendre.leggauss(3))
INNER = INNER + 0.5
FAMILIES = {"axial": (0,), "torsion": (3,), "xy": (1, 5), "xz": (2, 4)}


class Piece(eqx.Module):
    """A stretch of a beam, with one section or, if `end` is given, tapered to it."""

    length: Scalar = eqx.field(converter=si("m", above=0.0))
    section: AbstractSection
    end: AbstractSection | None = None
    elements: int = eqx.field(static=True, default=8)

    def __check_init__(self):
        check_values(self)
        if self.elements < 1:
            raise ValueError(f"a piece needs at least one element, got {self.elements}")
        if self.end is not None and type(self.end) is not type(self.section):
            raise ValueError(
                f"a piece tapers from a {type(self.section).__name__} to a "
                f"{type(self.end).__name__}: both ends need the same kind of section"
            )

    def at(self, x: Float[Array, " n"]) -> SectionProperties:
        """Properties of the sections at fractions of the length."""
        end = self.section if self.end is None else self.end
        between = lambda x: jax.tree.map(
            lambda a, b: (1 - x) * a + x * b, self.section, end
        )
        return jax.vmap(lambda x: between(x).properties())(x)


class MassPoints(NamedTuple):
    """A body as particles: what quadratures of its motion need.

    `shapes` gives displacements per unit of each degree of freedom.
    """

    mass: Float[Array, " points"]
    position: Float[Array, "points 3"]
    shapes: Float[Array, "points 3 dofs"]


class Elements(NamedTuple):
    """Elements of all pieces, stacked; sections at their Gauss points."""

    start: Float[Array, " n"]
    length: Float[Array, " n"]
    at: SectionProperties  # [n, points]
    middle: SectionProperties  # [n]


class Plane(NamedTuple):
    """Bending shapes of an element at a point, by deflection and slope of its ends."""

    value: Array
    slope: Array
    rotation: Array
    curvature: Array


class Beam(eqx.Module):
    r"""A straight beam of `pieces`, of one material.

    **Arguments:**

    - `theory`: `"euler_bernoulli"` or, with deformation by shear, `"timoshenko"`.
    - `rotary_inertia`: whether sections resist turning about y and z as they bend.
    """

    pieces: tuple[Piece, ...] = eqx.field(converter=tuple)
    E: Scalar = eqx.field(converter=si("Pa", above=0.0))
    G: Scalar = eqx.field(converter=si("Pa", above=0.0))
    density: Scalar = eqx.field(converter=si("kg/m^3", above=0.0))
    theory: str = eqx.field(static=True, default="euler_bernoulli")
    rotary_inertia: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        check_values(self)
        if not self.pieces:
            raise ValueError("a beam needs at least one piece")
        if self.theory not in ("euler_bernoulli", "timoshenko"):
            raise ValueError(
                f"theory is euler_bernoulli or timoshenko, not {self.theory!r}"
            )

    # Structure ----------------------------------------------------------------------

    @property
    def n_nodes(self) -> int:
        """Number of nodes, from one end to the other."""
        return 1 + sum(piece.elements for piece in self.pieces)

    @property
    def node_dofs(self) -> int:
        """Degrees of freedom of a node."""
        return DOFS

    @property
    def families(self) -> dict[str, np.ndarray]:
        """Degrees of freedom of motions that do not couple, by name.

        Their modes are found apart, so that equal ones of two planes stay apart too.
        """
        first = DOFS * np.arange(self.n_nodes)[:, None]
        return {k: (first + np.array(own)).ravel() for k, own in FAMILIES.items()}

    @property
    def positions(self) -> Float[Array, "nodes 3"]:
        """Places of the nodes, along x."""
        e = self._elements()
        x = jnp.concatenate([e.start, (e.start + e.length)[-1:]])
        return jnp.pad(x[:, None], ((0, 0), (0, 2)))

    def mass(self) -> Scalar:
        """Return the mass, kg."""
        e = self._elements()
        return self.density * jnp.sum(e.length * (e.at.area @ WEIGHTS))

    def _elements(self) -> Elements:
        starts, lengths, at, middle = [], [], [], []
        x0 = jnp.zeros(())
        for piece in self.pieces:
            n = piece.elements
            first = np.arange(n) / n
            starts.append(x0 + piece.length * first)
            lengths.append(jnp.broadcast_to(piece.length / n, (n,)))
            grid = (first[:, None] + POINTS / n).ravel()
            sections = piece.at(jnp.asarray(grid))
            at.append(jax.tree.map(lambda x, n=n: x.reshape(n, -1), sections))
            middle.append(piece.at(jnp.asarray(first + 0.5 / n)))
            x0 = x0 + piece.length
        join = lambda *x: jnp.concatenate(x)
        return Elements(
            join(*starts),
            join(*lengths),
            jax.tree.map(join, *at),
            jax.tree.map(join, *middle),
        )

    def _softness(self, e: Elements) -> tuple[Array, Array]:
        r"""$\Phi$ of bending in the xy and xz planes."""
        if self.theory == "euler_bernoulli":
            return jnp.zeros_like(e.length), jnp.zeros_like(e.length)
        by = lambda I, shear: 12 * self.E * I / (self.G * shear * e.length**2)
        s = e.middle
        return by(s.I_z, s.shear_y), by(s.I_y, s.shear_z)

    # Matrices -----------------------------------------------------------------------

    def matrices(self) -> tuple[Array, Array]:
        """Mass and stiffness matrices."""
        e = self._elements()
        M, K = jax.vmap(self._element)(e, *self._softness(e))
        n, dofs = len(e.length), DOFS * self.n_nodes
        rows = DOFS * np.arange(n)[:, None] + np.arange(2 * DOFS)
        where = (rows[:, :, None], rows[:, None, :])
        zero = jnp.zeros((dofs, dofs), M.dtype)
        return zero.at[where].add(M), zero.at[where].add(K)

    def _element(self, e: Elements, soft_xy: Scalar, soft_xz: Scalar) -> tuple:
        """Mass and stiffness matrix of an element, 12 by 12."""
        L, s = e.length, e.at
        weights = L * WEIGHTS
        u, theta, strains = jax.vmap(lambda x: element_shapes(x, L, soft_xy, soft_xz))(
            jnp.asarray(POINTS)
        )
        EA, GJ = self.E * s.area, self.G * s.torsion
        none = jnp.zeros_like(EA)
        shear = [none, none]
        if self.theory == "timoshenko":
            shear = [self.G * s.shear_y, self.G * s.shear_z]
        stiff = jnp.stack([EA, GJ, self.E * s.I_y, self.E * s.I_z, *shear], 1)
        K = jnp.einsum("g,gk,gki,gkj->ij", weights, stiff, strains, strains)
        turning = jnp.stack([s.I_y + s.I_z, s.I_y, s.I_z], 1)
        if not self.rotary_inertia:
            turning = turning * jnp.array([[1.0, 0.0, 0.0]])
        M = jnp.einsum("g,g,gki,gkj->ij", weights, s.area, u, u)
        M = M + jnp.einsum("g,gk,gki,gkj->ij", weights, turning, theta, theta)
        return self.density * M, K

    def mass_points(self) -> MassPoints:
        """Four particles on each Gauss point's section, with its second moments; one
        without rotary inertia.
        """
        e = self._elements()
        shapes = lambda x, L, xy, xz: element_shapes(x, L, xy, xz)[:2]
        each = jax.vmap(
            jax.vmap(shapes, in_axes=(0, None, None, None)), in_axes=(None, 0, 0, 0)
        )
        u, theta = each(jnp.asarray(POINTS), e.length, *self._softness(e))
        s = e.at
        y, z = (jnp.sqrt(2 * I / s.area) for I in (s.I_z, s.I_y))
        none = jnp.zeros_like(y)
        arms = [(y, none), (-y, none), (none, z), (none, -z)]
        arms = arms if self.rotary_inertia else [(none, none)]
        n, dofs = len(e.length), DOFS * self.n_nodes
        x = e.start[:, None] + e.length[:, None] * POINTS[None]
        mass = self.density * s.area * e.length[:, None] * WEIGHTS[None] / len(arms)
        masses, positions, moved = [], [], []
        for b, c in arms:
            turned = jnp.stack(
                [
                    c[..., None] * theta[:, :, 1] - b[..., None] * theta[:, :, 2],
                    -c[..., None] * theta[:, :, 0],
                    b[..., None] * theta[:, :, 0],
                ],
                2,
            )
            local = u + turned
            whole = jnp.zeros((n, len(POINTS), 3, dofs), u.dtype)
            rows = DOFS * np.arange(n)[:, None] + np.arange(2 * DOFS)
            at = (np.arange(n)[:, None], slice(None), slice(None), rows)
            whole = whole.at[at].set(jnp.moveaxis(local, 3, 1))
            masses.append(mass.ravel())
            positions.append(jnp.stack([x, b, c], -1).reshape(-1, 3))
            moved.append(whole.reshape(-1, 3, dofs))
        join = jnp.concatenate
        return MassPoints(join(masses), join(positions), join(moved))

    def shortening(self, modes: Float[Array, "dofs m"]) -> tuple[Array, Array]:
        r"""How bending draws the beam together, at nodes and at `mass_points`.

        Pairs of modes move the point $x$ along the beam by $\tfrac12\eta^\top G\eta$,
        $G_{ij} = -\int_0^x (v_i'v_j' + w_i'w_j')\,dx$.
        """
        e, n = self._elements(), self.n_nodes - 1
        rows = DOFS * np.arange(n)[:, None] + np.arange(2 * DOFS)
        own = modes[rows]  # [n, 12, m]
        xy, xz = self._softness(e)

        def products(x: Array, L: Scalar, xy: Scalar, xz: Scalar, own: Array) -> Array:
            v, w = slopes(x, L, xy, xz)
            v, w = v @ own, w @ own
            return v[:, None] * v[None] + w[:, None] * w[None]

        at = jax.vmap(products, in_axes=(0, None, None, None, None))
        each = jax.vmap(at, in_axes=(None, 0, 0, 0, 0))
        whole = each(jnp.asarray(POINTS), e.length, xy, xz, own)
        whole = jnp.einsum("n,g,ngij->nij", e.length, WEIGHTS, whole)
        zero = jnp.zeros_like(whole[:1])
        nodes = -jnp.concatenate([zero, jnp.cumsum(whole, 0)])
        inner = jnp.asarray(POINTS[:, None] * INNER).ravel()
        part = each(inner, e.length, xy, xz, own)
        part = part.reshape(n, len(POINTS), len(INNER), *part.shape[2:])
        weights = POINTS[:, None] * INNER_WEIGHTS
        part = jnp.einsum("n,gs,ngsij->ngij", e.length, weights, part)
        points = (nodes[:-1, None] - part).reshape(n * len(POINTS), *part.shape[2:])
        return nodes, jnp.concatenate([points] * (4 if self.rotary_inertia else 1))


def plane_shapes(x: Scalar, L: Scalar, soft: Scalar) -> Plane:
    """Bending of an element at the fraction `x` of its length."""
    s = 1 / (1 + soft)
    x2, x3 = x * x, x * x * x
    value = [
        1 - 3 * x2 + 2 * x3 + soft * (1 - x),
        L * (x - 2 * x2 + x3 + soft / 2 * (x - x2)),
        3 * x2 - 2 * x3 + soft * x,
        L * (x3 - x2 + soft / 2 * (x2 - x)),
    ]
    slope = [
        (6 * x2 - 6 * x - soft) / L,
        1 - 4 * x + 3 * x2 + soft / 2 * (1 - 2 * x),
        (6 * x - 6 * x2 + soft) / L,
        3 * x2 - 2 * x + soft / 2 * (2 * x - 1),
    ]
    rotation = [
        6 * (x2 - x) / L,
        1 - 4 * x + 3 * x2 + soft * (1 - x),
        6 * (x - x2) / L,
        3 * x2 - 2 * x + soft * x,
    ]
    curvature = [
        6 * (2 * x - 1) / L**2,
        (6 * x - 4 - soft) / L,
        6 * (1 - 2 * x) / L**2,
        (6 * x - 2 + soft) / L,
    ]
    return Plane(*(s * jnp.stack(row) for row in (value, slope, rotation, curvature)))


# Where the entries of a plane stand in an element; rotation about y lowers the slope.
XY, XZ = np.array([1, 5, 7, 11]), np.array([2, 4, 8, 10])
UPWARD = np.array([1.0, -1.0, 1.0, -1.0])


def _spread(row: Array, where: np.ndarray) -> Array:
    return jnp.zeros(2 * DOFS, row.dtype).at[where].set(row)


def element_shapes(
    x: Scalar, L: Scalar, soft_xy: Scalar, soft_xz: Scalar
) -> tuple[Array, Array, Array]:
    """Displacement, rotation, and strains (axial, twist, curvatures, shears)."""
    xy, xz = plane_shapes(x, L, soft_xy), plane_shapes(x, L, soft_xz)
    line, step = jnp.stack([1 - x, x]), jnp.stack([-1 / L, 1 / L])
    put = lambda row: _spread(row, XY)
    lift = lambda row: _spread(row * UPWARD, XZ)
    along, about = np.array([0, 6]), np.array([3, 9])
    u = jnp.stack([_spread(line, along), put(xy.value), lift(xz.value)])
    theta = jnp.stack([_spread(line, about), -lift(xz.rotation), put(xy.rotation)])
    strains = jnp.stack(
        [
            _spread(step, along),
            _spread(step, about),
            lift(xz.curvature),
            put(xy.curvature),
            put(xy.slope - xy.rotation),
            lift(xz.slope - xz.rotation),
        ]
    )
    return u, theta, strains


def slopes(
    x: Scalar, L: Scalar, soft_xy: Scalar, soft_xz: Scalar
) -> tuple[Array, Array]:
    """Slopes of the deflections along y and z."""
    xy, xz = plane_shapes(x, L, soft_xy), plane_shapes(x, L, soft_xz)
    return _spread(xy.slope, XY), _spread(xz.slope * UPWARD, XZ)
