r"""Distance and depth of two convex solids.

Distances come from the GJK algorithm (Gilbert, Johnson and Keerthi, *A fast procedure
for computing the distance between complex objects in three-dimensional space*, 1988),
depths from the separating-axis test: normals of faces and cross products of edges. A
small motion does not change the active corners or axis, so derivatives hold these fixed
and are those of closed forms.
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..multibody.spatial import Pose, cross
from ..smooth import norm
from ..typing import Scalar, Vec3
from .contact_points import ContactPoints, unit
from .shapes import AbstractSolid, Points


MAX_GJK_ITERATIONS = 32
# Corners, edges and faces of a tetrahedron.
SUBSIMPLICES = [s for k in (1, 2, 3) for s in itertools.combinations(range(4), k)]
UP = np.array([0.0, 0.0, 1.0])


def rounding(x: Array) -> float:
    """Return what is lost in the last digits: 1e-14, or more in single precision."""
    return max(1e-14, 4 * float(jnp.finfo(x.dtype).eps))


class Solid(eqx.Module):
    """A solid's core, in world axes."""

    points: Points
    normals: Points
    offsets: Float[Array, " planes"]
    edges: Points

    @staticmethod
    def of(shape: AbstractSolid, X: Pose) -> "Solid":
        """Return the core of a shape at a pose."""
        n, d = shape.planes()
        n = n @ X.R.T
        points = shape.core() @ X.R.T + X.p[None]
        return Solid(points, n, d + n @ X.p, shape.edges() @ X.R.T)


def nearest(w: Float[Array, "4 3"], used: Array) -> tuple[Float[Array, " 4"], Vec3]:
    """Return the point of a simplex nearest to the origin: weights and position."""
    found = []
    for subset in SUBSIMPLICES:
        base = w[subset[0]]
        E = jnp.stack([w[k] - base for k in subset[1:]]) if subset[1:] else None
        weights = jnp.zeros(4, w.dtype).at[subset[0]].set(1.0)
        good = jnp.all(used[np.array(subset)])
        if E is not None:
            G, g = E @ E.T, -E @ base
            if len(g) == 1:
                det, numer = G[0, 0], g
            else:
                det = G[0, 0] * G[1, 1] - G[0, 1] ** 2
                numer = jnp.stack(
                    [G[1, 1] * g[0] - G[0, 1] * g[1], G[0, 0] * g[1] - G[0, 1] * g[0]]
                )
            least = rounding(w) * jnp.prod(jnp.diagonal(G))
            flat = det <= 1e-10 * rounding(w) + least
            x = numer / jnp.where(flat, 1.0, det)
            rest = 1 - jnp.sum(x)
            good &= ~flat & jnp.all(x >= 0) & (rest >= 0)
            weights = weights.at[np.array(subset)].set(jnp.concatenate([rest[None], x]))
        found.append((weights, jnp.where(good, jnp.sum((weights @ w) ** 2), jnp.inf)))
    all_weights = jnp.stack([x for x, _ in found])
    best = jnp.argmin(jnp.stack([d for _, d in found]))
    weights = all_weights[best]
    return weights, weights @ w


def _inside(w: Float[Array, "4 3"], used: Array) -> Array:
    """Return whether a tetrahedron contains the origin."""
    det = lambda a, b, c: a @ cross(b, c)
    whole = det(w[1] - w[0], w[2] - w[0], w[3] - w[0])
    o = jnp.zeros(3, w.dtype)
    parts = []
    for k in range(4):
        v = [o if i == k else w[i] for i in range(4)]
        parts.append(det(v[1] - v[0], v[2] - v[0], v[3] - v[0]) * jnp.sign(whole))
    return jnp.all(used) & (jnp.min(jnp.stack(parts)) >= 0) & (whole != 0)


def simplex(a: Points, b: Points) -> tuple[Int[Array, "4 2"], Array, Array]:
    """Run GJK: return the corners of both that span the shortest distance, which of
    them are used, and whether the hulls overlap.
    """
    a, b = jax.lax.stop_gradient((a, b))
    size = jnp.max(jnp.abs(a - b[:1])) + jnp.max(jnp.abs(b - b[:1]))
    size, small = size + jnp.finfo(a.dtype).tiny, rounding(a)

    def iterate(carry):
        k, ids, used, v, _, _ = carry
        i, j = jnp.argmin(a @ v), jnp.argmax(b @ v)
        far = a[i] - b[j]
        progress = v @ v - v @ far > small * size**2 + 100 * small * (v @ v)
        slot = jnp.argmin(used)  # the first free one
        ids1 = jnp.where((jnp.arange(4) == slot)[:, None], jnp.stack([i, j])[None], ids)
        used1 = used | (jnp.arange(4) == slot)
        w = a[ids1[:, 0]] - b[ids1[:, 1]]
        inside = _inside(w, used1)
        weights, v1 = nearest(w, used1)
        keep = lambda new, old: jnp.where(progress, new, old)
        touching = progress & (inside | (v1 @ v1 <= (100 * small * size) ** 2))
        return (
            k + 1,
            keep(ids1, ids),
            keep(weights > 0, used),
            keep(v1, v),
            touching,
            progress & ~touching,
        )

    ids, used = jnp.zeros((4, 2), int), jnp.arange(4) == 0
    start = (0, ids, used, a[0] - b[0], jnp.array(False), jnp.array(True))
    more = lambda carry: carry[-1] & (carry[0] < MAX_GJK_ITERATIONS)
    _, ids, used, _, touching, _ = jax.lax.while_loop(more, iterate, start)
    return ids, used, touching


def axes(A: Solid, B: Solid) -> Float[Array, "axes 3"]:
    """Return all candidate separating axes, from B towards A."""
    edges = cross(A.edges[:, None], B.edges[None]).reshape(-1, 3)
    edges = unit(edges, jnp.zeros(3))
    return jnp.concatenate([-A.normals, B.normals, edges, -edges])


def margins(A: Solid, B: Solid, n: Float[Array, "axes 3"]) -> Float[Array, " axes"]:
    """Return how far A must move along each axis to leave B; negative if separated."""
    return jnp.max(n @ B.points.T, 1) - jnp.min(n @ A.points.T, 1)


def deepest(A: Solid, B: Solid) -> tuple[Scalar, Vec3, Vec3, Scalar]:
    """Return depth, normal and middle of the overlap, and the distance of two edges'
    ends from where they cross, which is negative where edges do not meet.
    """
    n = axes(A, B)
    square = jnp.sum(n * n, 1)
    deep = jnp.where(square > 0.5, margins(A, B, n), jnp.inf)
    faces = len(A.normals) + len(B.normals)
    bias = max(1e-9, 4 * rounding(n)) * jnp.max(jnp.abs(A.points - A.points[:1]))
    late = np.arange(len(n)) >= faces  # of equal axes, those of faces
    best = jnp.argmin(deep + jnp.where(late, bias, 0.0))
    depth, normal = deep[best], n[best]
    a, b = (
        A.points[jnp.argmin(A.points @ normal)],
        B.points[jnp.argmax(B.points @ normal)],
    )
    # A face of A has a corner of B inside, and the other way round.
    of_a, of_b = best < len(A.normals), best < faces
    middle = jnp.where(of_a, b - depth / 2 * normal, a + depth / 2 * normal)
    pairs = max(len(A.edges) * len(B.edges), 1)
    pair = (best - faces) % pairs
    room = -norm(A.points[0] - A.points[-1])  # far: edges have no part in it
    if len(A.edges) and len(B.edges):
        e, f = A.edges[pair // len(B.edges)], B.edges[pair % len(B.edges)]
        u = cross(e, f)
        least = jnp.finfo(u.dtype).tiny
        along = (b - a) @ cross(f, u) / jnp.maximum(u @ u, least)
        at = a + along * e
        middle = jnp.where(of_b, middle, at + depth / 2 * normal)
        ends = jnp.minimum(
            _to_ends(A.points, a, e, along),
            _to_ends(B.points, b, f, (at + depth * normal - b) @ f),
        )
        room = jnp.where(of_b, room, ends)
    return depth, normal, middle, room


def _to_ends(points: Points, corner: Vec3, e: Vec3, s: Scalar) -> Scalar:
    """Return the distance from `s` along an edge through a corner to its nearer end."""
    away = points - corner[None]
    along = away @ e
    off = jnp.sum((away - along[:, None] * e[None]) ** 2, 1)
    on = off < 100 * rounding(points) * jnp.max(jnp.sum(away**2, 1))
    low = jnp.min(jnp.where(on, along, 0.0))
    high = jnp.max(jnp.where(on, along, 0.0))
    return jnp.minimum(s - low, high - s)


def nearest_points(A: Solid, B: Solid, ids: Array, used: Array) -> tuple[Vec3, Vec3]:
    """Return the nearest points of both solids, from the corners that GJK found."""
    a, b = A.points[ids[:, 0]], B.points[ids[:, 1]]
    weights, _ = nearest(a - b, used)
    return weights @ a, weights @ b


def witness(
    A: AbstractSolid, X_WA: Pose, B: AbstractSolid, X_WB: Pose
) -> ContactPoints:
    """Return the nearest or deepest point of two convex solids."""
    a, b = Solid.of(A, X_WA), Solid.of(B, X_WB)
    if len(a.points) == len(b.points) == 1:
        p, q, overlap = a.points[0], b.points[0], jnp.array(False)
    else:
        ids, used, overlap = simplex(a.points, b.points)
        p, q = nearest_points(a, b, ids, used)
    n = unit(p - q, jnp.asarray(UP, p.dtype))
    depth, middle = -norm(p - q), (p + q) / 2
    if len(axes(a, b)):
        inner = deepest(a, b)
        depth = jnp.where(overlap, inner[0], depth)
        n = jnp.where(overlap, inner[1], n)
        middle = jnp.where(overlap, inner[2], middle)
    ra, rb = A.rounding(), B.rounding()
    middle = middle + (rb - ra) / 2 * n
    return ContactPoints(middle[None], n[None], (depth + ra + rb)[None])
