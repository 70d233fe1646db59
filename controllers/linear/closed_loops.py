"""Directions in which the state of a machine with closed loops can move."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from djdyn import State, System
from djdyn.multibody.assembly import gaps
from djdyn.multibody.closures import least, repeated_solve
from djdyn.system.manifold import dimension, retract
from djdyn.typing import Scalar, known


@eqx.filter_jit
def allowed_motion(system: System, y: State, t: Scalar) -> Float[Array, "n n"]:
    """Return what takes a tangent vector to the nearest that keeps loops closed."""

    def open_by(d: Array) -> Array:
        here = retract(system, y, d)
        return jnp.concatenate(gaps(system.mechanism, here.q, here.v, t))

    n = dimension(system)
    G = jax.jacfwd(open_by)(jnp.zeros(n, y.v.dtype))
    S = G @ G.T
    return jnp.eye(n, dtype=G.dtype) - G.T @ repeated_solve(S, G, least(S))


def independent_directions(system: System, y: State, t: Scalar) -> Float[Array, "n k"]:
    """Return orthonormal tangent vectors along which all loops stay closed."""
    P = allowed_motion(system, y, t)
    if not known(P):
        raise ValueError(
            "a machine with closed loops is linearised outside of jit and grad: how "
            "many states are independent depends on its numbers"
        )
    values, vectors = np.linalg.eigh(np.asarray(0.5 * (P + P.T)))
    return jnp.asarray(vectors[:, values > 0.5])
