"""Many solids that touch each other: a look at all pairs, and a close one at few."""

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..multibody.kinematics import World
from ..multibody.mechanism import Mechanism
from ..multibody.spatial import Pose, cross, shift_twist
from ..parts.base import AbstractPassivePart, BodyLoads, Response, Signals
from ..typing import Scalar, Vec3, si
from .contact_points import ContactPoints
from .detection import find_contacts
from .friction import AbstractSurfaceFriction, Coulomb, Stribeck
from .normal import AbstractNormalLaw
from .shapes import AbstractShape, AbstractSolid
from .surface_law import Action, act, passing


class ContactGroup(AbstractPassivePart):
    """Solids of one class, by their frames, that touch where they meet.

    Boxes around them, along the world's axes, say which pairs can touch; only the
    `most` nearest pairs are looked at closely. While no more boxes than that overlap
    the forces are those of all pairs; the output `dropped_pairs` counts those left out.

    **Arguments:**

    - `against`: shapes of one class that the solids touch instead of each other.
    - `friction`: a law without a memory, as pairs come and go.
    - `rolling`, `spinning`: as of `Contact`.

    Outputs: the normal forces of all points together as `normal_force`, the greatest
    `depth`, and `dropped_pairs`.
    """

    solids: Mapping[str, AbstractSolid]
    normal: AbstractNormalLaw
    most: int = eqx.field(static=True)
    friction: AbstractSurfaceFriction | None = None
    against: Mapping[str, AbstractShape] = eqx.field(default_factory=dict)
    rolling: Scalar = eqx.field(converter=si("m", at_least=0.0), default=0.0)
    spinning: Scalar = eqx.field(converter=si("m", at_least=0.0), default=0.0)
    turn_width: Scalar = eqx.field(converter=si("rad/s", above=0.0), default=1e-3)

    def __check_init__(self):
        if not isinstance(self.friction, Coulomb | Stribeck | None):
            raise ValueError(
                "friction in a pile is Coulomb's or Stribeck's, not that of "
                f"{type(self.friction).__name__}"
            )
        if self.most < 1:
            raise ValueError(f"most is a number of pairs, at least 1, not {self.most}")
        _check_alike("solids", self.solids, AbstractSolid)
        _check_alike("against", self.against, AbstractShape)

    def initial_state(self) -> dict:
        return {}

    def pairs(self, mechanism: Mechanism) -> Int[np.ndarray, "2 pairs"]:
        """All that may ever touch: those on different bodies."""
        names, n = [*self.solids, *self.against], len(self.solids)
        bodies = [mechanism.frame(name).body for name in names]
        mixed = itertools.product(range(n), range(n, len(names)))
        rows = mixed if self.against else itertools.combinations(range(n), 2)
        found = [(i, j) for i, j in rows if bodies[i] != bodies[j]]
        if not found:
            raise ValueError("a pile needs two shapes on different bodies")
        return np.array(found).T

    def near(self, mechanism: Mechanism, X: Pose) -> tuple[Array, Array, Scalar]:
        """The nearest pairs, and by how many more boxes overlap."""
        i, j = self.pairs(mechanism)
        low, high = jax.lax.stop_gradient(self._boxes(X))
        gap = jnp.max(jnp.maximum(low[i] - high[j], low[j] - high[i]), 1)
        most = min(self.most, len(i))
        _, best = jax.lax.top_k(-gap, most)
        over = jnp.sum((gap < self.normal.reach()).astype(gap.dtype)) - most
        return jnp.asarray(i)[best], jnp.asarray(j)[best], jnp.maximum(over, 0.0)

    def _boxes(self, X: Pose) -> tuple[Float[Array, "n 3"], Float[Array, "n 3"]]:
        n = len(self.solids)
        kinds = [(_stacked(self.solids), Pose(X.R[:n], X.p[:n]))]
        if self.against:
            kinds.append((_stacked(self.against), Pose(X.R[n:], X.p[n:])))
        boxes = [jax.vmap(bounds)(*kind) for kind in kinds]
        return jax.tree.map(lambda *x: jnp.concatenate(x), *boxes)

    def _forward_kinematics(self, world: World) -> "_Near":
        names = (*self.solids, *self.against)
        frames = [world.mechanism.frame(name) for name in names]
        rows = np.array([world.mechanism.index(frame.body) for frame in frames])
        X_WB = Pose(world.X_WB.R[rows], world.X_WB.p[rows])
        X = X_WB @ _stack([frame.X_BF for frame in frames])
        V = shift_twist(world.V_WB[rows], X.p - X_WB.p)
        i, j, dropped_pairs = self.near(world.mechanism, X)
        pick = lambda x, k: jax.tree.map(lambda leaf: leaf[k], x)
        first, second = _stacked(self.solids), _stacked(self.against or self.solids)
        A, B = pick(first, i), pick(second, j - len(self.solids) * bool(self.against))
        at = pick(X, i), pick(X, j)
        touch = jax.vmap(find_contacts)(A, at[0], B, at[1])
        velocity, turning = jax.vmap(passing)(touch.p, at, (V[i], V[j]))
        rows = jnp.asarray(rows)
        return _Near(touch, velocity, turning, (rows[i], rows[j]), dropped_pairs)

    def _act(self, near: "_Near") -> Action:
        no_pull = jnp.zeros_like(near.velocity)
        pair = jax.vmap(partial(act, self, state={}))
        return pair(near.touch, near.velocity, near.turning, no_pull)

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        del t, signals
        near = self._forward_kinematics(world)
        x = self._act(near)
        f, F_WB = jnp.sum(x.f, 1), jnp.zeros_like(world.V_WB)
        for rows, sign in zip(near.rows, (1.0, -1.0), strict=True):
            arm = x.touch.p - world.X_WB.p[rows][:, None]
            tau = jnp.sum(cross(arm, x.f) + x.tau, 1)
            F_WB = F_WB.at[rows].add(sign * jnp.concatenate([tau, f], 1))
        outputs = {
            "normal_force": jnp.sum(x.normal_force),
            "depth": jnp.max(x.touch.depth),
            "dropped_pairs": near.dropped_pairs,
        }
        return Response(state, (BodyLoads(F_WB),), outputs)

    def energy(self, state: dict, world: World) -> Scalar:
        del state
        depth = self._forward_kinematics(world).touch.depth
        return jnp.sum(jax.vmap(self.normal.energy)(depth.reshape(-1)))

    def power_loss(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Scalar:
        del t, state, signals
        return jnp.sum(self._act(self._forward_kinematics(world)).loss)


class _Near(eqx.Module):
    """Pairs that may touch: their points, how these move, and rows of their bodies."""

    touch: ContactPoints
    velocity: Float[Array, "pairs k 3"]
    turning: Float[Array, "pairs 3"]
    rows: tuple[Int[Array, " pairs"], Int[Array, " pairs"]]
    dropped_pairs: Scalar


def bounds(shape: AbstractShape, X: Pose) -> tuple[Vec3, Vec3]:
    """Lowest and highest coordinates; of what is no solid, none."""
    if not isinstance(shape, AbstractSolid):
        far = jnp.full_like(X.p, jnp.inf)
        return -far, far
    x, r = shape.core() @ X.R.T + X.p[None], shape.rounding()
    return jnp.min(x, 0) - r, jnp.max(x, 0) + r


def _stack(rows: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *x: jnp.stack(x), *rows)


def _stacked(shapes: Mapping[str, Any]) -> Any:
    return _stack(list(shapes.values()))


def _check_alike(name: str, shapes: Mapping[str, Any], kind: type) -> None:
    form = lambda x: (
        jax.tree.structure(x),
        [leaf.shape for leaf in jax.tree.leaves(x)],
    )
    first = next(iter(shapes.values()), None)
    for frame, shape in shapes.items():
        if not isinstance(shape, kind):
            raise ValueError(f"{name}: on {frame!r} is a {type(shape).__name__}")
        if form(shape) != form(first):
            raise ValueError(
                f"{name} of a pile are of one class and form: on {frame!r} is another "
                f"{type(shape).__name__} than the first, a {type(first).__name__}"
            )
