r"""A linearly implicit step for stiff equations: one Jacobian, no iteration.

RODAS of order four with an embedded third (Hairer and Wanner, *Solving Ordinary
Differential Equations II*, 1996, section IV.10): L-stable and stiffly accurate. With
$W = I/(h\gamma) - \partial f/\partial y$,

$$W k_i = f\bigl(t + c_i h,\ y + \textstyle\sum a_{ij}k_j\bigr)
    + \textstyle\sum (c_{ij}/h)\,k_j + h\,d_i\,\partial f/\partial t,$$

and the last stage is the error.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._types import Scalar


GAMMA = 0.25
A = (
    (),
    (1.544,),
    (0.9466785280815826, 0.2557011698983284),
    (3.314825187068521, 2.896124015972201, 0.9986419139977817),
    (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895),
)
C = (
    (),
    (-5.6688,),
    (-2.430093356833875, -0.2063599157091915),
    (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
    (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.7089089320616),
    (
        8.083246795921522,
        -7.981132988064893,
        -31.52159432874371,
        16.31930543123136,
        -6.058818238834054,
    ),
)
TIMES = (0.0, 0.386, 0.21, 0.63, 1.0, 1.0)
SLOPES = (0.25, -0.1043, 0.1035, -0.0362, 0.0, 0.0)
VectorField = Callable[[Scalar, Array], Array]


def rosenbrock_step(
    f: VectorField, t: Scalar, y: Float[Array, " n"], h: Scalar
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """The state a step on, and the error's estimate."""
    both = jax.jacfwd(lambda x: f(x[-1], x[:-1]))(jnp.append(y, t))
    J, f_t = both[:, :-1], both[:, -1]
    solve = _eliminated(jnp.eye(len(y), dtype=y.dtype) / (h * GAMMA) - J)
    stages: list[Array] = []
    here = y
    for i, row in enumerate(C):
        if i < len(A):
            here = sum((a * k for a, k in zip(A[i], stages, strict=True)), start=y)
        else:
            here = here + stages[-1]  # stiffly accurate: the fifth stage's own point
        rhs = f(t + TIMES[i] * h, here) + (SLOPES[i] * h) * f_t
        rhs = sum((c / h * k for c, k in zip(row, stages, strict=True)), start=rhs)
        stages.append(solve(rhs))
    return here + stages[-1], stages[-1]


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
