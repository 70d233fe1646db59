r"""What a line is made of: stiffness, internal damping, and its grip on the water."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ..multibody.spatial import cross
from ..smooth import norm, ramp, ramp_area
from ..typing import Scalar, Vec3, check_values, optional, si
from .spline import WEIGHTS, Mesh, Nodes


# Share of EA that resists strain alternating from element to element, which averages
# at nodes would not see.
HOURGLASS_STIFFNESS = 0.3


class Measures(eqx.Module):
    """What the forces in a line work on."""

    strain: Float[Array, " nodes"]
    uneven: Float[Array, " elements"]
    curvature: Nodes
    slope: Nodes
    twist: Scalar
    points: Float[Array, "forces 3"]


class CableProperties(eqx.Module):
    r"""Elastic in stretch, bending and torsion, in a fluid.

    With $e_i$ the nodes' averages of $|r'| - 1$, the line stores

    $$U = \sum_i w_i\,EA\,\psi(e_i) + \tfrac12 EI\int|r''|^2 ds
    + \tfrac{GJ}{2L}\Theta^2, \qquad \psi' = c\,e + (1-c)\max(0, e),$$

    with the corner rounded within `slack_width` of no strain. `compression` $c$ is the
    share of EA that resists compression: one for a rod, zero for a chain. Axial damping
    is $\psi''\,\dot e$ times `axial_damping`: none where the line is slack. Without it
    the highest axial wave that the mesh carries has a tenth of critical damping.
    """

    linear_density: Scalar = eqx.field(converter=si("kg/m", above=0.0))
    EA: Scalar = eqx.field(converter=si("N", above=0.0))
    EI: Scalar = eqx.field(converter=si("N m^2", at_least=0.0), default=0.0)
    GJ: Scalar = eqx.field(converter=si("N m^2", at_least=0.0), default=0.0)
    diameter: Scalar = eqx.field(converter=si("m", at_least=0.0), default=0.0)
    compression: Scalar = eqx.field(converter=si("1", at_least=0.0), default=0.0)
    slack_width: Scalar = eqx.field(converter=si("1", above=0.0), default=1e-6)
    axial_damping: Scalar | None = eqx.field(
        converter=optional(si("N s", at_least=0.0)), default=None
    )
    bending_damping: Scalar = eqx.field(
        converter=si("N m^2 s", at_least=0.0), default=0.0
    )
    normal_drag: Scalar = eqx.field(converter=si("1", at_least=0.0), default=0.0)
    tangential_drag: Scalar = eqx.field(converter=si("1", at_least=0.0), default=0.0)
    added_mass: Scalar = eqx.field(converter=si("1", at_least=0.0), default=0.0)
    tangential_added_mass: Scalar = eqx.field(
        converter=si("1", at_least=0.0), default=0.0
    )

    def __check_init__(self):
        check_values(self)

    @property
    def area(self) -> Scalar:
        """Cross section, m^2."""
        return jnp.pi / 4 * self.diameter**2

    def damping(self, mesh: Mesh, length: Scalar) -> Scalar:
        """Return the axial damping, N s; by default it follows from the mesh."""
        if self.axial_damping is not None:
            return self.axial_damping
        return 0.1 * (length / len(mesh.h)) * jnp.sqrt(self.EA * self.linear_density)

    def _stress(self, e: Array) -> Array:
        """Stress per EA."""
        c = self.compression
        return c * e + (1 - c) * ramp(e, self.slack_width)

    def tightness(self, e: Array) -> Array:
        """Slope of the stress: what is slack has no damping either."""
        c = self.compression
        return c + (1 - c) * jnp.clip((e / self.slack_width + 1) / 2, 0.0, 1.0)

    def measures(
        self,
        mesh: Mesh,
        length: Scalar,
        r: Nodes,
        clamps: tuple[tuple[Vec3, Vec3] | None, tuple[Vec3, Vec3] | None],
        points: list[Scalar],
    ) -> Measures:
        """Strains at the nodes, with a tangent and a side for each clamped end."""
        tangents = (
            None if clamps[0] is None else clamps[0][0],
            None if clamps[1] is None else clamps[1][0],
        )
        m = mesh.curvatures(r, tangents)
        local = norm(mesh.gauss_slopes(r, m)) / length - 1
        strain = mesh.nodal(local)
        stress = self._stress(strain)
        mean = self._stress(jnp.asarray(WEIGHTS, r.dtype) @ local)
        slope = mesh.slopes(r, m) / length
        twist = jnp.zeros((), r.dtype)
        if clamps[0] is not None and clamps[1] is not None:
            twist = _twist(slope, clamps[0][1], clamps[1][1])
        found = [mesh.at(r, m, x)[0] for x in points]
        return Measures(
            strain,
            mean - (stress[:-1] + stress[1:]) / 2,
            m / length**2,
            slope,
            twist,
            jnp.stack(found) if found else jnp.zeros((0, 3), r.dtype),
        )

    def tensions(self, x: Measures, rate: Measures, damping: Scalar) -> Array:
        """At the nodes."""
        rate_strain = self.tightness(x.strain) * rate.strain
        return self.EA * self._stress(x.strain) + damping * rate_strain

    def energy(self, mesh: Mesh, length: Scalar, x: Measures) -> Scalar:
        """Stored in stretch, bending and torsion."""
        hats, h = (jnp.asarray(y, length.dtype) for y in (mesh.halves, mesh.h))
        c = self.compression
        psi = c * x.strain**2 / 2 + (1 - c) * ramp_area(x.strain, self.slack_width)
        axial = self.EA * (hats @ psi + HOURGLASS_STIFFNESS / 2 * h @ x.uneven**2)
        bending = self.EI / 2 * mesh.product(x.curvature, x.curvature)
        return length * (axial + bending) + self.GJ / (2 * length) * x.twist**2

    def dissipation(
        self, mesh: Mesh, length: Scalar, damping: Scalar, x: Measures, rate: Measures
    ) -> Scalar:
        """Half of the power lost in damping."""
        hats, h = (jnp.asarray(y, length.dtype) for y in (mesh.halves, mesh.h))
        squares = self.tightness(x.strain) * rate.strain**2
        axial = (
            damping / 2 * (hats @ squares + HOURGLASS_STIFFNESS * h @ rate.uneven**2)
        )
        bent = mesh.product(rate.curvature, rate.curvature)
        return length * (axial + self.bending_damping / 2 * bent)

    def drag(self, density: Array, slope: Nodes, through: Nodes) -> Nodes:
        r"""Morison's drag per unit of length at a velocity $u$ through the fluid,

        $$-\tfrac12\rho d\,(C_n |u_n| u_n + \pi C_t |u_t| u_t).$$
        """
        t = _unit(slope)
        along = jnp.sum(t * through, -1, keepdims=True) * t
        across = through - along
        push = self.normal_drag * norm(across)[:, None] * across
        push = push + jnp.pi * self.tangential_drag * norm(along)[:, None] * along
        return -(density / 2 * self.diameter)[:, None] * push

    def added(self, density: Array, slope: Nodes) -> Float[Array, "nodes 3 3"]:
        """Added mass per unit of length, across and along the line."""
        t = _unit(slope)
        along = t[:, :, None] * t[:, None, :]
        across = jnp.eye(3, dtype=t.dtype)[None] - along
        share = self.added_mass * across + self.tangential_added_mass * along
        return (density * self.area)[:, None, None] * share


def _unit(x: Nodes) -> Nodes:
    """Directions; a slope of no length has none."""
    size = norm(x)[:, None]
    return x / jnp.where(size > 0, size, 1.0)


def _twist(slope: Nodes, side0: Vec3, side1: Vec3) -> Scalar:
    r"""Angle from the tail's side vector, carried along without twist, to the head's.

    From node to node the vector turns with the tangent by the smallest rotation, which
    converges to parallel transport. Unlike twist from Frenet's frames it is smooth at
    inflections and on a straight line.
    """
    t = _unit(slope)

    def turn(d: Vec3, pair: tuple[Vec3, Vec3]) -> tuple[Vec3, None]:
        a, b = pair
        return d - (d @ b) / jnp.maximum(1 + a @ b, 1e-3) * (a + b), None

    d, _ = lax.scan(turn, side0, (t[:-1], t[1:]))
    return jnp.arctan2(cross(d, side1) @ t[-1], d @ side1)
