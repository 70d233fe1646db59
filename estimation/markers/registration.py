r"""Registration of labelled points: the pose of a rigid body from its markers.

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

from djdyn.multibody.spatial import Pose, cross, quat_exp, quat_to_rotation
from djdyn.smooth import norm
from djdyn.typing import Mat3, Number, Vec3


COLLINEARITY_TOLERANCE = 1e-6  # relative to the largest moment


class Registration(eqx.Module):
    """The pose `X_AB` that maps points of B to their images in A, and residuals.

    `ok` is false, and `X_AB` is undefined, without three points that are not collinear.
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
    """Find the pose in which points `p_B` of a rigid body fit `p_A` best.

    Differentiable in both modes; `vmap` it over the samples of a record.

    **Arguments:**

    - `weights`: weights of the points, zero (or false) where hidden.
    - `reject`: a distance, m. Outliers farther away than this are left out: the triple
      of points that most others agree with decides.

    **Returns:** the pose, and the distance of each point from its image.
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
    """Return the rotation R of largest trace of `R.T @ H`, and whether it is unique."""
    U, s, Vt = jnp.linalg.svd(jax.lax.stop_gradient(H))
    flip = jnp.where(jnp.linalg.det(U @ Vt) < 0, -1.0, 1.0)
    R = (U * jnp.stack([1.0, 1.0, flip])[None]) @ Vt
    ok = s[1] + flip * s[2] > COLLINEARITY_TOLERANCE * s[0]
    # Newton's step is zero here, but its derivative is that of the solution.
    M = R.T @ H
    curvature = jnp.trace(M) * jnp.eye(3) - 0.5 * (M + M.T)
    slope = jnp.stack([M[2, 1] - M[1, 2], M[0, 2] - M[2, 0], M[1, 0] - M[0, 1]])
    turn = jnp.linalg.solve(jnp.where(ok, curvature, jnp.eye(3)), slope)
    return R @ quat_to_rotation(quat_exp(jnp.where(ok, turn, 0.0))), ok


def _agreeing(p_A: Array, p_B: Array, weights: Array, reject: Number) -> Array:
    """Return one for points that agree with the best triple; all, if there is none."""
    points = range(len(p_A))
    triples = [np.isin(points, triple) for triple in combinations(points, 3)]
    if not triples:
        return jnp.ones_like(weights)

    def score(members: Array) -> tuple[Array, Array]:
        X_AB, ok = _fit(p_A, p_B, weights * members)
        far = jnp.where(weights > 0, norm(_moved(X_AB, p_B) - p_A) / reject, 1.0)
        worth = jnp.sum(jnp.minimum(far, 1.0) ** 2)
        return jnp.where(ok, worth, jnp.inf), far < 1

    worth, near = jax.vmap(score)(jnp.asarray(np.stack(triples), p_A.dtype))
    best = jnp.argmin(worth)
    return jnp.where(jnp.isfinite(worth[best]), near[best], True).astype(weights.dtype)


def frame_from_three(p_A1: Vec3, p_A2: Vec3, p_A3: Vec3) -> Pose:
    """Construct the frame F that three points define.

    Its origin is the first point, its y axis points to the third, and its x axis points
    from the second point perpendicularly to that line.

    **Returns:** the pose `X_AF`.
    """
    j = _unit(p_A3 - p_A1)
    foot = p_A1 + ((p_A2 - p_A1) @ j) * j
    i = _unit(foot - p_A2)
    return Pose(jnp.stack([i, j, cross(i, j)], -1), p_A1)


def frame_from_four(p_A1: Vec3, p_A2: Vec3, p_A3: Vec3, p_A4: Vec3) -> Pose:
    """Construct the frame F that two pairs of points define, such as of a pointer.

    Its origin is the middle of the first two, its y axis points from the first to the
    second, and its z axis as the third to the fourth does, perpendicularly to that.

    **Returns:** the pose `X_AF`.
    """
    j = _unit(p_A2 - p_A1)
    along = p_A4 - p_A3
    k = _unit(along - (along @ j) * j)
    return Pose(jnp.stack([cross(j, k), j, k], -1), (p_A1 + p_A2) / 2)


def _unit(x: Vec3) -> Vec3:
    return x / norm(x)


def mean_shape(
    positions: Float[np.ndarray, "n m 3"], visible: Bool[np.ndarray, "n m"]
) -> Float[np.ndarray, "m 3"]:
    """Return the points of a rigid body as the median over a record.

    The axes are those of the sample whose distances are nearest to their medians.
    """
    whole = np.flatnonzero(np.all(visible, 1))
    if not len(whole):
        raise ValueError("the markers of the rigid body are never all seen at once")
    p = positions[whole]
    apart = np.linalg.norm(p[:, :, None] - p[:, None], axis=-1)
    usual = np.abs(apart - np.median(apart, 0)).max((1, 2)).argmin()
    return np.median(np.asarray(_laid_on(jnp.asarray(p[usual]), jnp.asarray(p))), 0)


@jax.jit
def _laid_on(p_A: Float[Array, "m 3"], p_B: Float[Array, "n m 3"]) -> Array:
    lay = lambda p_B: _moved(register(p_A, p_B).X_AB, p_B)
    return jax.vmap(lay)(p_B)
