r"""Error control of a tangent, so that steps resolve gradients and not only states.

The gradient of a run is that of its steps, whose lengths are not differentiated. Error
control of the state alone leaves it unresolved in two cases. A step over a corner of a
force is of second order for the state, but of first order for its tangent. And where an
explicit method runs at its limit of stability (sliding turns to sticking), steps may
amplify what is below the tolerance: the state hides it and the tangent shows it.

So a tangent $d$ of the motion, $\dot d = J d$ scaled to length one, goes along as a
second row of the state, and its error is controlled too. $J d$ is a difference of two
rates: one more evaluation each, which is not differentiated. The direction is arbitrary
and in general has a part along every corner that the motion meets.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ...typing import Scalar


OFFSET = 3e-6  # of the second rate along the tangent, in double precision
TOLERANCE = 3e-9  # the smallest that rounding of differences permits, likewise
SHARE = 0.3  # of the tolerance of the state


def with_tangent(y: Float[Array, " n"]) -> Float[Array, "2 n"]:
    """Return a state and an arbitrary tangent of length one."""
    d = np.random.default_rng(0).uniform(0.5, 1.0, y.size)
    d = d * np.random.default_rng(1).choice([-1.0, 1.0], y.size)
    return jnp.stack([y, jnp.asarray(d / np.linalg.norm(d), y.dtype)])


def tangent_rate(
    rate: Callable[..., Array], t: Any, both: Float[Array, "2 n"], field: Any
) -> Float[Array, "2 n"]:
    """Return the rates of a state and its tangent; only the first has a gradient."""
    y, d = both[0], lax.stop_gradient(both[1])
    f = rate(t, y, field)
    frozen = jax.tree.map(stop_gradient, (y, field, f))
    offset = OFFSET * _coarser(y.dtype)
    beside = rate(t, frozen[0] + offset * d, frozen[1])
    slope = (beside - frozen[2]) / offset
    slope = slope - (d @ slope) / (d @ d) * d
    return jnp.stack([f, lax.stop_gradient(slope)])


def tangent_tolerances(
    rtol: Scalar, atol: Float[Array, "..."], y: Float[Array, " n"]
) -> tuple[Float[Array, "2 n"], Float[Array, "2 n"]]:
    """Return relative and absolute tolerances of a state and its tangent."""
    least = jnp.maximum(SHARE * rtol, TOLERANCE * _coarser(y.dtype))
    rows = lambda x: jnp.stack([jnp.broadcast_to(z, y.shape) for z in (x, least)])
    return rows(rtol), rows(atol)


def larger_error(x: Float[Array, "2 n"]) -> Scalar:
    """Return the larger of the root mean squares of a state's and a tangent's error."""
    return jnp.max(jnp.sqrt(jnp.mean(x * x, axis=1)))


def _coarser(dtype: Any) -> float:
    """Return how many times larger differences are than in double precision."""
    return float(np.sqrt(np.finfo(dtype).eps / np.finfo(np.float64).eps))


def stop_gradient(x: Any) -> Any:
    """Return an array without its gradient, and anything else as it is."""
    return lax.stop_gradient(x) if eqx.is_inexact_array(x) else x
