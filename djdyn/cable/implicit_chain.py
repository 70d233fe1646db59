r"""Lines as chains of springs, for linearly implicit steps.

What is stiff in a line are its elements. As a chain of masses with springs and dampers
between them, solved from node to node together with the bodies at its ends, they are
implicit at a cost that grows with the number of nodes alone.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..multibody import mass_matrix
from ..multibody.closing import response
from ..multibody.kinematics import World, forward_kinematics
from ..multibody.spatial import cross
from ..parts.base import AbstractPlacedPart, Signals
from ..typing import Mat3, Scalar, Vec3


HELD_COMPLIANCE = 1e-6  # of an end held from outside, relative to the line's own mass
Rows = Float[Array, "nodes 3"]


class Chain(eqx.Module):
    r"""What is stiff in a line: masses in a row, with springs and dampers between them.

    `fed` is how a spring grows with what winches have paid out. `held` gives, for end
    nodes 0 and -1 that are held, the body or None, the point, and point and velocity as
    a function of time and world. `free` are the nodes whose states are the part's `r`
    and `v`. `bed` is the stiffness and the damping between nodes and the ground, which
    held nodes leave to what holds them.
    """

    mass: Float[Array, "nodes 3 3"]
    stiffness: Float[Array, "elements 3 3"]
    damping: Float[Array, "elements 3 3"]
    fed: Float[Array, "elements 3"]
    held: dict[int, tuple[str | None, Vec3, Callable[[Scalar, World], Any]]]
    free: slice = eqx.field(static=True)
    bed: tuple[Float[Array, "nodes 3 3"], Float[Array, "nodes 3 3"]]

    def pad(self, rows: Float[Array, "free 3"]) -> Float[Array, "nodes 3"]:
        """Zeros for the ends that are held."""
        ends = (self.free.start, len(self.mass) - self.free.stop)
        return jnp.pad(rows, (ends, (0, 0)))


class AbstractLinePart(AbstractPlacedPart):
    """A part with nodes `r` and velocities `v` among its states, stiff along a line."""

    @abc.abstractmethod
    def chain(
        self, t: Scalar, state: Any, world: World, signals: Signals, h: Scalar
    ) -> Chain:
        """Its stiffness for steps of `h`; may be rough."""


class ChainSolver:
    """Solves with the implicit matrix of a chain whose ends hang on bodies.

    A body appears at the end of the chain with the mass that it shows there. `loaded`
    is the world with the inertias that parts add to its bodies.
    """

    def __init__(self, world: World, loaded: World, chain: Chain, h: Scalar):
        self.world, self.chain, self.h = world, chain, h
        mass = chain.mass
        invert, eye = response(loaded), jnp.eye(3, dtype=mass.dtype)
        total = jnp.sum(mass[:, 0, 0])
        self.ends: dict[int, tuple[Array, Mat3]] = {}  # M^-1 J^T, and the mass shown
        for node, (body, p, _) in chain.held.items():
            shown, yields = (
                total / HELD_COMPLIANCE * eye,
                jnp.zeros((3, len(loaded.v)), p.dtype),
            )
            if body is not None and len(loaded.v):
                yields = jnp.stack([invert(_pushed(loaded, body, p, e)) for e in eye])
                moves = jnp.stack([_moved(loaded, body, p, row) for row in yields])
                shown = _inverse(moves + HELD_COMPLIANCE / total * eye)
            self.ends[node] = yields, shown
            mass = mass.at[node].set(shown)
        self.mass = mass
        loose = np.ones((len(mass), 1, 1))
        loose[list(chain.held)] = 0.0
        self.bed = tuple(jnp.asarray(loose, mass.dtype) * x for x in chain.bed)
        rests = h * self.bed[1] + h**2 * self.bed[0]
        self.factors = _factor(mass + rests, chain, h)

    def solve(self, q: Array, v: Array, own: dict, clock: float) -> tuple[dict, Array]:
        """Return the line's own rates, and what to add to those of the speeds.

        **Arguments:**

        - `q`, `v`, `own`: right-hand sides for coordinates, speeds and the line.
        - `clock`: right-hand side for time, which is one more state.
        """
        chain, h = self.chain, self.h
        r, u = chain.pad(own["r"]), chain.pad(own["v"])
        for node in self.ends:
            r_end, u_end = self._end_rates(node, q, v, clock)
            r, u = r.at[node].set(r_end), u.at[node].set(u_end)
        stretch = r[1:] - r[:-1]
        if "paid" in own:
            stretch = stretch - jnp.sum(own["paid"]) * chain.fed
        pull = jnp.einsum("eij,ej->ei", chain.stiffness, stretch)
        zero = jnp.zeros_like(pull[:1])
        pull = jnp.concatenate([pull, zero]) - jnp.concatenate([zero, pull])
        pull = pull - jnp.einsum("nij,nj->ni", self.bed[0], r)
        x = _substitute(self.factors, jnp.einsum("nij,nj->ni", self.mass, u) + h * pull)
        more = jnp.zeros_like(v)
        for node, (yields, shown) in self.ends.items():
            more = more + (shown @ (x[node] - u[node])) @ yields
        free = chain.free
        return {**own, "r": own["r"] + h * x[free], "v": x[free]}, more

    def _end_rates(
        self, node: int, q: Array, v: Array, clock: float
    ) -> tuple[Vec3, Vec3]:
        """Return how an end moves and accelerates with the rates `q`, `v`, `clock`."""
        world, end = self.world, self.chain.held[node][2]
        place = lambda q, v, t: end(t, forward_kinematics(world.mechanism, q, v, t))
        t = world.t.astype(world.q.dtype)
        one = jnp.full_like(t, clock)
        return jax.jvp(place, (world.q, world.v, t), (q, v, one))[1]


def _pushed(world: World, body: str, p: Vec3, f: Vec3) -> Array:
    """Joint forces of a force at a point of a body."""
    b = world.mechanism.index(body)
    F = jnp.concatenate([cross(p - world.X_WB.p[b], f), f])
    rows = jnp.arange(len(world.V_WB)) == b
    return mass_matrix.project_wrenches(world, jnp.where(rows[:, None], F[None], 0.0))


def _moved(world: World, body: str, p: Vec3, v: Array) -> Vec3:
    """Velocity of a point of a body by the mechanism's speeds."""
    b = world.mechanism.index(body)
    V = mass_matrix.body_twists(world, v)[b]
    return V[3:] + cross(V[:3], p - world.X_WB.p[b])


Factors = tuple[Array, Array, Array]


def _factor(mass: Float[Array, "nodes 3 3"], chain: Chain, h: Scalar) -> Factors:
    r"""Factor the block-tridiagonal $M + hD + h^2K$ from the first node to the last."""
    S = h * chain.damping + h**2 * chain.stiffness
    off = -S
    zero = jnp.zeros_like(S[:1])
    diagonal = mass + jnp.concatenate([S, zero]) + jnp.concatenate([zero, S])
    before, after = (jnp.concatenate(x) for x in ((zero, off), (off, zero)))

    def down(G: Mat3, row: tuple[Mat3, Mat3, Mat3]) -> tuple[Mat3, tuple[Mat3, Mat3]]:
        D, before, after = row
        inverse = _inverse(D - before @ G)
        G = inverse @ after
        return G, (inverse, G)

    _, (inverses, G) = lax.scan(down, zero[0], (diagonal, before, after))
    return inverses, G, before


def _substitute(factors: Factors, b: Rows) -> Rows:
    inverses, G, before = factors

    def down(z: Vec3, row: tuple[Mat3, Mat3, Vec3]) -> tuple[Vec3, Vec3]:
        inverse, before, b = row
        z = inverse @ (b - before @ z)
        return z, z

    def up(x: Vec3, row: tuple[Mat3, Vec3]) -> tuple[Vec3, Vec3]:
        G, z = row
        x = z - G @ x
        return x, x

    zero = jnp.zeros_like(b[0])
    _, z = lax.scan(down, zero, (inverses, before, b))
    return lax.scan(up, zero, (G, z), reverse=True)[1]


def _inverse(M: Mat3) -> Mat3:
    """Return the inverse by Cramer's rule."""
    rows = jnp.stack([cross(M[i], M[j]) for i, j in ((1, 2), (2, 0), (0, 1))])
    return rows.T / (M[0] @ rows[0])
