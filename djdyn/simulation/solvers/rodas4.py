r"""A linearly implicit step for stiff equations: one Jacobian, no iteration.

RODAS of order four with an embedded third (Hairer and Wanner, *Solving Ordinary
Differential Equations II*, 1996, section IV.10): L-stable and stiffly accurate. With
$W = I/(h\gamma) - \partial f/\partial y$,

$$W k_i = f\bigl(t + c_i h,\ y + \textstyle\sum a_{ij}k_j\bigr)
    + \textstyle\sum (c_{ij}/h)\,k_j + h\,d_i\,\partial f/\partial t,$$

and the last stage is the error.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...typing import Scalar


GAMMA = 0.25
A = np.zeros((6, 6))  # points of the stages
A[1, :1] = 1.544
A[2, :2] = 0.9466785280815826, 0.2557011698983284
A[3, :3] = 3.314825187068521, 2.896124015972201, 0.9986419139977817
A[4, :4] = 1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895
A[5] = A[4] + np.eye(6)[4]
B = A[5] + np.eye(6)[5]  # the end of the step
C = np.zeros((6, 6))
C[1, :1] = -5.6688
C[2, :2] = -2.430093356833875, -0.2063599157091915
C[3, :3] = -0.1073529058151375, -9.594562251023355, -20.47028614809616
C[4, :4] = 7.496443313967647, -10.24680431464352, -33.99990352819905, 11.7089089320616
C[5, :3] = 8.083246795921522, -7.981132988064893, -31.52159432874371
C[5, 3:5] = 16.31930543123136, -6.058818238834054
TIMES = np.array([0.0, 0.386, 0.21, 0.63, 1.0, 1.0])
SLOPES = np.array([0.25, -0.1043, 0.1035, -0.0362, 0.0, 0.0])
VectorField = Callable[[Scalar, Array], Array]


def rosenbrock_step(
    f: VectorField, t: Any, y: Float[Array, " n"], h: Any
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """The state a step on, and the error's estimate."""
    both = jax.jacfwd(lambda x: f(x[-1], x[:-1]))(jnp.append(y, t))
    J, f_t = both[:, :-1], both[:, -1]
    solve = _eliminated(jnp.eye(len(y), dtype=y.dtype) / (h * GAMMA) - J)

    def stage(stages: Array, row: tuple[Array, ...]) -> tuple[Array, None]:
        a, c, time, slope, here = row
        rhs = f(t + time * h, y + a @ stages) + (slope * h) * f_t + (c / h) @ stages
        return stages + here[:, None] * solve(rhs)[None], None

    # A loop over the stages, so that the field is compiled once.
    rows = (A, C, TIMES, SLOPES, np.eye(6))
    rows = tuple(jnp.asarray(x, y.dtype) for x in rows)
    stages, _ = jax.lax.scan(stage, jnp.zeros((6, *y.shape), y.dtype), rows)
    return y + jnp.asarray(B, y.dtype) @ stages, stages[-1]


def _eliminated(W: Float[Array, "n n"]) -> Callable[[Array], Array]:
    """Solves with a matrix, factored once, without exchanging rows.

    The identity over a step outweighs what could make a pivot vanish, for systems that
    lose energy and for others at steps that resolve what they gain.
    """
    n = len(W)
    lower = np.tri(n, k=-1)
    L = jnp.eye(n, dtype=W.dtype)
    for k in range(n - 1):
        below = W[:, k] / W[k, k] * jnp.asarray(lower[:, k], W.dtype)
        W = W - below[:, None] * W[k][None]
        L = L + below[:, None] * jnp.asarray(np.eye(n)[k], W.dtype)[None]
    U = W * jnp.asarray(1 - lower, W.dtype)
    solve = jax.scipy.linalg.solve_triangular
    return lambda b: solve(U, solve(L, b, lower=True, unit_diagonal=True))
