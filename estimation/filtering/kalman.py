r"""Extended and unscented Kalman filters on the manifold of states, and a smoother.

Both filters carry a state and the covariance of its error, a tangent vector. They
differ only in how mean and covariance pass through a function. The extended filter
takes its derivative; the unscented filter evaluates $2k$ sigma points, each $\sqrt k$
deviations out (Julier and Uhlmann, *A new extension of the Kalman filter to nonlinear
systems*, 1997, with $\kappa = 0$). The smoother is that of Rauch, Tung and Striebel
(*Maximum likelihood estimates of linear dynamic systems*, 1965).
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float

from djdyn.system.manifold import (
    Matrix,
    Tangent,
    difference,
    dimension,
    retract,
    retract_with_jacobian,
    transport,
)
from djdyn.system.state import State
from djdyn.system.system import System
from djdyn.typing import Numbers, Scalar, known

from .state_model import StateModel, samples


Moments = Callable[[Callable[[Array], Array], Matrix], tuple[Array, Array, Array]]


class Estimate(eqx.Module):
    """States at the times of the samples, and the covariances of their errors."""

    t: Float[Array, " n"]
    y: State
    P: Float[Array, "n k k"]


class Filtered(eqx.Module):
    """Result of a Kalman filter.

    - `filtered`: estimates at each sample, given the measurements up to it.
    - `predicted`: estimates for the next sample, given the same measurements.
    - `nis`: normalised innovations squared, with as many degrees of freedom as numbers
      were measured.
    - `log_likelihood`: of all measurements, to fit parameters with.
    """

    filtered: Estimate
    predicted: Estimate
    cross: Float[Array, "n k k"]  # covariance of filtered and predicted errors
    innovations: Float[Array, "n m"]
    nis: Float[Array, " n"]
    log_likelihood: Scalar


def kalman_filter(
    model: StateModel,
    times: Numbers,
    measured: Any,
    visible: Any = None,
    *,
    y0: State,
    P0: Matrix,
    method: str = "extended",
) -> Filtered:
    """Estimate states from the measurements up to each time.

    **Arguments:**

    - `measured`: one row a time, shaped as `model.observe` has it.
    - `visible`: which measurements exist, of the same shape or without its last axes;
      values are ignored where it is false.
    - `y0`, `P0`: the state at the first time, and the covariance of its error, before
      anything was measured.
    - `method`: `"extended"` or `"unscented"`.

    **Returns:** filtered and predicted estimates at all samples.
    """
    methods: dict[str, Moments] = {"extended": linearised, "unscented": unscented}
    if method not in methods:
        raise ValueError(f"method is extended or unscented, not {method!r}")
    check_covariance(model.system, P0)
    given = samples(model, times, measured, visible)
    return _filter(model, methods[method], given, y0, P0)


def check_covariance(system: System, P: Matrix) -> None:
    """Raise unless `P` can be the covariance of a state's error."""
    k = dimension(system)
    if P.shape != (k, k):
        raise ValueError(f"P0 has shape {P.shape}, but the state has {k} directions")
    if known(P) and not np.linalg.eigvalsh(np.asarray(P))[0] > 0:
        raise ValueError(
            "P0 is not positive definite: every direction needs some uncertainty"
        )


@eqx.filter_jit
def _filter(
    model: StateModel, moments: Moments, given: Any, y0: State, P0: Matrix
) -> Filtered:
    def turn(carry: tuple[State, Matrix], row: Any) -> tuple[tuple[State, Matrix], Any]:
        y, P, innovation, nis, log = _update(model, moments, row, *carry)
        y1, P1, C = _predict(model, moments, row, y, P)
        return (y1, P1), (y, P, y1, P1, C, innovation, nis, log)

    _, found = jax.lax.scan(turn, (y0, P0), given)
    y, P, y1, P1, C, innovations, nis, logs = found
    filtered = Estimate(given.t, y, P)
    predicted = Estimate(given.t + given.dt, y1, P1)
    return Filtered(filtered, predicted, C, innovations, nis, jnp.sum(logs))


def _update(
    model: StateModel, moments: Moments, row: Any, y: State, P: Matrix
) -> tuple[State, Matrix, Array, Scalar, Scalar]:
    at = lambda d: model.output(row.t, retract(model.system, y, d))
    expected, S, C = moments(lambda d: jnp.where(row.seen, at(d), 0.0), P)
    d, known, r, e, L = condition(model, row, expected, S, C)
    nis, spread = e @ e, jnp.sum(jnp.log(jnp.diagonal(L)))
    count = jnp.sum(row.seen).astype(e.dtype)
    log = -0.5 * (nis + count * jnp.log(2 * jnp.pi)) - spread
    moved, G = retract_with_jacobian(model.system, y, d)
    return moved, symmetric(G @ (P - known) @ G.T), r, nis, log


def condition(
    model: StateModel,
    row: Any,
    expected: Float[Array, " m"],
    S: Float[Array, "m m"],
    C: Float[Array, "k m"],
) -> tuple[Tangent, Matrix, Array, Array, Array]:
    """Condition a state on a sample.

    Rows that were not measured are zero in `expected`, `S` and `C`; with unit variance
    of their own they have exactly no effect.

    **Returns:** the shift of the state, the reduction of its covariance, the
    innovation, the whitened innovation, and the Cholesky factor of its covariance.
    """
    deviations = jnp.broadcast_to(model.noise, expected.shape)
    L = jnp.linalg.cholesky(S + jnp.diag(jnp.where(row.seen, deviations**2, 1.0)))
    r = row.z - expected
    e = solve_triangular(L, r, lower=True)
    W = solve_triangular(L, C.T, lower=True)
    return W.T @ e, W.T @ W, r, e, L


def _predict(
    model: StateModel, moments: Moments, row: Any, y: State, P: Matrix
) -> tuple[State, Matrix, Matrix]:
    system, start = model.system, model.step(row.t, y, row.dt, row.substeps)
    step = lambda d: model.step(row.t, retract(system, y, d), row.dt, row.substeps)
    d, S, C = moments(lambda d: difference(system, start, step(d)), P)
    S = S + row.dt * model.drive @ model.drive.T
    moved, G = retract_with_jacobian(system, start, d)
    return moved, symmetric(G @ S @ G.T), C @ G.T


def linearised(g: Callable[[Array], Array], P: Matrix) -> tuple[Array, Array, Array]:
    """Return mean and covariance of `g(d)`, and of `d` with it, by its derivative."""
    J, value = jax.jacfwd(lambda d: (g(d),) * 2, has_aux=True)(jnp.zeros_like(P[0]))
    return value, J @ P @ J.T, P @ J.T


def unscented(g: Callable[[Array], Array], P: Matrix) -> tuple[Array, Array, Array]:
    """Return mean and covariance of `g(d)`, and of `d` with it, by sigma points."""
    k = len(P)
    arms = jnp.sqrt(jnp.asarray(k, P.dtype)) * jnp.linalg.cholesky(P).T
    d = jnp.concatenate([arms, -arms])
    values = jax.vmap(g)(d)
    mean = jnp.mean(values, 0)
    off = values - mean[None]
    return mean, off.T @ off / (2 * k), d.T @ off / (2 * k)


def symmetric(P: Matrix) -> Matrix:
    """Return the symmetric part of a matrix."""
    return 0.5 * (P + P.T)


@eqx.filter_jit
def smooth(model: StateModel, filtered: Filtered) -> Estimate:
    """Estimate states from all measurements by the Rauch-Tung-Striebel smoother.

    **Returns:** estimates at all samples, given the measurements before and after them.
    """
    system, now, later = model.system, filtered.filtered, filtered.predicted

    def turn(carry: tuple[State, Matrix], row: Any) -> tuple[tuple[State, Matrix], Any]:
        (y_s, P_s), (y, P, y1, P1, C) = carry, row
        gain = cho_solve((jnp.linalg.cholesky(P1), True), C.T).T
        T = transport(system, y_s, jnp.zeros_like(P[0]), y1)
        moved, G = retract_with_jacobian(system, y, gain @ difference(system, y1, y_s))
        P = G @ (P + gain @ (T @ P_s @ T.T - P1) @ gain.T) @ G.T
        found = (moved, symmetric(P))
        return found, found

    last = jax.tree.map(lambda x: x[-1], (now.y, now.P))
    rows = (now.y, now.P, later.y, later.P, filtered.cross)
    rows = jax.tree.map(lambda x: x[:-1], rows)
    _, before = jax.lax.scan(turn, last, rows, reverse=True)
    y, P = jax.tree.map(lambda x, x1: jnp.concatenate([x, x1[None]]), before, last)
    return Estimate(now.t, y, P)
