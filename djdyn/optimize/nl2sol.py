"""Least squares that are not small where they are least: Gauss, Newton and a rest."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Bool, Float, PyTree

from ..typing import Scalar


ENOUGH, POOR, FINE = 1e-4, 0.25, 0.75  # of the decrease that was promised
SHORTER, LONGER = 0.3, 2.0  # times a step
NOWHERE = 1e-9  # a step that is none
HALVINGS = 60


class NL2SOLState(eqx.Module):
    """The last point that was taken, and how far to go from it."""

    first: Bool[Array, ""]
    r: Float[Array, " n"]
    J: Float[Array, "n k"]
    S: Float[Array, "k k"]
    radius: Scalar
    aux: Any
    ended: Bool[Array, ""]


class NL2SOL(optx.AbstractLeastSquaresSolver):
    r"""Steps by $J^T J + S$, where $S$ learns what Gauss and Newton leave out.

    The Hessian of $|r|^2/2$ is $J^T J + \sum_i r_i \nabla^2 r_i$. Its second part
    counts where residuals stay large; it is learned from steps $s$ by
    $S s = (J_+ - J)^T r_+$, sized down where it has become less (Dennis, Gay and
    Welsch, *An adaptive nonlinear least-squares algorithm*, 1981). Steps are no longer
    than a radius, `reach` at first, which follows how well they kept what they
    promised. A step that is not taken costs residuals alone, without their Jacobian.
    """

    rtol: Any
    atol: Any
    reach: Any = 0.6
    norm: Callable[[PyTree], Scalar] = eqx.field(static=True, default=optx.max_norm)

    def init(
        self,
        fn: Callable,
        y: Array,
        args: Any,
        options: dict[str, Any],
        f_struct: Any,
        aux_struct: Any,
        tags: frozenset[object],
    ) -> NL2SOLState:
        del fn, args, options, tags
        r, no = jnp.zeros(f_struct.shape, f_struct.dtype), jnp.array(False)
        aux = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), aux_struct)
        J, S = jnp.zeros((len(r), len(y)), r.dtype), jnp.zeros((len(y),) * 2, r.dtype)
        return NL2SOLState(~no, r, J, S, jnp.asarray(self.reach, r.dtype), aux, no)

    def step(
        self,
        fn: Callable,
        y: Array,
        args: Any,
        options: dict[str, Any],
        state: NL2SOLState,
        tags: frozenset[object],
    ) -> tuple[Array, NL2SOLState, Any]:
        """Looks at one more point; `y` moves where it is taken."""
        del options, tags
        g, B = state.J.T @ state.r, state.J.T @ state.J + state.S
        p = jnp.where(state.first, 0.0, nearer(B, g, state.radius))
        promised = -(g @ p + p @ B @ p / 2)
        size = self.atol + self.rtol * self.norm(y)
        cost = state.r @ state.r / 2
        little = (promised <= self.rtol * cost) & (self.norm(p) <= size)
        at = y + p
        r, aux = fn(at, args)
        kept = (cost - r @ r / 2) / jnp.where(promised > 0, promised, jnp.inf)
        taken = state.first | (kept > ENOUGH)
        look = lambda: jax.jacfwd(lambda y: fn(y, args)[0])(at)
        J = jax.lax.cond(taken, look, lambda: state.J)
        S = jnp.where(state.first, state.S, _learned(state, p, g, r, J))
        long = jnp.linalg.norm(p)
        radius = jnp.where(
            (kept > FINE) & (long > 0.9 * state.radius),
            LONGER * state.radius,
            jnp.where(kept < POOR, long / 2, state.radius),
        )
        no, first = jnp.array(False), jnp.asarray(self.reach, r.dtype)
        radius = jnp.where(state.first, first, radius)
        moved = NL2SOLState(no, r, J, S, radius, aux, little & ~state.first)
        less = SHORTER * long
        at_fields = lambda s: (s.radius, s.ended)
        stayed = eqx.tree_at(at_fields, state, (less, little | (less < NOWHERE)))
        new = jax.tree.map(lambda a, b: jnp.where(taken, a, b), moved, stayed)
        return jnp.where(taken, at, y), new, new.aux

    def terminate(
        self,
        fn: Callable,
        y: Array,
        args: Any,
        options: dict[str, Any],
        state: NL2SOLState,
        tags: frozenset[object],
    ) -> tuple[Bool[Array, ""], optx.RESULTS]:
        del fn, y, args, options, tags
        return state.ended, optx.RESULTS.successful

    def postprocess(
        self,
        fn: Callable,
        y: Array,
        aux: Any,
        args: Any,
        options: dict[str, Any],
        state: NL2SOLState,
        tags: frozenset[object],
        result: optx.RESULTS,
    ) -> tuple[Array, Any, dict[str, Any]]:
        del fn, args, options, state, tags, result
        return y, aux, {}


def _learned(state: NL2SOLState, s: Array, g: Array, r: Array, J: Array) -> Array:
    """What Gauss and Newton leave out, with one more step."""
    left = (J - state.J).T @ r
    d, Ss = J.T @ r - g, state.S @ s
    ratio = jnp.abs(s @ left) / jnp.where(s @ Ss != 0, jnp.abs(s @ Ss), jnp.inf)
    size = jnp.where(s @ Ss != 0, jnp.minimum(ratio, 1.0), 1.0)
    u, ds = left - size * Ss, d @ s
    fits = jnp.abs(ds) > 1e-12 * jnp.linalg.norm(d) * jnp.linalg.norm(s)
    safe = jnp.where(fits, ds, 1.0)
    both = (jnp.outer(u, d) + jnp.outer(d, u)) / safe
    new = size * state.S + both - (s @ u) / safe**2 * jnp.outer(d, d)
    return jnp.where(fits, new, state.S)


def damping(B: Array, g: Array, radius: Scalar) -> Scalar:
    r"""The least $\sigma \ge 0$ with $|(B + \sigma)^{-1} g|$ at most the radius, where
    $B + \sigma$ is positive definite (Moré and Sorensen, 1983), by bisection."""
    w, V = jnp.linalg.eigh(B)
    along = V.T @ g
    edge = jnp.maximum(-w[0], 0.0)
    size = jnp.linalg.norm(g) / radius

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        mid = (low + high) / 2
        shift = w + mid
        sound = jnp.where(shift > 0, shift, 1.0)
        long = jnp.linalg.norm(along / sound) > radius
        more = long | (shift[0] <= 0)
        return jnp.where(more, mid, low), jnp.where(more, high, mid)

    return jax.lax.fori_loop(0, HALVINGS, halve, (edge, edge + size))[1]


def nearer(B: Array, g: Array, radius: Scalar) -> Float[Array, " k"]:
    r"""The least of $g^T p + p^T B p/2$ among steps no longer than a radius."""
    more = damping(B, g, radius) * jnp.eye(len(g), dtype=g.dtype)
    return -jnp.linalg.solve(B + more, g)
