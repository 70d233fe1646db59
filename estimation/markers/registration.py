r"""Laying one cloud of labelled points on another: the pose of a rigid body.

The rotation that maximises $\sum_i w_i\,(p^A_i-\bar p^A)\cdot R\,(p^B_i-\bar p^B)$
comes from a singular value decomposition (Kabsch, *A solution for the best rotation to
relate two sets of vectors*, 1976). Its derivatives come from one step of Newton's
method at the solution, so they are finite for symmetric and for flat clouds as well.
"""

from itertools import combinations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from djdyn._smooth import norm
from djdyn.multibody.spatial import Pose, cross, quat_exp, quat_to_rotation
from djdyn.typing import Mat3, Number, Vec3


THIN = 1e-6  # of the largest moment; points nearer to a line have no orientation


class Registration(eqx.Module):
    """`X_AB` that takes points of B to their images in A, and how well.

    Without three points off a line `ok` is false, and `X_AB` means nothing.
    """

    X_AB: Pose
    residuals: Float[Array, " m"]  # m, distance of each point from its image
    used: Bool[Array, " m"]
    ok: Bool[Array, ""]


def register(
    p_A: Float[Array, "m 3"],
    p_B: Float[Array, "m 3"],
    weights: Float[Array, " m"] | Bool[Array, " m"] | None = None,
    *,
    reject: Number | None = None,
) -> Registration:
    """The pose at which points `p_B` of a rigid body lie best on `p_A`.

    Differentiable in both modes; `vmap` it over the samples of a record.

    **Arguments:**

    - `weights`: of the points; a hidden one has zero (or false).
    - `reject`: a distance, m. Points farther from where the others put them are left
      out: of all triples of points the one that most others agree with decides.
    """
    weights = jnp.ones(len(p_A)) if weights is None else weights
    weights = weights.astype(p_A.dtype)
    if reject is not None:
        weights = weights * _agreeing(
            *jax.lax.stop_gradient((p_A, p_B, weights)), reject
        )
    X_AB, ok = _fit(p_A, p_B, weights)
    return Registration(X_AB, norm(_moved(X_AB, p_B) - p_A), weights > 0, ok)


def _moved(X_AB: Pose, p_B: Float[Array, "m 3"]) -> Float[Array, "m 3"]:
    return p_B @ X_AB.R.T + X_AB.p[None]


def _fit(p_A: Array, p_B: Array, weights: Array) -> tuple[Pose, Array]:
    total = jnp.sum(weights)
    share = weights / jnp.where(total > 0, total, 1.0)
    a, b = share @ p_A, share @ p_B
    H = (p_A - a[None]).T @ (share[:, None] * (p_B - b[None]))
    R, ok = _rotation(H)
    return Pose(R, a - R @ b), ok & (jnp.sum(weights > 0) >= 3)


def _rotation(H: Mat3) -> tuple[Mat3, Bool[Array, ""]]:
    """The rotation R of largest trace of `R.T @ H`, and whether there is just one."""
    U, s, Vt = jnp.linalg.svd(jax.lax.stop_gradient(H))
    flip = jnp.where(jnp.linalg.det(U @ Vt) < 0, -1.0, 1.0)
    R = (U * jnp.stack([1.0, 1.0, flip])[None]) @ Vt
    ok = s[1] + flip * s[2] > THIN * s[0]
    # Newton's step is zero here, but its derivative is that of the solution.
    M = R.T @ H
    curvature = jnp.trace(M) * jnp.eye(3) - 0.5 * (M + M.T)
    slope = jnp.stack([M[2, 1] - M[1, 2], M[0, 2] - M[2, 0], M[1, 0] - M[0, 1]])
    turn = jnp.linalg.solve(jnp.where(ok, curvature, jnp.eye(3)), slope)
    return R @ quat_to_rotation(quat_exp(jnp.where(ok, turn, 0.0))), ok


def _agreeing(p_A: Array, p_B: Array, weights: Array, reject: Number) -> Array:
    """One for points that agree with the best triple; for all, if there is none."""
    points = range(len(p_A))
    triples = [np.isin(points, triple) for triple in combinations(points, 3)]
    if not triples:
        return jnp.ones_like(weights)

    def judge(members: Array) -> tuple[Array, Array]:
        X_AB, ok = _fit(p_A, p_B, weights * members)
        far = jnp.where(weights > 0, norm(_moved(X_AB, p_B) - p_A) / reject, 1.0)
        worth = jnp.sum(jnp.minimum(far, 1.0) ** 2)
        return jnp.where(ok, worth, jnp.inf), far < 1

    worth, near = jax.vmap(judge)(jnp.asarray(np.stack(triples), p_A.dtype))
    best = jnp.argmin(worth)
    return jnp.where(jnp.isfinite(worth[best]), near[best], True).astype(weights.dtype)


def frame_from_three(p_A1: Vec3, p_A2: Vec3, p_A3: Vec3) -> Pose:
    """`X_AF` of the frame F that three points span, with its origin at the first.

    Its y axis points from the first to the third, its x axis from the second at right
    angles to that line.
    """
    j = _unit(p_A3 - p_A1)
    foot = p_A1 + ((p_A2 - p_A1) @ j) * j
    i = _unit(foot - p_A2)
    return Pose(jnp.stack([i, j, cross(i, j)], -1), p_A1)


def _unit(x: Vec3) -> Vec3:
    return x / norm(x)


def mean_shape(
    positions: Float[np.ndarray, "n m 3"], visible: Bool[np.ndarray, "n m"]
) -> Float[np.ndarray, "m 3"]:
    """Where the points of a rigid body are on it, by the median over a record.

    In the axes of that sample which has the distances that are most usual.
    """
    whole = np.flatnonzero(np.all(visible, 1))
    if not len(whole):
        raise ValueError("at no time are all markers of the rigid body seen")
    p = positions[whole]
    apart = np.linalg.norm(p[:, :, None] - p[:, None], axis=-1)
    usual = np.abs(apart - np.median(apart, 0)).max((1, 2)).argmin()
    return np.median(np.asarray(_laid_on(jnp.asarray(p[usual]), jnp.asarray(p))), 0)


@jax.jit
def _laid_on(p_A: Float[Array, "m 3"], p_B: Float[Array, "n m 3"]) -> Array:
    lay = lambda p_B: _moved(register(p_A, p_B).X_AB, p_B)
    return jax.vmap(lay)(p_B)
