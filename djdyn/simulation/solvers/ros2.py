r"""Linearly implicit steps: stiff systems at the steps that their motion asks for.

A step of ROS2 (Verwer, Spee, Blom and Hundsdorfer, *A second-order Rosenbrock method
applied to photochemical dispersion problems*, 1999), with $W = I - \gamma h A$,

$$W k_1 = f(t, y),\qquad W k_2 = f(t + h, y + h k_1) - 2 k_1,\qquad
y_1 = y + \tfrac32 h k_1 + \tfrac12 h k_2 ,$$

is of second order whatever $A$ is, and damps stiff modes out where $A$ is about the
Jacobian of $f$. So $A$ may be rough: the vector field says what is stiff in it, and all
else stays explicit.
"""

import math
from typing import Protocol, runtime_checkable

from jaxtyping import Array

from ...typing import Scalar


GAMMA = 1 - 1 / math.sqrt(2)  # the smaller root, with the smaller errors


@runtime_checkable
class ImplicitSolve(Protocol):
    """Solves $(I - h A) x = b$; `clock` is the entry of `b` for time, as a state."""

    def __call__(self, b: Array, clock: float, /) -> Array: ...


@runtime_checkable
class ImplicitField(Protocol):
    """A vector field that knows what is stiff in it."""

    def __call__(self, t: Scalar, y: Array, /) -> Array: ...

    def implicit_solver(self, t: Scalar, y: Array, h: Scalar, /) -> ImplicitSolve:
        """Return the solver of the linear equations of a step of length `h`."""
        ...


def ros2_step(field: ImplicitField, t: Scalar, y: Array, h: Scalar) -> Array:
    """Return the state after one step from `y` at time `t`."""
    solve = field.implicit_solver(t, y, GAMMA * h)
    k1 = solve(field(t, y), 1.0)
    k2 = solve(field(t + h, y + h * k1) - 2 * k1, -1.0)
    return y + h * (1.5 * k1 + 0.5 * k2)
