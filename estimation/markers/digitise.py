r"""Points found with tracked bodies: by a pointer, and as the centre of a rotation."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from djdyn.multibody.spatial import Pose
from djdyn.smooth import norm
from djdyn.typing import Vec3


WELL_TURNED = 1e-3  # least singular value, over the largest, of turns that fix a centre


class Pivot(eqx.Module):
    """A point at rest in a tracked body and in the room.

    `p_BP` and `p_AP` are its places in both, and `residuals` the distances that are
    left, m, sample by sample.
    """

    p_BP: Vec3
    p_AP: Vec3
    residuals: Float[Array, " n"]


def find_pivot(R_AB: Float[Array, "n 3 3"], p_AB: Float[Array, "n 3"]) -> Pivot:
    r"""Find the centre about which a body turned, from its poses.

    The point that stays in place, $R_i\,p_{BP} + p_i = p_{AP}$ for all samples, by
    least squares: the tip of a pointer that is swivelled about it, or the centre of a
    ball joint.

    **Returns:** the point in the body and in the room, and what is left.
    """
    n = len(p_AB)
    if n < 3 or R_AB.shape != (n, 3, 3):
        raise ValueError(f"three poses or more are needed, got {R_AB.shape}")
    A = np.concatenate([np.asarray(R_AB), -np.tile(np.eye(3), (n, 1, 1))], 2)
    found, _, _, singular = np.linalg.lstsq(
        A.reshape(-1, 6), -np.asarray(p_AB).reshape(-1)
    )
    if singular[-1] < WELL_TURNED * singular[0]:
        raise ValueError(
            "the body hardly turned, or about one axis alone: a centre needs turns "
            "about two"
        )
    p_BP, p_AP = jnp.asarray(found[:3]), jnp.asarray(found[3:])
    left = jnp.einsum("nij,j->ni", R_AB, p_BP) + p_AB - p_AP[None]
    return Pivot(p_BP, p_AP, norm(left))


def digitise(X_AP: Pose, X_AB: Pose, tip_P: Vec3) -> Vec3:
    """Return the place in body B of the point that a pointer P touches.

    **Arguments:**

    - `X_AP`, `X_AB`: poses of pointer and body at one instant, both tracked.
    - `tip_P`: the pointer's tip in its own axes, such as `find_pivot(...).p_BP`.
    """
    return X_AB.R.T @ (X_AP.act(tip_P) - X_AB.p)
