r"""Moving-horizon estimation: at every sample, least squares over the last few samples.

In a window that begins at sample $s$ the unknowns are standard normal numbers: $u$, for
the state $x_s = \bar x\oplus L u$ with $LL^\top=\bar P$, and the $w_i$ that drive the
system (`StateModel`). What is minimised is

$$|u|^2 + \sum_i |w_i|^2 + \sum_i\bigl|\,(z_i - h(x_i))/\sigma\,\bigr|^2 .$$

Measurements before the window enter through $\bar x$ and $\bar P$, the arrival cost.
When the window moves on, an extended Kalman filter updates them, with derivatives taken
at the estimate of the window. For a linear system every window therefore gives the
estimate of the Kalman filter, however short it is.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Bool, Float

from djdyn.system.manifold import (
    Matrix,
    difference,
    retract,
    retract_with_jacobian,
    transport,
)
from djdyn.system.state import State
from djdyn.typing import Numbers

from .kalman import check_covariance, condition, symmetric
from .state_model import Samples, StateModel, samples


class Horizon(eqx.Module):
    """Estimated states at all samples; `ok` where the least squares converged."""

    t: Float[Array, " n"]
    y: State
    ok: Bool[Array, " n"]


Unknowns = tuple[Float[Array, " k"], Float[Array, "n r"]]  # u and w


def window_estimate(
    model: StateModel,
    times: Numbers,
    measured: Any,
    visible: Any = None,
    *,
    y0: State,
    P0: Matrix,
    **how: Any,
) -> Horizon:
    """Estimate the most likely trajectory given all measurements, by least squares.

    The arguments are those of `moving_horizon`.

    **Returns:** the states at all samples.
    """
    check_covariance(model.system, P0)
    given = samples(model, times, measured, visible)
    return _window_estimate(model, given, y0, P0, how)


@eqx.filter_jit
def _window_estimate(
    model: StateModel, given: Samples, y0: State, P0: Matrix, how: dict[str, Any]
) -> Horizon:
    _, y, ok = _solve(model, given, y0, P0, _start(model, len(given.t)), **how)
    return Horizon(given.t, y, jnp.broadcast_to(ok, given.t.shape))


def moving_horizon(
    model: StateModel,
    times: Numbers,
    measured: Any,
    visible: Any = None,
    *,
    y0: State,
    P0: Matrix,
    window: int,
    **how: Any,
) -> Horizon:
    """Estimate each state from the measurements in a window up to its time.

    **Arguments:**

    - `measured`, `visible`, `y0`, `P0`: as of `kalman_filter`.
    - `window`: number of samples in the window.
    - `rtol`, `atol`, `max_steps`: options of the Levenberg-Marquardt method.

    **Returns:** the states at all samples.
    """
    check_covariance(model.system, P0)
    given = samples(model, times, measured, visible)
    if not 2 <= window <= len(given.t):
        raise ValueError(f"a window has 2 to {len(given.t)} samples, not {window}")
    return _moving_horizon(model, given, y0, P0, window, how)


@eqx.filter_jit
def _moving_horizon(
    model: StateModel,
    given: Samples,
    y0: State,
    P0: Matrix,
    window: int,
    how: dict[str, Any],
) -> Horizon:
    def turn(carry: Any, k: Array) -> tuple[Any, tuple[State, Array]]:
        s, y_s, P_s, guess = carry
        cut = lambda x: jax.lax.dynamic_slice_in_dim(x, s, window)
        here = jax.tree.map(cut, given)
        past = s + jnp.arange(window) <= k  # later samples are predicted
        here = eqx.tree_at(lambda x: x.seen, here, here.seen & past[:, None])
        found, ys, ok = _solve(model, here, y_s, P_s, guess, **how)
        full = k + 1 - s >= window
        stay = lambda: (s, y_s, P_s, found)
        carry = jax.lax.cond(
            full, lambda: _move_on(model, here, ys, found, *stay()[:3]), stay
        )
        return carry, (jax.tree.map(lambda x: x[k - s], ys), ok)

    first = (jnp.zeros((), int), y0, P0, _start(model, window))
    _, (y, ok) = jax.lax.scan(turn, first, jnp.arange(len(given.t)))
    return Horizon(given.t, y, ok)


def _start(model: StateModel, n: int) -> Unknowns:
    """Return the initial guess of the unknowns: zero."""
    k, r = model.drive.shape
    return jnp.zeros(k), jnp.zeros((n - 1, r))


def _trajectory(
    model: StateModel, given: Samples, y_s: State, P_s: Matrix, unknowns: Unknowns
) -> State:
    """Return the states at all samples that the unknowns imply."""
    u, w = unknowns
    first = retract(model.system, y_s, jnp.linalg.cholesky(P_s) @ u)

    def turn(y: State, row: Any) -> tuple[State, State]:
        t, dt, w = row
        y = model.step(t, y, dt, given.substeps)
        y = retract(model.system, y, jnp.sqrt(dt) * model.drive @ w)
        return y, y

    _, later = jax.lax.scan(turn, first, (given.t[:-1], given.dt[:-1], w))
    return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, later)


def _solve(
    model: StateModel,
    given: Samples,
    y_s: State,
    P_s: Matrix,
    guess: Unknowns,
    rtol: float = 1e-8,
    atol: float = 1e-8,
    max_steps: int = 64,
) -> tuple[Unknowns, State, Bool[Array, ""]]:
    def residuals(unknowns: Unknowns, args: Any) -> Any:
        model, given, y_s, P_s = args
        ys = _trajectory(model, given, y_s, P_s, unknowns)
        noise = jnp.broadcast_to(model.noise, given.z.shape)
        off = (given.z - jax.vmap(model.output)(given.t, ys)) / noise
        return unknowns, jnp.where(given.seen, off, 0.0)

    args = (model, given, y_s, P_s)
    with jax.numpy_dtype_promotion("standard"):  # optimistix mixes types
        found = optx.least_squares(
            residuals,
            optx.LevenbergMarquardt(rtol, atol),
            guess,
            args,
            options={"jac": "fwd"},
            max_steps=max_steps,
            throw=False,
        )
    ok = found.result == optx.RESULTS.successful
    return found.value, _trajectory(model, given, y_s, P_s, found.value), ok


def _move_on(
    model: StateModel,
    given: Samples,
    ys: State,
    found: Unknowns,
    s: Array,
    y_s: State,
    P_s: Matrix,
) -> tuple[Array, State, Matrix, Unknowns]:
    """Move the window on by one sample, which enters the arrival cost."""
    system, row = model.system, jax.tree.map(lambda x: x[0], given)
    y, second = (jax.tree.map(lambda x, i=i: x[i], ys) for i in (0, 1))
    zero = jnp.zeros_like(P_s[0])
    a = difference(system, y, y_s)
    T = transport(system, y_s, zero, y)
    P = T @ P_s @ T.T
    at = lambda d: jnp.where(row.seen, model.output(row.t, retract(system, y, d)), 0.0)
    H = jax.jacfwd(at)(zero)
    gain, known, *_ = condition(model, row, at(zero) + H @ a, H @ P @ H.T, P @ H.T)
    start = model.step(row.t, y, row.dt, row.substeps)
    step = lambda d: model.step(row.t, retract(system, y, d), row.dt, row.substeps)
    F = jax.jacfwd(lambda d: difference(system, start, step(d)))(zero)
    P = F @ (P - known) @ F.T + row.dt * model.drive @ model.drive.T
    y_s, G = retract_with_jacobian(system, start, F @ (a + gain))
    P = symmetric(G @ P @ G.T)
    u = jax.scipy.linalg.solve_triangular(
        jnp.linalg.cholesky(P), difference(system, y_s, second), lower=True
    )
    w = jnp.concatenate([found[1][1:], jnp.zeros_like(found[1][:1])])
    return s + 1, y_s, P, (u, w)
