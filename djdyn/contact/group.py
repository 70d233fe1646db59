"""Contact among many solids: a broad phase over all pairs, a narrow phase for few."""

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..multibody.kinematics import World
from ..multibody.mechanism import Mechanism
from ..multibody.spatial import Pose, cross, shift_twist
from ..parts.base import AbstractPassivePart, Response, Signals
from ..parts.loads import BodyLoads
from ..smooth import norm
from ..typing import Scalar, Vec3, si
from .contact_points import ContactPoints
from .detection import find_contacts
from .friction import AbstractSurfaceFriction, Coulomb, Stribeck
from .normal import AbstractNormalLaw
from .shapes import AbstractShape, AbstractSolid
from .surface_law import (
    ContactForces,
    SurfaceLaw,
    duration,
    reduced_mass,
    relative_velocity,
)


class ContactGroup(AbstractPassivePart):
    """Contact among solids of one class, given by their frames.

    The broad phase compares axis-aligned bounding boxes; only the `most` nearest pairs
    go on to the narrow phase. While no more boxes than that overlap the forces are
    those of all pairs; the output `dropped_pairs` counts the pairs left out.

    **Arguments:**

    - `against`: shapes of one class that the solids touch instead of each other.
    - `allowed`: pairs of frames that may touch; by default all on different bodies.
    - `friction`: a law without bristles, as pairs come and go.
    - `rolling`, `spinning`, `turn_width`: the same as those of `Contact`.

    Outputs: the normal forces of all points together as `normal_force`, the greatest
    `depth`, and `dropped_pairs`.
    """

    signal_units: ClassVar[Mapping[str, str]] = {
        "normal_force": "N",
        "depth": "m",
        "dropped_pairs": "1",
    }
    solids: Mapping[str, AbstractSolid]
    normal: AbstractNormalLaw
    most: int = eqx.field(static=True)
    friction: AbstractSurfaceFriction | None = None
    against: Mapping[str, AbstractShape] = eqx.field(default_factory=dict)
    rolling: Scalar = eqx.field(converter=si("m", at_least=0.0), default=0.0)
    spinning: Scalar = eqx.field(converter=si("m", at_least=0.0), default=0.0)
    turn_width: Scalar = eqx.field(converter=si("rad/s", above=0.0), default=1e-3)
    allowed: frozenset[tuple[str, str]] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if not isinstance(self.friction, Coulomb | Stribeck | None):
            raise ValueError(
                "the friction of a contact group is Coulomb or Stribeck, not "
                f"{type(self.friction).__name__}"
            )
        if self.most < 1:
            raise ValueError(f"most is a number of pairs, at least 1, not {self.most}")
        _check_alike("solids", self.solids, AbstractSolid)
        _check_alike("against", self.against, AbstractShape)

    def initial_state(self) -> dict:
        return {}

    def pairs(self, mechanism: Mechanism) -> Int[np.ndarray, "2 pairs"]:
        """Return all pairs of shapes that may touch, as row numbers."""
        names, n = [*self.solids, *self.against], len(self.solids)
        bodies = [mechanism.frame(name).body for name in names]
        mixed = itertools.product(range(n), range(n, len(names)))
        rows = mixed if self.against else itertools.combinations(range(n), 2)
        found = [(i, j) for i, j in rows if bodies[i] != bodies[j]]
        if self.allowed is not None:
            either = self.allowed | {(b, a) for a, b in self.allowed}
            found = [(i, j) for i, j in found if (names[i], names[j]) in either]
        if not found:
            raise ValueError("a contact group needs two shapes on different bodies")
        return np.array(found).T

    def broad_phase(self, mechanism: Mechanism, X: Pose) -> tuple[Array, Array, Scalar]:
        """Return the nearest pairs, and how many overlapping pairs are dropped."""
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

    def _narrow_phase(self, world: World) -> "_NearPairs":
        names = (*self.solids, *self.against)
        frames = [world.mechanism.frame(name) for name in names]
        rows = np.array([world.mechanism.index(frame.body) for frame in frames])
        X_WB = Pose(world.X_WB.R[rows], world.X_WB.p[rows])
        X = X_WB @ _stack([frame.X_BF for frame in frames])
        V = shift_twist(world.V_WB[rows], X.p - X_WB.p)
        i, j, dropped_pairs = self.broad_phase(world.mechanism, X)
        pick = lambda x, k: jax.tree.map(lambda leaf: leaf[k], x)
        first, second = _stacked(self.solids), _stacked(self.against or self.solids)
        A, B = pick(first, i), pick(second, j - len(self.solids) * bool(self.against))
        at = pick(X, i), pick(X, j)
        points = jax.vmap(find_contacts)(A, at[0], B, at[1])
        motion = jax.vmap(relative_velocity)(points.p, at, (V[i], V[j]))
        rows = jnp.asarray(rows)
        return _NearPairs(points, *motion, (rows[i], rows[j]), dropped_pairs)

    @property
    def law(self) -> SurfaceLaw:
        """The law of all pairs of surfaces, from the fields of this part."""
        return SurfaceLaw(
            self.normal, self.friction, self.rolling, self.spinning, self.turn_width
        )

    def _contact_forces(self, near: "_NearPairs") -> ContactForces:
        no_pull = jnp.zeros_like(near.velocity)
        pair = jax.vmap(partial(self.law.contact_forces, state={}))
        return pair(near.points, near.velocity, near.angular_velocity, no_pull)

    def __call__(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Response:
        del t, signals
        near = self._narrow_phase(world)
        x = self._contact_forces(near)
        f, F_WB = jnp.sum(x.f, 1), jnp.zeros_like(world.V_WB)
        for rows, sign in zip(near.rows, (1.0, -1.0), strict=True):
            arm = x.points.p - world.X_WB.p[rows][:, None]
            tau = jnp.sum(cross(arm, x.f) + x.tau, 1)
            F_WB = F_WB.at[rows].add(sign * jnp.concatenate([tau, f], 1))
        outputs = {
            "normal_force": jnp.sum(x.normal_force),
            "depth": jnp.max(x.points.depth),
            "dropped_pairs": near.dropped_pairs,
        }
        return Response(state, (BodyLoads(F_WB),), outputs)

    def impact_time(self, world: World) -> Scalar:
        """Return about how long the shortest impact of a near pair takes, s."""
        near = self._narrow_phase(world)
        mass = reduced_mass(*(world.m[rows] for rows in near.rows))
        g = norm(world.gravity_W)
        time = lambda mass, points, v: duration(self.normal, mass, points, v, g)
        return jnp.min(jax.vmap(time)(mass, near.points, near.velocity))

    def energy(self, state: dict, world: World) -> Scalar:
        del state
        depth = self._narrow_phase(world).points.depth
        return jnp.sum(jax.vmap(self.normal.energy)(depth.reshape(-1)))

    def power_loss(
        self, t: Scalar, state: dict, world: World, signals: Signals
    ) -> Scalar:
        del t, state, signals
        return jnp.sum(self._contact_forces(self._narrow_phase(world)).loss)


class _NearPairs(eqx.Module):
    """Contact points of near pairs, relative velocities there, and rows of bodies."""

    points: ContactPoints
    velocity: Float[Array, "pairs k 3"]
    angular_velocity: Float[Array, "pairs 3"]
    rows: tuple[Int[Array, " pairs"], Int[Array, " pairs"]]
    dropped_pairs: Scalar


def bounds(shape: AbstractShape, X: Pose) -> tuple[Vec3, Vec3]:
    """Return the axis-aligned bounding box of a shape, infinite if it is no solid."""
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
            raise ValueError(
                f"{name}: the shape on {frame!r} is a {type(shape).__name__}, which "
                f"is no {kind.__name__}"
            )
        if form(shape) != form(first):
            raise ValueError(
                f"{name} of a contact group have one class and array shapes: the "
                f"{type(shape).__name__} on {frame!r} differs from the first one, a "
                f"{type(first).__name__}"
            )
