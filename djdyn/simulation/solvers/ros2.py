r"""Linearly implicit steps: stiff systems at the steps that their motion asks for.

A step of ROS2 (Verwer, Spee, Blom and Hundsdorfer, *A second-order Rosenbrock method
applied to photochemical dispersion problems*, 1999), with $W = I - \gamma h A$,

$$W k_1 = f(t, y),\qquad W k_2 = f(t + h, y + h k_1) - 2 k_1,\qquad
y_1 = y + \tfrac32 h k_1 + \tfrac12 h k_2 ,$$

is of second order whatever $A$ is, and damps stiff modes out where $A$ is about the
Jacobian of $f$. So $A$ may be rough: it holds the elements of lines as chains of
springs, solved from node to node together with the bodies at their ends, and leaves all
else explicit.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from ...multibody import dynamics
from ...multibody.kinematics import World, forward_kinematics
from ...multibody.spatial import cross
from ...parts.base import AbstractLinePart, Chain
from ...system.system import Instant, State
from ...typing import Mat3, Scalar, Vec3
from ..vector_field import Field


GAMMA = 1 - 1 / math.sqrt(2)  # the smaller root, with the smaller errors
HELD = 1e-6  # of what a line weighs, over what holds it from outside
Solve = Callable[[Array, float], Array]
Rows = Float[Array, "nodes 3"]


def ros2(field: Field, t: Scalar, y: Array, h: Scalar) -> Array:
    """One step from `y` at time `t`."""
    solve = _solver(field, t, y, GAMMA * h)
    k1 = solve(field(t, y), 1.0)
    k2 = solve(field(t + h, y + h * k1) - 2 * k1, -1.0)
    return y + h * (1.5 * k1 + 0.5 * k2)


def _solver(field: Field, t: Scalar, y: Array, h: Scalar) -> Solve:
    """Solves with $W$; time is one more state, whose share in $k$ is given too."""
    parts = field.system.parts
    lines = [k for k, part in parts.items() if isinstance(part, AbstractLinePart)]
    if not lines:
        raise ValueError("ros2 knows what is stiff in cables, and there is none")
    state, _ = field.unravel(y)
    now = field.system.at(t, state, field.input_values(t), field.sampled)
    chains = {}
    for k in lines:
        part = parts[k]
        assert isinstance(part, AbstractLinePart)
        chain = part.chain(t, state.parts[k], now.world, now.signals, h)
        chains[k] = _Hung(now, chain, h)

    def solve(flat: Array, clock: float) -> Array:
        b, work = field.unravel(flat)
        v, states = b.v, dict(b.parts)
        for k, hung in chains.items():
            states[k], more = hung.solve(b, b.parts[k], clock)
            v = v + more
        q = b.q + h * now.world.mechanism.q_dot(state.q, v)
        return ravel_pytree((State(q, v, states), work))[0]

    return solve


# Chains -------------------------------------------------------------------------------


class _Hung:
    """A chain whose ends hang on bodies: these move with the mass they show there."""

    def __init__(self, now: Instant, chain: Chain, h: Scalar):
        self.now, self.chain, self.h = now, chain, h
        world, mass = now.with_added_inertia, chain.mass
        invert, eye = dynamics.mass_solver(world), jnp.eye(3, dtype=mass.dtype)
        total = jnp.sum(mass[:, 0, 0])
        self.ends: dict[int, tuple[Array, Mat3]] = {}  # M^-1 J^T, and the mass shown
        for node, (body, p, _) in chain.held.items():
            shown, yields = total / HELD * eye, jnp.zeros((3, len(world.v)), p.dtype)
            if body is not None and len(world.v):
                yields = jnp.stack([invert(_pushed(world, body, p, e)) for e in eye])
                moves = jnp.stack([_moved(world, body, p, row) for row in yields])
                shown = _inverse(moves + HELD / total * eye)
            self.ends[node] = yields, shown
            mass = mass.at[node].set(shown)
        self.mass = mass
        self.factors = _factor(mass, chain, h)

    def solve(self, b: State, own: dict, clock: float) -> tuple[dict, Array]:
        """The line's own states, and what is to be added to the mechanism's speeds."""
        chain, h = self.chain, self.h
        r, v = chain.pad(own["r"]), chain.pad(own["v"])
        for node in self.ends:
            r_end, v_end = self._carried(node, b, clock)
            r, v = r.at[node].set(r_end), v.at[node].set(v_end)
        stretch = r[1:] - r[:-1]
        if "paid" in own:
            stretch = stretch - jnp.sum(own["paid"]) * chain.fed
        pull = jnp.einsum("eij,ej->ei", chain.stiffness, stretch)
        zero = jnp.zeros_like(pull[:1])
        pull = jnp.concatenate([pull, zero]) - jnp.concatenate([zero, pull])
        x = _substitute(self.factors, jnp.einsum("nij,nj->ni", self.mass, v) + h * pull)
        more = jnp.zeros_like(b.v)
        for node, (yields, shown) in self.ends.items():
            more = more + (shown @ (x[node] - v[node])) @ yields
        free = chain.free
        return {**own, "r": own["r"] + h * x[free], "v": x[free]}, more

    def _carried(self, node: int, b: State, clock: float) -> tuple[Vec3, Vec3]:
        """How an end moves and speeds up with rates of the mechanism and of time."""
        world, y, end = self.now.world, self.now.y, self.chain.held[node][2]
        place = lambda q, v, t: end(t, forward_kinematics(world.mechanism, q, v, t))
        t = world.t.astype(y.q.dtype)
        one = jnp.full_like(t, clock)
        return jax.jvp(place, (y.q, y.v, t), (b.q, b.v, one))[1]


def _pushed(world: World, body: str, p: Vec3, f: Vec3) -> Array:
    """Joint forces of a force at a point of a body."""
    b = world.mechanism.index(body)
    F = jnp.concatenate([cross(p - world.X_WB.p[b], f), f])
    rows = jnp.arange(len(world.V_WB)) == b
    return dynamics.project_wrenches(world, jnp.where(rows[:, None], F[None], 0.0))


def _moved(world: World, body: str, p: Vec3, v: Array) -> Vec3:
    """Velocity of a point of a body by the mechanism's speeds."""
    b = world.mechanism.index(body)
    V = dynamics.body_twists(world, v)[b]
    return V[3:] + cross(V[:3], p - world.X_WB.p[b])


Factors = tuple[Array, Array, Array]


def _factor(mass: Float[Array, "nodes 3 3"], chain: Chain, h: Scalar) -> Factors:
    r"""Of the block-tridiagonal $M + hD + h^2K$, from the first node to the last."""
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
    """By Cramer's rule."""
    rows = jnp.stack([cross(M[i], M[j]) for i, j in ((1, 2), (2, 0), (0, 1))])
    return rows.T / (M[0] @ rows[0])
