"""Convex quadratic programs within bounds, by an active-set method."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def max_step(p: Array, low: Array, high: Array) -> Float[Array, " k"]:
    """Return, for each entry, the step length along `p` at which it meets a bound."""
    room = jnp.where(p > 0, high, low)
    return jnp.where(p != 0, room / jnp.where(p != 0, p, 1.0), jnp.inf)


def solve_box_qp(B: Array, g: Array, low: Array, high: Array) -> Float[Array, " k"]:
    r"""Return the minimiser of $g^T p + p^T B p/2$ within bounds, which contain zero.

    Primal active-set method (Nocedal and Wright, *Numerical Optimization*, 2006,
    section 16.5): a bound becomes active where the step meets it, and the active bound
    with the most negative multiplier is released, until there is none.
    """
    k = len(g)

    def iterate(carry: tuple) -> tuple:
        p, active, _, count = carry
        free = ~active
        both = free[:, None] & free[None, :]
        gradient = jnp.where(free, g + B @ p, 0.0)
        step = -jnp.linalg.solve(jnp.where(both, B, jnp.eye(k)), gradient)
        lengths = jnp.where(free, max_step(step, low - p, high - p), jnp.inf)
        blocking = jnp.argmin(lengths)
        length = jnp.clip(lengths[blocking], 0.0, 1.0)
        p = jnp.clip(p + length * step, low, high)
        blocked = length < 1
        gradient = g + B @ p
        inward = jnp.where(p <= low, -gradient, gradient)  # minus the multipliers
        inward = jnp.where(active, inward, -jnp.inf)
        worst = jnp.argmax(inward)
        released = ~blocked & (inward[worst] > 0)
        each = jnp.arange(k)
        active = jnp.where(
            blocked,
            active | (each == blocking),
            active & ~(released & (each == worst)),
        )
        return p, active, ~blocked & ~released, count + 1

    at_bound = ((low >= 0) & (g > 0)) | ((high <= 0) & (g < 0))
    start = (jnp.zeros_like(g), at_bound, jnp.array(False), 0)
    unfinished = lambda carry: ~carry[2] & (carry[3] < 10 * k)
    return jax.lax.while_loop(unfinished, iterate, start)[0]
