r"""A flexible body of a mechanism, in the floating frame of reference.

The body's frame is its joint's moving frame, tied to the reference node: modes vanish
there. Modal coordinates $\eta$ stand behind the joint's own in `q` and `v`, as those of
a joint called `name.modes`. Each attachment node is a row of the stacked arrays called
`name.node`: a massless body whose pose follows the modes. Frames, further bodies and
parts sit on it as on any body.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...typing import Mat3, Mat6, Scalar, Vec3, check_values, optional, si
from ..joints import AbstractJoint, Fixed
from ..spatial import Pose, identity_pose, skew
from .attachment import FlexibleRow, Modal, Nodes, attachment_nodes
from .beams import Beam
from .finite_elements import FiniteElements
from .reduction import (
    craig_bampton,
    krylov,
    orthonormal,
    vibration_modes,
)
from .shape_integrals import ShapeIntegrals, second_moments, shape_integrals


class Reduced(eqx.Module):
    """What the equations of motion need of a flexible body."""

    integrals: ShapeIntegrals
    K: Float[Array, "m m"]
    D: Float[Array, "m m"]
    nodes: Nodes


METHODS = ("craig_bampton", "vibration", "krylov")


def _pairs(modes: Any) -> tuple[tuple[str, int], ...]:
    return (("all", modes),) if isinstance(modes, int) else tuple(dict(modes).items())


def _indices(nodes: Any) -> tuple[int, ...]:
    several = isinstance(nodes, Sequence | np.ndarray)
    return tuple(int(i) for i in nodes) if several else (int(nodes),)


def _named(nodes: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((name, _indices(where)) for name, where in dict(nodes).items())


class FlexibleBody(eqx.Module):
    r"""A body that bends, with the joint that hangs its reference node on its parent.

    **Arguments:**

    - `model`: a `Beam`, or `FiniteElements`.
    - `modes`: how many modes: by family for a beam, such as `{"xz": 2, "torsion": 1}`
      (families are `axial`, `torsion`, `xy` and `xz`; those not named stay rigid), a
      number for a finite-element model.
    - `nodes`: what the body may be attached by: index of a node, or of several that
      move their mean, by name.
    - `reference`: node, or nodes, that the body's frame is tied to.
    - `method`: `"craig_bampton"` adds `modes` to the static modes of all attachments;
      `"vibration"` takes the lowest modes, and `"krylov"` what follows from unit loads
      at the last attachment.
    - `damping`: ratio of critical damping, one for all modes or one for each;
      `mass_damping` $\alpha$ and `stiffness_damping` $\beta$ add Rayleigh's $\alpha M +
      \beta K$.
    - `stress_stiffening`: whether loads along a beam stiffen it.
    - `joint_name`, `X_PJ`, `armature`: as of a `Body`.

    `reduced` is what an equation of motion works out from all these, once.
    """

    name: str = eqx.field(static=True)
    parent: str = eqx.field(static=True)
    joint: AbstractJoint
    model: Beam | FiniteElements
    modes: tuple[tuple[str, int], ...] = eqx.field(static=True, converter=_pairs)
    nodes: tuple[tuple[str, tuple[int, ...]], ...] = eqx.field(
        static=True, converter=_named, default=(("tip", (-1,)),)
    )
    reference: tuple[int, ...] = eqx.field(
        static=True, converter=_indices, default=(0,)
    )
    method: str = eqx.field(static=True, default="craig_bampton")
    damping: Float[Array, "*m"] = eqx.field(
        converter=si("1", at_least=0.0), default=0.0
    )
    mass_damping: Scalar = eqx.field(converter=si("1/s", at_least=0.0), default=0.0)
    stiffness_damping: Scalar = eqx.field(converter=si("s", at_least=0.0), default=0.0)
    stress_stiffening: bool = eqx.field(static=True, default=True)
    X_PJ: Pose = eqx.field(default_factory=identity_pose)
    joint_name: str = eqx.field(static=True, default="")
    armature: Float[Array, " nv"] | None = eqx.field(
        converter=optional(si("kg m^2, kg", at_least=0.0)), default=None
    )
    reduced: Reduced | None = None

    any_inertia = False
    A_B = None

    def __check_init__(self):
        said = f"flexible body {self.name!r}"
        try:
            check_values(self)
            self._check_structure()
        except ValueError as error:
            raise ValueError(f"{said}: {error}") from error

    def _check_structure(self) -> None:
        n, families = self.model.n_nodes, self.model.families
        for family, count in self.modes:
            if family not in families:
                there = ", ".join(families)
                raise ValueError(
                    f"unknown family of modes {family!r}; there is {there}"
                )
            if not isinstance(count, int) or count < 0:
                raise ValueError(f"a number of modes is 0 or more, not {count!r}")
        for name, where in (*self.nodes, ("reference", self.reference)):
            if not where or not all(-n <= i < n for i in where):
                raise ValueError(f"{name}: nodes {list(where)} are not among {n}")
            if name in ("modes", ""):
                raise ValueError(f"a node cannot be called {name!r}")
        if self.model.node_dofs == 3 and len(self.node_set(self.reference)) < 3:
            raise ValueError(
                "nodes without rotations hold a frame by three of them, not on a line: "
                f"reference has {len(self.reference)}"
            )
        if len({name for name, _ in self.nodes}) < len(self.nodes):
            raise ValueError("two nodes have one name")
        if self.method not in METHODS:
            raise ValueError(f"method is one of {METHODS}, not {self.method!r}")
        for family, count in self.modes:
            left = len(self._dofs(family, self._free_nodes()))
            if self.method == "craig_bampton":
                left -= len(self._boundary(family))
            if count > left:
                raise ValueError(
                    f"{count} modes {family!r} are asked for, but only {left} degrees "
                    "of freedom are left"
                )
        if self.damping.shape not in ((), (self.n_modes,)):
            raise ValueError(
                f"damping has shape {self.damping.shape}, but there are "
                f"{self.n_modes} modes"
            )

    # Structure ----------------------------------------------------------------------

    @property
    def n_modes(self) -> int:
        """Number of modal coordinates."""
        static = self.method == "craig_bampton"
        return sum(
            count + (len(self._boundary(family)) if static else 0)
            for family, count in self.modes
        )

    @property
    def rows(self) -> tuple[FlexibleRow, ...]:
        """What follows the body in a mechanism: its modes, then its nodes."""
        modes = f"{self.name}.modes"
        own = Modal(size=self.n_modes)  # pyright: ignore[reportCallIssue]
        return (
            FlexibleRow(modes, self.name, own),
            *(FlexibleRow(f"{self.name}.{k}", modes, Fixed()) for k, _ in self.nodes),
        )

    def node_set(self, where: tuple[int, ...]) -> np.ndarray:
        """Return the nodes that indices stand for, each once."""
        return np.unique(np.array(where) % self.model.n_nodes)

    def _free_nodes(self) -> np.ndarray:
        every = np.arange(self.model.n_nodes)
        return np.setdiff1d(every, self.node_set(self.reference))

    def _dofs(self, family: str, nodes: np.ndarray) -> np.ndarray:
        """Places of these nodes' degrees of freedom within their family."""
        owner = self.model.families[family] // self.model.node_dofs
        return np.flatnonzero(np.isin(owner, nodes))

    def _boundary(self, family: str) -> np.ndarray:
        attached = [self.node_set(where) for _, where in self.nodes]
        nodes = np.concatenate([np.zeros(0, int), *attached])
        return self._dofs(family, np.intersect1d(nodes, self._free_nodes()))

    # Numbers ------------------------------------------------------------------------

    @property
    def origin(self) -> Vec3:
        """The mean of the reference nodes, in the axes of the model."""
        return jnp.mean(self.model.positions[self.node_set(self.reference)], 0)

    @property
    def mass(self) -> Scalar:
        """Mass of the model."""
        return self.model.mass()

    @property
    def p_BC(self) -> Vec3:
        """Centre of mass of the undeformed body."""
        found = self.shape().integrals
        return found.h0 / found.mass

    @property
    def J_B(self) -> Mat3:
        """Inertia of the undeformed body about its origin."""
        return self.shape().integrals.J0

    @property
    def I_BC(self) -> Mat3:
        """Inertia of the undeformed body about its centre of mass."""
        c = skew(self.p_BC)
        return self.J_B + self.mass * (c @ c)

    @property
    def inertia_B(self) -> Mat6:
        """6x6 inertia of the undeformed body about its origin."""
        found = self.shape().integrals
        h = skew(found.h0)
        return jnp.block([[found.J0, h], [-h, found.mass * jnp.eye(3, dtype=h.dtype)]])

    def shape(self) -> Reduced:
        """Return the reduced model, worked out unless it is at hand."""
        return reduce(self) if self.reduced is None else self.reduced

    def basis(self) -> Float[Array, "dofs m"]:
        """Return the modes by degree of freedom: those of a family with rising
        frequency, orthonormal with respect to mass.
        """
        M, K = self.model.matrices()
        found = [jnp.zeros((len(M), 0), M.dtype)]
        for family, n in self.modes:
            dofs = self.model.families[family]
            own = np.ix_(dofs, dofs)
            inside = self._own_basis(M[own], K[own], family, n)
            _, modes = orthonormal(M[own], K[own], inside)
            whole = jnp.zeros((len(M), modes.shape[1]), M.dtype)
            found.append(whole.at[dofs].set(modes))
        return jnp.concatenate(found, 1)

    def _own_basis(self, M: Array, K: Array, family: str, n: int) -> Array:
        held = self._dofs(family, self.node_set(self.reference))
        if self.method == "vibration":
            return vibration_modes(M, K, n, held)
        if self.method == "craig_bampton":
            return craig_bampton(M, K, self._boundary(family), n, held)
        last = self._dofs(family, self.node_set(self.nodes[-1][1]))
        return krylov(M, K, jnp.zeros(len(M), M.dtype).at[last].set(1.0), n, held)

    def frequencies(self) -> Float[Array, " m"]:
        """Return the natural frequencies with the reference at rest, Hz."""
        shape = self.shape()
        ratio = jnp.diagonal(shape.K) / jnp.diagonal(shape.integrals.M_ff)
        return jnp.sqrt(ratio) / (2 * jnp.pi)


@eqx.filter_jit
def reduce(body: FlexibleBody) -> Reduced:
    """Reduce a flexible body's model to its modes."""
    modes, at = body.basis(), body.node_set(body.reference)
    moments, bent = second_moments(body.model, modes, at, body.stress_stiffening)
    integrals = shape_integrals(body.model, body.origin, modes, moments)
    K = modes.T @ body.model.matrices()[1] @ modes
    K, M = 0.5 * (K + K.T), integrals.M_ff
    omega = jnp.sqrt(jnp.diagonal(K) / jnp.diagonal(M))
    D = jnp.diag(2 * body.damping * omega * jnp.diagonal(M))
    D = D + body.mass_damping * M + body.stiffness_damping * K
    where = [body.node_set(own) for _, own in body.nodes]
    nodes = attachment_nodes(body.model, modes, where, body.origin, bent)
    return Reduced(integrals, K, D, nodes)


def shape_points(
    body: FlexibleBody, eta: Float[Array, " m"]
) -> Float[Array, "nodes 3"]:
    """Return the places of all nodes of a body that is bent, in its own axes.

    !!! example

        ```python
        shape_points(boom, trajectory.q("boom.modes")[-1])
        ```
    """
    model, modes = body.model, body.basis()
    moved = (modes @ eta).reshape(model.n_nodes, model.node_dofs)[:, :3]
    at = body.node_set(body.reference)
    _, G = second_moments(model, modes, at, body.stress_stiffening)
    if G is not None:
        short = 0.5 * jnp.einsum("nij,i,j->n", G, eta, eta)
        moved = moved + jnp.pad(short[:, None], ((0, 0), (0, 2)))
    return model.positions - body.origin[None] + moved


def with_rows(bodies: Sequence[Any]) -> tuple[Any, ...]:
    """Return bodies with the rows of flexible ones behind each, and no others."""
    found: list[Any] = []
    for body in bodies:
        if not isinstance(body, FlexibleRow):
            found.append(body)
            found += body.rows if isinstance(body, FlexibleBody) else ()
    return tuple(found)


def reduced_mechanism(mechanism: Any) -> Any:
    """Return the mechanism with its flexible bodies reduced, once for all.

    For who evaluates one mechanism many times. A body that has been reduced keeps its
    shape: give other numbers to the mechanism that this one was made from.
    """
    rows = flexible_rows(mechanism)
    return _with_shapes(mechanism, {i: body.shape() for i, body in rows.items()})


def without_old_shapes(mechanism: Any, before: Any) -> Any:
    """Return the mechanism with the shapes of `before` forgotten where bodies have
    other numbers.
    """
    old, changed = flexible_rows(before), {}
    for row, body in flexible_rows(mechanism).items():
        own = [jax.tree.leaves(_bare(b)) for b in (body, old[row])]
        if any(x is not y for x, y in zip(*own, strict=True)):
            changed[row] = None
    return _with_shapes(mechanism, changed)


def _bare(body: FlexibleBody) -> FlexibleBody:
    return eqx.tree_at(lambda b: b.reduced, body, None, is_leaf=lambda x: x is None)


def _with_shapes(mechanism: Any, shapes: Mapping[int, Reduced | None]) -> Any:
    if not shapes:
        return mechanism
    where = lambda m: [m.bodies[row - 1].reduced for row in shapes]
    new = list(shapes.values())
    return eqx.tree_at(where, mechanism, new, is_leaf=lambda x: x is None)


def flexible_rows(mechanism: Any) -> Mapping[int, FlexibleBody]:
    """Return the flexible bodies of a mechanism by their row in stacked arrays."""
    return {
        row: body
        for row, body in enumerate(mechanism.bodies, start=1)
        if isinstance(body, FlexibleBody)
    }
