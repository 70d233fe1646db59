r"""Systems seen from close by: linear equations, feedback that is best for them.

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
from djdyn.simulation.trajectory import input_values
from djdyn.system.manifold import difference, dimension, retract
from djdyn.typing import Numbers


Matrix = Float[Array, "_ _"]


class Linear(eqx.Module):
    """Linear equations of a system, continuous or, with a `period`, sampled."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    inputs: tuple[str, ...] = eqx.field(static=True)
    outputs: tuple[str, ...] = eqx.field(static=True)
    period: float | None = eqx.field(static=True, default=None)

    def poles(self) -> Array:
        return jnp.linalg.eigvals(self.A)

    def stable(self) -> bool:
        """Whether all poles lie in the left half-plane, or within the unit circle."""
        poles = np.asarray(self.poles())
        return bool(
            np.all(np.real(poles) < 0 if self.period is None else abs(poles) < 1)
        )

    def discretise(self, period: float) -> "Linear":
        """With inputs that are held for `period` seconds each."""
        n, m = self.B.shape
        both = jnp.zeros((n + m, n + m)).at[:n].set(jnp.hstack([self.A, self.B]))
        sampled = jax.scipy.linalg.expm(both * period)[:n]
        named = self.inputs, self.outputs
        return Linear(sampled[:, :n], sampled[:, n:], self.C, self.D, *named, period)

    def to_control(self) -> Any:
        """For the tools of python-control: frequency response, margins, root locus."""
        import control  # takes long, and few need it

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
    """A system about a state, by its exact derivatives.

    **Arguments:**

    - `y`: the initial state unless it is given. For poles to say how a system moves, it
      should be at rest there: see `djdyn.equilibrium`.
    - `inputs`: values of the system's inputs; all of them are inputs of the result.
    - `outputs`: signals; without them the whole tangent vector is the output.
    """
    y0 = system.initial_state() if y is None else y
    for name in inputs or {}:
        if name not in system.inputs:
            there = ", ".join(system.inputs) or "none"
            raise ValueError(f"unknown input {name!r}; there are {there}")
    given = input_values({**system.inputs, **(inputs or {})}, jnp.asarray(t))
    (A, B), (C, D) = matrices(system, y0, given, jnp.asarray(t), tuple(outputs))
    return Linear(A, B, C, D, tuple(sorted(given)), tuple(outputs))


@eqx.filter_jit
def matrices(
    system: System, y0: State, given: dict, t: Array, outputs: tuple[str, ...]
) -> tuple[Any, Any]:
    """How rates and outputs depend on the state and on what is given, by name."""
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
    if name not in signals:
        raise ValueError(f"unknown signal {name!r}; there are {', '.join(signals)}")
    return signals[name]


def lqr(linear: Linear, Q: Any, R: Any) -> Matrix:
    r"""The gain $K$ of $u = -Kx$ with the least $\int x^TQx + u^TRu\,dt$, or its sum.

    `Q` and `R` are matrices, or the diagonals of such.
    """
    import control

    square = lambda X: np.diag(np.asarray(X)) if np.ndim(X) == 1 else np.asarray(X)
    best = control.lqr if linear.period is None else control.dlqr
    for name, X, n in (("Q", Q, len(linear.A)), ("R", R, linear.B.shape[1])):
        if square(X).shape != (n, n):
            raise ValueError(f"{name} has shape {np.shape(X)}, expected {n} by {n}")
    K, _, _ = best(np.asarray(linear.A), np.asarray(linear.B), square(Q), square(R))
    return jnp.asarray(K)
