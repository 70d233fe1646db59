r"""Linearisation of a system about a state, and linear-quadratic regulators.

About a state $y_0$, with $x$ a tangent vector there (`djdyn.manifold`: an orientation
moves by three numbers, not four), and inputs $u$ counted from those given,

$$\dot x = A x + B u, \qquad z = C x + D u .$$
"""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from djdyn import State, System
from djdyn.system.manifold import difference, dimension, retract
from djdyn.system.signals import input_values
from djdyn.typing import Numbers

from .closed_loops import independent_directions


Matrix = Float[Array, "_ _"]


class Linear(eqx.Module):
    """A linear state-space model, continuous or, with a `period` in s, discrete.

    `directions` has a column for each state where these are not the entries of the
    tangent vector but independent directions that closed loops leave free.
    """

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    inputs: tuple[str, ...] = eqx.field(static=True)
    outputs: tuple[str, ...] = eqx.field(static=True)
    period: float | None = eqx.field(static=True, default=None)
    directions: Matrix | None = None

    def poles(self) -> Array:
        """Return the eigenvalues of `A`."""
        return jnp.linalg.eigvals(self.A)

    def stable(self) -> bool:
        """Return whether all poles are in the left half-plane or the unit circle."""
        poles = np.asarray(self.poles())
        return bool(
            np.all(np.real(poles) < 0 if self.period is None else abs(poles) < 1)
        )

    def discretise(self, period: float) -> "Linear":
        """Return the discrete model with a zero-order hold of `period` seconds."""
        n, m = self.B.shape
        both = jnp.zeros((n + m, n + m)).at[:n].set(jnp.hstack([self.A, self.B]))
        discrete = jax.scipy.linalg.expm(both * period)[:n]
        named = self.inputs, self.outputs
        matrices = discrete[:, :n], discrete[:, n:], self.C, self.D
        return Linear(*matrices, *named, period, self.directions)

    def to_control(self) -> Any:
        """Return a state-space model of python-control."""
        import control  # slow to import, and rarely needed

        matrices = (np.asarray(x) for x in (self.A, self.B, self.C, self.D))
        return control.ss(*matrices, self.period or 0)


def linearise(
    system: System,
    y: State | None = None,
    *,
    inputs: Mapping[str, Numbers] | None = None,
    outputs: Sequence[str] = (),
    t: float = 0.0,
) -> Linear:
    """Linearise a system about a state, by exact derivatives.

    **Arguments:**

    - `y`: the state, by default the initial state. Poles describe the motion about it
      only if it is an equilibrium: see `djdyn.equilibrium`.
    - `inputs`: values of the system's inputs; all of them are inputs of the result.
    - `outputs`: signals; without them the whole tangent vector is the output.

    With closed loops the states are independent directions along which all loops stay
    closed, the columns of `directions`: a tangent vector is `directions @ x`.

    **Returns:** the continuous linear model.
    """
    y0 = system.initial_state() if y is None else y
    for name in inputs or {}:
        if name not in system.inputs:
            there = ", ".join(system.inputs) or "none"
            raise ValueError(f"unknown input {name!r}; there are {there}")
    given = input_values({**system.inputs, **(inputs or {})}, jnp.asarray(t))
    (A, B), (C, D) = matrices(system, y0, given, jnp.asarray(t), tuple(outputs))
    names = tuple(sorted(given)), tuple(outputs)
    if not system.mechanism.loops:
        return Linear(A, B, C, D, *names)
    N = independent_directions(system, y0, jnp.asarray(t, y0.v.dtype))
    return Linear(N.T @ A @ N, N.T @ B, C @ N, D, *names, directions=N)


@eqx.filter_jit
def matrices(
    system: System, y0: State, given: dict, t: Array, outputs: tuple[str, ...]
) -> tuple[Any, Any]:
    """Return the matrices `(A, B), (C, D)` for given signals, by name, as inputs."""
    u, named = ravel_pytree(given)
    d, u = jnp.zeros(dimension(system)), u if given else jnp.zeros(0, y0.v.dtype)

    def rate(d: Array, u: Array) -> Array:
        here = retract(system, y0, d)
        moving = system.derivative(t, here, named(u))
        away = lambda y: difference(system, y0, y)
        return jax.jvp(away, (here,), (moving,))[1]

    def seen(d: Array, u: Array) -> Array:
        if not outputs:
            return d
        signals = system.at(t, retract(system, y0, d), named(u)).signals
        return ravel_pytree([signal_of(signals, name) for name in outputs])[0]

    slopes = lambda f: jax.jacfwd(f, (0, 1))(d, u)
    return slopes(rate), slopes(seen)


def signal_of(signals: Mapping[str, Array], name: str) -> Array:
    """Return a signal by name, or raise with the names that exist."""
    if name not in signals:
        raise ValueError(f"unknown signal {name!r}; there are {', '.join(signals)}")
    return signals[name]


def lqr(linear: Linear, Q: Any, R: Any) -> Matrix:
    r"""Return the linear-quadratic regulator of a continuous or discrete model.

    It minimises $\int x^TQx + u^TRu\,dt$, or the sum over samples. `Q` and `R` are
    matrices or their diagonals.

    **Returns:** the gain $K$ of $u = -Kx$.
    """
    import control

    square = lambda X: np.diag(np.asarray(X)) if np.ndim(X) == 1 else np.asarray(X)
    best = control.lqr if linear.period is None else control.dlqr
    for name, X, n in (("Q", Q, len(linear.A)), ("R", R, linear.B.shape[1])):
        if square(X).shape != (n, n):
            raise ValueError(f"{name} has shape {np.shape(X)}, expected {n} by {n}")
    K, _, _ = best(np.asarray(linear.A), np.asarray(linear.B), square(Q), square(R))
    return jnp.asarray(K)
