r"""Ways to keep loops closed.

With $M$ the mass matrix of the tree, $J$ the loops' Jacobian and $\dot v_0$ the
accelerations of the tree alone, the multipliers follow from

$$S\lambda = -(J\dot v_0 + \gamma + 2\zeta\omega\dot g + \omega^2 g),\qquad
S = J M^{-1} J^\top,\qquad \dot v = \dot v_0 + M^{-1}J^\top\lambda .$$

$S$ is singular where loops are redundant or in a singular position. Every way below
solves $(S + C)\lambda = \dots$ with a small or a physical compliance $C$, and repeats
with what is left: the augmented Lagrangian's iteration (Bayo, Garcia de Jalon and
Serna, *A modified Lagrangian formulation for the dynamic analysis of constrained
mechanical systems*, 1988). It converges to the multipliers that are least, weighted by
$C$, and is smooth everywhere.
"""

import abc
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..typing import Scalar, check_values, si
from .loops import LoopRows


REPEATS = 3  # of a solve with a small compliance: its error is cubed
SOFTNESS_POWER = 0.6  # compliance relative to S: this power of the rounding error
DEAD = 1e-12  # of the largest entry of S: a row that moves nothing


class Tree(NamedTuple):
    """The mechanism without its loops, at an instant: how it answers forces."""

    solve: Callable[[Array], Array]  # with the mass matrix, of columns
    matrix: Callable[[], Array]  # the mass matrix
    v_slice: Callable[[str], slice]  # where a joint's speeds are


class AbstractClosure(eqx.Module):
    """A way to keep loops closed.

    `sweeps` steps of Newton's method project states onto the loops after every step.
    """

    sweeps: eqx.AbstractVar[int]

    @abc.abstractmethod
    def accelerate(
        self, tree: Tree, rows: LoopRows, v_dot: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nv"], Float[Array, " m"]]:
        """Return accelerations and multipliers, from accelerations of the tree."""

    @abc.abstractmethod
    def corrector(self, tree: Tree, rows: LoopRows) -> Callable[[Array], Array]:
        """Return what takes gaps, or their rates, to the motion that closes them."""


class Projection(AbstractClosure):
    """Lagrange multipliers, and states projected onto the loops after every step.

    The step that closes the loops has the least kinetic energy. `sweeps` is the number
    of Newton's steps; saved states are always projected to round-off.
    """

    sweeps: int = eqx.field(static=True, default=1)

    def accelerate(
        self, tree: Tree, rows: LoopRows, v_dot: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nv"], Float[Array, " m"]]:
        K, S = mobility(tree, rows)
        sizes = repeated_solve(S, -(rows.jacobian @ v_dot + rows.bias), least(S))
        return v_dot + K @ sizes, sizes

    def corrector(self, tree: Tree, rows: LoopRows) -> Callable[[Array], Array]:
        K, S = mobility(tree, rows)
        return lambda gap: -K @ repeated_solve(S, gap, least(S))


class Multipliers(AbstractClosure):
    """Lagrange multipliers, stabilised: gaps decay with `frequency` and `damping`.

    Baumgarte, *Stabilization of constraints and integrals of motion in dynamical
    systems*, 1972.
    """

    sweeps: ClassVar[int] = 0
    frequency: Scalar = eqx.field(converter=si("rad/s", at_least=0.0), default=10.0)
    damping: Scalar = eqx.field(converter=si("1", at_least=0.0), default=1.0)

    def __check_init__(self):
        check_values(self)

    def accelerate(
        self, tree: Tree, rows: LoopRows, v_dot: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nv"], Float[Array, " m"]]:
        K, S = mobility(tree, rows)
        rest = stabilised(rows, self.frequency, self.damping)
        sizes = repeated_solve(S, -(rows.jacobian @ v_dot + rest), least(S))
        return v_dot + K @ sizes, sizes

    def corrector(self, tree: Tree, rows: LoopRows) -> Callable[[Array], Array]:
        return Projection().corrector(tree, rows)


class Penalty(AbstractClosure):
    """Forces in proportion to what the loops' accelerations miss.

    `stiffness` is a mass for rows that are lengths and an inertia for those that are
    angles. What it gives is off by one part in `stiffness` times $S$.
    """

    sweeps: ClassVar[int] = 0
    stiffness: Scalar = eqx.field(converter=si("kg, kg m^2", above=0.0), default=1e7)
    frequency: Scalar = eqx.field(converter=si("rad/s", at_least=0.0), default=10.0)
    damping: Scalar = eqx.field(converter=si("1", at_least=0.0), default=1.0)

    def __check_init__(self):
        check_values(self)

    def accelerate(
        self, tree: Tree, rows: LoopRows, v_dot: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nv"], Float[Array, " m"]]:
        softened = AugmentedLagrangian(self.stiffness, self.frequency, self.damping, 1)
        return softened.accelerate(tree, rows, v_dot)

    def corrector(self, tree: Tree, rows: LoopRows) -> Callable[[Array], Array]:
        return Projection().corrector(tree, rows)


class AugmentedLagrangian(AbstractClosure):
    """Penalty forces, with multipliers that take over what is left `iterations` times.

    Each iteration shrinks the error by one part in `stiffness` times $S$, so a small
    `stiffness` will do.
    """

    sweeps: ClassVar[int] = 0
    stiffness: Scalar = eqx.field(converter=si("kg, kg m^2", above=0.0), default=1e5)
    frequency: Scalar = eqx.field(converter=si("rad/s", at_least=0.0), default=10.0)
    damping: Scalar = eqx.field(converter=si("1", at_least=0.0), default=1.0)
    iterations: int = eqx.field(static=True, default=4)

    def __check_init__(self):
        check_values(self)
        if self.iterations < 1:
            raise ValueError(
                f"an augmented Lagrangian needs an iteration, not {self.iterations}"
            )

    def accelerate(
        self, tree: Tree, rows: LoopRows, v_dot: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nv"], Float[Array, " m"]]:
        K, S = mobility(tree, rows)
        rest = stabilised(rows, self.frequency, self.damping)
        soft = jnp.ones_like(rest) / self.stiffness
        wanted = -(rows.jacobian @ v_dot + rest)
        sizes = repeated_solve(S, wanted, soft, self.iterations)
        return v_dot + K @ sizes, sizes

    def corrector(self, tree: Tree, rows: LoopRows) -> Callable[[Array], Array]:
        return Projection().corrector(tree, rows)


class Elimination(AbstractClosure):
    r"""Independent coordinates: the `independent` joints move, the others follow.

    A second velocity transformation, $v = R\dot z + s$, with the equations of motion
    $R^\top M R\ddot z = R^\top M(\dot v_0 - c)$ (Garcia de Jalon and Bayo, *Kinematic
    and dynamic simulation of multibody systems*, 1994). It ends where the chosen joints
    do not determine the others: at their dead centres.
    """

    independent: tuple[str, ...] = eqx.field(
        static=True, converter=lambda x: (x,) if isinstance(x, str) else tuple(x)
    )
    sweeps: int = eqx.field(static=True, default=1)

    def split(self, tree: Tree, nv: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the independent speeds and of those that follow."""
        every = np.arange(nv)
        slices = [tree.v_slice(name) for name in self.independent]
        chosen = np.concatenate([every[:0], *(every[s] for s in slices)])
        return np.sort(chosen), np.setdiff1d(every, chosen)

    def follow(
        self, tree: Tree, rows: LoopRows
    ) -> tuple[Callable[[Array], Array], Array]:
        """Return how speeds that follow make up for rates, and all speeds' $R$."""
        nv = rows.jacobian.shape[1]
        free, tied = self.split(tree, nv)
        J = rows.jacobian[:, tied]
        A = J.T @ J
        put = np.zeros((nv, len(tied)))
        put[tied, np.arange(len(tied))] = 1.0
        put = jnp.asarray(put, J.dtype)
        solve = lambda rate: put @ repeated_solve(A, -(J.T @ rate), least(A))
        moved = np.zeros((nv, len(free)))
        moved[free, np.arange(len(free))] = 1.0
        moved = jnp.asarray(moved, J.dtype)
        return solve, moved + solve(rows.jacobian[:, free])

    def accelerate(
        self, tree: Tree, rows: LoopRows, v_dot: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nv"], Float[Array, " m"]]:
        solve, R = self.follow(tree, rows)
        M, rest = tree.matrix(), solve(rows.bias)
        reduced = jnp.linalg.cholesky(R.T @ M @ R)
        push = R.T @ (M @ (v_dot - rest))
        moved = R @ jax.scipy.linalg.cho_solve((reduced, True), push) + rest
        _, S = mobility(tree, rows)
        sizes = repeated_solve(S, rows.jacobian @ (moved - v_dot), least(S))
        return moved, sizes

    def corrector(self, tree: Tree, rows: LoopRows) -> Callable[[Array], Array]:
        return self.follow(tree, rows)[0]


def mobility(tree: Tree, rows: LoopRows) -> tuple[Array, Array]:
    r"""Return $M^{-1}J^\top$ and $S = J M^{-1} J^\top$."""
    K = tree.solve(rows.jacobian.T)
    return K, rows.jacobian @ K


def stabilised(rows: LoopRows, frequency: Scalar, damping: Scalar) -> Array:
    r"""Return $\gamma + 2\zeta\omega\dot g + \omega^2 g$."""
    return rows.bias + frequency * (2 * damping * rows.rate + frequency * rows.gap)


def least(S: Float[Array, "m m"]) -> Float[Array, " m"]:
    """Return a compliance so small that it only counts where `S` is singular."""
    size = jnp.sum(S * np.eye(len(S), dtype=S.dtype), 1)  # the diagonal
    dead = size <= DEAD * jnp.max(size)
    small = float(jnp.finfo(S.dtype).eps) ** SOFTNESS_POWER
    return jnp.where(dead, 1.0, small * size)


def repeated_solve(
    S: Float[Array, "m m"],
    wanted: Float[Array, "m *k"],
    soft: Float[Array, " m"],
    repeats: int = REPEATS,
) -> Float[Array, "m *k"]:
    """Solve with `S + diag(soft)`, then again for what is left."""
    factor = jnp.linalg.cholesky(0.5 * (S + S.T) + jnp.diag(soft))
    found = jnp.zeros_like(wanted)
    for _ in range(repeats):
        left = wanted - S @ found
        found = found + jax.scipy.linalg.cho_solve((factor, True), left)
    return found
