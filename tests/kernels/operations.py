"""Operations for random functions: `(k, x, y) -> array`, with `k` to choose a kind.

Values are small arrays of moderate numbers; steep operations are kept where they are
tame, and inputs that come near a jump are thrown away.
"""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import assume
from jax import lax
from jax.scipy.linalg import cho_solve, solve_triangular


NEAR = {np.dtype("f8"): 1e-7, np.dtype("f4"): 1e-2}  # to a jump
SHAPES = ((), (3,), (3, 3))


def calm(x):
    """Map numbers into (-1, 1)."""
    return x / jnp.sqrt(1 + x * x)


def like(y, x):
    """The entries of `y`, again and again, in the shape of `x`."""
    return y.ravel()[np.arange(x.size) % y.size].reshape(x.shape)


def matrix(x):
    return like(x, np.zeros((3, 3)))


def definite(x):
    A = matrix(calm(x))
    return A @ A.T + jnp.eye(3, dtype=x.dtype)


def away(x):
    """`x`, nowhere near zero, unless it is zero."""
    if not isinstance(x, jax.core.Tracer):
        at = np.asarray(x)
        assume(np.all((np.abs(at) > NEAR[at.dtype]) | (at == 0)))
    return x


def less(x, y):
    return away(x - like(y, x)) < 0


def whole(x):
    """Integers of either sign."""
    away(jnp.sin(np.pi * (3 * calm(x))))
    return jnp.floor(3 * calm(x)).astype(jnp.int32)


def index(x, n):
    """An index into `n` entries."""
    away(jnp.sin(np.pi * (n * x.ravel()[0])))
    return jnp.clip((n * x.ravel()[0]).astype(jnp.int32), 0, n - 1)


def distinct(x):
    """`x.ravel()`, no two entries alike."""
    flat = x.ravel()
    away((flat[:, None] - flat[None])[np.triu_indices(x.size, 1)])
    return flat


def scan(k, x, y, reverse):
    """One to forty turns: unrolled or not, with rows to read and to write."""
    rows = like(y, np.zeros(((1, 2, 5, 17, 40)[k % 5], 2)))

    def turn(c, row):
        c = calm(c + row[0] * jnp.cos(c))
        return c, c.ravel()[:1] * row[1]

    c, out = lax.scan(turn, x, rows, reverse=reverse)
    return c + jnp.sum(out) + out[k % len(rows), 0]


def tower(k, x, y):
    """A loop that reads computed entries inside of a loop of computed length."""
    table = like(y, np.zeros(70))

    def inner(i, c):
        return calm(c + table[index(calm(c), 70)] + jnp.asarray(i, x.dtype))

    outer = lambda i, c: lax.fori_loop(0, i + 1, inner, c)
    return lax.fori_loop(0, index(y, k % 4 + 1) + 1, outer, x)


def newton(k, x, y):
    """A square root by as many turns as it takes; lanes differ."""
    a = jnp.abs(like(y, x)) + 0.5
    again = lambda s: (s[0] < k) & (away(jnp.max(jnp.abs(s[1] * s[1] - a)) - 0.01) > 0)
    turn = lambda s: (s[0] + 1, 0.5 * (s[1] + a / s[1]))
    n, x = lax.while_loop(again, turn, (jnp.int32(0), jnp.ones_like(x)))
    return x + n.astype(x.dtype)


def branch(k, x, y):
    cases = [jnp.sin, lambda x: x.at[...].add(1.0), lambda x: scan(k, x, y, False)]
    return lax.switch(index(y, 4), cases, x)


def scatter(k, x, y):
    flat, i = x.ravel(), index(y, x.size)
    with_parameters = (
        flat.at[i].set(y.ravel()[0]) if k % 2 else flat.at[i].add(y.ravel()[0])
    )
    with_parameters = with_parameters.at[np.array([0, -1])].add(flat[np.array([-1, 0])])
    return lax.dynamic_update_slice(with_parameters, calm(flat[:1]), (i,)).reshape(
        x.shape
    )


def window(k, x, y):
    start = (index(y, 3), jnp.int32(k % 3))
    return lax.dynamic_slice(matrix(x), start, (k % 2 + 1, 2))


def logic(k, x, y):
    a, b = less(x, y), less(y, x).any()
    c = (a ^ b) | ~a & (a == b) if k % 2 else jnp.all(a) & (a != b)
    return jnp.where(c, x, like(y, x)) + c.astype(x.dtype)


def integers(k, x, y):
    i, j = whole(x), whole(like(y, x))
    i = jnp.where(i > j, i * j - k, jnp.maximum(-i, jnp.abs(j)) + jnp.sign(i))
    i = i // 3 - i % 2 + lax.div(j, jnp.full_like(j, -2))
    return calm((jnp.sum(i, dtype=i.dtype) + jnp.clip(i, j - 2, j + 2)).astype(x.dtype))


def ends(k, x, y):
    flat = distinct(x)
    found = (jnp.argmax(flat), jnp.argmin(flat), jnp.max(flat), jnp.min(flat))
    return jnp.stack([z.astype(x.dtype) for z in found]) * calm(y.ravel()[0])


def prefix(k, x, y):
    fn = (jnp.cumsum, jnp.cumprod, lax.cummax, lax.cummin)[k % 4]
    return calm(fn(distinct(x) if k % 4 > 1 else x.ravel())).reshape(x.shape)


def roundings(k, x, y):
    fn = (jnp.floor, jnp.ceil, jnp.trunc, jnp.sign, jnp.round, lax.round)[k % 6]
    away(jnp.sin(np.pi * 4 * x))
    return fn(2 * x)


def remainder(x, y):
    y = 1.5 + calm(y)
    away(jnp.sin(np.pi * x / y))
    return jnp.fmod(x, y)


UNARY = (
    *(jnp.sin, jnp.cos, jnp.tanh, jnp.arcsinh, jnp.arctan, jnp.negative, jnp.square),
    lambda x: jnp.sqrt(jnp.abs(away(x))),
    lambda x: jnp.arccos(0.9 * calm(x)) * jnp.arcsin(0.9 * calm(x)),
    lambda x: jnp.log(jnp.abs(x) + 0.1) * jnp.log1p(calm(x) / 2),
    lambda x: jnp.exp(calm(x)) + jnp.expm1(calm(x)) - jax.nn.sigmoid(x),
    lambda x: jnp.sinh(calm(x)) * jnp.cosh(calm(x)) + jnp.tan(calm(x)),
    lambda x: calm(x) ** 3 - (jnp.abs(calm(x)) + 0.5) ** -2 + lax.rsqrt(x * x + 1),
)
BINARY = (
    *(jnp.add, jnp.subtract, lambda x, y: calm(x * y), lambda x, y: x / (2 + calm(y))),
    lambda x, y: jnp.atan2(away(x), away(y)),
    lambda x, y: (jnp.abs(x) + 0.5) ** calm(y),
    lambda x, y: jnp.where(away(x - y) > 0, jnp.minimum(x, -y), jnp.maximum(-x, y)),
    lambda x, y: jnp.clip(x, -away(jnp.abs(away(y) - x)), jnp.abs(y + away(x))),
    remainder,
)
SOLVE = (
    lambda A, x: A @ x,
    lambda A, x: jnp.linalg.cholesky(A) @ x,
    lambda A, x: solve_triangular(jnp.linalg.cholesky(A), x, lower=True),
    lambda A, x: solve_triangular(A, x, lower=False, trans=1, unit_diagonal=True),
    lambda A, x: cho_solve((jnp.linalg.cholesky(A), True), x),
    lambda A, x: jnp.einsum("ij,kj,k->i", A, A, x[:, 0]),
)
MOVE = (
    lambda x, y: jnp.concatenate([x.ravel(), y.ravel()[::-1]]),
    lambda x, y: jnp.stack([x, like(y, x)], -1).swapaxes(0, -1),
    lambda x, y: jnp.pad(matrix(x), ((1, 0), (0, 2)))[:-1, ::2],
    lambda x, y: lax.pad(x.ravel(), y.ravel()[0], [(-1, 2, 1)]) if x.ndim else x,
    lambda x, y: jnp.flip(matrix(x), 1).T[1:, None],
    lambda x, y: jnp.roll(matrix(x), 1, 0)[np.array([2, 0])] * jnp.mean(y),
    lambda x, y: jnp.tensordot(x, y, 0).ravel()[:5] + jnp.prod(calm(x)),
)
OPERATIONS = {
    "unary": lambda k, x, y: UNARY[k % len(UNARY)](x),
    "binary": lambda k, x, y: BINARY[k % len(BINARY)](x, like(y, x)),
    "move": lambda k, x, y: MOVE[k % len(MOVE)](x, y),
    "solve": lambda k, x, y: SOLVE[k % len(SOLVE)](
        definite(x), matrix(y)[:, : k % 3 + 1]
    ),
    "sum": lambda k, x, y: jnp.sum(matrix(x) * matrix(y), k % 2),
    "scan": lambda k, x, y: scan(k, x, y, k % 2 > 0),
    **{"logic": logic, "integers": integers, "ends": ends, "prefix": prefix},
    **{"roundings": roundings, "window": window, "scatter": scatter},
    **{"branch": branch, "newton": newton, "tower": tower},
}
